"""Exact references, computed without PyTorch arithmetic and without the code under test.

Values come from the bits of the storage by the definition of each format; sums are exact integers.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex32", "complex64", "complex128"]
FLOAT8 = [
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
FLOAT4 = "float4_e2m1fn_x2"
# Those that this PyTorch has: 2.1 knows neither uint16 nor float4.
ALL_DTYPES = [
    name for name in ["bool", *INTEGERS, *FLOATS, *COMPLEX, *FLOAT8, FLOAT4] if hasattr(torch, name)
]

# Bits after the point of the fixed-point integers in which all sums are made: below the smallest
# float64 (2**-1074) with room for the digits of square roots.
_POINT = 1074 + 128


# ---- formats ---------------------------------------------------------------------------------


def _decode_small(bits: int, exponent_bits: int, mantissa_bits: int, bias: int) -> float:
    """A finite number of sign, exponent and mantissa, IEEE style with subnormals."""
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def _decode_float8(name: str, bits: int) -> float:
    """Source: OCP 8-bit floating point specification 1.0; fnuz: arXiv 2206.02915; e8m0: OCP MX."""
    if name == "float8_e8m0fnu":
        return math.nan if bits == 0xFF else 2.0 ** (bits - 127)
    if name == "float8_e4m3fn":
        return math.nan if bits & 0x7F == 0x7F else _decode_small(bits, 4, 3, 7)
    if name == "float8_e5m2":
        if bits & 0x7F > 0x7C:
            return math.nan
        if bits & 0x7F == 0x7C:
            return math.copysign(math.inf, -1.0 if bits & 0x80 else 1.0)
        return _decode_small(bits, 5, 2, 15)
    if bits == 0x80:
        return math.nan
    if name == "float8_e4m3fnuz":
        return _decode_small(bits, 4, 3, 8)
    assert name == "float8_e5m2fnuz"
    return _decode_small(bits, 5, 2, 16)


_FLOAT8_TABLES = {
    name: np.array([_decode_float8(name, bits) for bits in range(256)]) for name in FLOAT8
}
_FLOAT4_TABLE = np.array([_decode_small(bits, 2, 1, 1) for bits in range(16)])


def dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def raw_bytes(tensor: torch.Tensor) -> np.ndarray:
    """The whole storage as bytes, without any arithmetic."""
    size = tensor.untyped_storage().nbytes()
    view = torch.tensor([], dtype=torch.uint8).set_(tensor.untyped_storage(), 0, (size,))
    return view.numpy()


def element_indices(tensor: torch.Tensor) -> np.ndarray:
    """The index in the storage of each element, in C order, by the definition of strides."""
    index = np.full(tuple(tensor.shape), tensor.storage_offset(), dtype=np.int64)
    for dimension, stride in enumerate(tensor.stride()):
        steps = np.arange(tensor.shape[dimension], dtype=np.int64) * stride
        index = index + steps.reshape([-1] + [1] * (tensor.dim() - 1 - dimension))
    return index.reshape(-1)


def _elements(tensor: torch.Tensor) -> np.ndarray:
    """The stored elements in C order, as rows of bytes."""
    size = tensor.element_size()
    raw = raw_bytes(tensor)
    return raw[: len(raw) // size * size].reshape(-1, size)[element_indices(tensor)]


def logical_values(tensor: torch.Tensor) -> list:
    """The values in C order: bool, int, float or complex; two for each item of float4."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return _logical_values(tensor)


