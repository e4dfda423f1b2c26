"""Tensor subclasses: their name in a record, and the tensor inside that holds the values."""

import sys
from typing import Any

import torch

_FUNCTORCH = torch._C._functorch


def is_fake(tensor: torch.Tensor) -> bool:
    """Tells whether ``tensor`` has a shape but no values (FakeTensorMode, tracing)."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(tensor, module.FakeTensor)


def unwrap(tensor: torch.Tensor) -> tuple[str, torch.Tensor, dict[str, Any] | None]:
    """Gives the type name of the record, the tensor with the values, and further fields.

    The names are those that msProbe writes. Runs no operation of the subclass.
    """
    name = "torch.Tensor"
    while _FUNCTORCH.is_functorch_wrapped_tensor(tensor):
        if _FUNCTORCH.is_batchedtensor(tensor):
            name = "BatchedTensor"
        elif name == "torch.Tensor":
            name = "GradTrackingTensor"
        tensor = _FUNCTORCH.get_unwrapped(tensor)
    if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:
        return name, tensor, None
    if is_fake(tensor):
        return "torch._subclasses.fake_tensor.FakeTensor", tensor, None
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is not None and isinstance(tensor, distributed.DTensor):
        return _unwrap_dtensor(tensor)
    collectives = sys.modules.get("torch.distributed._functional_collectives")
    if collectives is not None and isinstance(tensor, collectives.AsyncCollectiveTensor):
        return f"{collectives.__name__}.AsyncCollectiveTensor", tensor.wait(), None
    if tensor.is_nested:
        return "torch.nested._internal.nested_tensor.NestedTensor", tensor, None
    with torch._C._DisableTorchDispatch():
        return name, tensor.as_subclass(torch.Tensor), None


def _unwrap_dtensor(tensor: Any) -> tuple[str, torch.Tensor, dict[str, Any]]:
    placements: list[dict[str, dict[str, Any]]] = []
    for placement in tensor.placements:
        if placement.is_shard():
            placements.append({"Shard": {"dim": placement.dim}})
        elif placement.is_replicate():
            placements.append({"Replicate": {}})
        elif placement.is_partial():
            placements.append({"Partial": {"reduce_op": str(placement.reduce_op)}})
    extra = {"device_mesh": tensor.device_mesh.mesh.tolist(), "placements": placements}
    return "torch.distributed.tensor.DTensor", tensor._local_tensor, extra
