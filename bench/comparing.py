"""How long `msprobe compare` takes: two large tensors, and 100,000 rows of statistics.

The same dumps go to ours, to the peer's own `msprobe compare`, and to a plain read of both files.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from text import GIB

ROUNDS = 3
ROWS = 100_000
PLAIN_READ = """
import sys
block = memoryview(bytearray(1 << 20))
for path in sys.argv[1:]:
    with open(path, "rb", buffering=0) as file:
        while file.readinto(block):
            pass
"""
WRITER = """
import sys
import torch
from msprobe.pytorch import PrecisionDebugger

folder, task, saves, numel, noise = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
torch.manual_seed(1)
debugger = PrecisionDebugger(dump_path=folder, task=task)
x = torch.randn(int(numel))
x += noise * torch.randn(int(numel))
for i in range(int(saves)):
    debugger.save(x, f"x{i}", False)
"""


def measure(peer_python, report):
    """Gives a row for each pair of dumps: seconds and greatest resident memory by contestant."""
    folder = Path(tempfile.mkdtemp(prefix="msprobe-bench-", dir="/dev/shm"))
    try:
        rows = []
        for work, task, saves, numel in (
            ("tensors", "tensor", 1, GIB // 4),
            ("rows", "statistics", ROWS, 10),
        ):
            for side, noise in (("golden", 0), ("target", 1e-4)):
                write(folder / work / side, task, saves, numel, noise)
            rows.append({"work": work, **measure_pair(folder / work, peer_python)})
            report(rows[-1])
            shutil.rmtree(folder / work)
        return rows
    finally:
        shutil.rmtree(folder)


def write(folder, task, saves, numel, noise):
    command = [sys.executable, "-c", WRITER, folder, task, saves, numel, noise]
    environment = {**os.environ, "RANK": "0"}
    subprocess.run([str(part) for part in command], env=environment, check=True)


def measure_pair(folder, peer_python):
    golden, target = folder / "golden", folder / "target"
    files = [path for side in (golden, target) for path in side.rglob("*") if path.is_file()]
    commands = {
        "ours": [sys.executable, "-m", "msprobe", "compare", golden, target, "-o", folder / "ours"],
        "read": [sys.executable, "-S", "-c", PLAIN_READ, *files],
        "peer": [
            Path(peer_python).parent / "msprobe",
            *("compare", "-gp", golden / "step0", "-tp", target / "step0", "-o", folder / "peer"),
        ],
    }
    taken = {name: [] for name in commands}
    for turn in range(ROUNDS):
        for name, command in commands.items():
            if name != "peer" or turn == 0:  # it takes minutes
                taken[name].append(run(command))
    return {
        "bytes": sum(path.stat().st_size for path in files),
        "seconds": {name: statistics.median(s for s, _ in turns) for name, turns in taken.items()},
        "resident_mib": {name: max(memory for _, memory in turns) for name, turns in taken.items()},
    }


def run(command):
    """Gives the seconds and the greatest resident memory (MiB) of a command."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):  # 1: differences were found
        raise RuntimeError(f"{command}: exit status {code}")
    return seconds, usage.ru_maxrss / 1024
