"""PrecisionDebugger as a whole: one instance, folders, filters, failures, processes, seed_all."""

from __future__ import annotations

import json
import logging
import os
import random
import stat
import threading
import timeit

import numpy as np
import pytest
import torch
from support import config, read_step, run_script, start_script, tree, write_config

import msprobe
from msprobe.pytorch import PrecisionDebugger, seed_all


def warnings_of(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# ---- construction ----------------------------------------------------------------------------


def test_construction_again_without_arguments_returns_the_instance(make_debugger, caplog):
    first = make_debugger()
    assert PrecisionDebugger() is first
    assert warnings_of(caplog) == []


def test_construction_again_with_other_settings_warns_and_keeps_the_first(tmp_path, caplog):
    first = PrecisionDebugger(dump_path=str(tmp_path / "a"))
    second = PrecisionDebugger(dump_path=str(tmp_path / "b"), task="tensor")
    assert second is first
    assert len(warnings_of(caplog)) == 1
    second.save(torch.ones(2), "x", False)
    assert "data_name" not in read_step(tmp_path / "a")["x"]
    assert not (tmp_path / "b").exists()


def test_arguments_override_the_file(tmp_path):
    path = write_config(tmp_path / "c.json", tmp_path / "file", task="statistics", step=[5])
    debugger = PrecisionDebugger(
        str(path), task="tensor", dump_path=str(tmp_path / "argument"), level="debug", step=[0]
    )
    debugger.save(torch.ones(2), "x", False)
    assert "data_name" in read_step(tmp_path / "argument")["x"]
    assert not (tmp_path / "file").exists()


def test_arguments_may_be_positional(tmp_path):
    PrecisionDebugger(None, "tensor", str(tmp_path / "d"), "debug", [0, "2-3"])
    PrecisionDebugger.save(torch.ones(2), "y", True)
    PrecisionDebugger.step()
    PrecisionDebugger.save(torch.ones(2), "y", True)
    assert tree(tmp_path / "d")[-1] == "step0/rank0/dump_tensor_data/y.0.debug.pt"
    assert len(list((tmp_path / "d").glob("step*"))) == 1


def test_path_objects_are_accepted(tmp_path):
    PrecisionDebugger(write_config(tmp_path / "c.json", tmp_path / "x"), dump_path=tmp_path / "d")
    PrecisionDebugger.save(1, "i", False)
    assert read_step(tmp_path / "d")["i"]["value"] == 1


def test_without_config_nothing_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text("{ broken")
    PrecisionDebugger(dump_path="relative/dump")
    PrecisionDebugger.save(1, "i", False)
    monkeypatch.chdir("/")
    PrecisionDebugger.save(2, "i", False)
    step = read_step(tmp_path / "relative/dump")
    assert step.top["task"] == "statistics"
    assert len(step.data) == 2


def test_missing_dump_path_is_an_error():
    with pytest.raises(msprobe.ConfigError, match="dump_path"):
        PrecisionDebugger()
    with pytest.raises(msprobe.Error):
        PrecisionDebugger.save(1, "x")


def test_dump_path_that_cannot_be_created_raises(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(msprobe.IoError, match="file"):
        PrecisionDebugger(dump_path=str(tmp_path / "file" / "below"))


def test_failed_construction_can_be_repeated(tmp_path):
    with pytest.raises(ValueError, match="task"):
        PrecisionDebugger(dump_path=str(tmp_path / "d"), task="nonsense")
    PrecisionDebugger(dump_path=str(tmp_path / "d"))
    PrecisionDebugger.save(1, "x", False)
    assert read_step(tmp_path / "d")["x"]["value"] == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: PrecisionDebugger.save(torch.ones(1), "x"),
        lambda: PrecisionDebugger.step(),
        lambda: PrecisionDebugger.start(),
        lambda: PrecisionDebugger.stop(),
        lambda: PrecisionDebugger.set_init_step(3),
    ],
    ids=["save", "step", "start", "stop", "set_init_step"],
)
def test_calls_before_construction_raise_a_clear_error(call):
    with pytest.raises(msprobe.StateError, match="PrecisionDebugger"):
        call()


