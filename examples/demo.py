"""Trains a small model on scikit-learn's digits with saves in it, then shows what was saved.

Run by `./run demo`. There is one debugger in a process, so each of the two runs, task statistics
and task tensor in async mode, is a process of its own: `demo.py --task TASK --dump-path PATH`.
Then come the same digits with MindSpore: demo_mindspore.py.
"""

import argparse
import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import torch
from dump_tree import print_tree, read_records, step_folders
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from msprobe.pytorch import PrecisionDebugger, seed_all

STEPS = 300
SAVED_STEPS = ["0-2", 150, "298-299"]
BATCH = 64
LEARNING_RATE = 0.1


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.output = nn.Linear(32, 10)

    def forward(self, images):
        hidden = F.relu(self.hidden(images))
        PrecisionDebugger.save(hidden, "hidden")  # an activation, with its gradient
        return self.output(hidden)


def train(task, dump_path):
    config = {
        "task": task,
        "level": "debug",
        "dump_path": str(dump_path),
        "step": SAVED_STEPS,
        "async_dump": task == "tensor",
    }
    config_path = dump_path.with_suffix(".json")
    config_path.write_text(json.dumps(config, indent=2))

    seed_all(1234)
    debugger = PrecisionDebugger(str(config_path))
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    for step in range(STEPS):
        chosen = torch.randint(len(images), (BATCH,))
        batch = {
            "data": [images[chosen], labels[chosen]],
            "learning_rate": LEARNING_RATE,
            "optimizer": "SGD",
        }
        debugger.save(batch, "batch", save_backward=False)  # a nested variable
        loss = F.cross_entropy(model(batch["data"][0]), batch["data"][1])
        debugger.save(loss, "loss", save_backward=False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        debugger.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(f"  step {step:3}  loss {loss.item():.4f}", flush=True)


def run_in_own_process(task, dump_path):
    # RANK as a launcher (torchrun) sets it. Without one the folder is called proc{pid}.
    subprocess.run(
        [sys.executable, __file__, "--task", task, "--dump-path", str(dump_path)],
        env=os.environ | {"RANK": "0"},
        check=True,
    )


def fresh_folder():
    names = (f"demo_dump{number or ''}" for number in count())
    folder = next(path for path in map(Path, names) if not path.exists())
    folder.mkdir()
    return folder


def show_statistics(dump_path):
    print("\nWhat debug.json of step 0 says:")
    for key, record in read_records(dump_path / "step0").items():
        print(f"  {key}: {json.dumps(record)}")
    print("\nThe loss and the gradient of `hidden`, step by step:")
    for folder in step_folders(dump_path):
        records = read_records(folder)
        loss = records["loss.0.debug"]["Mean"]
        gradient = records["hidden_grad.0.debug"]["Norm"]
        print(f"  {folder.name:8} loss {loss:.4f}   gradient norm {gradient:.6f}")


def show_tensor_file(dump_path):
    record = read_records(dump_path / "step0")["hidden_grad.0.debug"]
    path = dump_path / "step0" / "rank0" / "dump_tensor_data" / record["data_name"]
    tensor = torch.load(path, weights_only=True)
    print(f"\ntorch.load of {path}:")
    print(f"  {tensor.dtype}, shape {tuple(tensor.shape)}, first values {tensor[0, :4].tolist()}")
    print(f"  its norm {tensor.double().norm():.9f}, in debug.json {record['Norm']:.9f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=["statistics", "tensor"])
    parser.add_argument("--dump-path", type=Path)
    arguments = parser.parse_args()
    if arguments.task:
        train(arguments.task, arguments.dump_path)
        return

    folder = fresh_folder()
    statistics, tensors = folder / "statistics", folder / "tensor"
    print("Training with task statistics:", flush=True)
    run_in_own_process("statistics", statistics)
    print("Training with task tensor, async mode:", flush=True)
    run_in_own_process("tensor", tensors)

    print(f"\nThe dumps are in {folder.resolve()}\n")
    print_tree(statistics)
    print_tree(tensors)
    show_statistics(statistics)
    show_tensor_file(tensors)

    print()
    mindspore_demo = Path(__file__).with_name("demo_mindspore.py")
    subprocess.run([sys.executable, mindspore_demo, folder / "mindspore"], check=True)


if __name__ == "__main__":
    main()
