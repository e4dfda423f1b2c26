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
    array = value.view(np.ndarray)  # a masked array or a matrix as what it holds
    return Leaf.tensor(
        "numpy.ndarray",
        str(array.dtype),
        list(array.shape),
        npy=True,
        **values(array, with_file=with_file),
    )


def values(array: "np.ndarray[Any, Any]", *, with_file: bool) -> dict[str, Any]:
    """Finds where the values of an array are; gives the keyword arguments of ``Leaf.tensor``.

    They are read in place where the core can, else from a converted copy. Text, dates and records
    have no statistics; objects have no file either.
    """
    name = array.dtype.name
    if name in _EXTENSION_DTYPES:
        return {
            "data": (_readable(array).view(_EXTENSION_DTYPES[name]),),
            "element_dtype": name,
        }
    if array.dtype.kind in _READABLE_KINDS:
        is_long = array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8)
        return (
            _long_double(array, with_file=with_file) if is_long else {"data": (_readable(array),)}
        )
    if array.dtype.hasobject or array.size == 0:
        return {}
    return {"checksum_data": (_raw(array),), "file": _npy_bytes(array) if with_file else None}


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


def _long_double(array: "np.ndarray[Any, Any]", *, with_file: bool) -> dict[str, Any]:
    """Statistics in float64; the file keeps the full width."""
    return {
        "data": (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64),),
        "checksum_data": (_raw(array),),
        "file": _npy_bytes(array) if with_file and array.size else None,
    }


def _readable(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Gives the array itself where the core can read it in place, else a copy that it can."""
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        return array.copy()
    return array


def _raw(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    return np.frombuffer(array.tobytes(), dtype=np.uint8)


def _npy_bytes(array: "np.ndarray[Any, Any]") -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
