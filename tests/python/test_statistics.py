"""Max, Min, Mean and Norm against exact references, for every dtype, layout and value class."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import (
    ALL_DTYPES,
    FLOATS,
    check_statistics,
    dtype_name,
    logical_values,
    same_number,
)
from support import STATISTICS_FIELDS, saved
from tensors import (
    LAYOUTS,
    VALUE_CLASSES,
    apply_lazy,
    cases,
    lazy_views,
    make_storage,
    numpy_arrays,
    sparse_tensors,
)


def check_all(described: list[tuple[str, torch.Tensor]], **keys) -> None:
    with saved([tensor for _, tensor in described], **keys) as step:
        assert len(step.data) == len(described)
        for i, (where, tensor) in enumerate(described):
            record = step[str(i)]
            assert record["type"] == "torch.Tensor"
            assert record["dtype"] == f"torch.{dtype_name(tensor)}"
            assert record["shape"] == list(tensor.shape)
            check_statistics(record, logical_values(tensor), where)


def all_cases(name: str, seed: int):
    for kind in VALUE_CLASSES:
        base = make_storage(name, kind, seed)
        for layout, build in LAYOUTS.items():
            for lazy in lazy_views(name):
                yield f"{name}, {kind}, {layout} {lazy}", apply_lazy(build(base), lazy)


@pytest.mark.parametrize("name", ALL_DTYPES)
def test_statistics_every_dtype_layout_and_value_class_is_exact(name):
    check_all(list(all_cases(name, seed=20260728)))


@settings(max_examples=40)
@given(cases())
def test_statistics_random_tensors_are_exact(described):
    check_all(described)


@settings(max_examples=10)
@given(cases())
def test_statistics_async_are_exact(described):
    check_all(described, async_dump=True)


@settings(max_examples=10)
@given(cases())
def test_statistics_beside_checksum_and_file_are_exact(described):
    check_all(described, task="tensor", summary_mode="md5")


@settings(max_examples=60)
@given(
    st.sampled_from([torch.float64, torch.float32]).flatmap(
        lambda dtype: st.tuples(
            st.just(dtype),
            st.lists(
                st.floats(width=64 if dtype == torch.float64 else 32), min_size=1, max_size=70
            ),
        )
    )
)
@example((torch.float64, [1.7976931348623157e308] * 2))
@example((torch.float64, [1e200, 1e200]))
@example((torch.float64, [1e-200, -1e-200, 1e-200]))
@example((torch.float64, [1e300, 1e-300, -1e300]))
@example((torch.float64, [1e16, 1.0, -1e16]))
@example((torch.float64, [5e-324] * 3))
@example((torch.float64, [math.inf, -math.inf]))
@example((torch.float64, [math.inf, math.nan]))
@example((torch.float64, [-0.0, 0.0]))
@example((torch.float64, [-0.0]))
@example((torch.float32, [3.4028234663852886e38] * 2))
def test_statistics_random_values_are_exact(case):
    dtype, values = case
    check_all([(f"{dtype} {values}", torch.tensor(values, dtype=dtype))])


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1025])
def test_statistics_lengths_around_vector_width_are_exact(length):
    described = []
    for name in ALL_DTYPES:
        base = make_storage(name, "ordinary", length)
        longer = base.view(torch.uint8).repeat(3).view(base.dtype)
        described.append((f"{name}, {length}", longer[:length]))
        described.append((f"{name}, {length}, misaligned", longer[1 : 1 + length]))
    check_all(described)


@pytest.mark.parametrize("name", FLOATS)
def test_statistics_extreme_at_every_position_is_found(name):
    """No lane of a vector and no tail may lose an element."""
    described = []
    for position in range(70):
        for value in (1000.0, -1000.0, math.nan, math.inf, -math.inf):
            tensor = torch.zeros(70, dtype=getattr(torch, name))
            tensor[position] = value
            described.append((f"{name}: {value} at {position}", tensor))
    check_all(described)


@pytest.mark.parametrize("name", FLOATS)
def test_statistics_of_millions_keep_float64_accuracy(name):
    """Reference: numpy's longdouble (80 bits) sums, here far more exact than 1e-12."""
    generator = torch.Generator().manual_seed(1)
    tensor = (torch.rand(3_000_001, generator=generator) * 4 + 1).to(getattr(torch, name))
    exact = tensor.double().numpy().astype(np.longdouble)
    with saved([tensor]) as step:
        record = step["0"]
    assert record["Max"] == float(exact.max())
    assert record["Min"] == float(exact.min())
    mean = exact.sum() / len(exact)
    assert abs(record["Mean"] - mean) <= 1e-12 * mean
    norm = np.sqrt((exact * exact).sum())
    assert abs(record["Norm"] - norm) <= 1e-12 * norm


