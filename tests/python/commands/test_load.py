"""`msprobe.load`: a dump as Python sees it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from command import tensor_record, write_dump
from oracles import ALL_DTYPES, logical_bytes
from support import read_step, write_config
from tensors import make_storage

import msprobe
from msprobe.pytorch import PrecisionDebugger


def save_steps(root, steps, values, **keys):
    debugger = PrecisionDebugger(str(write_config(root / "config.json", root / "dump", **keys)))
    for _ in range(steps):
        for name, value in values.items():
            debugger.save(value, name, save_backward=False)
        y = torch.arange(4.0, requires_grad=True) * 2
        debugger.save({"a": [y, 1]}, "y", save_backward=True)
        y.sum().backward()
        debugger.step()
    PrecisionDebugger.close()
    return root / "dump"


def leaves_of(value, index=""):
    """The leaves of a record in debug.json, by where they stand."""
    is_leaf = value is None or (isinstance(value, dict) and isinstance(value.get("type"), str))
    if is_leaf:
        yield index, value or {}
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield from leaves_of(item, f"{index}.{key}" if index else str(key))


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_records_are_those_of_debug_json(tmp_path, task):
    values = {"x": torch.randn(3, 4), "n": torch.tensor([math.nan, math.inf]), "loss": 1.5}
    values |= {"nest": {"k": [torch.ones(2), None, "s"], "m": 2**70}, "名 字": torch.arange(3)}
    values |= {"c": 1 - 2j, "array": np.ones((2, 2)), "none": None}
    path = save_steps(tmp_path, 2, values, task=task, summary_mode="md5")
    dump = msprobe.load(path)
    assert dump.steps == [0, 1]
    assert dump.ranks == [0]
    assert dump.names == [*values, "y"]
    for number in dump.steps:
        step = read_step(path, number)
        wanted = [
            (key, index, leaf) for key, v in step.data.items() for index, leaf in leaves_of(v)
        ]
        found = dump.records(step=number)
        assert [(r["key"], r["index"]) for r in found] == [(key, index) for key, index, _ in wanted]
        for record, (_, _, leaf) in zip(found, wanted, strict=True):
            assert json.dumps({k: record[k] for k in leaf}) == json.dumps(leaf)
            assert (record["file"] is not None) == ("data_name" in leaf)
            extra = set(record) - set(leaf)
            assert extra == {"step", "rank", "key", "name", "gradient", "count", "index", "file"}


def test_records_are_chosen_by_name_step_rank_and_gradient(tmp_path):
    data = {"x.0.debug": tensor_record(), "x_grad.0.debug": tensor_record(), "x.1.debug": None}
    data["z.0.debug"] = {"type": "int", "value": 3}
    folders = {f"step{s}/{r}": data for s in (2, 10) for r in ("rank1", "rank11", "proc7")}
    dump = msprobe.load(write_dump(tmp_path / "dump", folders))
    assert dump.steps == [2, 10]
    assert dump.ranks == [1, 11, "proc7"]
    assert len(list(dump)) == len(dump.records()) == 24
    assert [(r["step"], r["rank"]) for r in dump.records("z")] == [
        (s, r) for s in (2, 10) for r in (1, 11, "proc7")
    ]
    assert [r["key"] for r in dump.records("x", step=10, rank="proc7")] == list(data)[:3]
    assert [r["key"] for r in dump.records(step=2, rank=1, gradient=True)] == ["x_grad.0.debug"]
    assert [r["count"] for r in dump.records("x", step=2, rank=1, gradient=False)] == [0, 1]
    assert dump.records("y") == dump.records(step=3) == []
    assert "10" in repr(dump)


def test_every_level_opens(tmp_path):
    path = save_steps(tmp_path, 2, {"x": torch.ones(2)})
    for part, steps in [
        ("", [0, 1]),
        ("step1", [1]),
        ("step1/rank0", [1]),
        ("step1/rank0/debug.json", [1]),
    ]:
        assert msprobe.load(path / part).steps == steps
        assert msprobe.load(str(path / part)).names == ["x", "y"]


def test_tensors_have_the_bits_that_were_saved(tmp_path):
    saved = {dtype: make_storage(dtype, "any_bits", 1).view(20, 24)[::2] for dtype in ALL_DTYPES}
    saved |= {"conj": torch.randn(3, dtype=torch.complex64).conj(), "zero_dim": torch.tensor(3)}
    dump = msprobe.load(save_steps(tmp_path, 1, saved, task="tensor"))
    for name, tensor in saved.items():
        (record,) = dump.records(name)
        loaded = dump.tensor(record)
        assert isinstance(loaded, torch.Tensor)
        assert (loaded.dtype, loaded.shape) == (tensor.dtype, tensor.shape)
        assert logical_bytes(loaded) == logical_bytes(tensor)
    (gradient,) = (r for r in dump.records("y", gradient=True) if r["file"])
    assert torch.equal(dump.tensor(gradient), torch.ones(4))


def test_arrays_come_as_numpy(tmp_path):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    dump = msprobe.load(save_steps(tmp_path, 1, {"array": array}, task="tensor"))
    (record,) = dump.records("array")
    loaded = dump.tensor(record)
    assert isinstance(loaded, np.ndarray)
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)


def test_to_pandas_has_a_row_for_each_record(tmp_path):
    pandas = pytest.importorskip("pandas")
    dump = msprobe.load(save_steps(tmp_path, 3, {"x": torch.ones(2), "loss": 1.5}))
    table = dump.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert len(table) == len(dump.records())
    of_x = table[table.name == "x"]
    assert list(of_x.step) == [0, 1, 2]
    assert list(of_x.Norm) == pytest.approx([2**0.5] * 3, rel=1e-12)
    assert list(table[table.name == "loss"].value) == [1.5] * 3


def test_a_graph_dump_opens_too(tmp_path):
    folder = tmp_path / "dump" / "step4" / "rank2"
    folder.mkdir(parents=True)
    np.save(folder / "x_float32_0.npy", np.arange(3, dtype=np.float32))
    np.save(folder / "x_grad_float32_0.npy", np.ones(3, np.float32))
    dump = msprobe.load(tmp_path / "dump")
    assert (dump.steps, dump.ranks, dump.names) == ([4], [2], ["x"])
    (record,) = dump.records("x", gradient=False)
    assert record["dtype"] == "float32"
    assert np.array_equal(dump.tensor(record), [0, 1, 2])
    assert len(dump.records("x", gradient=True)) == 1


def test_bare_words_of_the_peer_are_numbers(tmp_path):
    record = tensor_record(Max=math.nan, Min=-math.inf, Norm=math.inf)
    dump = msprobe.load(write_dump(tmp_path / "dump", {"step0/proc3": {"x.0.debug": record}}))
    (found,) = dump
    assert math.isnan(found["Max"])
    assert (found["Min"], found["Norm"]) == (-math.inf, math.inf)


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(msprobe.IoError, match="No such file"):
        msprobe.load(tmp_path / "none")
    with pytest.raises(msprobe.FormatError, match="found no dump"):
        msprobe.load(tmp_path)
    torch.save(torch.ones(2), tmp_path / "x.pt")
    with pytest.raises(msprobe.FormatError, match="expected a dump"):
        msprobe.load(tmp_path / "x.pt")
    path = write_dump(tmp_path / "dump", {"step0/rank0": {"x.0.debug": tensor_record()}})
    dump = msprobe.load(path)
    with pytest.raises(ValueError, match=r"x\.0\.debug: the record has no tensor file"):
        dump.tensor(dump.records("x")[0])
    (path / "step0/rank0/debug.json").write_text('{"data": {')
    with pytest.raises(msprobe.FormatError, match=r"debug\.json"):
        msprobe.load(path).records()
    outside = {"x.0.debug": tensor_record(data_name="../../secret.pt")}
    path = write_dump(tmp_path / "outside", {"step0/rank0": outside})
    with pytest.raises(msprobe.FormatError, match="leads out"):
        msprobe.load(path).records()
