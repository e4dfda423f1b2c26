"""Replays the inputs of shared/reference/README.md and compares with what the peer wrote."""

from __future__ import annotations

import json
import math
import os
import signal
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
from oracles import check_statistics, logical_values
from support import (
    COUNT_FIELDS,
    STATISTICS_FIELDS,
    read_step,
    saved,
    shared_folder,
    start_script,
    tree,
)

Pair = namedtuple("Pair", "a b")
KINDS = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "summary_mode": "md5"},
    "tensor": {"task": "tensor"},
}


def reference_inputs() -> dict[str, object]:
    count = torch.arange(6.0)
    one = torch.ones(1)
    return {
        "float32": count.view(2, 3),
        "float64": count.double(),
        "float16": torch.full((1000,), 300.0, dtype=torch.float16),
        "bfloat16": count.bfloat16(),
        "int64": count.long(),
        "uint8": count.to(torch.uint8),
        "bool": torch.tensor([True, False]),
        "complex64": torch.tensor([1 + 2j, 3 - 4j]),
        "empty": torch.ones(0, 3),
        "zero_dim": torch.tensor(3.5),
        "nan": torch.tensor([1.0, math.nan, 2.0]),
        "inf": torch.tensor([1.0, math.inf, -math.inf]),
        "float8_e4m3fn": count.to(torch.float8_e4m3fn),
        "transposed": count.view(2, 3).t(),
        "meta": torch.ones(3, device="meta"),
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "int": 3,
        "float": 2.5,
        "str": "hello",
        "bool_value": True,
        "size": torch.Size([1, 2]),
        "nested": {"key1": "value1", "key2": ["value2", torch.ones(2)]},
        "tuple": (one, 2),
        "empty_list": [],
        "namedtuple": Pair(one, one),
    }


def replay(debugger) -> dict[str, torch.Tensor]:
    """Saves what the recording saved; returns the tensors with a gradient graph by record key."""
    for name, value in reference_inputs().items():
        debugger.save(value, name, save_backward=False)
    debugger.save(torch.ones(2), "float32", save_backward=False)
    x = torch.arange(4.0, requires_grad=True)
    y, n = 2 * x, torch.ones(1)
    debugger.save({"a": y, "b": [n, 3 * y]}, "nested_backward", True)
    debugger.save(y, "y", True)
    (y**2).sum().backward()
    debugger.step()
    debugger.save(torch.ones(2), "float32", save_backward=False)
    debugger.step()
    return {"y": y.detach(), "y_grad": 2 * y.detach()}


def recorded(kind: str, step: int) -> dict:
    path = shared_folder() / "reference" / "msprobe_26.2.0" / f"pytorch_{kind}_step{step}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def compare(ours, peer, where: str) -> None:
    """Same structure, keys, order and spelling; the peer's own values where it has them."""
    assert type(ours) is type(peer), where
    if isinstance(peer, list):
        assert len(ours) == len(peer), where
        for i, pair in enumerate(zip(ours, peer, strict=True)):
            compare(*pair, f"{where}.{i}")
    elif isinstance(peer, dict) and "Max" in peer:
        compare_tensor(ours, peer, where)
    elif isinstance(peer, dict):
        assert list(ours) == list(peer), where
        for key in peer:
            compare(ours[key], peer[key], f"{where}.{key}")
    else:
        assert ours == peer or (ours != ours and peer != peer), where


def compare_tensor(ours: dict, peer: dict, where: str) -> None:
    # The counts of non-finite values are ours; the peer has none.
    extra = [field for field in ours if field not in peer]
    assert extra == [field for field in COUNT_FIELDS if field in ours], where
    assert [field for field in ours if field not in extra] == list(peer), where
    assert list(ours)[len(peer) :] == extra, where
    for field, value in peer.items():
        found = ours[field]
        if field not in STATISTICS_FIELDS:
            assert found == value, f"{where}: {field}"
        elif value is None or where.split(".")[0] in ("float16", "bfloat16"):
            continue  # wrong or missing there: test_rows_where_the_peer_is_wrong
        elif isinstance(value, float) and math.isfinite(value):
            assert type(found) is float, f"{where}: {field}"
            assert math.isclose(found, value, rel_tol=3e-7), f"{where}: {field}"
        else:
            assert repr(found) == repr(value), f"{where}: {field}"


