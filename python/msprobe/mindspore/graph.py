"""`save`, `save_grad` and `step` in graphs, in ``@ms.jit`` functions and in PyNative mode.

MindSpore compiles the functions here into the graph that calls them. What is left there of a save
is one operator, `_SaveOperator`, with a constant that says where the data belongs; its code is in
the core (``bindings/mindspore_op.cpp``). In PyNative mode the operator object is called as a
Python function.
"""

import atexit
import os
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops import CustomRegOp, DataType

from msprobe import _core
from msprobe.common.adapter import log_message, log_summary
from msprobe.mindspore import ascend_graph
from msprobe.mindspore.debugger import current_rank
from msprobe.mindspore.identity_cell import IdentityCell
from msprobe.mindspore.leaves import LeafDescriber

try:  # MindSpore from 2.9 on
    from mindspore.graph.api import _pynative_executor
except ImportError:
    from mindspore.common.api import _pynative_executor

_OPERATOR = "MsprobeSave"
_MAX_DEPTH = 400  # as PrecisionDebugger.save
_PROCESS = os.getpid()
_describer = LeafDescriber()


def save(save_dir: str, name: str, data: Any) -> None:
    """Saves tensors to ``{save_dir}/step{N}/rank{R}/{name}_{dtype}_{k}.npy``.

    In a graph this happens each time the graph runs. k counts the saves of the name in its step;
    bfloat16 is stored as float32, without loss.

    Args:
        save_dir: The folder; created when the first data comes. A graph finds a relative one from
            where the process stands then, and keeps to that.
        name: The front part of the file name.
        data: A tensor, or a list, tuple or dict of such, nested as you like: their files are
            called ``{name}.{key}.{index}_...``. None is skipped.

    Raises:
        TypeError: An argument is of another type. In a graph, while it is compiled.
        RuntimeError: In a graph on a GPU, while it is compiled.
    """
    _check_name("save", save_dir, name)
    _save_items(save_dir, name, data, 0)


def save_grad(save_dir: str, name: str, data: ms.Tensor) -> ms.Tensor:
    """Saves the gradient of a tensor to ``{save_dir}/step{N}/rank{R}/{name}_grad_{dtype}_{k}.npy``.

    Args:
        save_dir: The folder; created when the first data comes.
        name: The front part of the file name.
        data: The tensor.

    Returns:
        ``data``, through which the gradient is caught: go on with this one. Neither the value nor
        the gradient is changed.

    Raises:
        TypeError: An argument is of another type. In a graph, while it is compiled.
        RuntimeError: In a graph on a GPU, while it is compiled.
    """
    _check_name("save_grad", save_dir, name)
    if not isinstance(data, ms.Tensor):
        _refuse_data("save_grad", "a Tensor", data)
    return _GradientSaver(save_dir, name + "_grad", _graph_target())(data)


def step() -> None:
    """Ends the step: what is saved by graphs that are called from now on belongs to the next one.

    Waits for the graphs that were called before.
    """
    _core.graph_set_rank(current_rank())
    _wait_for_graphs()
    if ms.get_context("device_target") == "Ascend":
        ascend_graph.end_step()
        _wait_for_graphs()
    _core.graph_step()


# ---- compiled into the graph ----------------------------------------------------------------


def _save_items(save_dir: str, name: str, data: Any, depth: int) -> None:
    if isinstance(data, ms.Tensor):
        _save_tensor(save_dir, name, data)
    elif depth > _MAX_DEPTH:  # or inside itself
        _refuse_depth()
    elif isinstance(data, (list, tuple)):  # the parser knows no list | tuple
        for index, item in enumerate(data):
            _save_items(save_dir, name + "." + str(index), item, depth + 1)
    elif isinstance(data, dict):
        for key, item in data.items():
            _save_items(save_dir, name + "." + str(key), item, depth + 1)
    elif data is not None:
        _refuse_data("save", "a Tensor, or a list, tuple or dict of such", data)


def _save_tensor(save_dir: str, name: str, data: ms.Tensor) -> None:
    if _graph_target() == "Ascend":
        ascend_graph.save_tensor(save_dir, name, data)
    else:
        _save_operator(_point(save_dir, name), data)


