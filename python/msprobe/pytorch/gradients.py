"""Catches gradients with tensor hooks."""

import threading
from functools import partial

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from msprobe._core import Debugger, Ticket
from msprobe.common.adapter import logger
from msprobe.common.gradients import WaitingTickets


class _HookedLeaf:
    """A leaf tensor's one hook and the saves that wait for it."""

    def __init__(self) -> None:
        self.waiting = WaitingTickets()
        self.handle: torch.utils.hooks.RemovableHandle | None = None


class TorchGradientHooks:
    """Hands each gradient to the core under the ticket of its save.

    The hook of an activation lives and dies with its graph. A leaf (a parameter) outlives the
    step, so it has one hook however often it is saved; each backward takes the oldest ticket of
    each name, and the end of the step removes the hook with the tickets that are left.

    Thread: any; hooks run in the threads of autograd.
    """

    def __init__(self, core: Debugger) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._leaves: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def register(self, ticket: Ticket, tensors: list[torch.Tensor], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of a save that expect one."""
        for place, tensor in enumerate(tensors):
            try:
                if tensor.is_leaf:
                    self._wait_at_leaf(tensor, name, place, ticket)
                else:
                    tensor.register_hook(partial(self._core.save_gradient, ticket, place))
            except RuntimeError as error:  # a tensor that takes no hook: a functorch wrapper
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

    def _wait_at_leaf(self, tensor: torch.Tensor, name: str, place: int, ticket: Ticket) -> None:
        with self._lock:
            leaf = self._leaves.get(tensor)
            if leaf is None:
                leaf = _HookedLeaf()
                leaf.handle = tensor.register_hook(partial(self._on_leaf_gradient, leaf))
                self._leaves[tensor] = leaf
            leaf.waiting.add(name, place, ticket)

    def _on_leaf_gradient(self, leaf: _HookedLeaf, gradient: torch.Tensor) -> None:
        with self._lock:
            spent = leaf.waiting.spend()
        for ticket, place in spent:
            self._core.save_gradient(ticket, place, gradient)
