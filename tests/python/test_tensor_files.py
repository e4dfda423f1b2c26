"""The `.pt` and `.npy` files of task tensor: bit-equal, small, complete, well named."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from oracles import ALL_DTYPES, logical_bytes
from support import Step, saved
from tensors import (
    LAYOUTS,
    apply_lazy,
    cases,
    lazy_views,
    make_storage,
    numpy_arrays,
    sparse_tensors,
)


def load(path: Path, **options) -> torch.Tensor:
    return torch.load(path, weights_only=True, **options)


def check_file(path: Path, tensor: torch.Tensor, where: str) -> None:
    for options in ({}, {"mmap": True}):
        loaded = load(path, **options)
        assert type(loaded) is torch.Tensor, where
        assert loaded.device.type == "cpu"
        assert loaded.dtype == tensor.dtype, where
        assert loaded.shape == tensor.shape, where
        assert not loaded.requires_grad
        assert not loaded.is_conj()
        assert not loaded.is_neg()
        assert logical_bytes(loaded) == logical_bytes(tensor), where
        broadcast = 0 in tensor.stride() and tensor.numel() > 1
        assert loaded.is_contiguous() or broadcast, where
        stored = tensor.numel()
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
            stored //= length if stride == 0 and stored else 1
        assert loaded.untyped_storage().nbytes() == stored * tensor.element_size(), where


def check_all(described, **keys) -> None:
    with saved([tensor for _, tensor in described], task="tensor", **keys) as step:
        for i, (where, tensor) in enumerate(described):
            record = step[str(i)]
            if tensor.numel() == 0:
                assert "data_name" not in record, where
            else:
                assert record["data_name"] == f"{i}.0.debug.pt"
                check_file(step.file(record), tensor, where)
        written = {entry.name for entry in step.tensors.iterdir()}
        assert written == {r["data_name"] for r in step.data.values() if "data_name" in r}


@pytest.mark.parametrize("name", ALL_DTYPES)
def test_pt_every_dtype_and_layout_loads_bit_equal(name):
    base = make_storage(name, "any_bits", seed=11)
    check_all(
        [
            (f"{name}, {layout} {lazy}", apply_lazy(build(base), lazy))
            for layout, build in LAYOUTS.items()
            for lazy in lazy_views(name)
        ]
    )


@settings(max_examples=8)
@given(cases())
def test_pt_random_tensors_load_bit_equal(described):
    check_all(described)


@settings(max_examples=8)
@given(cases())
def test_pt_async_loads_bit_equal(described):
    check_all(described, async_dump=True)


@pytest.mark.parametrize("async_dump", [False, True])
def test_pt_large_tensors_load_bit_equal(async_dump):
    big = torch.arange(1_500_007, dtype=torch.float64)
    square = big[:1_440_000].view(1200, 1200)
    check_all(
        [
            ("flat", big),
            ("transposed", square.t()),
            ("window", square[100:1100, 7:1111]),
            ("columns", square[:, ::3]),
            ("rows", square[0].expand(900, 1200)),
            ("middle", square[:300, None, :].expand(300, 5, 1200)),
        ],
        async_dump=async_dump,
    )


def test_pt_is_a_sound_zip_with_aligned_data():
    tensors = {"x": torch.arange(1000.0), "one": torch.ones(()), "bytes": torch.ones(3).bool()}
    with saved(tensors, task="tensor") as step:
        for name, tensor in tensors.items():
            path = step.file(step[name])
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
                entries = {info.filename.split("/", 1)[1]: info for info in archive.infolist()}
                assert {"data.pkl", "data/0", "version", "byteorder"} <= set(entries)
                data = entries["data/0"]
                assert data.compress_type == zipfile.ZIP_STORED
                assert (
                    archive.read("/".join([data.filename.split("/")[0], "byteorder"])) == b"little"
                )
                assert archive.read(data) == logical_bytes(tensor)
            with path.open("rb") as raw:  # local header: 30 bytes, then name and extra field
                raw.seek(data.header_offset + 26)
                lengths = raw.read(4)
            start = (
                30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
            )
            assert (data.header_offset + start) % 64 == 0


def test_pt_slice_of_a_large_tensor_makes_a_small_file():
    large = torch.zeros(64, 1 << 20)
    tensors = {
        "slice": large[3, 100:110],
        "column": large[:, 5],
        "broadcast": torch.ones(1).expand(1 << 16, 1 << 10),
        "rows": torch.arange(10.0).expand(1 << 20, 10),
    }
    with saved(tensors, task="tensor") as step:
        for name, tensor in tensors.items():
            path = step.file(step[name])
            assert path.stat().st_size < 4096, name
            loaded = load(path)
            assert loaded.shape == tensor.shape
            assert torch.equal(loaded[:3], tensor[:3])
        assert load(step.file(step["broadcast"])).stride() == (0, 0)
        assert load(step.file(step["rows"])).stride() == (0, 1)
        record = step["broadcast"]
        assert [record["Mean"], record["Norm"]] == [1.0, float(1 << 13)]


@pytest.mark.filterwarnings("ignore")
def test_pt_types_that_need_pickling_load_equal():
    values = torch.tensor([[0.5, -1.0], [2.0, 0.0]])
    parts = [torch.ones(2), torch.zeros(3)]
    scales, zeros = torch.tensor([0.1, 0.25]), torch.tensor([3, 0])
    tensors = {
        **sparse_tensors(),
        "quint8": torch.quantize_per_tensor(values, 0.25, 10, torch.quint8),
        "qint32": torch.quantize_per_tensor(values, 0.25, 0, torch.qint32),
        "channel": torch.quantize_per_channel(values, scales, zeros, 0, torch.qint8),
    }
    nested = torch.nested.nested_tensor(parts)
    for asynchronous in (False, True):
        with saved({**tensors, "nested": nested}, task="tensor", async_dump=asynchronous) as step:
            for name, tensor in tensors.items():
                loaded = load(step.file(step[name]))
                assert loaded.dtype == tensor.dtype, name
                assert loaded.layout == tensor.layout, name
                if tensor.is_quantized:
                    assert torch.equal(loaded.int_repr(), tensor.int_repr()), name
                    assert torch.equal(loaded.dequantize(), tensor.dequantize()), name
                else:
                    dense = tensor.to_dense()
                    assert torch.equal(loaded.to_dense().nan_to_num(7), dense.nan_to_num(7)), name
            back = torch.load(step.file(step["nested"]), weights_only=False)
            assert all(torch.equal(a, b) for a, b in zip(back.unbind(), parts, strict=True))


def test_pt_parameter_and_subclass_load_as_plain_tensors():
    class Mine(torch.Tensor):
        pass

    values = {
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "graph": torch.ones(2, requires_grad=True) * 3,
        "subclass": torch.ones(2).as_subclass(Mine),
        "buffer": torch.nn.Buffer(torch.ones(2)) if hasattr(torch.nn, "Buffer") else torch.ones(2),
    }
    with saved(values, task="tensor") as step:
        assert step["parameter"]["requires_grad"] is True
        assert step["graph"]["requires_grad"] is True
        for name, tensor in values.items():
            assert step[name]["type"] == "torch.Tensor"
            check_file(step.file(step[name]), tensor.detach().as_subclass(torch.Tensor), name)


# ---- numpy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("async_dump", [False, True])
def test_npy_every_array_loads_bit_equal(async_dump):
    arrays = {**numpy_arrays(), "text": np.array(["a", "bc"])}
    with saved(arrays, task="tensor", async_dump=async_dump) as step:
        for name, array in arrays.items():
            record = step[name]
            if array.size == 0 or (array.dtype.kind == "U" and "data_name" not in record):
                continue
            assert record["data_name"] == f"{name}.0.debug.npy"
            loaded = np.load(step.file(record), allow_pickle=False)
            assert loaded.shape == array.shape, name
            assert loaded.dtype.newbyteorder("=") == array.dtype.newbyteorder("="), name
            assert loaded.flags.c_contiguous, name
            assert loaded.newbyteorder("=").dtype.kind == array.dtype.kind
            native = array.dtype.newbyteorder("=")
            assert loaded.astype(native).tobytes() == array.astype(native).tobytes(), name


def test_npy_header_is_version_1_in_c_order_padded_to_64_bytes():
    with saved({"x": np.asfortranarray(np.ones((2, 3)))}, task="tensor") as step:
        raw = step.file(step["x"]).read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    length = int.from_bytes(raw[8:10], "little")
    assert (10 + length) % 64 == 0
    assert raw[10 : 10 + length].endswith(b"\n")
    assert b"'fortran_order': False" in raw


def test_npy_object_array_makes_no_pickle():
    with saved({"x": np.array([1, None], dtype=object)}, task="tensor") as step:
        assert "data_name" not in step["x"]
        assert not step.tensors.exists() or not any(step.tensors.iterdir())


# ---- names -----------------------------------------------------------------------------------


HOSTILE_NAMES = [
    "a b",
    "a/b",
    "/etc/passwd",
    "..",
    "../../x",
    ".",
    "",
    "变量名",
    "变" * 3000,
    "x" * 10_000,
    "x" * 9_999 + "y",
    "x%2Fy",
    "x/y",
    "tab\tnew\nline",
    "nul\0byte",
    'quote"back\\slash',
    ".tmp",
    "-rf",
    "~",
    "é\u0301",
    "emoji 😀",
    "CON",
    "a:b*c?<d>|",
]


def check_names(step: Step, names: list[str]) -> None:
    files = set()
    for i, name in enumerate(names):
        record = step.data[f"{name}.0.debug"]
        path = step.file(record)
        assert len(path.name.encode()) <= 255
        assert "/" not in record["data_name"]
        assert load(path).item() == i, name[:40]
        files.add(path.name)
    assert len(files) == len(names)
    assert {entry.name for entry in step.tensors.iterdir()} == files


@pytest.mark.parametrize("async_dump", [False, True])
def test_names_of_any_kind_keep_their_key_and_get_a_file_of_their_own(async_dump):
    values = {name: torch.tensor(float(i)) for i, name in enumerate(HOSTILE_NAMES)}
    with saved(values, task="tensor", async_dump=async_dump) as step:
        assert list(step.data) == [f"{name}.0.debug" for name in HOSTILE_NAMES]
        check_names(step, HOSTILE_NAMES)


def test_names_that_differ_only_behind_the_cut_get_different_files():
    names = ["x" * 400 + tail for tail in ("a", "b", "c")]
    with saved({n: torch.tensor(float(i)) for i, n in enumerate(names)}, task="tensor") as step:
        check_names(step, names)


def test_names_of_nested_leaves_that_read_alike_both_survive():
    values = {
        "x": {"a.b": torch.tensor(1.0), "a": {"b": torch.tensor(2.0)}},
        "y.0.debug": torch.tensor(3.0),
        "y": {"0": {"debug": torch.tensor(4.0)}, "/": torch.tensor(5.0), "..": torch.tensor(6.0)},
    }
    with saved(values, task="tensor") as step:
        x, y = step["x"], step["y"]
        found = [x["a.b"], x["a"]["b"], step["y.0.debug"], y["0"]["debug"], y["/"], y[".."]]
        assert [load(step.file(record)).item() for record in found] == [1, 2, 3, 4, 5, 6]
        assert len({record["data_name"] for record in found}) == 6


def test_names_of_files_follow_the_indexes_of_the_nesting():
    value = {"key1": "value1", "key2": [torch.ones(1), (torch.ones(2), torch.ones(3))]}
    with saved({"n": value}, task="tensor") as step:
        record = step["n"]["key2"]
        assert record[0]["data_name"] == "n.0.debug.key2.0.pt"
        assert record[1][1]["data_name"] == "n.0.debug.key2.1.1.pt"


def test_folder_is_named_in_the_header_and_holds_no_temporary_files():
    with saved({"x": torch.ones(3)}, task="tensor") as step:
        assert step.top["dump_data_dir"] == str(step.tensors.resolve())
        assert Path(step.top["dump_data_dir"]).is_absolute()
        assert [entry.name for entry in step.tensors.iterdir()] == ["x.0.debug.pt"]
        assert sorted(entry.name for entry in step.folder.iterdir()) == [
            "debug.json",
            "dump_tensor_data",
        ]
