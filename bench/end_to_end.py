"""End to end: ours beside the peer and beside plain writers, interleaved A B A B in one run.

Each contestant is a process (worker.py). Medians over the rounds, and ratios of the medians.
"""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from contestants import Contestant, interleave
from text import GIB, MIB, SMALL

WORKER = Path(__file__).with_name("worker.py")
REPEATS = {SMALL: 200, MIB: 20}  # saves in a round; one of larger tensors
ROUNDS = {SMALL: 15, MIB: 9, 64 * MIB: 7, GIB: 3}


@dataclass(frozen=True)
class Case:
    """One row of a table."""

    framework: str
    task: str
    size: int
    dtype: str = "float32"
    layout: str = "contiguous"
    rivals: tuple[str, ...] = ("peer",)

    def request(self):
        return {
            "dtype": self.dtype,
            "size": self.size,
            "layout": self.layout,
            "repeats": REPEATS.get(self.size, 1),
            "threads": 1,
            "caller_only": self.task == "async",
        }


def pytorch_cases():
    rivals = {
        "tensor": ("peer", "np.save", "torch.save", "safetensors", "write()"),
        "async": ("peer", "memcpy"),
    }
    sizes = (SMALL, MIB, 64 * MIB, GIB)
    tasks = ("statistics", "md5", "tensor", "async")
    rows = [Case("pytorch", "filtered", SMALL, rivals=())]
    rows += [
        Case("pytorch", task, size, rivals=rivals.get(task, ("peer",)))
        for task in tasks
        for size in sizes
    ]
    dtypes = ("bfloat16", "float16", "int64", "float8_e4m3fn")
    rows += [Case("pytorch", "statistics", 64 * MIB, dtype) for dtype in dtypes]
    rows += [
        Case("pytorch", task, 64 * MIB, layout="transposed") for task in ("statistics", "tensor")
    ]
    return rows


def mindspore_cases():
    """Without the peer, which cannot save on a CPU (report.py says why)."""
    rivals = {"tensor": ("np.save",), "async": ("np.save",), "graph": ("np.save",)}
    return [
        Case("mindspore", task, size, dtype, rivals=rivals.get(task, ()))
        for task in ("statistics", "md5", "tensor", "async", "graph")
        for dtype in ("float32", "bfloat16")
        for size in (SMALL, 64 * MIB)
    ]


def contestant(name, framework, task, peer_python):
    python = peer_python if name == "peer" else sys.executable
    if name == "ours":
        name = "graph" if task == "graph" else "msprobe"
    elif name == "peer":
        name = "msprobe"
    return Contestant([python, WORKER, name, "--framework", framework, "--task", task])


def measure(peer_python, report):
    """Runs all cases; gives their rows with the medians in seconds."""
    cases = pytorch_cases() + mindspore_cases()
    rows = []
    for framework, task in dict.fromkeys((case.framework, case.task) for case in cases):
        mine = [case for case in cases if (case.framework, case.task) == (framework, task)]
        names = dict.fromkeys(["ours", *(rival for case in mine for rival in case.rivals)])
        with ExitStack() as stack:
            running = {
                name: stack.enter_context(contestant(name, framework, task, peer_python))
                for name in names
            }
            for case in mine:
                chosen = {name: running[name] for name in ("ours", *case.rivals)}
                seconds = interleave(chosen, case.request(), ROUNDS[case.size])
                rows.append({**vars(case), "seconds": seconds})
                report(rows[-1])
    return rows
