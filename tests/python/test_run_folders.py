"""Folders of a run, earlier runs, links, permissions, and several processes on one path."""

from __future__ import annotations

import os
import stat
import threading

import pytest
import torch
from support import read_step, run_script, start_script, warnings_of, write_config

import msprobe
from msprobe.pytorch import PrecisionDebugger


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
