"""Tensor files of other writers: torch.save and np.save in all their ways, against torch.load."""

from __future__ import annotations

import collections
import io
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from command import run, tensor_record, write_rank
from oracles import ALL_DTYPES, crc32, logical_bytes
from tensors import make_storage

COUNTED = {"Max": None, "Min": None, "Mean": None, "Norm": None}  # not looked at here


class Subclass(torch.Tensor):
    pass


def tensors():
    """What torch.save writes as one tensor, by name: the tensor and options."""
    for dtype in ALL_DTYPES:
        yield f"dtype_{dtype}", make_storage(dtype, "any_bits", 1).view(20, 24), {}
    base = torch.arange(1000.0).reshape(10, 100)
    complex_ = torch.randn(5, 6, dtype=torch.complex64)
    annotated = torch.randn(3)
    annotated.note = {"a": [1, 2.5, "x", None]}
    parameter = torch.nn.Parameter(torch.randn(3, 3))
    parameter_with_state = torch.nn.Parameter(torch.randn(3, 3))
    parameter_with_state.foo = 1
    small = torch.nn.Parameter(torch.randn(4).to(torch.float8_e4m3fn), requires_grad=False)
    for name, tensor in {
        "offset": base[3:7, 10:50],
        "transposed": base.t(),
        "strided": base[::2, ::3],
        "expanded": base[0].expand(7, 100),
        "one_of_many": base[2, 3],
        "empty": torch.empty(0, 3),
        "zero_dim": torch.tensor(4),
        "wide_rows": torch.randn(3, 70_000)[:, 5:],
        "conj": complex_.conj(),
        "conj_transposed": complex_.conj().t(),
        "neg": torch._neg_view(torch.randn(4, 5)),
        "imag_of_conj": complex_.conj().imag,
        "conj_neg": torch._neg_view(complex_.conj()),
        "parameter": parameter,
        "parameter_with_state": parameter_with_state,
        "parameter_float8": small,
        "requires_grad": torch.randn(3, requires_grad=True),
        "annotated": annotated,
    }.items():
        yield name, tensor, {}
    for protocol in (2, 3, 4, 5):
        yield f"protocol{protocol}", base[1:3], {"pickle_protocol": protocol}
        unsigned = torch.arange(9).to(torch.uint16)
        yield f"protocol{protocol}_uint16", unsigned, {"pickle_protocol": protocol}


