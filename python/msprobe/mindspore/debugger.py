"""``PrecisionDebugger`` for MindSpore."""

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore as ms
from mindspore.communication import GlobalComm, get_rank

from msprobe._core import Debugger, Leaf
from msprobe.common.adapter import launcher_rank, log_message
from msprobe.common.precision_debugger import BasePrecisionDebugger
from msprobe.mindspore.gradients import MindSporeGradientHooks
from msprobe.mindspore.leaves import LEAF_TYPES, LeafDescriber


def current_rank() -> int | None:
    """Gives the rank of mindspore.communication if it is initialised, else the launcher's."""
    if GlobalComm.INITED:
        return int(get_rank())
    return launcher_rank("RANK_ID")


class MindSporeAdapter:
    """What the core has to know of MindSpore. See `msprobe.common.adapter.Adapter`."""

    framework: str = "mindspore"
    tensor_type_name: str = "mindspore.Tensor"
    # Every tensor goes to `describe`, which waits for the asynchronous execution.
    dtypes: Mapping[Any, str] = {}
    tensor_types: Sequence[type] = ()
    plain_attributes: Mapping[str, object] = {}
    plain_methods: Sequence[str] = ()
    leaf_types: tuple[type, ...] = LEAF_TYPES

    def __init__(self) -> None:
        self.describer = LeafDescriber()

    def describe(self, value: Any) -> Leaf | None:
        """Describes a leaf."""
        return self.describer.describe(value)

    def rank(self) -> int | None:
        """Gives the rank of this process, None while it is unknown."""
        return current_rank()

    def on_message(self, is_warning: bool, text: str) -> None:
        """Logs a message of the core."""
        log_message(is_warning, text)


@ms.constexpr(get_instance=False)
def _refuse_graph(call: str) -> None:
    raise RuntimeError(
        f"msprobe: PrecisionDebugger.{call} works in PyNative mode only; in a graph use save, "
        "save_grad and step of msprobe.mindspore"
    )


class _OutsideGraphs(_refuse_graph):  # type: ignore[misc,valid-type]
    """Raises while a graph is compiled."""

    def __call__(self, call: str) -> None:
        """In PyNative mode all is well."""


_outside_graphs = _OutsideGraphs()


class PrecisionDebugger(BasePrecisionDebugger):
    """Saves chosen variables of a MindSpore training in PyNative mode. One instance a process."""

    # Static, because MindSpore cannot compile a call of a class method as far as the message.
    @staticmethod
    def save(variable: Any, name: str, save_backward: bool = True) -> None:
        """Saves a variable, and its gradient when it comes.

        See `msprobe.common.precision_debugger.BasePrecisionDebugger.save`.
        """
        _outside_graphs("save")
        _of_base("save", variable, name, save_backward)

    @staticmethod
    def step() -> None:
        """Ends the step: what is saved from now on belongs to the next one. Does not wait."""
        _outside_graphs("step")
        _of_base("step")

    def _make_adapter(self) -> MindSporeAdapter:
        self._adapter = MindSporeAdapter()
        return self._adapter

    def _make_gradient_hooks(self, core: Debugger) -> MindSporeGradientHooks:
        self._adapter.describer.core = core
        return MindSporeGradientHooks(core)


def _of_base(call: str, *arguments: Any) -> None:
    getattr(super(PrecisionDebugger, PrecisionDebugger), call)(*arguments)
