"""What gradient hooks of every framework share."""

import os
import threading
import weakref
from collections import deque
from typing import Any, Protocol

from msprobe._core import Ticket


class GradientHooks(Protocol):
    """Catches the gradients that the framework computes and hands them to the core."""

    def register(self, ticket: Ticket, tensors: list[Any], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of the save ``name``."""

    def end_step(self) -> None:
        """Cancels what must not outlive the step."""


class ProcessLock:
    """A lock that a thread may take again, as a signal handler or a finaliser does that saves.

    In a forked child it is a new one: the parent's may be held for ever there.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        reference = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _renew(reference()))

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _renew(lock: ProcessLock | None) -> None:
    if lock is not None:
        lock._lock = threading.RLock()


class WaitingTickets:
    """The saves of one tensor that wait for a backward, oldest first, by name.

    Not thread-safe: the owner locks.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[tuple[Ticket, list[int]]]] = {}

    def add(self, name: str, place: int, ticket: Ticket) -> None:
        """Lets the tensor wait, which is the leaf number ``place`` of the save ``name``.

        A tensor that is several leaves of one save gets its gradient in all of them.
        """
        queue = self._waiting.setdefault(name, deque())
        if queue and queue[-1][0] is ticket:
            queue[-1][1].append(place)
        else:
            queue.append((ticket, [place]))

    def spend(self) -> list[tuple[Ticket, int]]:
        """Takes the oldest save of each name: what one backward is for."""
        oldest = [queue.popleft() for queue in self._waiting.values() if queue]
        return [(ticket, place) for ticket, places in oldest for place in places]

    def is_empty(self) -> bool:
        """Tells whether no save waits."""
        return not any(self._waiting.values())

    def clear(self) -> None:
        """Cancels all tickets."""
        self._waiting.clear()
