"""``PrecisionDebugger`` for PyTorch."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from msprobe import _core
from msprobe.common.adapter import launcher_rank, log_message
from msprobe.common.precision_debugger import BasePrecisionDebugger
from msprobe.pytorch.gradients import TorchGradientHooks
from msprobe.pytorch.leaves import DTYPES, LEAF_TYPES, LeafDescriber

# Looked up once: a save that is filtered out costs little more than these two calls.
_count_function_modes = torch._C._len_torch_function_stack
_save: Any = BasePrecisionDebugger.__dict__["save"].__func__


class TorchAdapter:
    """What the core has to know of PyTorch. See `msprobe.common.adapter.Adapter`."""

    framework: str = "pytorch"
    tensor_type_name: str = "torch.Tensor"
    dtypes: Mapping[Any, str] = DTYPES
    tensor_types: Sequence[type] = (torch.Tensor, torch.nn.Parameter)
    # DLPack is silent on what it cannot express, so this is asked first; an exception is slow.
    plain_attributes: Mapping[str, object] = {
        "layout": torch.strided,
        "is_cpu": True,
        "is_quantized": False,
        "is_nested": False,
    }
    plain_methods: Sequence[str] = ("is_conj", "is_neg")
    leaf_types: tuple[type, ...] = LEAF_TYPES

    def __init__(self) -> None:
        self.describer = LeafDescriber()

    def describe(self, value: Any) -> _core.Leaf | None:
        """Describes a leaf that is no plain tensor."""
        return self.describer.describe(value)

    def rank(self) -> int | None:
        """Gives the rank of torch.distributed if it is initialised, else the launcher's."""
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank()
        return launcher_rank("RANK")

    def on_message(self, is_warning: bool, text: str) -> None:
        """Logs a message of the core."""
        log_message(is_warning, text)


class PrecisionDebugger(BasePrecisionDebugger):
    """Saves chosen variables of a PyTorch training. One instance a process."""

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Saves a variable, and its gradient when it comes.

        See `msprobe.common.precision_debugger.BasePrecisionDebugger.save`.
        """
        if not _count_function_modes():
            _save(cls, variable, name, save_backward)
            return
        with torch._C.DisableTorchFunction():  # a mode of the user is not for our calls
            _save(cls, variable, name, save_backward)

    def _make_adapter(self) -> TorchAdapter:
        self._adapter = TorchAdapter()
        return self._adapter

    def _make_gradient_hooks(self, core: _core.Debugger) -> TorchGradientHooks:
        self._adapter.describer.core = core
        return TorchGradientHooks(core)
