"""Shared helpers: where things are, how a dump is read, how a script runs in its own process."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
COUNT_FIELDS = ["nan_count", "pos_inf_count", "neg_inf_count"]
STATISTICS_FIELDS = ["Max", "Min", "Mean", "Norm"]
# The launcher's and the tool's own variables, which a test must not inherit from its surroundings.
FOREIGN_VARIABLES = [
    "RANK",
    "RANK_ID",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MSPROBE_ON_ERROR",
    "MSPROBE_ASYNC_MEMORY",
    "MSPROBE_ASYNC_THREADS",
]


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


def skip_unless_ci(reason: str) -> None:
    """Skips the test; in CI, where everything must be there, fails it."""
    if in_ci():
        pytest.fail(reason + " (CI does not skip this)")
    pytest.skip(reason)


def shared_folder() -> Path:
    """The folder with the reference recordings of the peer."""
    folder = Path(os.environ.get("MSPROBE_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "reference").is_dir():
        skip_unless_ci(f"no reference recordings in {folder}; set MSPROBE_SHARED")
    return folder


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        doubled = sorted({key for key in keys if keys.count(key) > 1})
        raise AssertionError(f"the same key twice in one object: {doubled[:3]}")
    return result


def load_json(path: Path) -> dict[str, Any]:
    """Reads a debug.json; a key that stands twice in one object is an error."""
    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_refuse_duplicates)


@dataclass
class Step:
    """One step of one process, as read back from disk."""

    folder: Path
    top: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        return self.top["data"]

    @property
    def tensors(self) -> Path:
        return self.folder / "dump_tensor_data"

    def file(self, record: dict[str, Any]) -> Path:
        """The file that a record names, checked to lie in dump_tensor_data and to exist."""
        path = self.tensors / record["data_name"]
        assert path.resolve().parent == self.tensors.resolve()
        assert path.is_file(), path
        return path

    def __getitem__(self, name: str) -> Any:
        """The first record of a name."""
        return self.data[f"{name}.0.debug"]


def read_step(path: Path, step: int = 0, folder: str | None = None) -> Step:
    """Reads one step of a dump. `folder`: rank0, proc123; by default the only one there."""
    step_folder = Path(path) / f"step{step}"
    if folder is None:
        names = sorted(entry.name for entry in step_folder.iterdir())
        assert len(names) == 1, f"{step_folder} holds {names}"
        folder = names[0]
    return Step(step_folder / folder, load_json(step_folder / folder / "debug.json"))


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def tree(path: Path) -> list[str]:
    """All files and folders below `path` but hidden ones, as relative names."""
    entries = (str(entry.relative_to(path)) for entry in Path(path).rglob("*"))
    return sorted(e for e in entries if not any(p.startswith(".") for p in e.split("/")))


def config(dump_path: Path | str, **keys: Any) -> dict[str, Any]:
    """A config.json; `summary_mode` goes to its place, every other key to the top."""
    summary_mode = keys.pop("summary_mode", None)
    content = {"task": "statistics", "level": "debug", "dump_path": str(dump_path), **keys}
    if summary_mode is not None:
        content["statistics"] = {"summary_mode": summary_mode}
    return content


def write_config(path: Path, dump_path: Path | str, **keys: Any) -> Path:
    path.write_text(json.dumps(config(dump_path, **keys)), encoding="utf-8")
    return path


class saved:  # noqa: N801
    """Saves many values in one step of a run of their own and reads them back.

    with saved(values, task="tensor") as step: step["0"] is the record of values[0].
    """

    def __init__(self, values: list[Any] | dict[str, Any], *, backward: bool = False, **keys: Any):
        self.values = values if isinstance(values, dict) else dict(_numbered(values))
        self.backward = backward
        self.keys = keys
        self.folder = tempfile.TemporaryDirectory(prefix="msprobe-test-", dir=_scratch())

    def __enter__(self) -> Step:
        from msprobe.pytorch import PrecisionDebugger

        root = Path(self.folder.name)
        debugger = PrecisionDebugger(
            str(write_config(root / "config.json", root / "dump", **self.keys))
        )
        try:
            for name, value in self.values.items():
                debugger.save(value, name, self.backward)
        finally:
            debugger.close()
        return read_step(root / "dump")

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()


def _numbered(values: list[Any]):
    return ((str(i), value) for i, value in enumerate(values))


def _scratch() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def clean_environment(**changes: str | None) -> dict[str, str]:
    """The environment without the variables of launchers and of the tool, then with `changes`."""
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    environment["OMP_NUM_THREADS"] = "1"
    for key, value in changes.items():
        environment.pop(key, None)
        if value is not None:
            environment[key] = value
    return environment


def start_script(
    source: str, cwd: Path, *arguments: str, python: str = sys.executable, **environment: str | None
) -> subprocess.Popen[str]:
    """Starts `source` as a script in a process of its own, with pipes for all three streams."""
    script = Path(cwd) / f"script_{abs(hash(source)) % 10**8}.py"
    script.write_text(textwrap.dedent(source), encoding="utf-8")
    return subprocess.Popen(
        [python, str(script), *arguments],
        cwd=cwd,
        env=clean_environment(**environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that it can be killed with its children
    )


@dataclass
class Finished:
    returncode: int
    stdout: str
    stderr: str


def run_script(
    source: str,
    cwd: Path,
    *arguments: str,
    expect: int = 0,
    timeout: float = 120,
    python: str = sys.executable,
    **environment: str | None,
) -> Finished:
    """Runs `source` to its end and checks its exit code."""
    process = start_script(source, cwd, *arguments, python=python, **environment)
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        pytest.fail(f"no end after {timeout} s\n{stdout}\n{stderr}")
    assert process.returncode == expect, f"exit {process.returncode}\n{stdout}\n{stderr}"
    return Finished(process.returncode, stdout, stderr)


def peer_python() -> Path:
    """The Python that has the peer, mindstudio-probe 26.2.0, in an environment of its own."""
    default = REPOSITORY / ".venv-peer" / "bin" / "python"
    python = Path(os.environ.get("MSPROBE_PEER_PYTHON", default))
    check = [python, "-c", "import importlib.metadata as m; print(m.version('mindstudio-probe'))"]
    if not python.exists():
        skip_unless_ci(f"no Python with mindstudio-probe at {python}; set MSPROBE_PEER_PYTHON")
    found = subprocess.run(check, capture_output=True, text=True, check=False)
    if found.stdout.strip() != "26.2.0":
        skip_unless_ci(f"{python} has no mindstudio-probe 26.2.0: {found.stdout}{found.stderr}")
    return python