# ---- calls -----------------------------------------------------------------------------------


def test_class_level_calls_do_the_same_as_those_of_the_instance(make_debugger, dump_path):
    debugger = make_debugger()
    PrecisionDebugger.save(1, "x", False)
    debugger.save(2, "x", False)
    PrecisionDebugger.step()
    PrecisionDebugger().save(3, "x", False)
    assert list(read_step(dump_path, 0).data) == ["x.0.debug", "x.1.debug"]
    assert read_step(dump_path, 1)["x"]["value"] == 3


@pytest.mark.parametrize("name", [3, None, b"x", ["x"]])
def test_name_that_is_no_str_is_a_type_error(make_debugger, dump_path, name):
    debugger = make_debugger()
    with pytest.raises(TypeError, match="name"):
        debugger.save(torch.ones(1), name)
    assert tree(dump_path) == []


@pytest.mark.parametrize("flag", [1, None, "True", np.True_])
def test_save_backward_that_is_no_bool_is_a_type_error(make_debugger, dump_path, flag):
    debugger = make_debugger()
    with pytest.raises(TypeError, match="save_backward"):
        debugger.save(torch.ones(1), "x", flag)
    assert tree(dump_path) == []


def test_type_errors_are_raised_whatever_the_error_mode(make_debugger, monkeypatch):
    monkeypatch.delenv("MSPROBE_ON_ERROR")
    debugger = make_debugger()
    with pytest.raises(TypeError):
        debugger.save(torch.ones(1), 5)
    with pytest.raises(TypeError):
        debugger.save(torch.ones(1))


def test_save_returns_none(make_debugger):
    debugger = make_debugger()
    assert debugger.save(torch.ones(1, requires_grad=True) * 2, "x", True) is None
    assert debugger.step() is None


def test_start_and_stop_change_nothing(make_debugger, dump_path):
    debugger = make_debugger()
    debugger.stop()
    debugger.save(1, "x", False)
    debugger.start(
        model=torch.nn.Linear(1, 1), token_range=[0, 1], rank_id=0, scheduled_tokens=None
    )
    debugger.start(None)
    PrecisionDebugger.stop()
    debugger.save(2, "x", False)
    assert len(read_step(dump_path).data) == 2


def test_set_init_step_numbers_the_next_step(make_debugger, dump_path):
    debugger = make_debugger(step=[100, 102])
    debugger.save(0, "x", False)
    debugger.set_init_step(100)
    for value in range(1, 5):
        debugger.save(value, "x", False)
        debugger.step()
    names = {name for name in os.listdir(dump_path) if not name.startswith(".")}
    assert names == {"step100", "step102"}
    assert read_step(dump_path, 100)["x"]["value"] == 1
    assert read_step(dump_path, 102)["x"]["value"] == 3


@pytest.mark.parametrize("number", [-1, 1.5, "3", True, None])
def test_set_init_step_refuses_what_is_no_step(make_debugger, number):
    debugger = make_debugger()
    with pytest.raises((TypeError, ValueError), match="step"):
        debugger.set_init_step(number)


# ---- filters ---------------------------------------------------------------------------------


def test_step_filter_saves_listed_steps_only(make_debugger, dump_path):
    debugger = make_debugger(step=[1, "3", "5-6"])
    for i in range(9):
        debugger.save(torch.full((2,), float(i)), "x", True)
        debugger.step()
    names = {name for name in os.listdir(dump_path) if not name.startswith(".")}
    assert names == {"step1", "step3", "step5", "step6"}


@pytest.mark.parametrize("keys", [{"step": [7]}, {"rank": [7]}, {"dump_enable": False}])
def test_filtered_out_saves_create_nothing(make_debugger, dump_path, keys):
    debugger = make_debugger(task="tensor", **keys)
    x = torch.ones(3, requires_grad=True)
    debugger.save(x * 2, "y", True)
    debugger.save(x, "x", True)
    assert not x._backward_hooks
    debugger.step()
    assert os.listdir(dump_path) == []


