"""One contestant of the end-to-end benchmark, in a process of its own.

Reads a JSON request a line, does the work it names, and answers with the seconds that a save took.
Runs on the project's interpreter and on the peer's, whose package has the same name and API.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def make_tensor(dtype, size, layout):
    """A tensor of `size` bytes; `layout` is contiguous or transposed."""
    kind = getattr(torch, dtype)
    count = max(size // kind.itemsize, 1)
    generator = torch.Generator().manual_seed(1)
    if kind.is_floating_point:
        tensor = torch.randn(count, generator=generator).to(kind)
    else:
        tensor = torch.randint(-1000, 1000, (count,), generator=generator, dtype=kind)
    if layout == "transposed":
        rows = 1024
        tensor = tensor[: count // rows * rows].view(-1, rows).T
    return tensor


class Msprobe:
    """Ours or the peer: the same calls."""

    def __init__(self, folder, task):
        from msprobe.pytorch import PrecisionDebugger

        config = {
            "task": "tensor" if task in ("tensor", "async") else "statistics",
            "level": "debug",
            "dump_path": str(folder / "dump"),
            "rank": [],
            "step": [10**6] if task == "filtered" else [],
            "async_dump": task == "async",
            "statistics": {"summary_mode": "md5" if task == "md5" else "statistics"},
            "tensor": {},
        }
        path = folder / "config.json"
        path.write_text(json.dumps(config))
        self.dump = folder / "dump"
        self.debugger = PrecisionDebugger(str(path))

    def save(self, tensor):
        self.debugger.save(tensor, "x", False)

    def flush(self):
        self.debugger.step()  # the peer writes its records here

    def clean(self):
        for folder in self.dump.glob("step*"):
            shutil.rmtree(folder, ignore_errors=True)


class Writer:
    """np.save, torch.save and safetensors: a file for each save, no statistics."""

    def __init__(self, folder, function):
        self.folder = folder / "files"
        self.folder.mkdir()
        self.function = function
        self.count = 0

    def save(self, tensor):
        self.count += 1
        self.function(tensor, self.folder / str(self.count))

    def flush(self):
        pass

    def clean(self):
        for path in self.folder.iterdir():
            path.unlink()


def write_npy(tensor, path):
    import numpy as np

    np.save(path.with_suffix(".npy"), tensor.numpy())


def write_pt(tensor, path):
    torch.save(tensor, path.with_suffix(".pt"))


def write_safetensors(tensor, path):
    from safetensors.torch import save_file

    save_file({"x": tensor}, path.with_suffix(".safetensors"))


WRITERS = {"np.save": write_npy, "torch.save": write_pt, "safetensors": write_safetensors}


def run(contestant, request):
    """Gives seconds for each save, the flush of a whole step included."""
    tensor = make_tensor(request["dtype"], request["size"], request["layout"])
    repeats = request["repeats"]
    # The peer frees the storage of a float8 tensor that it saves.
    fresh = request["dtype"].startswith("float8")
    saved = [tensor.clone() if fresh else tensor for _ in range(repeats if fresh else 1)]
    seconds = []
    for _ in range(request["rounds"]):
        if fresh:
            saved = [tensor.clone() for _ in range(repeats)]
        start = time.perf_counter()
        for index in range(repeats):
            contestant.save(saved[index % len(saved)])
        waited = time.perf_counter()
        contestant.flush()
        end = time.perf_counter()
        seconds.append(((waited if request["caller_only"] else end) - start) / repeats)
        contestant.clean()
    return min(seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant", help="msprobe, np.save, torch.save, safetensors")
    parser.add_argument("--task", default="statistics")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
    os.environ["RANK"] = "0"
    folder = Path(tempfile.mkdtemp(prefix="msprobe-bench-", dir=SCRATCH))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the contestants print is not for the driver
    try:
        if arguments.contestant == "msprobe":
            contestant = Msprobe(folder, arguments.task)
        else:
            contestant = Writer(folder, WRITERS[arguments.contestant])
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(run(contestant, json.loads(line))), file=answers, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
