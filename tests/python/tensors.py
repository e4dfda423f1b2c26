"""Tensors of every dtype, layout and value class, for the property tests."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import strategies as st
from oracles import ALL_DTYPES, COMPLEX, FLOAT4, FLOAT8, FLOATS, INTEGERS

STORAGE_ELEMENTS = 480

LAYOUTS = {
    "contiguous": lambda base: base.view(4, 5, 24),
    "permuted": lambda base: base.view(4, 5, 24).permute(2, 0, 1),
    "transposed": lambda base: base.view(20, 24).t(),
    "sliced": lambda base: base.view(20, 24)[3:17, 5:20],
    "strided": lambda base: base.view(20, 24)[::3, 1::5],
    "broadcast": lambda base: base[7:31].view(1, 4, 1, 6).expand(3, 4, 5, 6),
    "broadcast_scalar": lambda base: base[3:4].expand(2, 300),
    "channels_last": lambda base: base.view(2, 6, 8, 5).permute(0, 3, 1, 2),
    "overlapping": lambda base: base.as_strided((10, 12), (3, 2), 5),
    "offset": lambda base: base[1:],
    "one": lambda base: base[11:12],
    "zero_dim": lambda base: base[9],
    "empty": lambda base: base[:0].view(0, 3),
    "ones_in_shape": lambda base: base.view(1, 20, 1, 24)[:, ::2],
}

_FLOAT_FORMATS = {  # numpy type of the bits, exponent bits, mantissa bits
    "float16": (np.uint16, 5, 10),
    "bfloat16": (np.uint16, 8, 7),
    "float32": (np.uint32, 8, 23),
    "float64": (np.uint64, 11, 52),
    "complex32": (np.uint16, 5, 10),
    "complex64": (np.uint32, 8, 23),
    "complex128": (np.uint64, 11, 52),
}
VALUE_CLASSES = [
    "ordinary",
    "nan",
    "infinite",
    "subnormal",
    "zero",
    "largest",
    "huge",
    "tiny",
    "any_bits",
]


def _float_bits(name: str, kind: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random bits of one format in which the values are of the class `kind`."""
    unsigned, exponent_bits, mantissa_bits = _FLOAT_FORMATS[name]
    width = 1 + exponent_bits + mantissa_bits
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    mantissa = rng.integers(0, 1 << mantissa_bits, count, dtype=np.uint64)
    sign = rng.integers(0, 2, count, dtype=np.uint64)
    exponent = rng.integers(max(1, bias - 4), bias + 5, count, dtype=np.uint64)
    special = rng.random(count) < 0.1
    if kind == "nan":
        exponent[special] = top
        mantissa[special] |= np.uint64(1)
    elif kind == "infinite":
        exponent[special] = top
        mantissa[special] = 0
        if rng.random() < 0.5:  # of one sign only
            sign[special] = rng.integers(0, 2)
    elif kind == "subnormal":
        exponent[:] = 0
    elif kind == "zero":
        exponent[:] = mantissa[:] = 0
    elif kind == "largest":
        exponent[:] = top - 1
        mantissa[:] = (1 << mantissa_bits) - 1
    elif kind in ("huge", "tiny"):  # about 1e200 and 1e-200, or the nearest the format can
        reach = min(664, bias - 2)
        exponent[:] = bias + (reach if kind == "huge" else -reach)
    elif kind == "any_bits":
        exponent = rng.integers(0, top, count, dtype=np.uint64)
    if name in COMPLEX:
        # A magnitude of two largest parts is not representable; that is a test of its own.
        exponent = np.where(exponent == top - 1, np.uint64(top - 2), exponent)
    bits = sign << np.uint64(width - 1) | exponent << np.uint64(mantissa_bits) | mantissa
    return bits.astype(unsigned)


def make_storage(name: str, kind: str, seed: int) -> torch.Tensor:
    """A one-dimensional tensor of STORAGE_ELEMENTS elements, made from bits only."""
    rng = np.random.default_rng(seed)
    count = STORAGE_ELEMENTS
    if name == "bool":
        bits = rng.integers(0, 2, count).astype(np.uint8)
        if kind == "zero":
            bits[:] = 0
        elif kind == "largest":
            bits[:] = 1
    elif name in INTEGERS:
        kind_range = np.iinfo(name)
        if kind in ("largest", "huge", "any_bits"):
            low, high = kind_range.min, kind_range.max
        else:
            low, high = max(kind_range.min, -100), 100
        bits = rng.integers(low, high, count, dtype=np.dtype(name), endpoint=True)
        if kind == "largest":
            bits[:] = kind_range.max
            bits[:: rng.integers(2, 9)] = kind_range.min
    elif name in (*FLOAT8, FLOAT4):
        bits = rng.integers(0, 256, count).astype(np.uint8)
        if kind not in ("any_bits", "nan"):
            bits &= 0x77  # none of the formats has a NaN there
        if kind == "zero" and name != "float8_e8m0fnu":
            bits[:] = 0
    else:
        parts = 2 if name in COMPLEX else 1
        bits = _float_bits(name, kind, rng, count * parts)
    raw = torch.from_numpy(np.ascontiguousarray(bits).view(np.uint8).copy())
    return raw.view(getattr(torch, name))