def test_filtered_out_save_costs_under_a_microsecond(make_debugger):
    debugger = make_debugger(step=[10**6])
    tensor = torch.ones(1000, 1000)
    save = debugger.save
    seconds = min(timeit.repeat(lambda: save(tensor, "x", True), number=1000, repeat=30))
    assert seconds / 1000 < 1e-6


def test_unknown_rank_goes_to_the_folder_of_the_process(make_debugger, dump_path, monkeypatch):
    monkeypatch.delenv("RANK")
    make_debugger(rank=[0]).save(1, "x", False)
    assert os.listdir(dump_path / "step0") == [f"proc{os.getpid()}"]


def test_unknown_rank_counts_as_0_in_the_filter(make_debugger, dump_path, monkeypatch):
    monkeypatch.delenv("RANK")
    make_debugger(rank=[1]).save(1, "x", False)
    assert tree(dump_path) == []


def test_rank_of_torch_distributed_wins_and_is_asked_again_while_unknown(
    make_debugger, dump_path, monkeypatch, tmp_path
):
    monkeypatch.delenv("RANK")
    debugger = make_debugger()
    debugger.save(0, "x", False)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        debugger.step()
        monkeypatch.setenv("RANK", "5")
        debugger.save(1, "x", False)
    finally:
        torch.distributed.destroy_process_group()
    debugger.step()
    debugger.save(2, "x", False)
    folders = [os.listdir(dump_path / f"step{i}") for i in range(3)]
    assert folders == [[f"proc{os.getpid()}"], ["rank0"], ["rank0"]]


# ---- dump_enable -----------------------------------------------------------------------------


def test_dump_enable_switches_a_running_job(tmp_path, dump_path, make_debugger, caplog):
    def switch(text):
        (tmp_path / "new.json").write_text(text)
        os.replace(tmp_path / "new.json", tmp_path / "config.json")

    debugger = make_debugger(dump_enable=False)
    off, on = (json.dumps(config(dump_path, dump_enable=value)) for value in (False, True))
    for content in (on, '{"dump_enable": fal', off, on, "[]", '{"dump_enable": "no"}'):
        debugger.save(1, "x", False)
        debugger.step()
        switch(content)
        debugger.save("of the old state until step()", "y", False)
        debugger.step()
    debugger.save(1, "x", False)
    steps = {int(name[4:]) for name in os.listdir(dump_path) if name.startswith("step")}
    # Each content is read by the second step() of its round; broken ones keep the last state.
    assert steps == {2, 3, 4, 5, 8, 9, 10, 11, 12}
    assert 1 <= len([w for w in warnings_of(caplog) if "dump_enable" in w or "config" in w]) <= 3


# ---- failures --------------------------------------------------------------------------------


def test_failures_warn_and_the_run_goes_on(make_debugger, dump_path, monkeypatch, caplog):
    monkeypatch.delenv("MSPROBE_ON_ERROR")
    debugger = make_debugger(task="tensor")
    (dump_path / "step0").write_text("in the way")
    for i in range(500):
        debugger.save(torch.ones(2), f"x{i}", True)
    debugger.step()
    debugger.save(torch.ones(2), "later", False)
    debugger.close()
    warnings = warnings_of(caplog)
    failed = [w for w in warnings if str(dump_path / "step0") in w]
    assert 1 <= len(failed) <= 5  # rate-limited
    assert any("x0" in w and ("directory" in w.lower() or "exists" in w.lower()) for w in failed)
    assert "500" in warnings[-1]
    assert "1 saved" in warnings[-1]
    assert read_step(dump_path, 1)["later"]["Max"] == 1.0


def test_failures_raise_when_asked(make_debugger, dump_path):
    debugger = make_debugger()
    (dump_path / "step0").write_text("in the way")
    with pytest.raises(msprobe.IoError, match="step0"):
        debugger.save(torch.ones(2), "x", False)


