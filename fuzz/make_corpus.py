"""Writes small files for the fuzzers to start from.

Usage: python fuzz/make_corpus.py DIR (needs NumPy and PyTorch). DIR/npy and DIR/pt are created.
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


if __name__ == "__main__":
    write_npy(Path(sys.argv[1]) / "npy")
    write_pt(Path(sys.argv[1]) / "pt")
