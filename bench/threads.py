"""Saves per second of one and of two user threads, with one and with two threads of the library.

MSPROBE_THREADS is how many threads the library may use for one large tensor.
"""

import sys
from contextlib import ExitStack

from contestants import Contestant, interleave
from end_to_end import WORKER
from text import MIB, SMALL

REPEATS = {SMALL: 500, 64 * MIB: 2}
ROUNDS = {SMALL: 9, 64 * MIB: 7}
ALLOWANCES = ("1", "2")


def measure(report):
    """Gives rows with the seconds for each save, all threads together."""
    rows = []
    for task in ("statistics", "md5", "tensor"):
        command = [sys.executable, WORKER, "msprobe", "--task", task]
        with ExitStack() as stack:
            running = {
                allowed: stack.enter_context(Contestant(command, {"MSPROBE_THREADS": allowed}))
                for allowed in ALLOWANCES
            }
            for size, repeats in REPEATS.items():
                chosen = {
                    (allowed, threads): _Asking(running[allowed], threads)
                    for allowed in ALLOWANCES
                    for threads in (1, 2)
                }
                request = {
                    "dtype": "float32",
                    "size": size,
                    "layout": "contiguous",
                    "repeats": repeats,
                    "caller_only": False,
                }
                seconds = interleave(chosen, request, ROUNDS[size])
                rows += [
                    {
                        "task": task,
                        "size": size,
                        "allowed": int(allowed),
                        "one": seconds[allowed, 1],
                        "two": seconds[allowed, 2],
                    }
                    for allowed in ALLOWANCES
                ]
                report(rows[-2])
                report(rows[-1])
    return rows


class _Asking:
    """A contestant that is asked for a number of threads."""

    def __init__(self, contestant, threads):
        self.contestant, self.threads = contestant, threads

    def ask(self, request):
        return self.contestant.ask({**request, "threads": self.threads})