class _NotSeekable(io.RawIOBase):
    """Has zipfile write sizes behind the data, as to a pipe."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def repack(source, target, method, *, reverse=False, rename=lambda name: name, streamed=False):
    with (
        zipfile.ZipFile(source) as old,
        target.open("wb") as file,
        zipfile.ZipFile(_NotSeekable(file) if streamed else file, "w", method) as new,
    ):
        for name in sorted(old.namelist(), reverse=reverse):
            new.writestr(rename(name), old.read(name))
        new.comment = b"PK\5\6 is no end" if streamed else b""


REPACKED = {
    "deflated": ("offset", zipfile.ZIP_DEFLATED, {}),
    "deflated_conj": ("conj_transposed", zipfile.ZIP_DEFLATED, {"streamed": True}),
    "deflated_empty": ("empty", zipfile.ZIP_DEFLATED, {}),
    "streamed": ("transposed", zipfile.ZIP_STORED, {"streamed": True}),
    "reversed": ("transposed", zipfile.ZIP_STORED, {"reverse": True}),
    "no_folder": ("transposed", zipfile.ZIP_STORED, {"rename": lambda n: n.split("/", 1)[1]}),
}


def arrays():
    for dtype in "?BbhilefdFDHIL":
        array = np.arange(24) % 2 if dtype == "?" else np.arange(24)
        yield f"np_{np.dtype(dtype).name}", array.astype(dtype).reshape(2, 3, 4)
    yield "np_fortran", np.asfortranarray(np.random.default_rng(0).random((30, 40), np.float32))
    yield "np_fortran3", np.asfortranarray(np.random.default_rng(0).random((3, 5, 7)))
    yield "np_scalar", np.float64(3)
    yield "np_empty", np.empty((3, 0, 2), np.float32)
    yield "np_strided", np.arange(100)[::3]


def record(name, file, dtype, shape, content):
    return {
        f"{name}.0.debug": tensor_record(
            shape, dtype, **COUNTED, md5=crc32(content), data_name=file.name
        )
    }


def test_every_way_to_save_a_tensor_is_read_to_the_bit(tmp_path):
    """`verify` recomputes shape, dtype and the CRC-32 of the elements in C order."""
    rank = write_rank(tmp_path / "rank0", {})
    folder = rank / "dump_tensor_data"
    data = {}
    saved = {}
    for name, tensor, options in tensors():
        torch.save(tensor, folder / f"{name}.pt", **options)
        saved[name] = tensor
    torch.serialization.set_crc32_options(False)
    torch.save(saved["offset"], folder / "without_crc.pt")
    torch.serialization.set_crc32_options(True)
    saved["without_crc"] = saved["offset"]
    for name, (source, method, options) in REPACKED.items():
        repack(folder / f"{source}.pt", folder / f"{name}.pt", method, **options)
        saved[name] = saved[source]
    for name, tensor in saved.items():
        if name != "no_folder":  # PyTorch wants the folder
            assert torch.load(folder / f"{name}.pt", weights_only=False).shape == tensor.shape
        content = logical_bytes(tensor.detach())
        dtype, shape = str(tensor.dtype), tuple(tensor.shape)
        data |= record(name, folder / f"{name}.pt", dtype, shape, content)
    for name, array in arrays():
        np.save(folder / f"{name}.npy", array)
        content = np.ascontiguousarray(array).tobytes()
        data |= record(name, folder / f"{name}.npy", array.dtype.name, array.shape, content)
    for version in ((1, 0), (2, 0), (3, 0)):
        name, array = f"np_version{version[0]}", np.arange(6.0)
        with (folder / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array(file, array, version=version)
        data |= record(name, folder / f"{name}.npy", "float64", (6,), array.tobytes())
    (rank / "debug.json").write_text(json.dumps({"task": "tensor", "data": data}))
    finished = run("verify", rank)
    assert finished.stdout == (
        f"{len(data)} records in 1 folders; {len(data)} tensor files are as recorded; no damage\n"
    )


def others():
    """What PyTorch and NumPy save that is no plain tensor."""
    x = torch.randn(3)
    yield "quantized", torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    yield "sparse", torch.eye(3).to_sparse()
    yield "csr", torch.eye(3).to_sparse_csr()
    yield "nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    yield "jagged", torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)
    yield "meta", torch.empty(3, device="meta")
    yield "subclass", x.as_subclass(Subclass)
    yield "dict", {"a": x}
    yield "state_dict", torch.nn.Linear(2, 2).state_dict()
    yield "list", [x, x]
    yield "scalar", 1.5
    yield "none", None
    yield "text", "x"
    yield "large_int", 10**30
    yield "set", {1, 2}
    yield "bytes", b"abc"
    yield "ordered", collections.OrderedDict(a=1)
    yield "array", np.ones(3)
    yield "size", torch.Size([2, 3])
    yield "dtype", torch.float32
    yield "model", torch.nn.Linear(2, 2)
    yield "storage", x.untyped_storage()
    yield "many", {f"layer{i}": x for i in range(3000)}


def test_files_that_hold_no_plain_tensor_are_told_and_are_no_damage(tmp_path):
    rank = write_rank(tmp_path / "rank0", {})
    folder = rank / "dump_tensor_data"
    for name, value in others():
        torch.save(value, folder / f"{name}.pt")
    torch.save(torch.ones(3), folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.Linear(2, 2)).save(folder / "script.pt")
    np.save(folder / "objects.npy", np.array([1, None], dtype=object), allow_pickle=True)
    for name, array in {
        "text": np.array(["a"]),
        "records": np.zeros(3, [("a", "f4")]),
        "big_endian": np.arange(3, dtype=">f4"),
        "long_double": np.zeros(3, np.longdouble),
        "dates": np.zeros(3, "M8[s]"),
    }.items():
        np.save(folder / f"np_{name}.npy", array)
    np.savez(folder / "several.npz", a=np.ones(3))
    names = sorted(path.name for path in folder.iterdir())
    data = {f"{n}.0.debug": tensor_record((3,), **COUNTED, data_name=n) for n in names}
    (rank / "debug.json").write_text(json.dumps({"task": "tensor", "data": data}))
    finished = run("verify", rank)
    assert "0 tensor files are as recorded; no damage" in finished.stdout
    assert f"{len(names)} files could not be checked" in finished.stdout


@pytest.mark.parametrize(
    ("name", "value", "options", "said"),
    [
        ("legacy", torch.ones(3), {"_use_new_zipfile_serialization": False}, "PyTorch 1.6"),
        ("dict", {"a": torch.ones(3)}, {}, "dict"),
        ("sparse", torch.eye(2).to_sparse(), {}, "sparse"),
        ("subclass", torch.ones(3).as_subclass(Subclass), {}, "tensor subclass"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_plain_words(tmp_path, name, value, options, said):
    torch.save(value, tmp_path / f"{name}.pt", **options)
    finished = run("show", tmp_path / f"{name}.pt", expect=2)
    assert f"{name}.pt" in finished.stderr
    assert said in finished.stderr


def test_code_in_a_pickle_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "proof"), "w"))

    torch.save(Evil(), tmp_path / "evil.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Evil()))
    for name in ("evil.pt", "plain.pt"):
        run("show", tmp_path / name, expect=2)
        run("compare", tmp_path / name, tmp_path / name, "-o", tmp_path, expect=2)
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\5\6" + bytes(18), b"PK\3\4", b"\x93NUMPY"])
def test_what_is_no_tensor_file_is_refused(tmp_path, content):
    (tmp_path / "x.pt").write_bytes(content)
    assert "x.pt" in run("show", tmp_path / "x.pt", expect=2).stderr


def test_special_files_are_refused_at_once(tmp_path):
    import os

    os.mkfifo(tmp_path / "fifo.pt")
    for path in (tmp_path / "fifo.pt", "/dev/zero"):
        run("show", path, expect=2)
        run("verify", path, expect=1)