def lazy_views(name: str) -> list[str]:
    if name in COMPLEX:
        return ["", "conj", "neg", "conj_neg"]
    return ["", "neg"] if name in FLOATS else [""]


def apply_lazy(tensor: torch.Tensor, lazy: str) -> torch.Tensor:
    if "conj" in lazy:
        tensor = tensor.conj()
    return torch._neg_view(tensor) if "neg" in lazy else tensor


@st.composite
def cases(draw, dtypes: tuple[str, ...] = tuple(ALL_DTYPES)):
    """A list of (description, tensor): one dtype and value class in every layout and lazy view."""
    name = draw(st.sampled_from(dtypes))
    kind = draw(st.sampled_from(VALUE_CLASSES))
    base = make_storage(name, kind, draw(st.integers(0, 2**32 - 1)))
    result = []
    for layout, build in LAYOUTS.items():
        for lazy in lazy_views(name):
            tensor = apply_lazy(build(base), lazy)
            result.append((f"{name}, {kind}, {layout} {lazy}".strip(), tensor))
    return result


def sparse_tensors() -> dict[str, torch.Tensor]:
    dense = torch.tensor([[0.0, 3.0, 0.0], [0.0, 0.0, -4.0], [1.5, 0.0, 0.0]])
    index = torch.tensor([[0, 2, 0], [1, 0, 1]])
    return {
        "coo": dense.to_sparse(),
        "uncoalesced": torch.sparse_coo_tensor(index, torch.tensor([1.0, 2.0, 4.0]), (3, 4)),
        "cancelling": torch.sparse_coo_tensor(index, torch.tensor([1.0, -2.0, -1.0]), (3, 4)),
        "hybrid": torch.sparse_coo_tensor(
            [[0, 3]], torch.tensor([[1.0, 2.0], [3.0, -9.0]]), (5, 2)
        ),
        "hybrid_uncoalesced": torch.sparse_coo_tensor([[1, 1]], torch.ones(2, 3), (4, 3)),
        "all_negative": torch.sparse_coo_tensor([[0]], torch.tensor([-1.0]), (3,)),
        "full": torch.ones(2, 2).to_sparse(),
        "no_values": torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), [], (3,)),
        "ints": torch.tensor([0, 5, -7]).to_sparse(),
        "bools": torch.tensor([False, True, False]).to_sparse(),
        "complex": torch.tensor([0, 3 + 4j]).to_sparse(),
        "double": dense.double().to_sparse(),
        "csr": dense.to_sparse_csr(),
        "csc": dense.to_sparse_csc(),
        "nan": torch.tensor([0.0, math.nan]).to_sparse(),
    }


def numpy_arrays() -> dict[str, np.ndarray]:
    base = np.arange(-24, 24, dtype=np.float64).reshape(6, 8)
    return {
        "float64": base,
        "float32": base.astype(np.float32),
        "float16": base.astype(np.float16),
        "int8": base.astype(np.int8),
        "uint64": np.array([2**64 - 1, 3], dtype=np.uint64),
        "bool": base > 3,
        "complex64": (base + 1j).astype(np.complex64),
        "complex128": base * 1j,
        "negative_strides": base[::-1, ::-2],
        "fortran": np.asfortranarray(base),
        "broadcast": np.broadcast_to(base[2], (5, 8)),
        "big_endian": base.astype(">f8"),
        "big_endian_int": base.astype(">i4"),
        "big_endian_half": base.astype(">f2"),
        "zero_dim": np.array(2.5),
        "empty": np.zeros((0, 3)),
        "read_only": np.frombuffer(b"\x00\x00\x80\x3f", dtype=np.float32),
        "unaligned": np.frombuffer(b"?" + np.arange(5.0).tobytes(), np.float64, offset=1),
        "nan": np.array([1.0, np.nan]),
    }