def test_failed_tensor_file_leaves_the_record_and_the_others(
    make_debugger, dump_path, monkeypatch, caplog
):
    monkeypatch.delenv("MSPROBE_ON_ERROR")
    debugger = make_debugger(task="tensor")
    debugger.save(torch.ones(2), "a", False)
    tensors = dump_path / "step0/rank0/dump_tensor_data"
    for entry in tensors.iterdir():
        entry.unlink()
    tensors.rmdir()
    debugger.save(torch.ones(3), "b", False)
    debugger.save(5, "c", False)
    data = read_step(dump_path).data
    assert data["c.0.debug"]["value"] == 5
    assert data["b.0.debug"]["Max"] == 1.0
    assert "data_name" not in data["b.0.debug"]
    debugger.close()
    assert any("b.0.debug" in w or '"b' in w for w in warnings_of(caplog))


def test_summary_at_the_end_counts_saves(make_debugger, caplog):
    caplog.set_level(logging.INFO, "msprobe")
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    debugger.save(y, "y", True)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    debugger.close()
    summary = caplog.records[-1].getMessage()
    assert "1 saved" in summary
    assert "1 gradients" in summary
    assert "1 more backward" in summary


# ---- folders ---------------------------------------------------------------------------------


def run_once(path, value, steps=1, **arguments):
    debugger = PrecisionDebugger(dump_path=str(path), **arguments)
    for _ in range(steps):
        debugger.save(torch.full((2,), float(value)), "x", False)
        debugger.step()
    debugger.close()


def test_earlier_runs_are_moved_aside_and_kept(dump_path, caplog):
    run_once(dump_path, 1, steps=3, task="tensor")
    run_once(dump_path, 2, steps=1)
    assert len(warnings_of(caplog)) == 1
    assert "rank0.bak1" in warnings_of(caplog)[0]
    run_once(dump_path, 3, steps=2)
    found = {
        f"{step}/{folder}": read_step(dump_path, int(step[4:]), folder)["x"]["Max"]
        for step in ("step0", "step1", "step2")
        for folder in sorted(os.listdir(dump_path / step))
    }
    assert found == {
        "step0/rank0": 3.0,
        "step0/rank0.bak1": 1.0,
        "step0/rank0.bak2": 2.0,
        "step1/rank0": 3.0,
        "step1/rank0.bak1": 1.0,
        "step2/rank0.bak1": 1.0,
    }
    kept = read_step(dump_path, 2, "rank0.bak1")
    assert torch.load(kept.file(kept["x"])).tolist() == [1.0, 1.0]


def test_earlier_run_stays_until_the_first_write(dump_path):
    run_once(dump_path, 1)
    PrecisionDebugger(dump_path=str(dump_path), step=[9])
    PrecisionDebugger.save(1, "x", False)
    assert os.listdir(dump_path / "step0") == ["rank0"]


