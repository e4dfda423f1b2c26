"""`msprobe compare`: what is paired with what, what is left out, and where two runs part first."""

from __future__ import annotations

import json

import pytest
from command import compare, run, tensor_record, write_dump, write_rank

ONE = tensor_record()
TWO = tensor_record(Max=2.0)


def dumps(tmp_path, golden, target):
    return write_dump(tmp_path / "golden", golden), write_dump(tmp_path / "target", target)


def test_a_dump_equals_itself(tmp_path):
    records = {"x.0.debug": ONE, "n.0.debug": {"type": "int", "value": 3}, "none.0.debug": None}
    records["nested.0.debug"] = {"a": ONE, "b": [TWO, {"type": "str", "value": "s"}], "c": []}
    dump = write_dump(
        tmp_path / "dump", {f"step{s}/rank{r}": records for s in (0, 7) for r in (0, 1)}
    )
    found = compare(dump, dump, tmp_path / "out")
    assert {row["Verdict"] for row in found.rows} == {"equal"}
    assert len(found.rows) == 4 * 7
    assert found.stdout.startswith("no differences\n28 rows in 4 pairs of folders: 28 equal\n")


def test_folders_are_paired_by_the_numbers_of_step_and_rank(tmp_path):
    folders = {f"step{s}/rank{r}": {"x.0.debug": ONE} for s in (2, 10) for r in (1, 11)}
    golden, target = dumps(tmp_path, folders, folders | {"step10/rank11": {"x.0.debug": TWO}})
    found = compare(golden, target, tmp_path / "out", expect=1)
    assert [(row["Step"], row["Rank"], row["Verdict"]) for row in found.rows] == [
        ("2", "rank1", "equal"),
        ("2", "rank11", "equal"),
        ("10", "rank1", "equal"),
        ("10", "rank11", "fail"),
    ]


@pytest.mark.parametrize(
    ("golden", "target"),
    [("proc7", "proc8"), ("proc7", "rank0"), ("rank3", "proc8"), ("rank", "rank0")],
)
def test_single_folders_pair_where_one_has_no_rank(tmp_path, golden, target):
    sides = dumps(
        tmp_path, {f"step0/{golden}": {"x.0.debug": ONE}}, {f"step0/{target}": {"x.0.debug": ONE}}
    )
    found = compare(*sides, tmp_path / "out")
    assert found["x.0.debug"]["Rank"] == f"{golden} / {target}"


def test_two_different_ranks_do_not_pair(tmp_path):
    sides = dumps(
        tmp_path, {"step0/rank0": {"x.0.debug": ONE}}, {"step0/rank1": {"x.0.debug": ONE}}
    )
    found = compare(*sides, tmp_path / "out", expect=1)
    assert [row["Verdict"] for row in found.rows] == ["golden only", "target only"]


def test_several_processes_without_rank_do_not_pair_by_guess(tmp_path):
    x = {"x.0.debug": ONE}
    sides = dumps(
        tmp_path, {"step0/proc1": x, "step0/proc2": x}, {"step0/proc3": x, "step0/proc4": x}
    )
    found = compare(*sides, tmp_path / "out", expect=1)
    assert [row["Verdict"] for row in found.rows] == [
        "golden only",
        "golden only",
        "target only",
        "target only",
    ]


@pytest.mark.parametrize("level", ["", "step0", "step0/rank0", "step0/rank0/debug.json"])
def test_every_level_compares_with_its_like(tmp_path, level):
    sides = dumps(
        tmp_path, {"step0/rank0": {"x.0.debug": ONE}}, {"step0/rank0": {"x.0.debug": TWO}}
    )
    found = compare(*(side / level for side in sides), tmp_path / "out", expect=1)
    assert found.verdicts == {"x.0.debug": "fail"}


def test_steps_and_ranks_named_by_the_user_pair_whatever_their_numbers(tmp_path):
    golden, target = dumps(
        tmp_path, {"step0/rank0": {"x.0.debug": ONE}}, {"step9/rank3": {"x.0.debug": ONE}}
    )
    compare(golden / "step0/rank0", target / "step9/rank3", tmp_path / "out")
    write_rank(target / "step9" / "rank0", {"x.0.debug": ONE})
    found = compare(golden / "step0", target / "step9", tmp_path / "out", expect=1)
    assert [(row["Rank"], row["Verdict"]) for row in found.rows] == [
        ("rank0", "equal"),
        ("rank3", "target only"),
    ]


