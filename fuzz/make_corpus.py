"""Writes small files for the fuzzers to start from.

Usage: python fuzz/make_corpus.py DIR (needs NumPy and PyTorch). It creates DIR/npy,
DIR/pt, DIR/records and DIR/config.
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import torch


def write_npy(folder: Path) -> None:
    """Writes an array of each dtype, in both orders and all versions of the format."""
    folder.mkdir(parents=True, exist_ok=True)
    for code in ("?", "u1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16", ">f4", "O", "U2"):
        array = np.arange(6).reshape(2, 3).astype(code)
        np.save(folder / f"{array.dtype.num}_{array.dtype.itemsize}.npy", array, allow_pickle=True)
    np.save(folder / "fortran.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    np.save(folder / "scalar.npy", np.float32(1))
    np.save(folder / "empty.npy", np.empty((0, 3)))
    for version in ((1, 0), (2, 0), (3, 0)):
        with (folder / f"version{version[0]}.npy").open("wb") as file:
            np.lib.format.write_array(file, np.arange(3), version=version)


def write_pt(folder: Path) -> None:
    """Writes archives of torch.save and, beside them, the pickles they hold."""
    folder.mkdir(parents=True, exist_ok=True)
    base = torch.arange(12.0).reshape(3, 4)
    tensors: dict[str, object] = {
        "plain": base,
        "view": base[1:, 1:3],
        "transposed": base.t(),
        "expanded": base[0].expand(3, 4),
        "conj": torch.ones(3, dtype=torch.complex64).conj(),
        "uint16": torch.arange(6).to(torch.uint16),
        "parameter": torch.nn.Parameter(base),
        "sparse": base.to_sparse(),
        "dict": {"a": base, "b": [1, 2.5, None, "x"]},
    }
    for name, value in tensors.items():
        for protocol in (2, 4):
            buffer = io.BytesIO()
            torch.save(value, buffer, pickle_protocol=protocol)
            (folder / f"{name}{protocol}.pt").write_bytes(buffer.getvalue())
            with zipfile.ZipFile(buffer) as archive:
                pickle = archive.read("archive/data.pkl")
                (folder / f"{name}{protocol}.pkl").write_bytes(pickle)
                with zipfile.ZipFile(
                    folder / f"{name}{protocol}_deflated.pt", "w", zipfile.ZIP_DEFLATED
                ) as packed:
                    for entry in archive.namelist():
                        packed.writestr(entry, archive.read(entry))


TENSOR = (
    '{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, null], "Max": NaN,'
    ' "Min": -1.5, "Mean": 1e-3, "Norm": Infinity, "requires_grad": true, "device_mesh": [[0]],'
    ' "md5": "0000000a", "data_name": "x.pt", "nan_count": 1}'
)
RECORDS = {
    "tensor": f'"x.0.debug": {TENSOR}, "x_grad#2.0.debug": {TENSOR}',
    "nesting": (
        f'"n.1.debug": {{"a": [null, true, "s\\ud800", {TENSOR}], "b.c": {{}}, "b": {{"c": []}}}}'
    ),
    "plain": '"p.0.debug": {"type": "complex", "value": [1.5, -2.0]}, "q": 3',
}


def write_json(folder: Path) -> None:
    """Writes documents of debug.json, and a config.json."""
    for name in ("records", "config"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, data in RECORDS.items():
        text = f'{{"task": "tensor", "framework": "pytorch", "data": {{{data}}}}}'
        (folder / "records" / f"{name}.json").write_text(text)
    (folder / "config" / "config.json").write_text(
        '{"task": "tensor", "step": [0, "2-4"], "a": {"b": [1.5, null]}}'
    )


if __name__ == "__main__":
    write_json(Path(sys.argv[1]))
    write_npy(Path(sys.argv[1]) / "npy")
    write_pt(Path(sys.argv[1]) / "pt")