@pytest.mark.parametrize("async_dump", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_replay_matches_the_recording(make_debugger, dump_path, kind, async_dump):
    wanted = [recorded(kind, 0), recorded(kind, 1)]
    debugger = make_debugger(**KINDS[kind], async_dump=async_dump)
    replay(debugger)
    debugger.close()
    assert sorted(entry.name for entry in dump_path.glob("step*")) == ["step0", "step1"]
    for number, peer in enumerate(wanted):
        step = read_step(dump_path, number)
        assert list(step.top) == list(peer)
        for key in ("task", "level", "framework"):
            assert step.top[key] == peer[key]
        if peer["dump_data_dir"] is None:
            assert step.top["dump_data_dir"] is None
            assert not step.tensors.exists()
        else:
            assert Path(step.top["dump_data_dir"]) == step.tensors.resolve()
        assert list(step.data) == list(peer["data"])
        for key, record in peer["data"].items():
            compare(step.data[key], record, key)


def test_replay_writes_the_files_of_the_recording(make_debugger, dump_path):
    listed = shared_folder() / "reference" / "msprobe_26.2.0" / "pytorch_tensor_files.txt"
    # fx_tensor/step0/proc0/...: the peer saw no rank; here it is 0.
    wanted = [
        line.split("/", 1)[1].replace("/proc0/", "/rank0/")
        for line in listed.read_text().splitlines()
    ]
    replay(make_debugger(task="tensor"))
    assert [name for name in tree(dump_path) if name.endswith(".pt")] == sorted(wanted)


def test_rows_where_the_peer_is_wrong(make_debugger, dump_path):
    debugger = make_debugger()
    replay(debugger)
    step = read_step(dump_path)
    for name, value in reference_inputs().items():
        if isinstance(value, torch.Tensor) and not value.is_meta:
            check_statistics(step[name], logical_values(value.detach()), name)
    root55 = 7.416198487095663
    for name, wanted in {
        "float64": [5.0, 0.0, 2.5, root55],
        "int64": [5, 0, 2.5, root55],
        "uint8": [5, 0, 2.5, root55],
        "bfloat16": [5.0, 0.0, 2.5, root55],
        "float8_e4m3fn": [5.0, 0.0, 2.5, root55],
        "bool": [True, False, 0.5, 1.0],
        "float16": [300.0, 300.0, 300.0, 9486.832980505138],
        "complex64": [5.0, math.sqrt(5), (5 + math.sqrt(5)) / 2, math.sqrt(5 + 25)],
    }.items():
        record = step[name]
        for field, value in zip(STATISTICS_FIELDS, wanted, strict=True):
            assert record[field] == pytest.approx(value, rel=1e-12), f"{name}: {field}"
    assert step["nan"]["nan_count"] == 1
    assert (step["inf"]["pos_inf_count"], step["inf"]["neg_inf_count"]) == (1, 1)


@pytest.mark.parametrize("odd", [None, np.arange(3.0)], ids=["none", "array"])
def test_list_with_one_odd_leaf_saves_everything_else(odd):
    with saved({"x": [torch.ones(2), odd, torch.tensor(2.0)]}, task="tensor") as step:
        record = step["x"]
        assert len(record) == 3
        assert [record[0]["Max"], record[2]["Max"]] == [1.0, 2.0]
        assert (record[1] is None) == (odd is None)
        if odd is not None:
            assert record[1]["Max"] == 2.0
            assert np.load(step.file(record[1]), allow_pickle=False).tolist() == [0, 1, 2]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_sparse_conj_and_odd_names_are_saved(task):
    values = {
        "sparse": torch.eye(2).to_sparse(),
        "conj": torch.tensor([3 + 4j]).conj(),
        "a b": torch.ones(1),
        "a/b": torch.ones(1) * 2,
    }
    with saved(values, task=task) as step:
        assert [step[name]["Max"] for name in values] == [1.0, 5.0, 1.0, 2.0]
        if task == "tensor":
            assert torch.load(step.file(step["conj"])).tolist() == [3 - 4j]
            assert torch.equal(torch.load(step.file(step["sparse"])).to_dense(), torch.eye(2))
            assert torch.load(step.file(step["a/b"])).tolist() == [2.0]


def test_quantized_has_mean_and_norm():
    tensor = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8)
    with saved([tensor]) as step:
        record = step["0"]
    assert [record["Max"], record["Min"], record["Mean"]] == [2.0, 1.0, 1.5]
    assert record["Norm"] == pytest.approx(math.sqrt(5), rel=1e-12)