def test_statistics_of_cancelling_sum_keep_float64_accuracy():
    tensor = torch.full((1_000_000,), 0.1, dtype=torch.float64)
    tensor[::2] *= -1
    tensor[0] = 1e-3
    exact = math.fsum(tensor.tolist()) / 1_000_000
    with saved([tensor]) as step:
        assert abs(step["0"]["Mean"] - exact) <= 1e-12 * 0.1


def test_statistics_integers_beyond_float_are_exact_integers():
    tensors = [
        torch.tensor([2**63 - 1, 2**53 + 1, 0]),
        torch.tensor([-(2**63), -(2**53) - 1]),
        torch.tensor([2**53 + 1]),
    ]
    if hasattr(torch, "uint64"):
        tensors.append(torch.tensor([2**64 - 1, 2**63 + 1], dtype=torch.uint64))
    check_all([(str(tensor), tensor) for tensor in tensors])


def test_statistics_bool_are_fraction_and_root_of_count():
    with saved([torch.tensor([True, False, True, True])]) as step:
        record = step["0"]
    assert record["Max"] is True
    assert record["Min"] is False
    assert record["Mean"] == 0.75
    assert abs(record["Norm"] - math.sqrt(3)) < 1e-15


def test_statistics_float16_do_not_overflow():
    with saved([torch.full((1000,), 300.0, dtype=torch.float16)]) as step:
        assert abs(step["0"]["Norm"] - 9486.832980505138) < 1e-8


def test_statistics_complex_largest_parts_do_not_overflow_in_between():
    tensors = {
        "c64": torch.tensor([complex(3e38, 3e38)] * 2, dtype=torch.complex64),
        "c128": torch.tensor([complex(1e200, 1e200)] * 2, dtype=torch.complex128),
        "tiny": torch.tensor([complex(1e-200, 1e-200)] * 2, dtype=torch.complex128),
        "half_nan": torch.tensor([complex(1.0, math.nan), complex(math.inf, 0)]),
        "nan_inf": torch.tensor([complex(math.inf, math.nan)]),
        "inf": torch.tensor([complex(1.0, -math.inf), complex(1.0, 0.0)]),
    }
    with saved(tensors) as step:
        for name, tensor in tensors.items():
            check_statistics(step[name], logical_values(tensor), name)


