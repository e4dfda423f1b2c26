"""End to end: ours beside the peer and beside plain writers, interleaved A B A B in one run.

Each contestant is a process (bench/worker.py). Medians over the rounds, and ratios of the medians.
"""

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
KIB, MIB, GIB = 2**10, 2**20, 2**30
SMALL = 4000  # 1,000 float32
ROUNDS = 5


@dataclass
class Case:
    """One row of the table."""

    task: str
    size: int
    dtype: str = "float32"
    layout: str = "contiguous"
    rivals: tuple[str, ...] = ("peer",)
    seconds: dict[str, float] = field(default_factory=dict)

    def repeats(self):
        return {SMALL: 200, MIB: 20}.get(self.size, 1)

    def request(self):
        return {
            "dtype": self.dtype,
            "size": self.size,
            "layout": self.layout,
            "repeats": self.repeats(),
            "rounds": 1,
            "caller_only": self.task == "async",
        }


def cases():
    writers = ("peer", "np.save", "torch.save", "safetensors")
    rows = [Case("filtered", SMALL, rivals=())]
    rows += [
        Case(task, size, rivals=writers if task == "tensor" else ("peer",))
        for task in ("statistics", "md5", "tensor", "async")
        for size in (SMALL, MIB, 64 * MIB, GIB)
    ]
    dtypes = ("bfloat16", "float16", "int64", "float8_e4m3fn")
    rows += [Case("statistics", 64 * MIB, dtype) for dtype in dtypes]
    rows += [Case(task, 64 * MIB, layout="transposed") for task in ("statistics", "tensor")]
    return rows


class Contestant:
    """A worker process."""

    def __init__(self, python, name, task):
        command = [python, str(WORKER), name, "--task", task]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)} did not start")

    def seconds(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args} ended in the middle of {request}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def contestant(name, task, peer_python):
    if name == "ours":
        return Contestant(sys.executable, "msprobe", task)
    if name == "peer":
        return Contestant(peer_python, "msprobe", task)
    return Contestant(sys.executable, name, task)


def measure(peer_python, report=print):
    """Runs all cases; gives them with their medians in seconds."""
    rows = cases()
    for task in dict.fromkeys(row.task for row in rows):
        mine = [row for row in rows if row.task == task]
        names = dict.fromkeys(["ours", *(rival for row in mine for rival in row.rivals)])
        running = {name: contestant(name, task, peer_python) for name in names}
        for row in mine:
            taken = {name: [] for name in ("ours", *row.rivals)}
            rounds = 3 if row.size == GIB else ROUNDS
            for _ in range(rounds + 1):  # the first one warms up
                for name, seconds in taken.items():
                    seconds.append(running[name].seconds(row.request()))
            row.seconds = {name: statistics.median(values[1:]) for name, values in taken.items()}
            report(describe(row))
        for process in running.values():
            process.close()
    return rows


def text_of_size(size):
    if size == SMALL:
        return "1,000 floats"
    return f"{size // MIB} MiB" if size < GIB else f"{size // GIB} GiB"


def text_of_time(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def describe(row):
    others = ", ".join(
        f"{name} {text_of_time(seconds)} ({seconds / row.seconds['ours']:.1f}x)"
        for name, seconds in row.seconds.items()
        if name != "ours"
    )
    label = f"{row.task}, {text_of_size(row.size)}, {row.dtype}, {row.layout}"
    return f"{label}: ours {text_of_time(row.seconds['ours'])}; {others}"
