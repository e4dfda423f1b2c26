"""Runs the command `msprobe` as a user does, reads what it writes, and makes dumps by hand."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import Finished, clean_environment


def command() -> list[str]:
    """The program under test: that of $MSPROBE_COMMAND, else the package's."""
    program = os.environ.get("MSPROBE_COMMAND")
    return [program] if program else [sys.executable, "-m", "msprobe"]


def start(*arguments: Path | str, program: list[str] | None = None, **keys: Any):
    """Starts the command with pipes for both streams, which hold bytes."""
    return subprocess.Popen(
        [*(program or command()), *map(os.fspath, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        **keys,
    )


def run(
    *arguments: Path | str, expect: int = 0, program: list[str] | None = None, **keys: Any
) -> Finished:
    """Runs the command to its end and checks its exit status."""
    with start(*arguments, program=program, **keys) as process:
        stdout, stderr = (text.decode() for text in process.communicate(timeout=120))
    assert process.returncode == expect, f"exit {process.returncode}\n{stdout}\n{stderr}"
    return Finished(process.returncode, stdout, stderr)


@dataclass
class Comparison:
    stdout: str
    stderr: str
    rows: list[dict[str, str]]  # compare.csv

    def __getitem__(self, name: str) -> dict[str, str]:
        """The only row with `name` on a side."""
        found = [row for row in self.rows if name in (row["Bench Name"], row["NPU Name"])]
        assert len(found) == 1, (name, [row["Bench Name"] or row["NPU Name"] for row in self.rows])
        return found[0]

    @property
    def verdicts(self) -> dict[str, str]:
        return {row["Bench Name"] or row["NPU Name"]: row["Verdict"] for row in self.rows}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def compare(
    golden: Path, target: Path, out: Path, *options: Path | str, expect: int = 0
) -> Comparison:
    """Runs `msprobe compare` and reads its table; `out` is the folder for it."""
    finished = run("compare", golden, target, "-o", out, *options, expect=expect)
    return Comparison(finished.stdout, finished.stderr, read_csv(out / "compare.csv"))


def tensor_record(shape: tuple[int, ...] = (2,), dtype: str = "torch.float32", **fields: Any):
    """A record of a tensor; `fields` are added, or replace those of a tensor full of ones."""
    count = 1
    for size in shape:
        count *= size
    numbers = {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": count**0.5}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape)} | numbers | fields


def write_rank(folder: Path, data: Mapping[str, Any], task: str = "statistics") -> Path:
    """Writes the debug.json of one rank, as json.dump does: NaN is a bare word."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    top = {"task": task, "level": "debug", "framework": "pytorch", "data": data}
    (folder / "debug.json").write_text(json.dumps(top), encoding="utf-8")
    return folder


def write_dump(root: Path, folders: Mapping[str, Mapping[str, Any]]) -> Path:
    """Writes a dump from {"step0/rank0": {key: record}}."""
    for name, data in folders.items():
        write_rank(root / name, data)
    return root
