"""Fixtures. The folder is put on the path so that the tests can share their helpers."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("command", "support", "oracles", "tensors")

import support  # noqa: E402

# Without a handler the summary of graph saves would go to stderr, behind pytest's closing line.
logging.getLogger("msprobe").addHandler(logging.NullHandler())

hypothesis = pytest.importorskip("hypothesis")
hypothesis.settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    derandomize=support.in_ci(),
    database=None,
)
hypothesis.settings.load_profile("default")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    """Rank 0, failures raise, and no debugger is left over from another test."""
    for variable in support.FOREIGN_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MSPROBE_ON_ERROR", "raise")
    yield
    module = sys.modules.get("msprobe.pytorch")
    if module is not None:
        module.PrecisionDebugger.close()


@pytest.fixture
def dump_path(tmp_path) -> Path:
    return tmp_path / "dump"


@pytest.fixture
def make_debugger(tmp_path, dump_path):
    """Builds a debugger from a config.json with the given keys, writing to `dump_path`."""

    def build(**keys):
        from msprobe.pytorch import PrecisionDebugger

        path = keys.pop("dump_path", dump_path)
        return PrecisionDebugger(str(support.write_config(tmp_path / "config.json", path, **keys)))

    return build
