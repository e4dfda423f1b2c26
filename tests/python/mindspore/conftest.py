"""MindSpore on the CPU, in PyNative mode unless a test says otherwise."""

from __future__ import annotations

import pytest
import support


@pytest.fixture(scope="session")
def ms():
    try:
        import mindspore
    except ImportError:
        support.skip_unless_ci("mindspore is not installed")
    mindspore.set_device("CPU")
    return mindspore


@pytest.fixture
def pynative(ms, monkeypatch):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    monkeypatch.setenv("RANK_ID", "0")
    yield ms
    from msprobe.mindspore import PrecisionDebugger

    PrecisionDebugger.close()


@pytest.fixture
def make_ms_debugger(pynative, tmp_path, dump_path):
    """Builds a MindSpore debugger from a config.json with the given keys."""

    def build(**keys):
        from msprobe.mindspore import PrecisionDebugger

        return PrecisionDebugger(
            str(support.write_config(tmp_path / "config.json", dump_path, **keys))
        )

    return build
