"""The peer's own `msprobe compare` reads our dumps and finds every row with the right numbers."""

from __future__ import annotations

import ast
import csv
import subprocess

import pytest
from oracles import crc32
from support import clean_environment, peer_python, run_script

# Two runs that differ by a known amount: argument 0 is the golden one, argument 0.5 the target.
SCRIPT = """
import json, sys
import torch
from msprobe.pytorch import PrecisionDebugger

delta = float(sys.argv[1])
for kind in ("statistics", "md5", "tensor"):
    config = {
        "task": "tensor" if kind == "tensor" else "statistics",
        "dump_path": f"{sys.argv[2]}_{kind}",
        "level": "debug",
        "statistics": {"summary_mode": "md5" if kind == "md5" else "statistics"},
    }
    with open("config.json", "w") as file:
        json.dump(config, file)
    debugger = PrecisionDebugger("config.json")
    x = torch.arange(4.0, requires_grad=True)
    y = x * 2
    debugger.save(y, "y", True)
    debugger.save(torch.ones(3) * (1 + delta), "w", False)
    nested = {"a": torch.ones(2, 3), "b": [torch.full((2,), 2 + delta), 3, "s", None]}
    debugger.save(nested, "nested", True)
    debugger.save(torch.tensor(1.5), "loss", False)
    debugger.save(torch.tensor(7 + int(delta * 4)), "iter", False)
    debugger.save(torch.tensor([1.0, float("nan")]), "nan", False)
    debugger.save(torch.arange(6.0).to(torch.bfloat16), "half", False)
    debugger.save(None, "none", False)
    (y**2).sum().backward()
    debugger.step()
    PrecisionDebugger.close()
"""

KEYS = [
    "y.0.debug",
    "y_grad.0.debug",
    "w.0.debug",
    "nested.0.debug.a",
    "nested.0.debug.b.0",
    "nested.0.debug.b.1",
    "nested.0.debug.b.2",
    "nested.0.debug.b.3",
    "nested_grad.0.debug.a",
    "nested_grad.0.debug.b.0",
    "nested_grad.0.debug.b.1",
    "nested_grad.0.debug.b.2",
    "nested_grad.0.debug.b.3",
    "loss.0.debug",
    "iter.0.debug",
    "nan.0.debug",
    "half.0.debug",
    "none.0.debug",
]
CHANGED = {"w.0.debug", "nested.0.debug.b.0", "iter.0.debug"}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, dict[str, dict[str, str]]]:
    """By kind: the rows of the peer's table, by name, in the order of the table."""
    python = peer_python()
    folder = tmp_path_factory.mktemp("compare")
    for delta, name in [("0", "golden"), ("0.5", "target")]:
        run_script(SCRIPT, folder, delta, name, RANK="0")
    runs = {}
    for kind in ("statistics", "md5", "tensor"):
        target, golden = folder / f"target_{kind}/step0", folder / f"golden_{kind}/step0"
        command = [python.parent / "msprobe", "compare", "-tp", target, "-gp", golden]
        process = subprocess.run(
            [*map(str, command), "-o", str(folder / f"result_{kind}")],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=clean_environment(PYTHONPATH=None),  # its package is called msprobe too
        )
        output = process.stdout + process.stderr
        assert process.returncode == 0, output
        assert "ends successfully" in output, output
        tables = list((folder / f"result_{kind}").glob("debug_compare_result_rank0_*.csv"))
        assert len(tables) == 1, output
        with tables[0].open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        runs[kind] = {row["NPU Name"]: row for row in rows}
        assert len(rows) == len(runs[kind])
    return runs


@pytest.mark.parametrize("kind", ["statistics", "md5", "tensor"])
def test_peer_finds_every_row_paired_and_in_order(results, kind):
    rows = results[kind]
    assert list(rows) == KEYS
    for name, row in rows.items():
        assert row["Bench Name"] == name
        assert row["Requires_grad Consistent"] == "True"
        assert row["NPU Tensor Shape"] == row["Bench Tensor Shape"]
    assert rows["nested.0.debug.a"]["NPU Tensor Shape"] == "[2, 3]"
    assert rows["half.0.debug"]["NPU Dtype"] == "torch.bfloat16"
    assert rows["y.0.debug"]["NPU Requires_grad"] == "True"
    assert rows["y_grad.0.debug"]["NPU Requires_grad"] == "False"


