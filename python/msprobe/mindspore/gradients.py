"""Catches gradients with MindSpore's tensor hooks (PyNative)."""

import weakref
from collections import deque
from functools import partial
from typing import Any

import mindspore as ms

from msprobe._core import Debugger, Ticket
from msprobe.common.gradients import ProcessLock, WaitingTickets
from msprobe.common.leaves import first_line


class _HookedTensor:
    """A tensor's one hook and the saves that wait for it."""

    def __init__(self, tensor: ms.Tensor, step: int, dead: "deque[_HookedTensor]") -> None:
        self.key = id(tensor)
        self.reference = weakref.ref(tensor, lambda _: dead.append(self))
        self.is_parameter = isinstance(tensor, ms.Parameter)
        self.step = step
        self.waiting = WaitingTickets()
        self.handle: Any = None


class MindSporeGradientHooks:
    """Hands each gradient to the core under the ticket of its save.

    MindSpore does not tell an activation from an input that is used again and again, so every
    tensor has one hook however often it is saved, and each backward takes the oldest ticket of each
    name. A parameter's tickets end with the step. So do those of any tensor that is saved again in
    a later step: it was no activation. A hook is removed at the next save or step, never inside
    itself, which crashes MindSpore 2.10.

    Thread: any.
    """

    def __init__(self, core: Debugger) -> None:
        self._core = core
        self._lock = ProcessLock()
        self._step = 0
        self._tensors: dict[int, _HookedTensor] = {}
        # Filled by the garbage collector, at any moment and with any lock held.
        self._dead: deque[_HookedTensor] = deque()

    def register(self, ticket: Ticket, tensors: list[ms.Tensor], name: str) -> None:
        """Waits for the gradients of ``tensors``, the leaves of a save that may get one."""
        self._clean_up()
        for place, tensor in enumerate(tensors):
            try:
                self._wait_at(tensor, name, place, ticket)
            except Exception as error:  # noqa: BLE001  # a tensor that takes no hook
                if "requires grad is false" in str(error):  # stop_gradient: there will be none
                    continue
                reason = f"no hook for the gradient: {first_line(error)}"
                self._core.report_failure(f"{name}_grad", reason)

    def end_step(self) -> None:
        """Removes the hooks of parameters with their unspent tickets, and those that are spent."""
        with self._lock:
            self._step += 1
            for hooked in self._tensors.values():
                if hooked.is_parameter:
                    hooked.waiting.clear()
        self._clean_up()

    def _clean_up(self) -> None:
        """Removes spent hooks, and forgets tensors that are gone: their graph keeps the hook."""
        with self._lock:
            while self._dead:
                hooked = self._dead.popleft()
                if self._tensors.get(hooked.key) is hooked:
                    del self._tensors[hooked.key]
            spent = [hooked for hooked in self._tensors.values() if hooked.waiting.is_empty()]
            for hooked in spent:
                del self._tensors[hooked.key]
        for hooked in spent:
            if hooked.reference() is not None:
                hooked.handle.remove()

    def _wait_at(self, tensor: ms.Tensor, name: str, place: int, ticket: Ticket) -> None:
        with self._lock:
            hooked = self._tensors.get(id(tensor))
            if hooked is None or hooked.reference() is not tensor:
                hooked = _HookedTensor(tensor, self._step, self._dead)
                hooked.handle = tensor.register_hook(partial(self._on_gradient, hooked))
                self._tensors[hooked.key] = hooked
            elif hooked.step != self._step:
                hooked.waiting.clear()
                hooked.step = self._step
            hooked.waiting.add(name, place, ticket)

    def _on_gradient(self, hooked: _HookedTensor, gradient: ms.Tensor) -> ms.Tensor:
        with self._lock:
            spent = hooked.waiting.spend()
        for ticket, place in spent:
            self._core.save_gradient(ticket, place, gradient)
        return gradient