def test_what_one_side_has_alone_is_a_row_and_a_difference(tmp_path):
    golden = {
        "step0/rank0": {"a.0.debug": ONE, "only.0.debug": ONE, "n.0.debug": {"k": ONE, "g": ONE}}
    }
    target = {
        "step0/rank0": {
            "new.0.debug": ONE,
            "a.0.debug": ONE,
            "n.0.debug": {"k": ONE, "t": ONE},
            "a.1.debug": None,
        }
    }
    sides = dumps(tmp_path, golden, target)
    found = compare(*sides, tmp_path / "out", expect=1)
    assert found.verdicts == {
        "new.0.debug": "target only",
        "a.0.debug": "equal",
        "only.0.debug": "golden only",
        "n.0.debug.k": "equal",
        "n.0.debug.t": "target only",
        "a.1.debug": "target only",
        "n.0.debug.g": "golden only",
    }
    assert found["only.0.debug"]["NPU Name"] == ""
    assert found["new.0.debug"]["Bench Name"] == ""
    assert "first divergence" not in found.stdout


@pytest.mark.parametrize("missing", ["step1/rank0", "step0/rank1"])
def test_a_folder_on_one_side_only_is_a_difference_and_named(tmp_path, missing):
    x = {"x.0.debug": ONE}
    whole = {"step0/rank0": x, "step0/rank1": x, "step1/rank0": x, "step1/rank1": x}
    part = {name: records for name, records in whole.items() if name != missing}
    golden, target = dumps(tmp_path, whole, part)
    assert (
        f"only in golden: {missing}" in compare(golden, target, tmp_path / "out", expect=1).stdout
    )
    found = compare(target, golden, tmp_path / "out", expect=1)
    assert f"only in target: {missing}" in found.stdout
    assert sum(row["Verdict"] == "target only" for row in found.rows) == 1


def test_an_empty_folder_on_one_side_only_is_a_difference_too(tmp_path):
    x = {"x.0.debug": ONE}
    sides = dumps(tmp_path, {"step0/rank0": x, "step1/rank0": {}}, {"step0/rank0": x})
    assert "only in golden: step1/rank0" in compare(*sides, tmp_path / "out", expect=1).stdout


def test_step_rank_name_and_ignore_choose_the_rows(tmp_path):
    records = {f"{name}.0.debug": ONE for name in ("layer1", "layer2", "loss")}
    folders = {f"step{s}/rank{r}": records for s in range(6) for r in range(3)}
    dump = write_dump(tmp_path / "dump", folders)

    def rows(*options):
        found = compare(dump, dump, tmp_path / "out", *options).rows
        return {(int(r["Step"]), r["Rank"][4:], r["Bench Name"].split(".")[0]) for r in found}

    def all_of(steps, ranks, names):
        return {(s, r, n) for s in steps for r in ranks for n in names}

    every = ["layer1", "layer2", "loss"]
    assert rows("--step", "1,3-4") == all_of([1, 3, 4], "012", every)
    assert rows("--step", "1", "--step", "5", "--rank", "0,2") == all_of([1, 5], "02", every)
    assert rows("--name", "^layer", "--rank", "1") == all_of(range(6), "1", every[:2])
    assert rows("--ignore", r"layer\d", "--rank", "1") == all_of(range(6), "1", every[2:])
    assert rows("--name", "layer", "--ignore", "2", "--step", "0") == all_of([0], "012", ["layer1"])


def test_ignored_and_unnamed_differences_do_not_count(tmp_path):
    sides = dumps(
        tmp_path,
        {"step0/rank0": {"x.0.debug": ONE, "noise.0.debug": ONE, "gone.0.debug": ONE}},
        {"step0/rank0": {"x.0.debug": ONE, "noise.0.debug": TWO}},
    )
    compare(*sides, tmp_path / "out", "--ignore", "noise|gone")
    compare(*sides, tmp_path / "out", "--name", "^x")


def test_map_pairs_names_gradients_counts_and_leaves(tmp_path):
    golden = {
        "plain.0.debug": ONE,
        "plain.1.debug": ONE,
        "plain_grad.0.debug": ONE,
        "layer0_q.0.debug": {"w": ONE},
        "layer12_q.0.debug": {"w": ONE},
        "layer7_q.0.debug": ONE,
        "same.0.debug": ONE,
    }
    target = {
        "renamed.0.debug": ONE,
        "renamed.1.debug": ONE,
        "renamed_grad.0.debug": ONE,
        "layers.0.q.0.debug": {"w": ONE},
        "layers.12.q.0.debug": {"w": ONE},
        "seven.0.debug": ONE,
        "same.0.debug": ONE,
    }
    sides = dumps(tmp_path, {"step0/rank0": golden}, {"step0/rank0": target})
    names = tmp_path / "map.json"
    names.write_text(
        json.dumps({"plain": "renamed", r"layer(\d+)_q": r"layers.\1.q", "layer7_q": "seven"})
    )
    found = compare(*sides, tmp_path / "out", "--map", names)
    paired = {row["Bench Name"]: row["NPU Name"] for row in found.rows}
    assert paired == {
        "plain.0.debug": "renamed.0.debug",
        "plain.1.debug": "renamed.1.debug",
        "plain_grad.0.debug": "renamed_grad.0.debug",
        "layer0_q.0.debug.w": "layers.0.q.0.debug.w",
        "layer12_q.0.debug.w": "layers.12.q.0.debug.w",
        "layer7_q.0.debug": "seven.0.debug",
        "same.0.debug": "same.0.debug",
    }


