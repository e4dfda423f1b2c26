"""The commands on dumps of the peer: its recordings, and one that it writes now."""

from __future__ import annotations

import json
import math
import shutil

import pytest
from command import compare, run
from support import load_json, peer_python, run_script, saved, shared_folder
from test_reference import reference_inputs

KINDS = ["statistics", "md5", "tensor"]


def recording(root, kind, folder="proc0"):
    """A dump of the two recorded steps, as the peer left it (its tensor files were not kept)."""
    source = shared_folder() / "reference" / "msprobe_26.2.0"
    for step in (0, 1):
        place = root / f"step{step}" / folder
        (place / "dump_tensor_data").mkdir(parents=True)
        shutil.copy(source / f"pytorch_{kind}_step{step}.json", place / "debug.json")
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_recordings_are_shown_with_every_number(tmp_path, kind):
    dump = recording(tmp_path / "dump", kind)
    shown = json.loads(run("show", dump, "--json").stdout)
    for step in (0, 1):
        data = load_json(dump / f"step{step}" / "proc0" / "debug.json")["data"]
        of_step = [r for r in shown if r["step"] == step]
        assert list(dict.fromkeys(r["key"] for r in of_step)) == list(data)
        for record in of_step:
            wanted = data[record["key"]]
            for part in filter(None, record["index"].split(".")):
                wanted = wanted[int(part) if isinstance(wanted, list) else part]
            if wanted == []:
                wanted = {"type": "list", "value": []}
            if wanted is not None and wanted.get("md5", "") is None:  # without values there is none
                del wanted["md5"]
            assert json.dumps(record["record"]) == json.dumps(wanted)
    text = run("show", dump).stdout
    assert "first NaN or infinity: step 0, proc0, nan.0.debug" in text


@pytest.mark.parametrize("kind", ["statistics", "md5"])
def test_recordings_equal_themselves(tmp_path, kind):
    dump = recording(tmp_path / "dump", kind)
    found = compare(dump, recording(tmp_path / "other", kind, "proc9"), tmp_path / "out")
    assert set(found.verdicts.values()) <= {"equal", "not compared"}
    assert {row["Rank"] for row in found.rows} == {"proc0 / proc9"}
    run("verify", dump)


def test_files_that_were_lost_are_told(tmp_path):
    dump = recording(tmp_path / "dump", "tensor")
    compare(dump, dump, tmp_path / "out", expect=1)
    assert "No such file" in run("verify", dump, expect=1).stdout


@pytest.mark.parametrize("kind", ["statistics", "md5"])
def test_our_dump_of_the_same_inputs_passes_beside_the_recording(tmp_path, kind):
    keys = {"summary_mode": "md5"} if kind == "md5" else {}
    with saved(reference_inputs(), **keys) as step:
        golden = recording(tmp_path / "golden", kind) / "step0" / "proc0"
        ours = "^(" + "|".join(step.data).replace(".", r"\.") + ")"
        found = compare(golden, step.folder, tmp_path / "out", "--name", ours, expect=0)
    assert "equal" in found.verdicts.values()
    assert set(found.verdicts.values()) <= {"equal", "pass", "not compared"}
    assert len(found.rows) >= len(step.data)


# The same training twice, of the peer and of this tool.
SCRIPT = """
import json, sys
import torch
from msprobe.pytorch import PrecisionDebugger

with open("config.json", "w") as file:
    json.dump({"task": "tensor", "dump_path": sys.argv[1], "rank": [], "step": [], "level": "debug",
               "tensor": {}}, file)
debugger = PrecisionDebugger("config.json")
base = (torch.arange(600.0).reshape(20, 30) - 250) / 7
for step in range(2):
    x = (base + step).requires_grad_()
    y = x * 2
    debugger.save(y, "y", True)
    debugger.save({"a": y[3:7].t(), "b": [base.double(), 3, "s"]}, "nested", False)
    debugger.save(base[2, 3:9].to(torch.bfloat16), "bf16", False)
    debugger.save(base.half().expand(3, 20, 30), "half", False)
    debugger.save(torch.arange(-4, 9), "ints", False)
    debugger.save(torch.tensor([1.0, float("nan"), float("inf")]), "nan", False)
    debugger.save(torch.nn.Parameter(base.clone()), "weight", False)
    (y ** 2).sum().backward()
    debugger.step()
"""


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The dump of the peer and ours."""
    python = str(peer_python())
    folder = tmp_path_factory.mktemp("twins")
    run_script(SCRIPT, folder, str(folder / "peer"), python=python, PYTHONPATH=None)
    run_script(SCRIPT, folder, str(folder / "ours"), RANK="0")
    return folder / "peer", folder / "ours"


def test_tensor_files_of_the_peer_equal_ours_to_the_bit(tmp_path, twins):
    found = compare(*twins, tmp_path / "out", "--rtol", "0", "--atol", "0", "--xlsx", "--jsonl")
    assert set(found.verdicts.values()) == {"equal"}
    by_values = [row for row in found.rows if row["Compared by"] == "values"]
    assert len(by_values) == 2 * 9
    assert {row["Compared by"] for row in found.rows} == {"values", "plain value"}
    assert all(row["Bench Dtype"] == row["NPU Dtype"] for row in found.rows)
    assert {row["Requires_grad Consistent"] for row in by_values} == {"true"}


def test_only_the_inexact_statistics_of_the_peer_differ_from_ours(tmp_path, twins):
    rows = compare(*twins, tmp_path / "out").rows
    for row in rows:
        if row["Compared by"] != "values" or row["Bench Name"].startswith("nan"):
            continue
        name = row["Bench Name"]
        assert [float(row[f"{s} diff"]) for s in ("Max", "Min")] == [0, 0], name
        for statistic in ("mean", "l2norm"):
            peers, ours = row[f"Bench {statistic}"], float(row[f"NPU {statistic}"])
            if peers == "":  # float64 and integers: the peer has none
                assert row["Bench Dtype"] in ("torch.float64", "torch.int64"), name
                continue
            step = {"torch.float32": 2**-23, "torch.bfloat16": 2**-8, "torch.float16": 2**-10}
            scale = max(abs(ours), float(row["NPU l2norm"]) / 10)
            assert math.isclose(float(peers), ours, abs_tol=4 * step[row["Bench Dtype"]] * scale), (
                name
            )


def test_the_dump_of_the_peer_is_whole(twins):
    finished = run("verify", twins[0])
    assert "no damage" in finished.stdout
    assert "could not be checked" not in finished.stdout
