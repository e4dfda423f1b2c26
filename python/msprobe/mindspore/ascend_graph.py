"""Saves in a graph on Ascend, where no operator of ours can run: MindSpore's own ``TensorDump``.

It fills in ``{step}`` and ``{rank}`` itself, appends the dtype, and counts in its own way.
"""

from typing import Any

import mindspore as ms
from mindspore import ops

from msprobe.mindspore.identity_cell import IdentityCell

_STEP_SIGNAL = "<tensordump-update-step>"  # what TensorDump takes for the end of a step

_operator = ops.TensorDump()


@ms.constexpr
def _file(save_dir: str, name: str) -> str:
    return f"{save_dir.rstrip('/')}/{{step}}/{{rank}}/{name}"


def save_tensor(save_dir: str, name: str, data: ms.Tensor) -> None:
    """Puts the operator into the graph that is being compiled."""
    if data.dtype == ms.bfloat16:
        data = data.float()
    _operator(_file(save_dir, name), data)


class AscendGradientSaverCell(IdentityCell):
    """The identity, whose backward puts the operator into the graph."""

    def bprop(self, data: Any, out: Any, gradient: Any) -> Any:
        """Passes the gradient on."""
        saved = gradient
        if saved.dtype == ms.bfloat16:
            saved = saved.float()
        _operator(_file(self.save_dir, self.name), saved)
        return (gradient,)


def end_step() -> None:
    """Ends the step in the operator's numbering, on the device, in order with the graphs."""
    signal = ms.Tensor([1], dtype=ms.float32)
    ops.primitive._run_op(_operator, "TensorDump", (_STEP_SIGNAL, signal))
    _operator(_STEP_SIGNAL, signal)
