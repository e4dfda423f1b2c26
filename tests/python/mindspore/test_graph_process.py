"""Graph saves where a process of its own is needed: environment, ranks, faults, exit, fork."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from support import clean_environment, load_json, run_script, tree

pytest.importorskip("mindspore", reason="mindspore is not installed")

HEADER = """
import os, sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops
from msprobe.mindspore import save, save_grad, step
ms.set_device("CPU")
MODE = sys.argv[1]
ms.set_context(mode=ms.GRAPH_MODE if MODE == "graph" else ms.PYNATIVE_MODE)
X = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))

class Net(nn.Cell):
    def construct(self, x):
        save("dump", "x", x)
        y = save_grad("dump", "y", x * 2)
        return (y * y).sum()
"""
MODES = pytest.mark.parametrize("mode", ["graph", "pynative"])


def run(body, tmp_path, mode="graph", **environment):
    environment.setdefault("MSPROBE_ON_ERROR", "raise")
    return run_script(HEADER + textwrap.dedent(body), tmp_path, mode, **environment)


@MODES
def test_task_statistics_writes_records_and_no_files(tmp_path, mode):
    run(
        """
        for _ in range(2):
            ms.grad(Net())(X)
            step()
        """,
        tmp_path,
        mode,
        MSPROBE_GRAPH_TASK="statistics",
    )
    assert tree(tmp_path / "dump") == [
        *("step0", "step0/rank0", "step0/rank0/debug.json"),
        *("step1", "step1/rank0", "step1/rank0/debug.json"),
    ]
    top = load_json(tmp_path / "dump/step1/rank0/debug.json")
    assert {key: top[key] for key in ("task", "level", "framework", "dump_data_dir")} == {
        "task": "statistics",
        "level": "debug",
        "framework": "mindspore",
        "dump_data_dir": None,
    }
    assert top["data"]["x.0.debug"] == {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": [2, 3],
        "Max": 5,
        "Min": 0,
        "Mean": 2.5,
        "Norm": pytest.approx(55**0.5, rel=1e-15),
    }
    assert top["data"]["y_grad.0.debug"]["Max"] == 20  # d(y^2)/dy = 2y = 4x
    assert list(top["data"]) == ["x.0.debug", "y_grad.0.debug"]


@MODES
def test_task_both_writes_records_that_name_their_files(tmp_path, mode):
    run("ms.grad(Net())(X)", tmp_path, mode, MSPROBE_GRAPH_TASK="both")
    folder = tmp_path / "dump/step0/rank0"
    top = load_json(folder / "debug.json")
    assert top["dump_data_dir"] == str(folder)
    for key, name in (("x.0.debug", "x_float32_0.npy"), ("y_grad.0.debug", "y_grad_float32_0.npy")):
        assert top["data"][key]["data_name"] == name
        assert np.load(folder / name).max() == top["data"][key]["Max"]


def test_an_unknown_task_is_told_and_taken_as_tensor(tmp_path):
    finished = run("Net()(X)", tmp_path, MSPROBE_GRAPH_TASK="statistic")
    assert 'MSPROBE_GRAPH_TASK: found "statistic"' in finished.stderr
    assert (tmp_path / "dump/step0/rank0/x_float32_0.npy").is_file()


@MODES
def test_rank_is_that_of_the_launcher(tmp_path, mode):
    run("Net()(X)", tmp_path, mode, RANK_ID="3")
    assert (tmp_path / "dump/step0/rank3/x_float32_0.npy").is_file()


@MODES
def test_an_earlier_run_is_kept_beside(tmp_path, mode):
    for _ in range(2):
        finished = run("Net()(X)", tmp_path, mode)
    assert "was written by an earlier run; it is kept as rank0.bak1" in finished.stderr
    for folder in ("rank0", "rank0.bak1"):
        assert (tmp_path / "dump/step0" / folder / "x_float32_0.npy").is_file()


def test_a_second_process_on_the_same_folder_has_its_own(tmp_path):
    body = """
    Net()(X)
    print("saved", flush=True)
    sys.stdin.readline()
    """
    script = tmp_path / "first.py"
    script.write_text(HEADER + textwrap.dedent(body), encoding="utf-8")
    first = subprocess.Popen(
        [sys.executable, str(script), "graph"],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout.readline() == "saved\n"
    finished = run("Net()(X); print(os.getpid())", tmp_path)
    first.communicate("\n", timeout=60)
    assert "rank0 belongs to another running process" in finished.stderr
    own = f"proc{finished.stdout.split()[-1]}"
    assert sorted(os.listdir(tmp_path / "dump/step0")) == sorted([own, "rank0"])


@MODES
def test_a_failed_save_is_a_warning_and_the_graph_goes_on(tmp_path, mode):
    (tmp_path / "dump").write_text("a file where the folder should be")
    finished = run(
        """
        net = Net()
        for _ in range(20):
            print(net(X).asnumpy())
        """,
        tmp_path,
        mode,
        MSPROBE_ON_ERROR=None,
    )
    assert finished.stdout.split() == ["220.0"] * 20
    warnings = [line for line in finished.stderr.splitlines() if 'not saved: "x"' in line]
    assert len(warnings) == 2  # the first and the 10th
    assert "Not a directory" in warnings[0] or "File exists" in warnings[0]
    assert "graph saves: 0 saved, 0 gradients, 20 NOT saved" in finished.stderr


@MODES
def test_a_failed_save_raises_where_that_is_asked_for(tmp_path, mode):
    (tmp_path / "dump").write_text("a file where the folder should be")
    finished = run(
        """
        try:
            Net()(X)
        except RuntimeError as error:
            print("raised")
        """,
        tmp_path,
        mode,
    )
    assert finished.stdout == "raised\n"
    assert 'not saved: "x"' in finished.stderr


def test_a_full_disk_costs_the_file_and_nothing_else(tmp_path):
    disk = tmp_path / "dump"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]).returncode != 0:
        pytest.skip("no right to mount a small disk")
    try:
        finished = run(
            """
            big = ms.Tensor(np.ones((100, 1000), np.float32))
            print(Net()(big).asnumpy())
            Net()(X)
            """,
            tmp_path,
            MSPROBE_ON_ERROR=None,
        )
        assert finished.stdout.split() == ["400000.0"]
        assert "No space left on device" in finished.stderr
        assert os.listdir(disk / "step0/rank0") == ["x_float32_1.npy"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_cached_graph_saves_too(tmp_path):
    body = """
    ms.set_context(enable_compile_cache=True, compile_cache_path="cache")
    print(Net()(X).asnumpy())
    """
    for _ in range(2):
        finished = run(body, tmp_path)
        assert finished.stdout.split() == ["220.0"]
    assert list((tmp_path / "cache").rglob("*.mindir"))
    assert (tmp_path / "dump/step0/rank0/x_float32_0.npy").is_file()
    assert (tmp_path / "dump/step0/rank0.bak1/x_float32_0.npy").is_file()


def test_a_forked_child_writes_to_its_own_folder(tmp_path):
    finished = run(
        """
        net = Net()
        net(X)
        child = os.fork()
        if child == 0:
            net(X)
            step()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        net(X)
        print(child)
        """,
        tmp_path,
        "graph",
    )
    child = f"proc{finished.stdout.strip()}"
    assert sorted(tree(tmp_path / "dump/step0")) == sorted(
        [
            *(child, f"{child}/x_float32_0.npy"),
            *("rank0", "rank0/x_float32_0.npy", "rank0/x_float32_1.npy"),
        ]
    )


def test_a_forked_child_is_refused_what_would_hang_in_it(tmp_path):
    finished = run(
        """
        y = X * 2
        child = os.fork()
        if child == 0:
            save("dump", "y", y)
            step()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        tmp_path,
        "pynative",
        MSPROBE_ON_ERROR=None,
    )
    assert "reads no tensor in a forked process" in finished.stderr


