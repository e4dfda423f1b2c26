"""Catches gradients with tensor hooks."""

import os
from functools import partial
from weakref import WeakValueDictionary

import torch

from msprobe._core import Debugger, Ticket
from msprobe.common.gradients import ProcessLock, WaitingTickets
from msprobe.common.leaves import first_line


class _Hook(partial):  # type: ignore[type-arg]
    """A hook of ours; PyTorch may leave it out, without a warning, when it saves the tensor."""

    __torch_unserializable__ = True


class _HookedLeaf:
    """A leaf tensor's one hook and the saves that wait for it; lives as long as the hook."""

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
        self._lock = ProcessLock()
        self._process = os.getpid()
        # By id. An entry is there as long as its tensor. There is no reference to the tensor
        # itself, not even a weak one, because that forbids torch.utils.swap_tensors.
        self._leaves: WeakValueDictionary[int, _HookedLeaf] = WeakValueDictionary()

    def register(self, ticket: Ticket, tensors: list[torch.Tensor], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of a save that expect one."""
        for place, tensor in enumerate(tensors):
            try:
                with torch._C.DisableTorchFunction():
                    if tensor.is_leaf:
                        self._wait_at_leaf(tensor, name, place, ticket)
                    else:
                        tensor.register_hook(_Hook(self._core.save_gradient, ticket, place))
            except Exception as error:  # noqa: BLE001  # a tensor that takes no hook: functorch
                reason = f"no hook for the gradient: {first_line(error)}"
                self._core.report_failure(f"{name}_grad", reason)

    def end_step(self) -> None:
        """Removes the hooks of leaves and cancels their unspent tickets."""
        with self._lock:
            leaves = list(self._leaves.values())
            self._leaves = WeakValueDictionary()
        for leaf in leaves:
            leaf.waiting.clear()
            if leaf.handle is not None:
                leaf.handle.remove()

    def _wait_at_leaf(self, tensor: torch.Tensor, name: str, place: int, ticket: Ticket) -> None:
        with self._lock:
            if self._process != os.getpid():  # forked: the tickets in there are the parent's
                self._process = os.getpid()
                self._leaves = WeakValueDictionary()
            leaf = self._leaves.get(id(tensor))
            if leaf is None:
                leaf = _HookedLeaf()
                leaf.handle = tensor.register_hook(_Hook(self._on_leaf_gradient, leaf))
                self._leaves[id(tensor)] = leaf
            leaf.waiting.add(name, place, ticket)

    def _on_leaf_gradient(self, leaf: _HookedLeaf, gradient: torch.Tensor | None) -> None:
        if gradient is None:  # a backward that has none for this tensor
            return
        with self._lock:
            spent = leaf.waiting.spend()
        for ticket, place in spent:
            self._core.save_gradient(ticket, place, gradient)
