"""Async mode: what was saved is what it was at the call, memory is bounded, nothing is lost."""

from __future__ import annotations

import shutil
import signal
import threading

import numpy as np
import pytest
import torch
from oracles import check_statistics, crc32, logical_bytes, logical_values
from support import read_step, run_script, saved, start_script, write_config


def test_in_place_changes_after_save_do_not_show(make_debugger, dump_path):
    debugger = make_debugger(task="tensor", summary_mode="md5", async_dump=True)
    values = [
        torch.arange(100_000.0),
        torch.arange(60_000.0).view(300, 200).t(),
        torch.arange(1000.0).view(10, 100)[:, 20:30],
        torch.ones(1).expand(1000),
        torch.arange(1000).to(torch.bfloat16),
        torch.arange(16.0).to(torch.float8_e4m3fn),
        torch.arange(300).to(torch.complex64).conj(),
        torch.tensor([1.0, 0.0, 3.0]).to_sparse(),
    ]
    array = np.arange(5000.0)
    for round_ in range(20):
        for i, value in enumerate(values):
            debugger.save({"v": value}, f"t{i}", False)
        debugger.save(array, "array", False)
        if round_ == 0:
            kept = [value.clone() for value in values]
        for value in values:
            if value.layout == torch.strided and 0 not in value.stride():
                value.copy_(torch.full_like(kept[0][:1], 9.0).to(value.dtype))
        array[:] = 9
    debugger.close()
    step = read_step(dump_path)
    for i, value in enumerate(kept):
        record = step[f"t{i}"]["v"]
        if value.layout == torch.strided:
            check_statistics(record, logical_values(value))
            assert record["md5"] == crc32(logical_bytes(value))
            assert logical_bytes(torch.load(step.file(record))) == logical_bytes(value), i
    assert step["array"]["Max"] == 4999.0
    assert np.load(step.file(step["array"]))[-1] == 4999.0
    assert step.data["array.19.debug"]["Max"] == 9.0


def test_containers_changed_after_save_do_not_show(make_debugger, dump_path):
    debugger = make_debugger(async_dump=True)
    value = {"a": [1, torch.ones(3)]}
    debugger.save(value, "x", False)
    value["a"].append(2)
    value["a"][1].zero_()
    value["b"] = 3
    debugger.close()
    record = read_step(dump_path)["x"]
    assert list(record) == ["a"]
    assert len(record["a"]) == 2
    assert record["a"][1]["Max"] == 1.0


def test_tensor_freed_after_save_is_recorded(make_debugger, dump_path):
    debugger = make_debugger(async_dump=True)
    for i in range(200):
        debugger.save(torch.full((10_000,), float(i)), "x", False)
    debugger.close()
    data = read_step(dump_path).data
    assert [data[f"x.{i}.debug"]["Min"] for i in range(200)] == [float(i) for i in range(200)]


def test_records_keep_the_order_of_the_saves(make_debugger, dump_path):
    """Large and small jobs in turn: a small one must not overtake."""
    debugger = make_debugger(async_dump=True, task="tensor", summary_mode="md5")
    wanted = []
    for i in range(120):
        name = f"n{i % 7}"
        size = 400_000 if i % 3 == 0 else 3
        debugger.save(torch.ones(size) if i % 5 else i, name, i % 4 == 0)
        wanted.append(f"{name}.{i // 7}.debug")
        if i % 4 == 0:
            wanted.append(f"{name}_grad.{i // 7}.debug")
    debugger.close()
    assert list(read_step(dump_path).data) == wanted


def test_steps_of_queued_saves_are_those_of_the_call(make_debugger, dump_path):
    debugger = make_debugger(async_dump=True, task="tensor")
    for i in range(30):
        debugger.save(torch.full((100_000,), float(i)), "x", False)
        debugger.step()
    debugger.close()
    for i in range(30):
        step = read_step(dump_path, i)
        assert step["x"]["Max"] == float(i)
        assert torch.load(step.file(step["x"]))[0] == float(i)


def test_md5_and_complex_statistics_work_in_async():
    values = {"c": torch.tensor([3 + 4j, 1j]), "h": torch.ones(4, dtype=torch.complex32)}
    with saved(values, async_dump=True, summary_mode="md5") as step:
        for name, value in values.items():
            check_statistics(step[name], logical_values(value))
            assert step[name]["md5"] == crc32(logical_bytes(value))


@pytest.mark.parametrize("limit", ["1", "4K", "1000000"])
def test_tensor_larger_than_the_queue_is_saved(make_debugger, dump_path, monkeypatch, limit):
    monkeypatch.setenv("MSPROBE_ASYNC_MEMORY", limit)
    debugger = make_debugger(async_dump=True, task="tensor", summary_mode="md5")
    big = torch.arange(500_000.0)
    for value in (big, torch.ones(10), big.view(500, 1000).t()):
        debugger.save(value, "x", False)
    big.zero_()
    debugger.close()
    data = read_step(dump_path).data
    assert data["x.0.debug"]["Max"] == 499_999.0
    assert data["x.0.debug"]["md5"] == crc32(np.arange(500_000, dtype=np.float32).tobytes())
    assert data["x.1.debug"]["Max"] == 1.0
    assert data["x.2.debug"]["shape"] == [1000, 500]


