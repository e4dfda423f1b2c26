"""What gradient hooks of every framework share."""

from collections import deque
from typing import Any, Protocol

from msprobe._core import Ticket


class GradientHooks(Protocol):
    """Catches the gradients that the framework computes and hands them to the core."""

    def register(self, ticket: Ticket, tensors: list[Any], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of the save ``name``."""

    def end_step(self) -> None:
        """Cancels what must not outlive the step."""


class WaitingTickets:
    """The saves of one tensor that wait for a backward, oldest first, by name and place.

    Not thread-safe: the owner locks.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], deque[Ticket]] = {}

    def add(self, name: str, place: int, ticket: Ticket) -> None:
        """Lets the tensor at ``place`` of the save ``name`` wait."""
        self._waiting.setdefault((name, place), deque()).append(ticket)

    def spend(self) -> list[tuple[Ticket, int]]:
        """Takes the oldest ticket of each name and place: what one backward is for."""
        return [(queue.popleft(), place) for (_, place), queue in self._waiting.items() if queue]

    def is_empty(self) -> bool:
        """Tells whether no save waits."""
        return not any(self._waiting.values())

    def clear(self) -> None:
        """Cancels all tickets."""
        self._waiting.clear()