def test_statistics_float4_counts_two_values_an_item():
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this PyTorch has no float4")
    # Low four bits first: 0x7A holds -1 (1010) and 6 (0111).
    tensor = torch.tensor([0x7A], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    with saved([tensor]) as step:
        record = step["0"]
    assert [record["Max"], record["Min"], record["Mean"]] == [6.0, -1.0, 2.5]
    assert abs(record["Norm"] - math.sqrt(37)) < 1e-14


def test_statistics_nan_and_infinities_are_counted():
    tensor = torch.tensor([math.nan, math.inf, math.inf, -math.inf, 1.0])
    with saved([tensor, torch.ones(2), torch.tensor([math.inf])]) as step:
        record = step["0"]
        assert all(math.isnan(record[field]) for field in STATISTICS_FIELDS)
        assert (record["nan_count"], record["pos_inf_count"], record["neg_inf_count"]) == (1, 2, 1)
        assert not any(key.endswith("_count") for key in step["1"])
        assert [key for key in step["2"] if key.endswith("_count")] == ["pos_inf_count"]


def test_statistics_subnormals_count_under_flush_to_zero():
    tensor = torch.full((100,), 1e-42)
    value = tensor[0].item()
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush subnormals to zero")
    try:
        with saved([tensor], async_dump=True) as late, saved([tensor]) as now:
            records = [late["0"], now["0"]]
    finally:
        torch.set_flush_denormal(False)
    for record in records:
        assert record["Max"] == value
        check_statistics(record, logical_values(tensor))


# ---- tensors that are not plain memory -------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_statistics_sparse_are_those_of_dense(asynchronous):
    tensors = sparse_tensors()
    with saved(tensors, async_dump=asynchronous) as step:
        assert len(step.data) == len(tensors)
        for name, tensor in tensors.items():
            assert step[name]["shape"] == list(tensor.shape)
            assert step[name]["dtype"] == str(tensor.dtype)
            check_statistics(step[name], logical_values(tensor.to_dense()), name)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_statistics_huge_sparse_is_not_made_dense():
    side = 10**7  # dense: 400 TB
    tensor = torch.sparse_coo_tensor(
        [[1, 5], [2, side - 1]], torch.tensor([3.0, 4.0]), (side, side)
    )
    with saved([tensor]) as step:
        record = step["0"]
    assert [record["Max"], record["Min"], record["Norm"]] == [4.0, 0.0, 5.0]
    assert same_number(record["Mean"], 7e-14, 7e-26)


@pytest.mark.filterwarnings("ignore")
def test_statistics_quantized_are_those_of_dequantized():
    values = torch.tensor([[0.5, -1.0, 3.25], [2.0, 0.0, 1.0]])
    scales, zeros = torch.tensor([0.1, 0.25]), torch.tensor([3, 0])
    tensors = {
        "quint8": torch.quantize_per_tensor(values, 0.25, 10, torch.quint8),
        "qint8": torch.quantize_per_tensor(values, 0.25, -3, torch.qint8),
        "qint32": torch.quantize_per_tensor(values, 0.25, 0, torch.qint32),
        "channel": torch.quantize_per_channel(values, scales, zeros, 0, torch.qint8),
    }
    with saved(tensors) as step:
        for name, tensor in tensors.items():
            assert step[name]["dtype"] == str(tensor.dtype)
            assert step[name]["shape"] == [2, 3]
            check_statistics(step[name], logical_values(tensor.dequantize()), name)


@pytest.mark.filterwarnings("ignore")
def test_statistics_nested_cover_all_parts():
    parts = [torch.tensor([1.0, 2.0]), torch.tensor([-8.0, 0.5, 4.0])]
    tensors = {
        "strided": torch.nested.nested_tensor(parts),
        "jagged": torch.nested.nested_tensor(parts, layout=torch.jagged),
    }
    everything = [1.0, 2.0, -8.0, 0.5, 4.0]
    with saved(tensors) as step:
        for name in tensors:
            check_statistics(step[name], everything, name)
            assert step[name]["shape"][0] == 2
        assert step["strided"]["type"] == "torch.Tensor"
        nested = "torch.nested._internal.nested_tensor.NestedTensor"  # as the peer calls it
        assert step["jagged"]["type"] == nested


def test_statistics_without_values_are_null_and_make_no_file():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2, 3)
    tensors = {
        "empty": torch.ones(0, 3),
        "empty_int": torch.ones(0, dtype=torch.int64),
        "meta": torch.ones(3, device="meta"),
        "fake": fake,
    }
    with saved(tensors, task="tensor") as step:
        for name, tensor in tensors.items():
            record = step[name]
            assert [record[field] for field in STATISTICS_FIELDS] == [None] * 4, name
            assert record["shape"] == list(tensor.shape)
            assert "data_name" not in record
        assert not step.tensors.exists() or not any(step.tensors.iterdir())


@pytest.mark.parametrize("name", ["uint1", "uint4", "int2", "int4", "bits8"])
def test_statistics_sub_byte_integers_are_null(name):
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    with saved([torch.empty(4, dtype=getattr(torch, name))]) as step:
        record = step["0"]
    assert record["dtype"] == f"torch.{name}"
    assert record["shape"] == [4]
    assert [record[field] for field in STATISTICS_FIELDS] == [None] * 4


# ---- numpy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_statistics_numpy_arrays_are_exact(asynchronous):
    arrays = numpy_arrays()
    with saved(arrays, async_dump=asynchronous) as step:
        for name, array in arrays.items():
            record = step[name]
            assert list(record)[:7] == ["type", "dtype", "shape", *STATISTICS_FIELDS], name
            assert record["type"] == "numpy.ndarray"
            assert record["shape"] == list(array.shape)
            assert np.dtype(record["dtype"]) in (array.dtype, array.dtype.newbyteorder("="))
            check_statistics(record, array.ravel().tolist(), name)


def test_statistics_numpy_arrays_without_numbers_are_null():
    arrays = {
        "text": np.array(["a", "bc"]),
        "bytes": np.array([b"a", b"bc"]),
        "object": np.array([1, None, "x"], dtype=object),
        "structured": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        "dates": np.array(["2026-01-01"], dtype="datetime64[D]"),
    }
    with saved(arrays) as step:
        assert len(step.data) == len(arrays)
        for name in arrays:
            record = step[name]
            assert record["type"] == "numpy.ndarray", name
            assert [record.get(field) for field in [*STATISTICS_FIELDS, "value"]] == [None] * 5
