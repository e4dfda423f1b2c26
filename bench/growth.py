"""What save number N of one step costs, and the memory that is resident then.

Run in a process of its own by bench/__main__.py; prints one JSON line.
"""

import json
import logging
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import torch
from worker import SCRATCH

from msprobe.pytorch import PrecisionDebugger

MARKS = (1_000, 10_000, 100_000, 1_000_000)
WINDOW = 1_000


def resident_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main():
    os.environ["RANK"] = "0"
    logging.getLogger("msprobe").addHandler(logging.NullHandler())
    folder = Path(tempfile.mkdtemp(prefix="msprobe-bench-", dir=SCRATCH))
    try:
        debugger = PrecisionDebugger(dump_path=str(folder / "dump"))
        tensor = torch.randn(100)
        rows = []
        done = 0
        for mark in MARKS:
            for _ in range(mark - WINDOW - done):
                debugger.save(tensor, "x", False)
            start = time.perf_counter()
            for _ in range(WINDOW):
                debugger.save(tensor, "x", False)
            seconds = (time.perf_counter() - start) / WINDOW
            done = mark
            rows.append({"saves": mark, "seconds": seconds, "resident_mib": resident_mib()})
        print(json.dumps(rows))
        debugger.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