def _logical_values(tensor: torch.Tensor) -> list:
    name = dtype_name(tensor)
    rows = np.ascontiguousarray(_elements(tensor))
    flat = rows.reshape(-1)
    if name == FLOAT4:
        return np.stack([_FLOAT4_TABLE[flat & 15], _FLOAT4_TABLE[flat >> 4]], 1).ravel().tolist()
    if name in FLOAT8:
        values = _FLOAT8_TABLES[name][flat]
    elif name == "bfloat16":
        values = (flat.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif name == "complex32":
        pairs = flat.view(np.float16).astype(np.float64).reshape(-1, 2)
        values = pairs[:, 0] + 0j
        values.imag = pairs[:, 1]
    elif name == "bool":
        values = flat != 0
    else:
        values = flat.view(np.dtype(name))
    if name in COMPLEX:
        values = values.astype(np.complex128)
        if tensor.is_conj():
            values = values.conj()
        result = values.tolist()
        return [-v for v in result] if tensor.is_neg() else result
    if name not in INTEGERS and name != "bool":
        values = values.astype(np.float64)
    result = values.tolist()
    return [-v for v in result] if tensor.is_neg() else result


def logical_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of the values in C order; a lazy sign is applied by flipping sign bits."""
    rows = np.ascontiguousarray(_elements(tensor)).copy()
    name = dtype_name(tensor)
    size = rows.shape[1]
    parts = 2 if name in COMPLEX else 1
    flips = [tensor.is_neg(), tensor.is_neg() != tensor.is_conj()]
    for part in range(parts):
        if flips[part]:
            last = (part + 1) * (size // parts) - 1  # little-endian: the sign is in the last byte
            rows[:, last] ^= 0x80
    return rows.tobytes()


def crc32(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


# ---- statistics ------------------------------------------------------------------------------


def _fixed(value: float) -> int:
    """`value` times 2**_POINT, exactly."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_POINT - denominator.bit_length() + 1)


def _to_float(numerator: int, point: int) -> float:
    try:
        return float(Fraction(numerator, 1 << point))
    except OverflowError:
        return math.inf


@dataclass
class Expected:
    max: object
    min: object
    mean: float | None
    norm: float | None
    mean_scale: float  # mean of |x|, against which the error of the mean counts
    nan_count: int = 0
    pos_inf_count: int = 0
    neg_inf_count: int = 0


def _is_nan(value) -> bool:
    if isinstance(value, complex):
        return math.isnan(value.real) or math.isnan(value.imag)
    return value != value


def _is_infinite(value) -> bool:
    if isinstance(value, complex):
        return math.isinf(value.real) or math.isinf(value.imag)
    return not isinstance(value, int) and math.isinf(value)


def expected_statistics(values: list) -> Expected:
    """The right statistics of `values`, which are all of one type."""
    if not values:
        return Expected(None, None, None, None, 0.0)
    nans = sum(map(_is_nan, values))
    infinities = [v for v in values if _is_infinite(v) and not _is_nan(v)]
    positive = sum(1 for v in infinities if isinstance(v, complex) or v > 0)
    counts = (nans, positive, len(infinities) - positive)
    if nans:
        return Expected(math.nan, math.nan, math.nan, math.nan, 0.0, *counts)
    if isinstance(values[0], complex):
        return _expected_complex(values, counts)
    if isinstance(values[0], bool):
        true = sum(values)
        return Expected(any(values), all(values), true / len(values), math.sqrt(true), 1.0)
    highest, lowest = max(values), min(values)
    if infinities:
        mean = math.nan if counts[1] and counts[2] else infinities[0]
        return Expected(highest, lowest, mean, math.inf, 0.0, *counts)
    fixed = [_fixed(v) for v in values]
    return Expected(
        highest,
        lowest,
        float(Fraction(sum(fixed), len(fixed) << _POINT)),
        _to_float(math.isqrt(sum(f * f for f in fixed)), _POINT),
        float(Fraction(sum(map(abs, fixed)), len(fixed) << _POINT)),
    )


def _expected_complex(values: list[complex], counts: tuple[int, int, int]) -> Expected:
    if counts[1]:
        finite = [v for v in values if not _is_infinite(v)]
        lowest = _expected_complex(finite, (0, 0, 0)).min if finite else math.inf
        return Expected(math.inf, lowest, math.inf, math.inf, 0.0, *counts)
    squares = [_fixed(v.real) ** 2 + _fixed(v.imag) ** 2 for v in values]
    magnitudes = [math.isqrt(s) for s in squares]
    mean = float(Fraction(sum(magnitudes), len(magnitudes) << _POINT))
    return Expected(
        _to_float(max(magnitudes), _POINT),
        _to_float(min(magnitudes), _POINT),
        mean,
        _to_float(math.isqrt(sum(squares)), _POINT),
        mean,
    )


SMALLEST = 5e-324  # the spacing of the subnormals: no result can be nearer than that


def same_number(found, wanted, tolerance: float = 0.0) -> bool:
    """Whether `found` is `wanted`, NaN included, within an absolute tolerance."""
    if wanted is None or found is None:
        return found is wanted
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    if isinstance(wanted, int):
        return isinstance(found, int) and found == wanted
    if not isinstance(found, float):
        return False
    if math.isnan(wanted):
        return math.isnan(found)
    if math.isinf(wanted) or math.isinf(found):
        return found == wanted
    return abs(Fraction(found) - Fraction(wanted)) <= Fraction(tolerance)


def check_statistics(record: dict, values: list, where: object = "") -> None:
    """Compares a record with the exact statistics of `values`. Relative error: SPEC section 5."""
    wanted = expected_statistics(values)
    of_magnitudes = bool(values) and isinstance(values[0], complex)

    def extreme_tolerance(value) -> float:
        # A magnitude is a rounded square root; every other extreme is one of the values.
        if not of_magnitudes or not math.isfinite(value):
            return 0.0
        return 4 * math.ulp(value)

    for field, value, tolerance in [
        ("Max", wanted.max, extreme_tolerance(wanted.max)),
        ("Min", wanted.min, extreme_tolerance(wanted.min)),
        ("Mean", wanted.mean, 1e-12 * wanted.mean_scale + 2 * SMALLEST),
        ("Norm", wanted.norm, _norm_tolerance(wanted.norm)),
    ]:
        assert same_number(record[field], value, tolerance), (
            f"{where}: {field} is {record[field]!r}, right is {value!r}"
        )
    for field in ["nan_count", "pos_inf_count", "neg_inf_count"]:
        count = getattr(wanted, field)
        assert record.get(field) == (count or None), f"{where}: {field}"


def _norm_tolerance(norm: float | None) -> float:
    if norm is None or not math.isfinite(norm):
        return 0.0
    return 1e-12 * norm + 2 * SMALLEST
