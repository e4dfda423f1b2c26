"""What an unusual program does must not raise into it, change it, hang it or lose a save."""

from __future__ import annotations

import collections.abc
import copy
import logging
import pickle
import signal
import threading
import time
import warnings
import weakref
from dataclasses import dataclass
from unittest import mock

import pytest
import torch
from support import read_step, run_script, start_script, warnings_of, write_config
from torch import nn


@pytest.fixture
def quiet(monkeypatch):
    """Failures are warnings, as for a user."""
    monkeypatch.delenv("MSPROBE_ON_ERROR")


# ---- threads and processes ------------------------------------------------------------------


def test_threads_save_while_another_ends_steps_and_no_rank_is_known(tmp_path):
    finished = run_script(
        """
        import threading, torch
        from msprobe.pytorch import PrecisionDebugger as P
        P(dump_path="dump")
        x = torch.ones(4)
        SAVES = 300
        running = 4
        def work():
            global running
            for _ in range(SAVES):
                P.save(x, "x", False)
            running -= 1
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        while running > 0: P.step()
        for thread in threads: thread.join()
        """,
        tmp_path,
        RANK=None,
    )
    assert "1200 saved, 0 gradients, none lost" in finished.stderr


def test_a_daemon_thread_that_saves_while_the_process_ends_does_not_crash_it(tmp_path):
    run_script(
        """
        import threading, time
        import numpy as np
        from msprobe.pytorch import PrecisionDebugger as P
        P(dump_path="dump")
        x = np.ones(1 << 22)  # no tensor: PyTorch's own calls crash in such a thread
        def work():
            while True:
                P.save(x, "x", False)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """,
        tmp_path,
    )


