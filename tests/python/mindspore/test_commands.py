"""The commands on dumps of MindSpore: graphs beside each other and beside a dynamic dump."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import compare, run, tensor_record, write_dump
from support import read_step

import msprobe

ms = pytest.importorskip("mindspore", reason="mindspore is not installed")

from mindspore import nn  # noqa: E402

from msprobe.mindspore import save, save_grad, step  # noqa: E402


class Net(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        save(self.save_dir, "x", x)
        x = save_grad(self.save_dir, "x", x)
        save(self.save_dir, "half", x.astype(ms.bfloat16))
        y = x * 2
        save(self.save_dir, "nest", {"a": y, "b": [x.astype(ms.int32)]})
        return (y * y).sum()


X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def graphs(ms, tmp_path_factory):
    """The rank folders of three runs: twice the same, then one with another input."""
    folder = tmp_path_factory.mktemp("graphs")
    ms.set_context(mode=ms.GRAPH_MODE)
    found = []
    for name, x in (("one", X), ("same", X), ("other", X + np.eye(3, 4, dtype=np.float32))):
        ms.grad(Net(str(folder / name)))(ms.Tensor(x))
        step()
        found += [path.parent for path in (folder / name).glob("step*/rank*/x_float32_0.npy")]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert len(found) == 3
    return found


NAMES = {"x.0", "x_grad.0", "half.0", "nest.a.0", "nest.b.0.0"}


def test_two_runs_of_a_graph_are_equal(tmp_path, graphs):
    found = compare(graphs[0], graphs[1], tmp_path / "out")
    assert set(found.verdicts) == NAMES
    assert set(found.verdicts.values()) == {"equal"}
    assert {row["Compared by"] for row in found.rows} == {"values"}
    assert {row["Bench Tensor Shape"] for row in found.rows} == {"[3, 4]"}


def test_graphs_that_differ_do_so_by_the_right_amount(tmp_path, graphs):
    found = compare(graphs[0], graphs[2], tmp_path / "out", expect=1)
    assert set(found.verdicts.values()) == {"fail"}
    assert "first divergence" in found.stdout
    assert float(found["x.0"]["MaxAbsErr"]) == pytest.approx(1, rel=1e-6)
    assert float(found["x_grad.0"]["MaxAbsErr"]) == pytest.approx(8, rel=1e-6)
    assert found["x.0"]["MaxAbsErr at"] in ("[0, 0]", "[1, 1]", "[2, 2]")
    assert float(found["x.0"]["EucDist"]) == pytest.approx(3**0.5, rel=1e-6)


def test_a_graph_compares_with_a_dynamic_dump(tmp_path, graphs, make_ms_debugger, dump_path):
    debugger = make_ms_debugger(task="tensor")
    debugger.save(ms.Tensor(X), "x", save_backward=False)
    debugger.save(ms.Tensor(X).astype(ms.bfloat16), "half", save_backward=False)
    nested = {"a": ms.Tensor(X * 2), "b": [ms.Tensor(X.astype(np.int32))]}
    debugger.save(nested, "nest", save_backward=False)
    debugger.step()
    dynamic = read_step(dump_path).folder
    for sides in ((graphs[0], dynamic), (dynamic, graphs[0])):
        found = compare(*sides, tmp_path / "out", "--name", "^(x|half|nest)[.]")
        assert set(found.verdicts.values()) == {"equal"}
        assert len(found.rows) == 4
        assert {row["Compared by"] for row in found.rows} == {"values"}
    run("verify", dynamic)


def test_a_graph_is_shown_verified_and_loaded(graphs):
    shown = json.loads(run("show", graphs[0], "--json").stdout)
    assert {r["key"] for r in shown} == NAMES
    assert "no damage" in run("verify", graphs[0]).stdout
    dump = msprobe.load(graphs[0])
    (record,) = dump.records("x", gradient=False)
    assert np.array_equal(dump.tensor(record), X)
    (record,) = dump.records("x", gradient=True)
    assert np.array_equal(dump.tensor(record), X * 8)


def test_a_damaged_array_of_a_graph_is_found(tmp_path):
    folder = tmp_path / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True)
    np.save(folder / "x_float32_0.npy", X)
    np.save(folder / "y_int8_0.npy", X)  # another dtype than its name says
    content = (folder / "x_float32_0.npy").read_bytes()
    (folder / "x_float32_0.npy").write_bytes(content[:-4])
    found = run("verify", tmp_path / "dump", expect=1).stdout
    assert "x_float32_0.npy" in found
    assert "y_int8_0.npy" in found


def test_dtypes_of_both_frameworks_are_the_same(tmp_path):
    pairs = {"Float32": "torch.float32", "BFloat16": "torch.bfloat16", "Int64": "torch.int64"}
    golden = {f"{n}.0.debug": tensor_record(dtype=n, Max=1, Min=1) for n in pairs}
    target = {f"{n}.0.debug": tensor_record(dtype=d, Max=1, Min=1) for n, d in pairs.items()}
    sides = [
        write_dump(tmp_path / side, {"step0/rank0": records})
        for side, records in (("golden", golden), ("target", target))
    ]
    found = compare(*sides, tmp_path / "out")
    assert set(found.verdicts.values()) == {"equal"}