def test_float8_tensor_keeps_its_storage():
    tensor = torch.arange(6.0).to(torch.float8_e4m3fn)
    pointer = tensor.data_ptr()
    with saved([tensor, {"n": [tensor]}], task="tensor") as step:
        assert step["0"]["Max"] == 5.0
        assert torch.load(step.file(step["0"])).float().tolist() == [0, 1, 2, 3, 4, 5]
    assert tensor.data_ptr() == pointer
    assert tensor.untyped_storage().nbytes() == 6
    assert tensor.float().tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("rank", "listed"), [("0", True), ("3", False), ("5", True)])
def test_rank_filter_is_honoured(make_debugger, dump_path, monkeypatch, rank, listed):
    monkeypatch.setenv("RANK", rank)
    debugger = make_debugger(rank=[0, "5-6"])
    debugger.save(torch.ones(2), "x", True)
    debugger.step()
    assert tree(dump_path) == (
        ["step0", f"step0/rank{rank}", f"step0/rank{rank}/debug.json"] if listed else []
    )


def test_leaf_parameter_saved_each_step_leaves_no_hook(make_debugger):
    debugger = make_debugger()
    parameter = torch.nn.Parameter(torch.ones(2))
    for _ in range(10):
        debugger.save(parameter, "p", True)
        parameter.sum().backward()
        debugger.step()
        assert len(parameter._backward_hooks or ()) == 0


def test_kill_before_step_keeps_every_finished_save(tmp_path):
    process = start_script(
        """
        import torch
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(dump_path="dump", task="tensor")
        x = torch.ones(3, requires_grad=True)
        i = 0
        while True:
            y = x * i
            debugger.save(y, "y", True)
            y.sum().backward()
            print(i, flush=True)
            i += 1
        """,
        tmp_path,
        RANK="0",
    )
    finished = -1
    while finished < 300:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        finished = int(line)
    process.kill()
    rest = process.communicate()[0].splitlines(keepends=True)
    finished = max([finished, *(int(line) for line in rest if line.endswith("\n"))])
    assert process.returncode == -signal.SIGKILL
    step = read_step(tmp_path / "dump")
    for i in range(finished + 1):
        record = step.data[f"y.{i}.debug"]
        assert record["Max"] == i
        assert torch.load(step.file(record)).tolist() == [float(i)] * 3
        assert step.data[f"y_grad.{i}.debug"]["Max"] == 1.0
    assert len(step.data) <= 2 * (finished + 2)
    assert os.listdir(step.folder)


def test_odd_name_in_async_affects_only_itself():
    names = ["a", "b/../../c", "d\0e", "f" * 5000, "g"]
    values = {name: torch.tensor(float(i)) for i, name in enumerate(names)}
    with saved(values, task="tensor", async_dump=True) as step:
        for i, name in enumerate(names):
            assert torch.load(step.file(step[name])).item() == i