def numbers(row: dict[str, str], side: str) -> list[float]:
    return [float(row[f"{side} {field}"]) for field in ("max", "min", "mean", "l2norm")]


@pytest.mark.parametrize("kind", ["statistics", "tensor"])
def test_peer_shows_the_right_statistics(results, kind):
    rows = results[kind]
    root55 = 55**0.5
    for name, target, golden in [
        ("y.0.debug", [6, 0, 3, 56**0.5], None),
        ("y_grad.0.debug", [12, 0, 6, 224**0.5], None),
        ("w.0.debug", [1.5, 1.5, 1.5, 6.75**0.5], [1, 1, 1, 3**0.5]),
        ("nested.0.debug.a", [1, 1, 1, 6**0.5], None),
        ("nested.0.debug.b.0", [2.5, 2.5, 2.5, 12.5**0.5], [2, 2, 2, 8**0.5]),
        ("nested.0.debug.b.1", [3, 3, 3, 3], None),
        ("loss.0.debug", [1.5, 1.5, 1.5, 1.5], None),
        ("iter.0.debug", [9, 9, 9, 9], [7, 7, 7, 7]),
        ("half.0.debug", [5, 0, 2.5, root55], None),
    ]:
        assert numbers(rows[name], "NPU") == pytest.approx(target, rel=1e-12), name
        assert numbers(rows[name], "Bench") == pytest.approx(golden or target, rel=1e-12), name
    assert rows["nan.0.debug"]["NPU mean"].lower() == "nan"
    assert rows["nested.0.debug.b.2"]["NPU max"] == "s"
    assert rows["none.0.debug"]["NPU max"] == "None"


def test_peer_computes_the_right_differences_of_statistics(results):
    rows = results["statistics"]
    fields = ["Max diff", "Min diff", "Mean diff", "L2norm diff"]
    for name, row in rows.items():
        if name in CHANGED or name == "nan.0.debug":
            continue
        assert [float(row[field]) for field in fields] == [0, 0, 0, 0], name
    for name, difference, norm in [
        ("w.0.debug", 0.5, 6.75**0.5 - 3**0.5),
        ("nested.0.debug.b.0", 0.5, 12.5**0.5 - 8**0.5),
        ("iter.0.debug", 2, 2),
    ]:
        found = [float(rows[name][field]) for field in fields]
        assert found == pytest.approx([difference] * 3 + [norm], rel=1e-12), name
    assert rows["w.0.debug"]["MaxRelativeErr"] == "50.0%"


def test_peer_finds_exactly_the_changed_checksums(results):
    import torch

    rows = results["md5"]
    assert {name for name, row in rows.items() if row["Result"] != "pass"} == CHANGED
    golden, target = torch.ones(3), torch.ones(3) * 1.5
    assert rows["w.0.debug"]["BENCH MD5"] == crc32(golden.numpy().tobytes())
    assert rows["w.0.debug"]["NPU MD5"] == crc32(target.numpy().tobytes())
    assert rows["y_grad.0.debug"]["NPU MD5"] == "401d0ea9"  # shared/reference
    assert rows["nan.0.debug"]["NPU MD5"] == rows["nan.0.debug"]["BENCH MD5"] != "N/A"


def test_peer_compares_the_tensor_files(results):
    rows = results["tensor"]
    for name in ("y.0.debug", "y_grad.0.debug", "nested.0.debug.a", "half.0.debug"):
        row = rows[name]
        assert [float(row[f]) for f in ("Cosine", "EucDist", "MaxAbsErr")] == [1.0, 0.0, 0.0], name
        assert float(row["One Thousandth Err Ratio"]) == 1.0
        assert ast.literal_eval(row["Data_name"]) == [f"{name}.pt"] * 2
    w = rows["w.0.debug"]
    assert float(w["EucDist"]) == pytest.approx(0.75**0.5)
    assert [float(w["MaxAbsErr"]), float(w["MaxRelativeErr"])] == [0.5, 0.5]
    assert float(w["One Thousandth Err Ratio"]) == 0.0
    b = rows["nested.0.debug.b.0"]
    assert [float(b["MaxAbsErr"]), float(b["MaxRelativeErr"])] == [0.5, 0.25]
    assert float(rows["iter.0.debug"]["MaxAbsErr"]) == 2.0
