"""Describes the leaves that are no plain dense CPU tensor.

Everything here runs without gradients and without the user's torch functions and modes, and leaves
the user's tensor as it is: what has to be changed is an alias or a copy.
"""

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

from msprobe._core import Leaf
from msprobe.common.leaves import ARRAY_TYPES, BaseLeafDescriber, first_line
from msprobe.pytorch import wrappers

_TEXT_TYPES: dict[type, str] = {
    torch.dtype: "torch.dtype",
    torch.device: "torch.device",
    torch.memory_format: "torch.memory_format",
    torch.layout: "torch.layout",
}
LEAF_TYPES: tuple[type, ...] = (
    torch.Tensor,
    torch.Size,
    *_TEXT_TYPES,
    *ARRAY_TYPES,
)
# What the core decodes. Everything else (sub-byte integers, bits8) has null statistics.
DTYPES: dict[torch.dtype, str] = {
    getattr(torch, name): name
    for name in (
        *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
        "float4_e2m1fn_x2",
    )
    if hasattr(torch, name)
}
_COMPRESSED_LAYOUTS = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
# What reading an exotic tensor may raise. Then the record says what is known, without statistics.
_UNREADABLE = (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError)


class LeafDescriber(BaseLeafDescriber):
    """Describes the leaves of PyTorch."""

    def describe(self, value: Any) -> Leaf | None:
        """Describes ``value``; None if it is nothing that can be read."""
        # By the real type: PyTorch's C code believes a mock or a weak proxy and crashes.
        if issubclass(type(value), torch.Tensor):
            return self._describe_tensor(value)
        if isinstance(value, torch.Size):
            return Leaf.scalar("torch.Size", [int(size) for size in value])
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return Leaf.scalar(type(value).__name__, str(value))
        for kind, name in _TEXT_TYPES.items():
            if isinstance(value, kind):
                return Leaf.scalar(name, str(value))
        return self.describe_common(value)

    def _describe_tensor(self, tensor: torch.Tensor) -> Leaf:
        with _undisturbed():
            type_name, inner, extra = wrappers.unwrap(tensor)
            record: dict[str, Any] = {
                "type": type_name,
                "dtype": str(tensor.dtype),
                "shape": _shape(inner),
                "requires_grad": tensor.requires_grad,
                "expects_gradient": tensor.requires_grad,
                "extra": extra,
            }
            try:
                return Leaf.tensor(**record, **self._values(inner))
            except _UNREADABLE as error:
                return Leaf.tensor(
                    **record, problem=f"{type(tensor).__name__}: {first_line(error)}"
                )

    def _values(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Finds where the values are; gives the keyword arguments of ``Leaf.tensor`` for them."""
        tensor = tensor.detach()
        if tensor.is_meta or wrappers.is_fake(tensor):
            return {}
        if tensor._is_zerotensor():
            tensor = tensor.clone()  # zeros that have no memory yet
        if tensor.is_nested:
            return {"data": _nested_parts(tensor), **self._file(tensor)}
        if tensor.is_quantized:
            return {
                "data": (tensor.dequantize().cpu(),),
                "checksum_data": (tensor.int_repr().cpu(),),
                **self._file(tensor),
            }
        if tensor.layout == torch.sparse_coo or tensor.layout in _COMPRESSED_LAYOUTS:
            return {**self._sparse_values(tensor), **self._file(tensor)}
        if tensor.layout != torch.strided:  # mkldnn
            tensor = tensor.to_dense()
        if not tensor.is_cpu:
            tensor = tensor.cpu()
        if tensor.dtype not in DTYPES:
            return self._opaque_values(tensor)
        flips = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
        if flips["conj"]:
            tensor = torch._conj(tensor)  # the flag again: an alias without it
        if flips["neg"]:
            tensor = torch._neg_view(tensor)
        return {"data": (tensor,), **flips}

    def _sparse_values(self, tensor: torch.Tensor) -> dict[str, Any]:
        coo = tensor.cpu() if tensor.layout == torch.sparse_coo else tensor.cpu().to_sparse_coo()
        coo = coo.coalesce()  # a copy, unless it is coalesced already
        values = coo.values()
        dense_shape = coo.shape[coo.sparse_dim() :]
        run = dense_shape.numel()
        starts: list[int] = []
        if self.wants_checksums:
            offsets = torch.zeros(values.shape[0], dtype=torch.int64)
            for size, index in zip(coo.shape, coo.indices(), strict=False):
                offsets = offsets * size + index
            starts = (offsets * run).tolist()
        return {
            "data": (values,),
            "sparse_starts": starts,
            "sparse_run": run,
            "dense_numel": coo.numel(),
        }

    def _opaque_values(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Sub-byte integers and bits: bytes to check, no numbers; PyTorch cannot save them."""
        return {"checksum_data": (tensor.contiguous().view(torch.uint8),)}

    def _file(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Pickles what only PyTorch can; a clone, so that not the whole storage is stored."""
        if not self.wants_files or (not tensor.is_nested and tensor.numel() == 0):
            return {}
        buffer = io.BytesIO()
        try:
            torch.save(tensor.cpu().clone(), buffer)
        except _UNREADABLE as error:
            return {"problem": f"no file: {first_line(error)}"}
        return {"file": buffer.getvalue()}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keeps gradients, subclass functions and modes of the user out of our reading."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(_disable_current_modes())
        if torch._C._functorch.peek_interpreter_stack() is not None:
            stack.enter_context(temporarily_clear_interpreter_stack())
        yield


def _nested_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [part.detach().cpu() for part in tensor.unbind()]


def _shape(tensor: torch.Tensor) -> list[int | None]:
    """Gives the sizes, None for a ragged dimension of a nested tensor."""
    return [_size(tensor, dim) for dim in range(tensor.dim())]


def _size(tensor: torch.Tensor, dim: int) -> int | None:
    try:
        size = tensor.size(dim)
        return int(size) if isinstance(size, int) or not tensor.is_nested else None
    except _UNREADABLE:
        return None
