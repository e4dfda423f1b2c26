"""What saving adds to a training step: the modes of ours and the peer's, interleaved.

Each mode is a process that trains for some seconds when asked: `training.py MODEL MODE`. It answers
with the seconds of a step, and with what async mode left to do after the last one, for each step.
"""

import argparse
import functools
import os
import statistics
import sys
import time
from contextlib import ExitStack

from contestants import Contestant
from serve import remove_steps, serve, write_config

# (whose, mode); the one that the others are compared with comes first.
CONTESTANTS = (
    ("ours", "off"),
    ("ours", "statistics"),
    ("ours", "statistics async"),
    ("ours", "md5"),
    ("ours", "tensor"),
    ("ours", "tensor async"),
    ("peer", "statistics"),
    ("peer", "tensor"),
    ("peer", "tensor async"),
)
SECONDS = 0.4  # of each one in a round
ROUNDS = 9
WARM_UP = 2


def measure(peer_python, report):
    """Gives rows with the medians over the rounds and the median of the ratios to `off`."""
    rows = []
    for model in MODELS:
        with ExitStack() as stack:
            running = {}
            for whose, mode in CONTESTANTS:
                python = peer_python if whose == "peer" else sys.executable
                command = [python, __file__, model, mode]
                running[whose, mode] = stack.enter_context(Contestant(command))
            answers = {name: [] for name in running}
            for _ in range(ROUNDS + 1):
                for name, contestant in running.items():
                    answers[name].append(contestant.ask(SECONDS))
        for name, taken in answers.items():
            rows.append(summary(model, name, taken[1:], answers[CONTESTANTS[0]][1:]))
            report(rows[-1])
    return rows


def summary(model, name, taken, without):
    """One row. A ratio is taken within a round, so that the machine's moods cancel out."""
    ratios = [mine["step"] / off["step"] for mine, off in zip(taken, without, strict=True)]
    return {
        "model": model,
        "whose": name[0],
        "mode": name[1],
        "seconds": statistics.median(answer["step"] for answer in taken),
        "left": statistics.median(answer["left"] for answer in taken),
        "ratio": statistics.median(ratios),
    }


# ---- the models. `save` is the debugger's, or does nothing -------------------------------------


def digits(torch, save):
    """The step of examples/demo.py: 64 images of 8x8 pixels, two layers, three saves."""
    nn, functional = torch.nn, torch.nn.functional
    hidden_layer, output_layer = nn.Linear(64, 32), nn.Linear(32, 10)
    parameters = [*hidden_layer.parameters(), *output_layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    images, labels = torch.rand(1797, 64), torch.randint(10, (1797,))

    def step():
        chosen = torch.randint(len(images), (64,))
        batch = {
            "data": [images[chosen], labels[chosen]],
            "learning_rate": 0.1,
            "optimizer": "SGD",
        }
        save(batch, "batch", False)
        hidden = functional.relu(hidden_layer(batch["data"][0]))
        save(hidden, "hidden")
        loss = functional.cross_entropy(output_layer(hidden), batch["data"][1])
        save(loss, "loss", False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def transformer(torch, save):
    """Four layers of width 128 on 8 x 64 tokens; five saves of 256 KiB with gradients, the loss."""
    nn, functional = torch.nn, torch.nn.functional
    embedding, head = nn.Embedding(1000, 128), nn.Linear(128, 1000)
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True) for _ in range(4)
    )
    parameters = [*embedding.parameters(), *layers.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    tokens = torch.randint(1000, (8, 65))

    def step():
        hidden = embedding(tokens[:, :-1])
        save(hidden, "embedding")
        for layer in layers:
            hidden = layer(hidden)
            save(hidden, "hidden")
        loss = functional.cross_entropy(head(hidden).flatten(0, 1), tokens[:, 1:].flatten())
        save(loss, "loss", False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


MODELS = {"digits": digits, "transformer": transformer}


# ---- a contestant ------------------------------------------------------------------------------


class Training:
    def __init__(self, model, mode, folder):
        import torch

        from msprobe.pytorch import PrecisionDebugger

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        torch.manual_seed(1)
        self.debugger_class, self.mode, self.folder = PrecisionDebugger, mode, folder
        self.save = PrecisionDebugger.save
        self.step = MODELS[model](torch, self._save)

    def _save(self, *arguments):
        if self.mode != "off":
            self.save(*arguments)

    def run(self, seconds):
        # A debugger for each round, since only `close` waits for what async mode has left.
        debugger = self._debugger()
        for _ in range(WARM_UP):
            self._step(debugger)
        steps = 0
        start = end = time.perf_counter()
        while end < start + seconds:
            self._step(debugger)
            steps += 1
            end = time.perf_counter()
        if hasattr(debugger, "close"):  # the peer's has none: its step() waits
            debugger.close()
        left = time.perf_counter() - end
        remove_steps(self.folder / "dump")
        return {"step": (end - start) / steps, "left": left / steps}

    def _debugger(self):
        if self.mode == "off":
            return None
        return self.debugger_class(str(write_config(self.folder, self.mode)))

    def _step(self, debugger):
        self.step()
        if debugger is not None:
            debugger.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("mode", choices=sorted({mode for _, mode in CONTESTANTS}))
    arguments = parser.parse_args()
    training = functools.partial(Training, arguments.model, arguments.mode)
    serve(lambda folder: training(folder).run)


if __name__ == "__main__":
    main()
