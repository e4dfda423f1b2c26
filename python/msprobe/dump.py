"""Reading a dump in Python: ``msprobe.load(path)``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msprobe import _core

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import torch


def load(path: str | os.PathLike[str]) -> Dump:
    """Opens a dump, one of its steps, one rank of a step, or its ``debug.json``.

    Reads no records yet. Dumps of msProbe and of MindSpore graphs are read as well.

    Raises:
        msprobe.IoError: The path cannot be read.
        msprobe.FormatError: It holds no dump.
    """
    return Dump(os.fspath(path))


class Dump:
    """The records of a dump. Folders are read when they are first asked for, and kept."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folders = _core.find_rank_folders(path)
        self._records: dict[str, list[dict[str, Any]]] = {}

    def __repr__(self) -> str:
        return f"<Dump {self.path!r}: steps {self.steps}, ranks {self.ranks}>"

    @property
    def steps(self) -> list[int]:
        """The steps, ascending; empty for a folder outside ``step{N}``."""
        return sorted({folder.step for folder in self._folders if folder.step is not None})

    @property
    def ranks(self) -> list[int | str]:
        """The ranks, ascending; then the names of folders without one (``proc17``)."""
        ranks = {_rank(folder) for folder in self._folders}
        return sorted(ranks, key=lambda rank: (isinstance(rank, str), rank))

    @property
    def names(self) -> list[str]:
        """The names that were given to ``save``, in the order of their first record."""
        return list(dict.fromkeys(record["name"] for record in self))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Gives the records of all steps and ranks, as :meth:`records` does."""
        return iter(self.records())

    def records(
        self,
        name: str | None = None,
        *,
        step: int | None = None,
        rank: int | str | None = None,
        gradient: bool | None = None,
    ) -> list[dict[str, Any]]:
        """Returns one dict for each tensor or plain value, by step, rank, then recorded order.

        Keys: ``step``, ``rank``, ``key`` (``x_grad.0.debug``), ``name`` (``x``), ``gradient``,
        ``count``, ``index`` (its place in a nesting: ``b.0``), ``file`` (path or None), and what
        was recorded: ``type``, ``dtype``, ``shape``, ``Max``, ``Min``, ``Mean``, ``Norm``, ...,
        or ``type`` and ``value``; nothing more for ``null``.
        """
        found = []
        for folder in self._folders:
            if step is not None and folder.step != step:
                continue
            if rank is not None and _rank(folder) != rank:
                continue
            found += [
                record
                for record in self._read(folder)
                if (name is None or record["name"] == name)
                and (gradient is None or record["gradient"] == gradient)
            ]
        return found

    def tensor(self, record: dict[str, Any]) -> torch.Tensor | np.ndarray[Any, Any]:
        """Reads the tensor file of a record: ``.pt`` with PyTorch, ``.npy`` with NumPy.

        Raises:
            ValueError: The record has no file (task ``statistics``, or a plain value).
        """
        file = record.get("file")
        if file is None:
            raise ValueError(f"{record['key']}: the record has no tensor file")
        if file.endswith(".npy"):
            import numpy as np

            array: np.ndarray[Any, Any] = np.load(file, allow_pickle=False)
            return array
        import torch

        tensor: torch.Tensor = torch.load(file, map_location="cpu", weights_only=True)
        return tensor

    def to_pandas(self) -> pd.DataFrame:
        """Returns all records as a table, one row each (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.records())

    def _read(self, folder: _core.RankFolder) -> list[dict[str, Any]]:
        if folder.path not in self._records:
            self._records[folder.path] = [
                {
                    "step": folder.step,
                    "rank": _rank(folder),
                    "key": entry.key,
                    "name": entry.name,
                    "gradient": entry.is_gradient,
                    "count": entry.count,
                    "index": entry.index,
                    "file": entry.file,
                    **(json.loads(entry.json) or {}),
                }
                for entry in _core.read_rank_folder(folder.path)
            ]
        return self._records[folder.path]


def _rank(folder: _core.RankFolder) -> int | str:
    return folder.name if folder.rank is None else folder.rank
