"""`md5` is the CRC-32 of the logical bytes in C order, as zlib computes it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from oracles import ALL_DTYPES, crc32, logical_bytes
from support import saved
from tensors import LAYOUTS, apply_lazy, cases, lazy_views, make_storage


def check_all(described, **keys) -> None:
    with saved([tensor for _, tensor in described], summary_mode="md5", **keys) as step:
        for i, (where, tensor) in enumerate(described):
            assert step[str(i)]["md5"] == crc32(logical_bytes(tensor)), where


@pytest.mark.parametrize("name", ALL_DTYPES)
def test_md5_every_dtype_and_layout_is_crc32_of_logical_bytes(name):
    base = make_storage(name, "any_bits", seed=3)
    check_all(
        [
            (f"{name}, {layout} {lazy}", apply_lazy(build(base), lazy))
            for layout, build in LAYOUTS.items()
            for lazy in lazy_views(name)
        ]
    )


@settings(max_examples=20)
@given(cases())
def test_md5_random_tensors_match_zlib(described):
    check_all(described)


@settings(max_examples=10)
@given(cases())
def test_md5_async_with_files_matches_zlib(described):
    check_all(described, task="tensor", async_dump=True)


def test_md5_published_check_value():
    """CRC-32 of "123456789" is cbf43926. Source: the catalogue of parametrised CRC algorithms."""
    with saved([torch.tensor(list(b"123456789"), dtype=torch.uint8)], summary_mode="md5") as step:
        assert step["0"]["md5"] == "cbf43926"


@pytest.mark.parametrize("async_dump", [False, True])
def test_md5_of_tensors_larger_than_any_block(async_dump):
    big = torch.arange(3_000_017, dtype=torch.int32)
    square = big[:1_440_000].view(1200, 1200)
    tensors = {
        "flat": big,
        "transposed": square.t(),
        "window": square[100:1100, 7:1111],
        "columns": square[:, ::3],
        "broadcast": square[0].expand(900, 1200),
    }
    with saved(tensors, summary_mode="md5", async_dump=async_dump) as step:
        for name, tensor in tensors.items():
            assert step[name]["md5"] == crc32(tensor.contiguous().numpy().tobytes()), name


def test_md5_empty_is_zero_and_without_values_null():
    with saved([torch.ones(0, 3), torch.ones(3, device="meta")], summary_mode="md5") as step:
        assert step["0"]["md5"] == "00000000"
        assert step["1"]["md5"] is None


def test_md5_field_stands_behind_requires_grad_and_before_data_name():
    with saved([torch.tensor([float("nan")])], task="tensor", summary_mode="md5") as step:
        assert list(step["0"])[-4:] == ["requires_grad", "md5", "data_name", "nan_count"]


@pytest.mark.filterwarnings("ignore")
def test_md5_of_other_layouts():
    dense = torch.tensor([[0.0, 3.0], [-4.0, 0.0]])
    parts = [torch.tensor([1.0, 2.0]), torch.tensor([-8.0, 0.5, 4.0])]
    quantized = torch.quantize_per_tensor(dense, 0.5, 10, torch.quint8)
    tensors = {
        "coo": dense.to_sparse(),
        "csr": dense.to_sparse_csr(),
        "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged),
        "quantized": quantized,
    }
    with saved(tensors, summary_mode="md5") as step:
        dense_crc = crc32(dense.numpy().tobytes())
        assert step["coo"]["md5"] == dense_crc
        assert step["csr"]["md5"] == dense_crc
        assert step["jagged"]["md5"] == crc32(torch.cat(parts).numpy().tobytes())
        assert step["quantized"]["md5"] == crc32(quantized.int_repr().numpy().tobytes())


def test_md5_numpy_arrays_match_zlib():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    arrays = {
        "plain": base,
        "transposed": base.T,
        "reversed": base[::-1, ::-2],
        "bool": base > 3,
        "half": base.astype(np.float16),
        "zero_dim": np.array(3),
    }
    with saved(arrays, summary_mode="md5") as step:
        for name, array in arrays.items():
            assert step[name]["md5"] == crc32(array.tobytes()), name
