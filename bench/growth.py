"""What the millionth save of a step costs, and the thousandth step, and the memory used then.

`growth.py saves`, `growth.py steps --task TASK`: a process of its own; prints one JSON line.
"""

import argparse
import json
import logging
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SAVE_MARKS = (1_000, 10_000, 100_000, 1_000_000)
STEP_MARKS = (1, 100, 1_000)
WINDOW = 1_000  # saves before a mark, of which the median of the hundreds counts
STEP_WINDOW = 20
SAVES_IN_STEP = 4


def measure():
    """Runs the two parts as processes; gives their rows."""

    def rows(*arguments):
        finished = subprocess.run(
            [sys.executable, __file__, *arguments], capture_output=True, text=True, check=True
        )
        return json.loads(finished.stdout.splitlines()[-1])

    steps = [
        {"task": task, **row}
        for task in ("statistics", "async")
        for row in rows("steps", "--task", task)
    ]
    return {"saves": rows("saves"), "steps": steps}


def usage():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "resident_mib": pages * resource.getpagesize() / 2**20,
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def save_rows(debugger, torch):
    tensor = torch.randn(100)

    def hundred():
        for _ in range(100):
            debugger.save(tensor, "x", False)

    done = 0
    for mark in SAVE_MARKS:
        while done < mark - WINDOW:
            hundred()
            done += 100
        taken = [seconds_of(hundred) / 100 for _ in range(WINDOW // 100)]
        done = mark
        yield {"saves": mark, "seconds": statistics.median(taken), **usage()}


def step_rows(debugger, torch):
    weight = torch.randn(1_000, requires_grad=True)

    def one_step():
        for _ in range(SAVES_IN_STEP):
            activation = weight * 2
            debugger.save(activation, "x")  # its gradient too
            activation.sum().backward()
        debugger.step()

    taken = []
    for number in range(1, STEP_MARKS[-1] + 1):
        taken.append(seconds_of(one_step))
        if number in STEP_MARKS:
            yield {
                "steps": number,
                "seconds": statistics.median(taken[-STEP_WINDOW:]),
                **usage(),
            }


def main():
    import torch
    from serve import SCRATCH, write_config

    from msprobe.pytorch import PrecisionDebugger

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["saves", "steps"])
    parser.add_argument("--task", default="statistics")
    arguments = parser.parse_args()
    os.environ["RANK"] = "0"
    logging.getLogger("msprobe").addHandler(logging.NullHandler())
    folder = Path(tempfile.mkdtemp(prefix="msprobe-bench-", dir=SCRATCH))
    try:
        debugger = PrecisionDebugger(str(write_config(folder, arguments.task)))
        rows = {"saves": save_rows, "steps": step_rows}[arguments.part]
        print(json.dumps(list(rows(debugger, torch))))
        debugger.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