class _GradientSaverCell(IdentityCell):
    """The identity, whose backward saves. InsertGradientOf fails in branches and recomputation."""

    def bprop(self, data: Any, out: Any, gradient: Any) -> Any:
        # The operator itself, no call of a function: MindSpore drops one here, whatever it does.
        _save_operator(_point(self.save_dir, self.name), gradient)
        return (gradient,)


@ms.jit_class
class _GradientSaver:
    def __init__(self, save_dir: str, name: str, target: str) -> None:
        make = ascend_graph.AscendGradientSaverCell if target == "Ascend" else _GradientSaverCell
        self.identity = make(save_dir, name)

    def __call__(self, data: Any) -> Any:
        return self.identity(data)


class _SaveOperator(ops.Custom):  # type: ignore[misc]
    """The core's operator: ``(point, tensor)``, where the point is the constant of `_point`."""

    def __init__(self) -> None:
        registration = CustomRegOp(_OPERATOR).target("CPU")
        registration.input(0, "point").input(1, "data").output(0, "unused")
        registration.dtype_format(*[DataType.None_None] * 3)
        super().__init__(
            f"{_core.__file__}:{_OPERATOR}",
            out_shape=None,  # asked of the operator, so that shapes may be dynamic
            out_dtype=ms.int32,
            func_type="aot",
            reg_info=registration.get_op_info(),
        )
        self.add_prim_attr("side_effect_io", True)  # it stays although nobody uses its result

    def __call__(self, point: tuple[str, str], data: ms.Tensor) -> None:
        """Saves in PyNative mode."""
        save_dir, name = point
        _core.graph_set_rank(current_rank())
        _core.graph_save(os.path.abspath(save_dir), name, _describer.describe(data))


_save_operator = _SaveOperator()


# ---- evaluated while a graph is compiled, or called in PyNative mode ------------------------


@ms.constexpr
def _check_name(function: str, save_dir: Any, name: Any) -> None:
    for argument, value in (("save_dir", save_dir), ("name", name)):
        if not isinstance(value, str):
            raise TypeError(f"{function}: {argument} must be str, found {type(value).__name__}")
    if not save_dir or "\0" in save_dir:
        raise ValueError(f"{function}: save_dir must be the path of a folder, found {save_dir!r}")


@ms.constexpr(check=False)
def _refuse_data(function: str, allowed: str, data: Any) -> None:
    found = type(data).__name__
    if found in allowed:  # as which a graph shows others
        found = "what a graph cannot take apart (a namedtuple, a sparse tensor, a mutable number)"
    raise TypeError(f"{function}: data must be {allowed}, found {found}")


@ms.constexpr
def _refuse_depth() -> None:
    raise TypeError(f"save: data must be nested less than {_MAX_DEPTH} deep")


@ms.constexpr(get_instance=False)
def _point_constant(save_dir: str, name: str) -> ms.Tensor:
    _core.graph_set_rank(current_rank())
    text = f"{save_dir}\0{name}".encode()
    return ms.Tensor(np.frombuffer(text, np.uint8).copy())


class _Point(_point_constant):  # type: ignore[misc,valid-type]
    """Says to the operator where its data belongs: in a graph save_dir, NUL, name in UTF-8."""

    def __call__(self, save_dir: str, name: str) -> tuple[str, str]:
        """In PyNative mode the two as they are."""
        return save_dir, name


_point = _Point()


@ms.constexpr(get_instance=False)
def _compiled_target() -> str:
    target = str(ms.get_context("device_target"))
    if target not in {"CPU", "Ascend"}:
        raise RuntimeError(
            f"msprobe: save and save_grad cannot run in a graph on {target}: MindSpore has no "
            "operator there that writes files; use PyNative mode"
        )
    return target


class _GraphTarget(_compiled_target):  # type: ignore[misc,valid-type]
    """The device that a graph is compiled for."""

    def __call__(self) -> str:
        """In PyNative mode there is no graph."""
        return ""


_graph_target = _GraphTarget()


# ---- around the graphs ----------------------------------------------------------------------


def _wait_for_graphs() -> None:
    if os.getpid() != _PROCESS:  # MindSpore's threads are not in a forked child: it would hang
        return
    _pynative_executor.sync()
    if ms.get_context("device_target") != "CPU":  # where there are no streams
        ms.runtime.synchronize() if hasattr(ms, "runtime") else ms.hal.synchronize()


def _finish() -> None:
    log_summary("graph saves", _core.graph_summary())


_core.graph_on_message(log_message)
atexit.register(_finish)