def test_other_ranks_and_foreign_entries_are_left_alone(dump_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    run_once(dump_path, 1)
    (dump_path / "stepwise").mkdir()
    (dump_path / "stepwise" / "rank0").mkdir()
    (dump_path / "step0" / "notes.txt").write_text("mine")
    monkeypatch.setenv("RANK", "0")
    run_once(dump_path, 2)
    run_once(dump_path, 3)
    assert sorted(os.listdir(dump_path / "step0")) == ["notes.txt", "rank0", "rank0.bak1", "rank1"]
    assert os.listdir(dump_path / "stepwise") == ["rank0"]


def test_step_numbered_again_in_one_run_overwrites_nothing(make_debugger, dump_path):
    debugger = make_debugger()
    for value in (1, 2):
        debugger.set_init_step(5)
        debugger.save(value, "x", False)
    values = {
        leaf["value"]
        for folder in os.listdir(dump_path / "step5")
        for leaf in read_step(dump_path, 5, folder).data.values()
    }
    assert values == {1, 2}


@pytest.mark.parametrize(
    ("mask", "folder", "file"), [(0, 0o750, 0o640), (0o077, 0o700, 0o600), (0o022, 0o750, 0o640)]
)
def test_permissions_are_0750_and_0640_restricted_by_the_umask(tmp_path, mask, folder, file):
    before = os.umask(mask)
    try:
        run_once(tmp_path / "a" / "b", 1, task="tensor")
    finally:
        os.umask(before)
    for path in [tmp_path / "a", *(tmp_path / "a").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (folder if path.is_dir() else file), path


def test_link_in_dump_path_is_resolved_once(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    debugger = PrecisionDebugger(dump_path=str(tmp_path / "link" / "dump"), task="tensor")
    (tmp_path / "link").unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    debugger.save(torch.ones(1), "x", False)
    assert list((tmp_path / "other").iterdir()) == []
    step = read_step(tmp_path / "real" / "dump")
    assert step.top["dump_data_dir"] == str(step.tensors)


@pytest.mark.parametrize("link", ["step0", "step0/rank0", "step0/rank0/dump_tensor_data"])
def test_links_below_dump_path_are_not_followed(make_debugger, dump_path, tmp_path, link):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "debug.json").write_text("precious")
    debugger = make_debugger(task="tensor")
    (dump_path / link).parent.mkdir(parents=True, exist_ok=True)
    (dump_path / link).symlink_to(tmp_path / "outside")
    if link == "step0":
        with pytest.raises(msprobe.IoError, match="step0"):
            debugger.save(torch.ones(1), "x", False)
    else:  # left by an earlier run: moved aside like any other
        debugger.save(torch.ones(1), "x", False)
        assert not (dump_path / "step0" / "rank0").is_symlink()
    assert os.listdir(tmp_path / "outside") == ["debug.json"]
    assert (tmp_path / "outside" / "debug.json").read_text() == "precious"


# ---- processes -------------------------------------------------------------------------------


def test_locked_rank_goes_to_the_folder_of_the_process(dump_path, tmp_path, caplog):
    process = start_script(
        """
        from msprobe.pytorch import PrecisionDebugger
        PrecisionDebugger(dump_path="dump").save(1, "x", False)
        print("ready", flush=True)
        input()
        PrecisionDebugger.save(2, "x", False)
        """,
        tmp_path,
        RANK="0",
    )
    assert process.stdout.readline() == "ready\n"
    debugger = PrecisionDebugger(dump_path=str(dump_path))
    debugger.save(3, "x", False)
    debugger.step()
    debugger.save(4, "x", False)
    stderr = process.communicate("\n", timeout=60)[1]
    assert process.returncode == 0, stderr
    own = f"proc{os.getpid()}"
    assert sorted(os.listdir(dump_path / "step0")) == sorted([own, "rank0"])
    data = read_step(dump_path, 0, "rank0").data
    assert [leaf["value"] for leaf in data.values()] == [1, 2]
    assert read_step(dump_path, 0, own)["x"]["value"] == 3
    assert read_step(dump_path, 1, own)["x"]["value"] == 4
    assert len([w for w in warnings_of(caplog) if own in w]) == 1


@pytest.mark.parametrize("async_dump", [False, True])
def test_forked_children_write_to_folders_of_their_own(tmp_path, dump_path, async_dump):
    write_config(tmp_path / "config.json", dump_path, async_dump=async_dump, task="tensor")
    finished = run_script(
        """
        import os, sys
        import torch
        from msprobe.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger("config.json")
        for i in range(20):
            debugger.save(torch.full((100_000,), float(i)), "x", False)
        child = os.fork()
        if child == 0:
            debugger.save(torch.full((3,), 7.0), "child", True)
            debugger.save(torch.full((3,), 8.0), "child", False)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        debugger.save(torch.ones(3), "after", False)

        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 8

            def __getitem__(self, i):
                debugger.save(torch.full((2,), float(i)), "item", True)
                return i

        items = list(torch.utils.data.DataLoader(Data(), num_workers=2, batch_size=2))
        assert len(items) == 4
        print(child)
        """,
        tmp_path,
        RANK="0",
    )
    child = f"proc{int(finished.stdout)}"
    step = read_step(dump_path, 0, "rank0")
    assert list(step.data) == [f"x.{i}.debug" for i in range(20)] + ["after.0.debug"]
    found = read_step(dump_path, 0, child).data
    assert [found[f"child.{i}.debug"]["Max"] for i in range(2)] == [7.0, 8.0]
    workers = [n for n in os.listdir(dump_path / "step0") if n not in ("rank0", child)]
    assert len(workers) == 2
    items = [r["Max"] for n in workers for r in read_step(dump_path, 0, n).data.values() if r]
    assert sorted(items) == [float(i) for i in range(8)]
    assert finished.stderr.count(child) <= 1


def test_packages_import_alone(tmp_path):
    """Each import is checked in one fresh interpreter, so in this order."""
    run_script(
        """
        import sys

        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "mindspore":
                    raise ImportError("mindspore is not for this test")

        sys.meta_path.insert(0, Refuse())
        import msprobe
        assert not {"torch", "numpy", "mindspore"} & set(sys.modules), "msprobe alone"
        assert issubclass(msprobe.ConfigError, ValueError)
        for name in ("ConfigError", "FormatError", "IoError", "StateError", "UnsupportedDtype"):
            assert issubclass(getattr(msprobe, name), msprobe.Error)
        import msprobe.pytorch
        assert "torch" in sys.modules
        assert callable(msprobe.pytorch.seed_all)
        """,
        tmp_path,
    )


def test_rank_of_the_launcher_names_the_folder(make_debugger, dump_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    make_debugger().save(1, "x", False)
    assert os.listdir(dump_path / "step0") == ["rank3"]


def test_close_gives_the_rank_back(dump_path):
    for value in range(3):
        run_once(dump_path, value)
    assert read_step(dump_path, 0, "rank0")["x"]["Max"] == 2.0
    with pytest.raises(msprobe.StateError):
        PrecisionDebugger.save(1, "x")


def test_construction_in_threads_gives_one_instance(dump_path):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(PrecisionDebugger(dump_path=str(dump_path))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(debugger) for debugger in found}) == 1


# ---- seed_all --------------------------------------------------------------------------------


def draws() -> list:
    return [random.random(), np.random.rand(), torch.rand(3).tolist()]


def test_seed_all_seeds_python_numpy_and_torch():
    seed_all(7)
    first = draws()
    assert draws() != first
    seed_all(seed=7)
    assert draws() == first
    seed_all()
    default = draws()
    seed_all(1234)
    assert draws() == default
    assert default != first


@pytest.mark.parametrize("arguments", [{"seed": -1}, {"seed": 2**32}, {"seed": 1.5}, {"mode": 1}])
def test_seed_all_refuses_wrong_arguments(arguments):
    name = next(iter(arguments))
    with pytest.raises((TypeError, ValueError), match=name):
        seed_all(**arguments)


def test_seed_all_mode_rm_dropout_and_is_enhanced(tmp_path):
    """In one process of its own, because all three last until its end."""
    run_script(
        """
        import random, torch, numpy
        from msprobe.pytorch import seed_all

        seed_all(mode=True)
        assert torch.are_deterministic_algorithms_enabled()
        seed_all(1)
        assert not torch.are_deterministic_algorithms_enabled()
        x = torch.ones(1000)
        layer = torch.nn.Dropout(0.5)
        assert (layer(x) == 0).any()
        seed_all(1, rm_dropout=True)
        for dropped in (layer(x), torch.nn.functional.dropout(x, 0.9), torch.nn.Dropout(0.9)(x)):
            assert torch.equal(dropped, x)
        seed_all(1, is_enhanced=True)
        assert torch.equal(torch.rand(3), torch.rand(3))
        assert numpy.array_equal(numpy.random.rand(3), numpy.random.rand(3))
        assert random.random() == random.random()
        """,
        tmp_path,
    )
