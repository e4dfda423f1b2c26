"""The files of `msprobe compare`: CSV, XLSX and JSON lines hold the same rows."""

from __future__ import annotations

import json
import zipfile
from xml.etree import ElementTree

import pytest
from command import compare, read_csv, run, tensor_record, write_dump
from support import clean_environment, peer_python

NAMES = ["x", 'comma, quote" and\nline', "模型", "=1+1", "<&>"]


@pytest.fixture
def sides(tmp_path):
    golden = {f"{name}.0.debug": tensor_record() for name in NAMES}
    golden["n.0.debug"] = {"type": "int", "value": 2**60 + 1}
    target = golden | {
        "x.0.debug": tensor_record(Max=float("nan"), nan_count=2, requires_grad=True)
    }
    target["n.0.debug"] = {"type": "int", "value": 3}
    return (
        write_dump(tmp_path / "golden", {"step0/rank0": golden}),
        write_dump(tmp_path / "target", {"step0/rank0": target}),
    )


def column_number(reference):
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def read_xlsx(path):
    """The first sheet as rows of text, by what ECMA-376 says of cells."""
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    text_tag = f"{{{space['m']}}}t"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")):
                ElementTree.fromstring(archive.read(name))
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
        shared = []
        if "xl/sharedStrings.xml" in archive.namelist():
            table = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
            shared = ["".join(t.text or "" for t in s.iter(text_tag)) for s in table]
    rows = []
    for row in sheet.iterfind(".//m:row", space):
        cells = {}
        for cell in row.iterfind("m:c", space):
            kind, value = cell.get("t"), cell.find("m:v", space)
            assert cell.find("m:f", space) is None, "a formula"
            if kind == "inlineStr":
                text = "".join(t.text or "" for t in cell.iter(text_tag))
            elif value is None:
                continue
            else:
                text = shared[int(value.text)] if kind == "s" else value.text
            cells[column_number(cell.get("r"))] = text
        rows.append(cells)
    titles = rows[0]
    return [{titles[i]: text for i, text in row.items()} for row in rows[1:]]


def test_all_three_files_hold_the_same_rows(tmp_path, sides):
    out = tmp_path / "out"
    found = compare(*sides, out, "--xlsx", "--jsonl", expect=1)
    for name in ("compare.csv", "compare.xlsx", "compare.jsonl"):
        assert str(out / name) in found.stdout
    lines = [json.loads(line) for line in (out / "compare.jsonl").read_text("utf-8").splitlines()]
    sheet = read_xlsx(out / "compare.xlsx")
    assert len(found.rows) == len(lines) == len(sheet) == len(NAMES) + 1
    assert [row["Bench Name"] for row in found.rows] == [
        *(f"{n}.0.debug" for n in NAMES),
        "n.0.debug",
    ]
    for row, line, cells in zip(found.rows, lines, sheet, strict=True):
        filled = {name: text for name, text in row.items() if text}
        assert list(line) == list(filled)
        assert set(cells) == set(filled)
        for name, text in filled.items():
            if isinstance(line[name], str):
                assert text == line[name] == cells[name]
            elif isinstance(line[name], bool):
                assert text == json.dumps(line[name])
            else:
                assert json.loads(text) == pytest.approx(line[name], rel=0, nan_ok=True)
                assert float(cells[name]) == pytest.approx(line[name], rel=1e-15, nan_ok=True)
    assert found["n.0.debug"]["Bench value"] == str(2**60 + 1)


def test_only_the_csv_is_written_unless_asked_and_earlier_files_are_replaced(tmp_path, sides):
    out = tmp_path / "deep" / "er"
    compare(*sides, out, expect=1)
    assert [path.name for path in out.iterdir()] == ["compare.csv"]
    compare(sides[0], sides[0], out)
    assert {row["Verdict"] for row in read_csv(out / "compare.csv")} == {"equal"}
    assert [path.name for path in out.iterdir()] == ["compare.csv"]


def test_without_out_the_files_are_in_the_current_folder(tmp_path, sides):
    here = tmp_path / "here"
    here.mkdir()
    run("compare", *sides, cwd=here, expect=1)
    assert [path.name for path in here.iterdir()] == ["compare.csv"]


def test_a_comparison_that_fails_leaves_an_earlier_table_as_it_is(tmp_path, sides):
    compare(*sides, tmp_path / "out", "--xlsx", expect=1)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    run("compare", sides[0], tmp_path / "none", "-o", tmp_path / "out", "--xlsx", expect=2)
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before


# Columns that the peer does not have, or calls otherwise.
OURS = {"Step", "Rank", "Verdict", "Compared by", "NPU value", "Bench value"}
OURS |= {f"{s} {c}_count" for s in ("NPU", "Bench") for c in ("nan", "pos_inf", "neg_inf")}
OURS |= {f"Max{e}Err {c}" for e in ("Abs", "Relative") for c in ("at", "NPU", "Bench")}
OURS |= {"Max ULP", "One ULP Ratio", "Equal after rounding", "NaN mismatches", "Inf mismatches"}
OURS |= {"Beyond tolerance", "NPU Data_name", "Bench Data_name"}


def test_columns_are_called_as_the_peer_calls_them(tmp_path, sides):
    import subprocess

    columns = list(compare(*sides, tmp_path / "out", expect=1).rows[0])
    code = (
        "import json; from msprobe.core.common.const import CompareConst as C;"
        "print(json.dumps([v for v in vars(C).values() if isinstance(v, str)]))"
    )
    peers = subprocess.run(
        [peer_python(), "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=clean_environment(PYTHONPATH=None),
    )
    assert set(columns) - set(json.loads(peers.stdout.splitlines()[-1])) == OURS