def test_queue_limit_bounds_the_memory(tmp_path, dump_path):
    """1 GiB of saves through a queue of 64 MiB: the peak grows by that, not by the data."""
    write_config(tmp_path / "config.json", dump_path, task="tensor", async_dump=True)
    finished = run_script(
        """
        import torch
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger("config.json")
        data = torch.zeros(4 << 20)  # 16 MiB
        debugger.save(data[:10], "warm", False)

        def peak():
            for line in open("/proc/self/status"):
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) * 1024

        before = peak()
        for i in range(64):
            data[0] = i
            debugger.save(data, "x", False)
            debugger.step()
        during = peak()
        PrecisionDebugger.close()
        print(during - before, peak() - before)
        """,
        tmp_path,
        RANK="0",
        MSPROBE_ASYNC_MEMORY="64M",
    )
    growths = [int(word) for word in finished.stdout.split()]
    assert max(growths) < 96 << 20
    for i in range(64):
        assert read_step(dump_path, i)["x"]["Max"] == float(i)
    assert sum(p.stat().st_size for p in dump_path.rglob("x.*.pt")) > 1 << 30
    shutil.rmtree(dump_path)


ENDINGS = {
    "normal": ("pass", 0),
    "sys_exit": ("sys.exit(3)", 3),
    "exception": ("raise ValueError('training failed')", 1),
    "interrupt": ("raise KeyboardInterrupt", -signal.SIGINT),
    "thread": ("threading.Thread(target=late).start()", 0),
}
ENDING_SCRIPT = """
    import sys, threading, time
    import torch
    from msprobe.pytorch import PrecisionDebugger

    def late():
        time.sleep(0.3)
        PrecisionDebugger.save(torch.ones(3), "late", False)

    debugger = PrecisionDebugger("config.json")
    x = torch.ones(200_000, requires_grad=True)
    for i in range(60):
        y = x * i
        debugger.save(y, "y", True)
        y.sum().backward()
    """


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit_drains_the_queue(tmp_path, dump_path, ending):
    statement, code = ENDINGS[ending]
    write_config(tmp_path / "config.json", dump_path, task="tensor", async_dump=True)
    finished = run_script(ENDING_SCRIPT + statement, tmp_path, expect=code, RANK="0")
    step = read_step(dump_path)
    for i in range(60):
        assert step.data[f"y.{i}.debug"]["Max"] == float(i), finished.stderr
        assert step.data[f"y_grad.{i}.debug"]["Max"] == 1.0
    assert len(list(step.tensors.iterdir())) == 120 + (ending == "thread")


def test_sigterm_drains_the_queue_and_ends_by_the_signal(tmp_path, dump_path):
    """Even while the main thread sits in a call that never returns to the interpreter."""
    write_config(tmp_path / "config.json", dump_path, task="tensor", async_dump=True)
    script = ENDING_SCRIPT + (
        "import ctypes; print('saved', flush=True); ctypes.CDLL(None).pause(); time.sleep(100)"
    )
    process = start_script(script, tmp_path, RANK="0")
    assert process.stdout.readline() == "saved\n", process.stderr.read()
    process.send_signal(signal.SIGTERM)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGTERM, stderr
    step = read_step(dump_path)
    assert len(step.data) == 120
    for i in range(60):
        assert torch.load(step.file(step.data[f"y.{i}.debug"]))[0] == float(i)


def test_sigterm_handler_of_the_user_is_kept(tmp_path, dump_path):
    write_config(tmp_path / "config.json", dump_path, async_dump=True)
    finished = run_script(
        """
        import os, signal, sys
        import torch
        signal.signal(signal.SIGTERM, lambda *_: (print("mine", flush=True), sys.exit(5)))
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger("config.json")
        debugger.save(torch.ones(3), "x", False)
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        tmp_path,
        expect=5,
        RANK="0",
    )
    assert finished.stdout == "mine\n"
    assert read_step(dump_path)["x"]["Max"] == 1.0


def test_threads_save_at_once(make_debugger, dump_path):
    for async_dump in (False, True):
        folder = dump_path / str(async_dump)
        debugger = make_debugger(async_dump=async_dump, task="tensor", dump_path=folder)

        def work(number, debugger=debugger):
            for i in range(100):
                debugger.save(torch.full((50,), float(number * 1000 + i)), f"t{number}", False)
                debugger.save(i, "shared", True)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        debugger.close()
        step = read_step(folder)
        assert len(step.data) == 4 * 100 + 2 * 400
        for n in range(4):
            for i in range(100):
                record = step.data[f"t{n}.{i}.debug"]
                assert record["Max"] == n * 1000 + i
                assert torch.load(step.file(record))[0] == n * 1000 + i
        shared = [step.data[f"shared.{i}.debug"]["value"] for i in range(400)]
        assert sorted(shared) == sorted(list(range(100)) * 4)