@pytest.mark.parametrize("content", ['["a"]', '{"a": 1}', r'{"(a": "b"}', r'{"a(.)": "\\2"}'])
def test_a_wrong_map_is_refused_with_its_path(tmp_path, content):
    dump = write_dump(tmp_path / "dump", {"step0/rank0": {"x.0.debug": ONE}})
    (tmp_path / "map.json").write_text(content)
    finished = run("compare", dump, dump, "-o", tmp_path, "--map", tmp_path / "map.json", expect=2)
    assert "map.json" in finished.stderr or "regular expression" in finished.stderr


def divergence(tmp_path, golden, target):
    found = compare(*dumps(tmp_path, golden, target), tmp_path / "out", expect=1)
    return found.stdout.split("\n")


def test_first_divergence_is_of_the_earliest_step(tmp_path):
    names = ("a.0.debug", "b.0.debug")
    golden = {f"step{s}/rank0": dict.fromkeys(names, ONE) for s in (1, 2, 10)}
    target = golden | {
        "step10/rank0": {"a.0.debug": TWO, "b.0.debug": TWO},
        "step2/rank0": {"a.0.debug": ONE, "b.0.debug": TWO},
    }
    lines = divergence(tmp_path, golden, target)
    assert lines[:4] == [
        "first divergence: step 2, rank0, b.0.debug",
        "  Max 2 against 1",
        "  golden  torch.float32 [2]  Max 1  Min 1  Mean 1  Norm 1.41421",
        "  target  torch.float32 [2]  Max 2  Min 1  Mean 1  Norm 1.41421",
    ]


def test_first_divergence_is_forward_before_backward_then_in_recorded_order(tmp_path):
    names = ["a", "a_grad", "z", "m", "z_grad", "m_grad"]
    golden = {f"{name}.0.debug": ONE for name in names}
    target = {f"{name}.0.debug": ONE if name == "a" else TWO for name in reversed(names)}
    lines = divergence(tmp_path, {"step0/rank0": golden}, {"step0/rank0": target})
    assert lines[0] == "first divergence: step 0, rank0, z.0.debug"


def test_first_divergence_of_gradients_alone_names_the_one_that_backward_computed_first(tmp_path):
    names = ["a", "a_grad", "b", "b_grad", "c", "c_grad"]
    golden = {f"{name}.0.debug": ONE for name in names}
    target = golden | {"a_grad.0.debug": TWO, "b_grad.0.debug": TWO}
    lines = divergence(tmp_path, {"step0/rank0": golden}, {"step0/rank0": target})
    assert lines[0] == "first divergence: step 0, rank0, a_grad.0.debug"
    assert any("b_grad.0.debug was computed first" in line for line in lines)


def test_first_divergence_names_the_ranks_that_share_it(tmp_path):
    records = {"a.0.debug": ONE, "b.0.debug": ONE}
    golden = {f"step{s}/rank{r}": records for s in (0, 1) for r in range(4)}
    bad = records | {"b.0.debug": TWO}
    target = golden | {"step0/rank1": bad, "step0/rank3": bad, "step1/rank0": bad}
    lines = divergence(tmp_path, golden, target)
    assert lines[0] == "first divergence: step 0, rank1, rank3, b.0.debug"


def test_first_divergence_is_the_earliest_record_of_all_ranks(tmp_path):
    records = {"a.0.debug": ONE, "b.0.debug": ONE}
    golden = {f"step0/rank{r}": records for r in range(2)}
    target = {
        "step0/rank0": records | {"b.0.debug": TWO},
        "step0/rank1": records | {"a.0.debug": TWO},
    }
    assert divergence(tmp_path, golden, target)[0] == "first divergence: step 0, rank1, a.0.debug"


def test_a_long_list_of_differences_is_cut_unless_all_are_wanted(tmp_path):
    golden = {f"x{i}.0.debug": ONE for i in range(50)}
    target = {f"x{i}.0.debug": TWO for i in range(50)}
    sides = dumps(tmp_path, {"step0/rank0": golden}, {"step0/rank0": target})
    short = compare(*sides, tmp_path / "out", expect=1).stdout
    assert "... and 30 more (--all shows them)" in short
    assert "x20.0.debug" not in short
    assert "x49.0.debug" in compare(*sides, tmp_path / "out", "--all", expect=1).stdout
