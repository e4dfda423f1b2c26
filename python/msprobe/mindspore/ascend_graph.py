"""Saves in a graph on Ascend, where no operator of ours can run: MindSpore's own ``TensorDump``.

It fills in ``{step}`` and ``{rank}`` itself, appends the dtype, and counts in its own way.
"""

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import ops

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


def gradient_callback(save_dir: str, name: str) -> Callable[[Any], Any]:
    """Makes the function that a graph calls with a gradient and that gives it back."""

    def save_gradient(gradient: Any) -> Any:
        data = gradient
        if data.dtype == ms.bfloat16:
            data = data.float()
        _operator(_file(save_dir, name), data)
        return gradient

    return save_gradient


def end_step() -> None:
    """Ends the step in the operator's numbering, on the device, in order with the graphs."""
    signal = ms.Tensor([1], dtype=ms.float32)
    ops.primitive._run_op(_operator, "TensorDump", (_STEP_SIGNAL, signal))
    _operator(_STEP_SIGNAL, signal)
