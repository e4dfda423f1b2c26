import sys
import time

import contestants
import pytest
import threads
import training
from contestants import Contestant, interleave
from support import REPOSITORY

ECHO = "import sys\nprint(0, flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"


class Recorder:
    """Answers with the given seconds and notes that it was asked."""

    def __init__(self, name, answers, order):
        self.name, self.answers, self.order = name, iter(answers), order

    def ask(self, request):
        self.order.append(self.name)
        return next(self.answers)


def test_interleave_asks_in_turn_and_drops_the_first_round():
    order = []
    running = {
        "a": Recorder("a", [100.0, 1.0, 5.0, 2.0], order),
        "b": Recorder("b", [0.0, 7.0, 9.0, 8.0], order),
    }
    assert interleave(running, {}, rounds=3) == {"a": 2.0, "b": 8.0}
    assert order == ["a", "b"] * 4


def test_interleave_stops_after_the_fewest_rounds_when_the_time_is_over(monkeypatch):
    clock = iter(range(0, 1000, 10))  # every look at the clock finds ten seconds gone
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    order = []
    running = {"a": Recorder("a", range(100), order)}
    interleave(running, {}, rounds=20)
    assert len(order) == 1 + contestants.FEWEST_ROUNDS


def test_a_contestant_answers_what_its_process_prints():
    with Contestant([sys.executable, "-c", ECHO]) as echo:
        assert echo.ask({"seconds": 0.5}) == {"seconds": 0.5}


def test_a_contestant_gets_the_environment():
    program = "import os; print(0, flush=True); input(); print(os.environ['MSPROBE_THREADS'])"
    with Contestant([sys.executable, "-c", program], {"MSPROBE_THREADS": "2"}) as process:
        assert process.ask({}) == 2


def test_a_contestant_that_dies_raises_with_its_last_words():
    command = [sys.executable, "-c", "raise SystemExit('no such kernel')"]
    with pytest.raises(RuntimeError, match="no such kernel"):
        Contestant(command)


def test_two_user_threads_share_the_time_of_a_save():
    asked = []

    class Process:
        def ask(self, request):
            asked.append(request)

    threads._Asking(Process(), 2).ask({"size": 4})
    assert asked == [{"size": 4, "threads": 2}]


@pytest.mark.parametrize("task", ["statistics", "tensor", "async"])
def test_a_worker_saves_with_two_threads_and_answers_seconds(task):
    request = {
        "dtype": "float32",
        "size": 4000,
        "layout": "contiguous",
        "repeats": 5,
        "threads": 2,
        "caller_only": task == "async",
    }
    command = [sys.executable, REPOSITORY / "bench" / "worker.py", "msprobe", "--task", task]
    with Contestant(command) as worker:
        assert 0 < worker.ask(request) < 60


def test_a_training_contestant_trains_with_and_without_saves():
    for mode in ("off", "tensor async"):
        command = [sys.executable, REPOSITORY / "bench" / "training.py", "digits", mode]
        with Contestant(command) as contestant:
            answer = contestant.ask(0.01)
        assert answer["step"] > 0
        assert answer["left"] >= 0


def test_the_ratio_of_a_training_step_is_the_median_of_the_rounds():
    # The machine is twice as slow in the last round, for both: that is no cost of saving.
    without = [{"step": 1.0, "left": 0}, {"step": 1.0, "left": 0}, {"step": 2.0, "left": 0}]
    taken = [{"step": 1.1, "left": 3}, {"step": 1.3, "left": 5}, {"step": 2.4, "left": 4}]
    row = training.summary("digits", ("ours", "md5"), taken, without)
    assert (row["model"], row["whose"], row["mode"]) == ("digits", "ours", "md5")
    assert row["ratio"] == pytest.approx(1.2)
    assert row["seconds"] == 1.3
    assert row["left"] == 4
