"""Catches gradients with tensor hooks."""

import threading
from collections import deque
from functools import partial

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from msprobe import _core
from msprobe.common.adapter import logger


class _LeafTickets:
    """The saves of one leaf tensor that wait for a backward, oldest first, by name and place."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, int], deque[_core.Ticket]] = {}
        self.handle: torch.utils.hooks.RemovableHandle | None = None


class TorchGradientHooks:
    """Hands each gradient to the core under the ticket of its save.

    The hook of an activation lives and dies with its graph. A leaf (a parameter) outlives the
    step, so it has one hook however often it is saved; each backward takes the oldest ticket of
    each name, and the end of the step removes the hook with the tickets that are left.

    Thread: any; hooks run in the threads of autograd.
    """

    def __init__(self, core: _core.Debugger) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._leaves: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def register(self, ticket: _core.Ticket, tensors: list[torch.Tensor], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of a save that expect one."""
        for place, tensor in enumerate(tensors):
            try:
                if tensor.is_leaf:
                    self._wait_at_leaf(tensor, (name, place), ticket)
                else:
                    tensor.register_hook(partial(self._core.save_gradient, ticket, place))
            except (
                RuntimeError
            ) as error:  # a tensor that takes no hook, such as a functorch wrapper
                logger.warning("msprobe: no gradient for %r: %s", name, error)

    def end_step(self) -> None:
        """Removes the hooks of leaves and cancels their unspent tickets."""
        with self._lock:
            leaves = list(self._leaves.values())
            self._leaves = WeakTensorKeyDictionary()
        for leaf in leaves:
            leaf.waiting.clear()
            if leaf.handle is not None:
                leaf.handle.remove()

    def _wait_at_leaf(
        self, tensor: torch.Tensor, place: tuple[str, int], ticket: _core.Ticket
    ) -> None:
        with self._lock:
            leaf = self._leaves.get(tensor)
            if leaf is None:
                leaf = _LeafTickets()
                leaf.handle = tensor.register_hook(partial(self._on_leaf_gradient, leaf))
                self._leaves[tensor] = leaf
            leaf.waiting.setdefault(place, deque()).append(ticket)

    def _on_leaf_gradient(self, leaf: _LeafTickets, gradient: torch.Tensor) -> None:
        with self._lock:
            spent = [
                (place, queue.popleft()) for (_, place), queue in leaf.waiting.items() if queue
            ]
        for place, ticket in spent:
            self._core.save_gradient(ticket, place, gradient)