def test_sigterm_ends_a_job_that_keeps_saving_in_async_mode(tmp_path):
    write_config(tmp_path / "config.json", tmp_path / "dump", async_dump=True, task="tensor")
    process = start_script(
        """
        import torch
        from msprobe.pytorch import PrecisionDebugger as P
        P("config.json")
        x = torch.randn(1 << 20)
        print("ready", flush=True)
        while True:
            P.save(x, "x", False)
        """,
        tmp_path,
        MSPROBE_ASYNC_MEMORY="256M",
        MSPROBE_ASYNC_THREADS="1",
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    step = read_step(tmp_path / "dump")
    assert step.data
    assert all(step.file(record).is_file() for record in step.data.values())


def test_a_signal_handler_and_a_finaliser_may_save_in_the_middle_of_a_save(make_debugger):
    debugger = make_debugger()
    w = nn.Parameter(torch.ones(2))
    signal.signal(signal.SIGALRM, lambda *_: debugger.save(w, "handler"))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(3000):
            debugger.save(w, "w")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_child_forked_while_threads_save_leaves_can_save_and_has_its_own_gradient(tmp_path):
    run_script(
        """
        import os, threading, torch
        from msprobe.pytorch import PrecisionDebugger as P
        P(dump_path="dump")
        w = torch.nn.Parameter(torch.ones(2))
        P.save(w, "w")  # the parent's ticket, which is not the child's to spend
        stop = False
        def work():
            mine = torch.nn.Parameter(torch.ones(2))
            while not stop:
                P.save(mine, "mine")
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                import json
                P.save(w, "w")
                (w * 7).sum().backward()
                path = f"dump/step0/proc{os.getpid()}/debug.json"
                found = json.load(open(path))["data"]["w_grad.0.debug"]
                os._exit(0 if found and found["Max"] == 7 else 3)
            status = os.waitpid(child, 0)[1]
            assert status == 0, status
        stop = True
        """,
        tmp_path,
        RANK=None,
    )


def test_a_forked_child_that_never_saved_says_nothing(tmp_path):
    finished = run_script(
        """
        import os, sys, torch
        from msprobe.pytorch import PrecisionDebugger as P
        P(dump_path="dump")
        P.save(torch.ones(2), "x")
        child = os.fork()
        if child == 0:
            sys.exit()
        os.waitpid(child, 0)
        """,
        tmp_path,
    )
    assert finished.stderr.count("msprobe") == 1  # the parent's summary


def test_a_save_after_the_end_is_told(tmp_path):
    finished = run_script(
        """
        import atexit, torch
        from msprobe.pytorch import PrecisionDebugger as P
        atexit.register(lambda: P.save(torch.ones(2), "late"))
        P(dump_path="dump")
        P.save(torch.ones(2), "x")
        """,
        tmp_path,
        MSPROBE_ON_ERROR=None,
    )
    assert "the process ends" in finished.stderr


# ---- objects that are not what they seem -----------------------------------------------------


def test_objects_that_claim_to_be_tensors_become_placeholders(make_debugger, dump_path):
    debugger = make_debugger()
    t = torch.ones(3)
    debugger.save([mock.MagicMock(spec=torch.Tensor), weakref.proxy(t), t], "x")
    debugger.close()
    fake, proxy, real = read_step(dump_path)["x"]
    assert fake == {"type": "unittest.mock.MagicMock", "value": None}
    assert proxy["value"] is None
    assert real["Max"] == 1


class FailsHalfway(collections.abc.Mapping):
    """Shows one tensor, then breaks."""

    def __init__(self, tensor):
        self.tensor = tensor

    def items(self):
        return [("tensor", self.tensor), Breaks()]

    def __getitem__(self, key):
        return self.tensor

    def __iter__(self):
        return iter(["tensor"])

    def __len__(self):
        return 1


class Breaks:
    def __getitem__(self, index):
        raise RuntimeError("no item")


def test_a_container_that_breaks_does_not_shift_the_gradients_of_others(make_debugger, dump_path):
    debugger = make_debugger()
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    debugger.save([FailsHalfway(a), b], "x")
    (a * 100 + b).sum().backward()
    debugger.close()
    broken, of_b = read_step(dump_path)["x_grad"]
    assert broken is None
    assert of_b["Max"] == 1


def test_a_field_that_was_never_set_is_not_the_same_as_none(make_debugger, dump_path):
    @dataclass
    class Batch:
        inputs: object
        labels: object

    batch = Batch(torch.ones(2), None)
    del batch.inputs
    debugger = make_debugger()
    debugger.save(batch, "batch")
    debugger.close()
    assert read_step(dump_path)["batch"] == {
        "inputs": {"type": "AttributeError", "value": None},
        "labels": None,
    }


def test_a_broadcast_of_any_size_costs_nothing(make_debugger, dump_path):
    debugger = make_debugger()
    debugger.save([torch.ones(1).expand(2**62), torch.ones(2)], "x", False)
    debugger.close()
    huge, small = read_step(dump_path)["x"]
    assert huge["Mean"] == 1
    assert huge["Norm"] == 2.0**31
    assert small["Max"] == 1


def test_what_cannot_be_read_is_counted_and_told(make_debugger, dump_path, quiet, caplog):
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    debugger = make_debugger()
    debugger.save([freed, torch.ones(2)], "x", False)
    summary = debugger._debugger.summary()
    debugger.close()
    assert [r["Max"] for r in read_step(dump_path)["x"]] == [None, 1]
    assert summary["failures"] == 1
    assert len([text for text in warnings_of(caplog) if 'not saved: "x"' in text]) == 1


def test_tensors_inside_functional_transforms_have_their_values(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.tensor([1.0, 2.0])

    def f(x):
        y = x * 3
        debugger.save(y, "y", False)
        return y.sum()

    assert torch.func.grad(f)(x).tolist() == [3, 3]
    assert torch.func.jacrev(f)(x).tolist() == [3, 3]
    debugger.close()
    step = read_step(dump_path)
    assert step["y"]["Max"] == 6
    assert step.data["y.1.debug"]["Max"] == 6


def test_zeros_without_memory_are_zeros(make_debugger, dump_path):
    debugger = make_debugger(task="tensor")
    debugger.save(torch._efficientzerotensor((2, 3)), "z", False)
    debugger.close()
    step = read_step(dump_path)
    assert step["z"]["Norm"] == 0
    assert torch.load(step.file(step["z"]), weights_only=True).tolist() == [[0] * 3] * 2


# ---- gradients ------------------------------------------------------------------------------


def test_swapping_tensors_works_with_a_saved_parameter(make_debugger):
    debugger = make_debugger()
    layer = nn.Linear(2, 2)
    debugger.save(layer.weight, "w")
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        layer.to(torch.float64)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert layer.weight.dtype == torch.float64


def test_leaves_that_die_leave_nothing_behind(make_debugger):
    debugger = make_debugger()
    for _ in range(100):
        debugger.save(torch.ones(2, requires_grad=True), "x")
    assert len(debugger._gradients._leaves) == 0


def test_a_backward_without_a_gradient_for_a_leaf_spends_no_ticket(make_debugger, dump_path):
    class GivesNone(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return y.clone()

        @staticmethod
        def backward(ctx, gradient):
            return None, gradient

    debugger = make_debugger()
    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    debugger.save(x, "x")
    GivesNone.apply(x, y).sum().backward()
    (x * 5).sum().backward()
    debugger.close()
    assert read_step(dump_path)["x_grad"]["Max"] == 5


def test_each_backward_spends_the_oldest_save_wherever_the_leaf_stands_in_it(
    make_debugger, dump_path
):
    debugger = make_debugger()
    w = torch.ones(2, requires_grad=True)
    debugger.save([w], "x")
    debugger.save([1, w], "x")
    (w * 1).sum().backward()
    (w * 10).sum().backward()
    debugger.close()
    step = read_step(dump_path)
    assert step.data["x_grad.0.debug"][0]["Max"] == 1
    assert step.data["x_grad.1.debug"][1]["Max"] == 10


def test_a_leaf_twice_in_one_save_gets_its_gradient_twice(make_debugger, dump_path):
    debugger = make_debugger()
    w = torch.ones(2, requires_grad=True)
    debugger.save([w, w], "x")
    (w * 3).sum().backward()
    debugger.close()
    assert [record["Max"] for record in read_step(dump_path)["x_grad"]] == [3, 3]


def test_a_parameter_that_has_no_shape_yet_may_be_saved(make_debugger, dump_path, quiet):
    layer = nn.LazyLinear(4)
    debugger = make_debugger()
    debugger.save(layer.weight, "w")
    layer(torch.ones(2, 3)).sum().backward()
    debugger.close()
    assert "w.0.debug" in read_step(dump_path).data


def test_a_subclass_that_refuses_everything_does_not_disturb(make_debugger, dump_path, quiet):
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return NotImplemented

    debugger = make_debugger()
    debugger.save(torch.ones(2, requires_grad=True).as_subclass(Refuses), "x")
    debugger.close()
    assert read_step(dump_path)["x"]["Max"] == 1


def test_a_function_mode_of_the_user_sees_nothing_of_a_save(make_debugger, dump_path):
    class Counts(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, function, types, args=(), kwargs=None):
            Counts.calls += 1
            return function(*args, **(kwargs or {}))

    debugger = make_debugger()
    x = torch.ones(2, requires_grad=True)
    with Counts():
        debugger.save([x, x * 1], "x")
        after_one_multiplication = Counts.calls
    debugger.close()
    assert after_one_multiplication == 1
    assert read_step(dump_path)["x"][0]["Max"] == 1


# ---- surroundings ---------------------------------------------------------------------------


def test_checkpoints_of_saved_leaves_give_no_warning(make_debugger, tmp_path):
    debugger = make_debugger()
    x = torch.ones(3, requires_grad=True)
    debugger.save(x, "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save({"x": x}, tmp_path / "checkpoint.pt")
        copy.deepcopy(x)


class Model(nn.Module):
    def __init__(self, debugger):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.debugger = debugger

    def forward(self, x):
        y = self.layer(x)
        self.debugger.save(y, "y")
        return y


def test_a_model_that_holds_the_debugger_can_be_copied_and_pickled(make_debugger, dump_path):
    debugger = make_debugger()
    model = Model(debugger)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.debugger is debugger
        twin(torch.ones(1, 2)).sum().backward()
    debugger.close()
    assert len(read_step(dump_path).data) == 6


def test_a_subclass_of_the_debugger_serves_the_class_it_comes_from(dump_path):
    from msprobe.pytorch import PrecisionDebugger

    class Mine(PrecisionDebugger):
        pass

    mine = Mine(dump_path=str(dump_path))
    PrecisionDebugger.save(torch.ones(2), "x")
    assert PrecisionDebugger() is mine
    Mine.close()
    assert read_step(dump_path)["x"]["Max"] == 1


class Fails(logging.Handler):
    def emit(self, record):
        raise RuntimeError("the handler is down")


def test_a_logging_handler_that_fails_harms_neither_save_nor_backward(
    make_debugger, dump_path, quiet, capsys
):
    handler = Fails()
    logging.getLogger("msprobe").addHandler(handler)
    try:
        debugger = make_debugger(task="tensor")
        w = torch.ones(2, requires_grad=True)
        y = w * 2
        debugger.save(y, "y")
        folder = dump_path / "step0/rank0/dump_tensor_data"
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        y.sum().backward()
        debugger.save(y, "y")
        debugger.close()
    finally:
        logging.getLogger("msprobe").removeHandler(handler)
    assert w.grad.tolist() == [2, 2]
    assert "the handler is down" in capsys.readouterr().err


def test_names_and_paths_that_are_no_text_come_through(tmp_path, quiet, caplog):
    import os

    from msprobe.pytorch import PrecisionDebugger

    path = os.fsdecode(os.fsencode(tmp_path) + b"/dump\xff")
    debugger = PrecisionDebugger(dump_path=path)
    w = torch.ones(2, requires_grad=True)
    debugger.save(w, "\ud800")
    debugger.save(1, "\ud800_grad")
    debugger.close()
    assert os.path.isdir(os.fsencode(tmp_path) + b"/dump\xff/step0/rank0")


@pytest.mark.parametrize("number", [2**63, -1, 2**53 + 1])
def test_step_numbers_that_cannot_be_are_refused(make_debugger, number):
    debugger = make_debugger()
    with pytest.raises(ValueError, match="step must be from 0 to"):
        debugger.set_init_step(number)


def test_an_integer_of_numpy_is_a_step_number(make_debugger, dump_path):
    import numpy as np

    debugger = make_debugger()
    debugger.set_init_step(np.int64(3))
    debugger.save(1, "x")
    debugger.close()
    assert read_step(dump_path, 3)["x"]["value"] == 1


def test_a_deleted_record_file_comes_back_and_a_deleted_folder_is_told(
    make_debugger, dump_path, quiet, caplog
):
    import shutil

    debugger = make_debugger()
    debugger.save(1, "a", False)
    (dump_path / "step0/rank0/debug.json").unlink()
    debugger.save(2, "b", False)
    debugger.step()
    assert list(read_step(dump_path).data) == ["a.0.debug", "b.0.debug"]
    debugger.save(3, "c", False)
    shutil.rmtree(dump_path / "step1")
    debugger.save(4, "d", False)
    debugger.step()
    assert debugger._debugger.summary()["failures"] == 1
    assert any('not saved: "debug.json of step 1"' in text for text in warnings_of(caplog))
    debugger.save(5, "e", False)
    debugger.close()
    assert read_step(dump_path, 2)["e"]["value"] == 5


def test_many_threads_that_save_and_run_backward(make_debugger, dump_path):
    debugger = make_debugger()
    saves = 50

    def work(number):
        for _ in range(saves):
            x = torch.ones(4, requires_grad=True)
            y = x * 2
            debugger.save(y, f"y{number}")
            y.sum().backward()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.close()
    data = read_step(dump_path).data
    assert len(data) == 4 * saves * 2
    assert all(record["Max"] == 1 for key, record in data.items() if "_grad" in key)
