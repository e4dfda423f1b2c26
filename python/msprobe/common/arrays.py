"""NumPy arrays and scalars as leaves."""

import io
from typing import Any

import numpy as np

from msprobe._core import Leaf

LEAF_TYPES: tuple[type, ...] = (np.generic, np.ndarray)

_READABLE_KINDS = "biufc"
# NumPy extension dtypes (package ml_dtypes) that the core decodes, by their unsigned twin.
_EXTENSION_DTYPES = {
    "bfloat16": np.uint16,
    "float8_e4m3fn": np.uint8,
    "float8_e5m2": np.uint8,
    "float8_e4m3fnuz": np.uint8,
    "float8_e5m2fnuz": np.uint8,
    "float8_e8m0fnu": np.uint8,
}


def describe(value: Any, *, with_file: bool) -> Leaf:
    """Describes one of LEAF_TYPES; ``with_file``: a tensor file is wanted."""
    if isinstance(value, np.generic):
        return _scalar(value)
    return _array(value, with_file=with_file)


def _scalar(value: np.generic) -> Leaf:
    """By its NumPy type; what JSON cannot hold becomes its text."""
    if isinstance(value, np.floating):
        return Leaf.scalar(type(value).__name__, float(value))
    if isinstance(value, np.complexfloating):
        return Leaf.scalar(type(value).__name__, complex(value))
    plain = value.item()
    if not isinstance(plain, bool | int | float | complex | str):
        plain = str(value)
    return Leaf.scalar(type(value).__name__, plain)


def _array(array: "np.ndarray[Any, Any]", *, with_file: bool) -> Leaf:
    """The values are read in place where the core can, else from a converted copy.

    Arrays of text, dates or records have no statistics; arrays of objects have no file either.
    """
    array = array.view(np.ndarray)  # a masked array or a matrix as what it holds
    record: dict[str, Any] = {
        "type": "numpy.ndarray",
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "npy": True,
    }
    name = array.dtype.name
    if name in _EXTENSION_DTYPES:
        data = _aligned(array).view(_EXTENSION_DTYPES[name])
        return Leaf.tensor(**record, data=(data,), element_dtype=name)
    if array.dtype.kind in _READABLE_KINDS:
        if (
            array.dtype.itemsize
            > np.dtype(np.complex128 if array.dtype.kind == "c" else np.float64).itemsize
        ):
            return _long_double(array, record, with_file=with_file)
        return Leaf.tensor(**record, data=(_aligned(array),))
    if array.dtype.hasobject or array.size == 0:
        return Leaf.tensor(**record)
    raw = np.frombuffer(array.tobytes(), dtype=np.uint8)
    return Leaf.tensor(
        **record, checksum_data=(raw,), file=_npy_bytes(array) if with_file else None
    )


def _long_double(array: "np.ndarray[Any, Any]", record: dict[str, Any], *, with_file: bool) -> Leaf:
    """Statistics in float64; the file keeps the full width."""
    narrow = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    raw = np.frombuffer(array.tobytes(), dtype=np.uint8)
    file = _npy_bytes(array) if with_file and array.size else None
    return Leaf.tensor(**record, data=(narrow,), checksum_data=(raw,), file=file)


def _aligned(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Gives the array itself where the core can read it in place, else a copy that it can."""
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        return array.copy()
    return array


def _npy_bytes(array: "np.ndarray[Any, Any]") -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
