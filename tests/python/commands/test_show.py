"""`msprobe show`: dumps, steps, ranks, tensor files, the series along the steps."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from command import run, tensor_record, write_dump
from support import STATISTICS_FIELDS, saved

NAN = math.nan


@pytest.fixture
def dump(tmp_path):
    def records(step):
        return {
            "loss.0.debug": {"type": "float", "value": 8.0 / 2**step},
            "x.0.debug": tensor_record((2, 3), Max=float(step), Norm=float(step)),
            "x.1.debug": tensor_record((), "torch.int64", Max=7, Min=7, Mean=7.0, Norm=7.0),
            "x_grad.0.debug": tensor_record(Norm=NAN if step > 1 else 1.0, nan_count=step // 2),
            "nest.0.debug": {"a": [tensor_record(), None], "b": {"type": "str", "value": "text"}},
        }

    folders = {f"step{s}/rank{r}": records(s) for s in (0, 1, 2, 10) for r in (0, 1)}
    return write_dump(tmp_path / "dump", folders)


def sections(text):
    """The tables by their titles, each a list of lines without repeated spaces."""
    result = {}
    for block in text.strip().split("\n\n"):
        title, *lines = block.split("\n")
        result[title] = [" ".join(line.split()) for line in lines]
    return result


def test_a_dump_is_shown_as_a_table_for_each_step_and_rank(dump):
    shown = sections(run("show", dump).stdout)
    titles = [
        f"step {s}, rank{r}: pytorch, task statistics, 5 records"
        for s in (0, 1, 2, 10)
        for r in (0, 1)
    ]
    assert list(shown)[:8] == titles
    assert shown[titles[0]] == [
        "name count index dtype shape Max Min Mean Norm also",
        "loss 0 float 8.0",
        "x 0 torch.float32 [2, 3] 0 1 1 0",
        "x 1 torch.int64 [] 7 7 7 7",
        "x_grad 0 torch.float32 [2] 1 1 1 1",
        "nest 0 a.0 torch.float32 [2] 1 1 1 1.41421",
        "nest 0 a.1 null",
        'nest 0 b str "text"',
    ]
    assert shown[titles[4]][4] == "x_grad 0 torch.float32 [2] 1 1 1 nan 1 NaN"


def test_the_first_nan_is_named_with_the_ranks_that_have_it(dump):
    last = run("show", dump).stdout.strip().split("\n")[-1]
    assert last == "first NaN or infinity: step 2, rank0, rank1, x_grad.0.debug (1 NaN)"


@pytest.mark.parametrize("level", ["step1", "step1/rank0", "step1/rank0/debug.json"])
def test_every_level_can_be_shown(dump, level):
    shown = json.loads(run("show", dump / level, "--json").stdout)
    assert {r["step"] for r in shown} == {1}
    assert {r["rank"] for r in shown} == ({0, 1} if level == "step1" else {0})


def test_step_rank_name_and_nan_choose_what_is_shown(dump):
    def shown(*options):
        found = json.loads(run("show", dump, "--json", *options).stdout)
        return [(r["step"], r["rank"], r["key"], r["index"]) for r in found]

    assert shown("--step", "1-2", "--rank", "1", "--name", "^loss") == [
        (1, 1, "loss.0.debug", ""),
        (2, 1, "loss.0.debug", ""),
    ]
    assert shown("--step", "0", "--rank", "0", "--name", r"nest.*\.a\.") == [
        (0, 0, "nest.0.debug", "a.0"),
        (0, 0, "nest.0.debug", "a.1"),
    ]
    assert {(step, key) for step, _, key, _ in shown("--nan")} == {
        (2, "x_grad.0.debug"),
        (10, "x_grad.0.debug"),
    }
    assert shown("--name", "nothing") == []


def test_json_holds_the_records_as_they_were_recorded(tmp_path):
    values = {"f": torch.randn(3, 4), "i": torch.arange(5), "n": torch.tensor([NAN, math.inf])}
    values |= {
        "nest": {"a": [torch.ones(2), 2, None, "s"]},
        "名": 1.5,
        "c": 1 + 2j,
        "b": np.ones(2) > 0,
    }
    with saved(values, summary_mode="md5") as step:
        shown = json.loads(run("show", step.folder, "--json").stdout)
        for record in shown:
            wanted = step.data[record["key"]]
            for part in filter(None, record["index"].split(".")):
                wanted = wanted[int(part) if isinstance(wanted, list) else part]
            assert json.dumps(record["record"]) == json.dumps(wanted)
        assert len(shown) == len(values) + 3


def test_diff_steps_follows_each_name_along_the_steps(dump):
    shown = sections(run("show", dump, "--diff-steps", "--rank", "0").stdout)
    lines = shown["Norm of tensors, value of plain numbers"]
    assert lines[0] == "rank name steps first last least greatest along the steps also"
    assert lines[1] == "rank0 loss.0.debug 4 8 0.0078125 0.0078125 8 █▄▃▁"
    assert lines[2] == "rank0 x.0.debug 4 0 10 0 10 ▁▂▂█"
    assert lines[4] == "rank0 x_grad.0.debug 4 1 nan 1 1 ▅▅xx nan from step 2"
    found = json.loads(run("show", dump, "--diff-steps", "--json", "--name", "x.0").stdout)
    assert found == [
        {
            "rank": f"rank{r}",
            "name": "x.0.debug",
            "steps": [0, 1, 2, 10],
            "Norm": [0.0, 1.0, 2.0, 10.0],
        }
        for r in (0, 1)
    ]


def test_a_tensor_file_is_shown_with_header_statistics_and_corners(tmp_path):
    tensor = torch.arange(200.0).reshape(10, 20).t()
    torch.save(tensor, tmp_path / "x.pt")
    shown = json.loads(run("show", tmp_path / "x.pt", "--json").stdout)
    assert [shown[k] for k in ("format", "dtype", "shape", "strides", "device", "bytes")] == [
        ".pt",
        "float32",
        [20, 10],
        [1, 20],
        "cpu",
        800,
    ]
    wide = tensor.double()
    wanted = [wide.max(), wide.min(), wide.mean(), wide.norm()]
    assert [shown[k] for k in STATISTICS_FIELDS] == pytest.approx(
        list(map(float, wanted)), rel=1e-12
    )
    text = run("show", tmp_path / "x.pt").stdout
    assert "[[0, 20, 40, ..., 140, 160, 180]" in text
    assert "[19, 39, 59, ..., 159, 179, 199]]" in text


def test_values_of_every_kind_are_shown(tmp_path):
    for name, tensor, text in [
        ("complex", torch.tensor([1 - 2j, 3j]), "[1-2i, 0+3i]"),
        ("bool", torch.tensor([True, False]), "[true, false]"),
        ("large", torch.tensor([2**62 + 1]), f"[{2**62 + 1}]"),
        ("zero_dim", torch.tensor(1.5), "  1.5\n"),
        ("empty", torch.empty(0, 3), "[]"),
        ("nan", torch.tensor([NAN, math.inf, -math.inf]), "[nan, inf, -inf]"),
    ]:
        torch.save(tensor, tmp_path / f"{name}.pt")
        assert text in run("show", tmp_path / f"{name}.pt").stdout
    shown = json.loads(run("show", tmp_path / "nan.pt", "--json").stdout)
    assert [shown[f"{k}_count"] for k in ("nan", "pos_inf", "neg_inf")] == [1, 1, 1]


def test_columns_of_chinese_names_stand_in_line(tmp_path):
    dump = write_dump(
        tmp_path / "d",
        {"step0/rank0": {"模型.0.debug": tensor_record(), "ab.0.debug": tensor_record()}},
    )
    lines = run("show", dump).stdout.split("\n")
    assert lines[2].index("torch") + 2 == lines[3].index("torch")  # two letters of two columns


def test_no_records_are_told(tmp_path):
    dump = write_dump(tmp_path / "dump", {"step0/rank0": {}})
    assert "nothing to show" in run("show", dump).stdout
    assert json.loads(run("show", dump, "--json").stdout) == []
