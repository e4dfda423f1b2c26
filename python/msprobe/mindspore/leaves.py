"""Describes MindSpore's leaves."""

import os
from typing import Any

import mindspore as ms
import numpy as np
from mindspore.common.dtype import Type

from msprobe._core import Leaf
from msprobe.common import arrays
from msprobe.common.leaves import ARRAY_TYPES, BaseLeafDescriber, first_line

_TENSOR_TYPES = (ms.Tensor, ms.COOTensor, ms.CSRTensor)
LEAF_TYPES: tuple[type, ...] = (*_TENSOR_TYPES, Type, *ARRAY_TYPES)
# asnumpy() hands these out as bytes that NumPy has no name for.
_FLOAT8 = {"Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}
_WITHOUT_VALUES = ("Int4", "HiFloat8")
_DIFFERENTIABLE = ("Float", "BFloat", "Complex")
# What reading an exotic tensor may raise. Then the record says what is known, without statistics.
_UNREADABLE = (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError)


class LeafDescriber(BaseLeafDescriber):
    """Describes the leaves of MindSpore.

    ``asnumpy`` waits for the asynchronous execution; on the CPU it shares the tensor's memory, from
    another device it copies to the host.
    """

    def __init__(self) -> None:
        self._process = os.getpid()

    def describe(self, value: Any) -> Leaf | None:
        """Describes ``value``; None if it is nothing that can be read."""
        if os.getpid() != self._process and isinstance(value, _TENSOR_TYPES):
            # Even its shape may wait for ever for a thread that is not in this process.
            problem = "MindSpore reads no tensor in a forked process"
            return Leaf.tensor("mindspore.Tensor", "", [], npy=True, problem=problem)
        if isinstance(value, ms.Tensor):
            return self._tensor("mindspore.Tensor", value, lambda: self._values(value))
        if isinstance(value, ms.COOTensor):
            return self._tensor("mindspore.COOTensor", value, lambda: self._coo_values(value))
        if isinstance(value, ms.CSRTensor):
            return self._tensor("mindspore.CSRTensor", value, lambda: self._csr_values(value))
        if isinstance(value, Type):
            return Leaf.scalar("mindspore.dtype", str(value))
        return self.describe_common(value)

    def _tensor(self, type_name: str, tensor: Any, find_values: Any) -> Leaf:
        dtype = str(tensor.dtype)
        record: dict[str, Any] = {
            "type": type_name,
            "dtype": dtype,
            "shape": [size if size >= 0 else None for size in tensor.shape],
            "npy": True,
            "checksum_of_npy": True,
            "expects_gradient": isinstance(tensor, ms.Tensor)
            and dtype.startswith(_DIFFERENTIABLE)
            and getattr(tensor, "requires_grad", True) is not False,
        }
        try:
            return Leaf.tensor(**record, **find_values())
        except _UNREADABLE as error:
            return Leaf.tensor(**record, problem=f"{type_name}: {first_line(error)}")

    def _values(self, tensor: ms.Tensor) -> dict[str, Any]:
        if str(tensor.dtype) in _WITHOUT_VALUES:
            return {}
        array = tensor.asnumpy()
        if array.dtype.kind == "V" and array.dtype.name.startswith("void"):
            element_dtype = _FLOAT8.get(str(tensor.dtype))
            if element_dtype is None:
                return {}
            raw = np.frombuffer(array.tobytes(), dtype=np.uint8).reshape(array.shape)
            return {"data": (raw,), "element_dtype": element_dtype}
        return arrays.values(array, with_file=self.wants_files)

    def _coo_values(self, tensor: ms.COOTensor) -> dict[str, Any]:
        indices = tensor.indices.asnumpy()
        offsets = np.ravel_multi_index(tuple(indices.T), tensor.shape)
        return _sparse_values(offsets, tensor.values.asnumpy(), tensor.shape)

    def _csr_values(self, tensor: ms.CSRTensor) -> dict[str, Any]:
        starts = tensor.indptr.asnumpy()
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        offsets = rows * tensor.shape[1] + tensor.indices.asnumpy()
        return _sparse_values(offsets, tensor.values.asnumpy(), tensor.shape)


def _sparse_values(
    offsets: "np.ndarray[Any, Any]", stored: "np.ndarray[Any, Any]", shape: tuple[int, ...]
) -> dict[str, Any]:
    """Gives the stored values in order of their place; several at one place are added up."""
    places, index = np.unique(offsets, return_inverse=True)
    merged = np.zeros((len(places), *stored.shape[1:]), stored.dtype)
    np.add.at(merged, index, stored)
    run = int(np.prod(stored.shape[1:], dtype=np.int64))
    return {
        "data": (merged,),
        "sparse_starts": (places * run).tolist(),
        "sparse_run": run,
        "dense_numel": int(np.prod(shape, dtype=np.int64)),
    }
