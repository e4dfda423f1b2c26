"""PrecisionDebugger as a whole: construction, calls, filters, switching, failures."""

from __future__ import annotations

import json
import logging
import os

import numpy as np
import pytest
import torch
from support import config, read_step, tree, warnings_of, write_config

import msprobe
from msprobe.pytorch import PrecisionDebugger

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


def test_filtered_out_save_does_not_even_look_at_the_variable(make_debugger):
    looks = []

    class Watched(dict):
        def __getattribute__(self, name):
            looks.append(name)
            return super().__getattribute__(name)

    debugger = make_debugger(step=[5])
    debugger.save(Watched(a=1), "x")
    assert not looks
    debugger.set_init_step(5)
    debugger.save(Watched(a=1), "x")
    assert looks  # the watch works


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