def test_two_ranks_of_mindspore_communication(tmp_path):
    script = tmp_path / "ranks.py"
    body = """
    from mindspore.communication import init
    init()
    os.environ["RANK_ID"] = "9"  # the framework's own word counts more
    Net()(X)
    """
    script.write_text(HEADER + textwrap.dedent(body), encoding="utf-8")
    programs = Path(sys.executable).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(programs / "msrun"), "--worker_num=2", "--local_worker_num=2"]
    command += [f"--master_port={port}", "--join=True", str(script), "graph"]
    finished = subprocess.run(
        command,
        cwd=tmp_path,
        env=clean_environment(PATH=f"{programs}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=180,
    )
    logs = "".join(path.read_text()[-2000:] for path in tmp_path.glob("worker_*.log"))
    assert finished.returncode == 0, finished.stdout + finished.stderr + logs
    for rank in ("rank0", "rank1"):
        assert (tmp_path / "dump/step0" / rank / "x_float32_0.npy").is_file()


def graphs(folder):
    """The texts of all graphs that MindSpore wrote down while it compiled."""
    return "".join(path.read_text() for path in Path(folder).rglob("*.ir"))


def test_nothing_is_left_in_a_graph_that_does_not_save(tmp_path):
    body = """
    class Plain(nn.Cell):
        def construct(self, x):
            return (x * 2).sum()

    (Net() if {saves} else Plain())(X)
    """
    for saves in (True, False):
        folder = tmp_path / str(saves)
        run(
            body.format(saves=saves),
            tmp_path,
            MS_DEV_SAVE_GRAPHS="2",
            MS_DEV_SAVE_GRAPHS_PATH=str(folder),
        )
        text = graphs(folder)
        assert "PrimFunc_Mul" in text or "Mul(" in text  # these are the graphs
        assert ("MsprobeSave" in text) is saves
        assert ("msprobe" in text) is saves


def compile_only(target, tmp_path):
    """Compiles Net for a device that is not here, front end only; gives the output."""
    return run(
        f"""
        from mindspore.graph.api import _cell_graph_executor
        from msprobe.mindspore import graph
        real = ms.get_context
        ms.get_context = lambda key: {target!r} if key == "device_target" else real(key)
        try:
            _cell_graph_executor.compile(Net(), X, phase="train", do_convert=False)
        except Exception as error:
            print(type(error).__name__, error)
        """,
        tmp_path,
        MS_DEV_SAVE_GRAPHS="2",
        MS_DEV_SAVE_GRAPHS_PATH=str(tmp_path / "graphs"),
    ).stdout


def test_a_graph_on_ascend_has_the_operator_of_mindspore(tmp_path):
    compile_only("Ascend", tmp_path)
    text = graphs(tmp_path / "graphs")
    assert "TensorDump" in text
    assert "dump/{step}/{rank}/x" in text
    assert "MsprobeSave" not in text


def test_a_graph_on_a_gpu_is_refused(tmp_path):
    output = compile_only("GPU", tmp_path)
    assert output.startswith(
        "RuntimeError msprobe: save and save_grad cannot run in a graph on GPU"
    )


def test_importing_does_not_import_torch(tmp_path):
    assert run("print('torch' in sys.modules)", tmp_path).stdout == "False\n"


def test_a_deleted_folder_begins_anew(tmp_path):
    finished = run(
        """
        import shutil
        save("dump", "x", X)
        shutil.rmtree("dump")
        step()
        save("dump", "x", X)
        """,
        tmp_path,
        "pynative",
    )
    assert "was deleted while it was written to; it begins anew" in finished.stderr
    assert (tmp_path / "dump/step1/rank0/x_float32_0.npy").is_file()


@MODES
@pytest.mark.parametrize("rank", ["-1", "abc", "1.5", "99999999999999999999"])
def test_a_launcher_rank_that_is_none_is_taken_as_unknown(tmp_path, mode, rank):
    run("Net()(X); step()", tmp_path, mode, RANK_ID=rank)
    assert (tmp_path / "dump/step0/rank0/x_float32_0.npy").is_file()
