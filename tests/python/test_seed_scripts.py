"""The scripts of the seed, unchanged, in a folder with ./config.json and without."""

from __future__ import annotations

import json

import pytest
from support import read_step, run_script, tree

CONFIG = """
{
    "task": "statistics",
    "dump_path": "./dump_path",
    "rank": [],
    "step": [],
    "level": "debug",
    "async_dump": false,
    "statistics": {
        "summary_mode": "statistics"
    }
}
"""

WITH_CONFIG = """
# 训练启动py脚本
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger("./config.json")
for data, label in data_loader:
    # 执行模型训练
    train(data, label)
"""

WITHOUT_CONFIG = """
# 训练启动py脚本
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump_path", level="debug")
for data, label in data_loader:
    # 执行模型训练
    train(data, label)
"""

# What the two scripts above leave to the reader: the data and train(), here with one save.
SURROUNDINGS = """
import builtins
import torch

def train(data, label):
    from msprobe.pytorch import PrecisionDebugger
    PrecisionDebugger.save(data + label, "sum")

builtins.data_loader = [(torch.ones(2), torch.zeros(2)), (torch.ones(2) * 2, torch.ones(2))]
builtins.train = train
"""

SAVE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

from msprobe.pytorch import PrecisionDebugger, seed_all
# 在模型训练开始前实例化PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump_path", level="debug")

# 定义网络
class ModuleOP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(in_features=8, out_features=4)
        self.linear_2 = nn.Linear(in_features=4, out_features=2)

    def forward(self, x):
        x1 = self.linear_1(x)
        x2 = self.linear_2(x1)
        debugger.save(x2, "x2", save_backward=True)  # 调用save接口
        r1 = F.relu(x2)
        return r1

if __name__ == "__main__":
    module = ModuleOP()

    x = torch.randn(10, 8)
    out = module(x)
    loss = out.sum()
    loss.backward()
"""

STEPS = """
import torch
import torch.nn as nn
import torch.nn.functional as F

from msprobe.pytorch import PrecisionDebugger
# 在模型训练开始前实例化PrecisionDebugger
debugger = PrecisionDebugger(dump_path="dump_path", level="debug")

# 定义网络
class ModuleOP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(in_features=8, out_features=4)
        self.linear_2 = nn.Linear(in_features=4, out_features=2)

    def forward(self, x):
        x1 = self.linear_1(x)
        x2 = self.linear_2(x1)
        debugger.save(x2, "x2", save_backward=True)  # 调用save接口
        r1 = F.relu(x2)
        return r1

if __name__ == "__main__":
    module = ModuleOP()
    train_iter = 10
    for i in range(train_iter):
        x = torch.randn(10, 8)
        out = module(x)
        loss = out.sum()
        loss.backward()
        debugger.step()  # 调用debugger.step用于区分step保存
"""


def check_x2(step) -> None:
    assert list(step.data) == ["x2.0.debug", "x2_grad.0.debug"]
    for key, requires_grad in [("x2", True), ("x2_grad", False)]:
        record = step[key]
        assert record["dtype"] == "torch.float32"
        assert record["shape"] == [10, 2]
        assert record["requires_grad"] is requires_grad
    gradient = step["x2_grad"]  # of relu and sum: 0 or 1
    assert gradient["Norm"] ** 2 == pytest.approx(20 * gradient["Mean"], abs=1e-9)
    assert {gradient["Max"], gradient["Min"]} <= {0.0, 1.0}


@pytest.mark.parametrize("script", [WITH_CONFIG, WITHOUT_CONFIG], ids=["config", "no_config"])
def test_seed_initialisation_scripts(tmp_path, script):
    (tmp_path / "config.json").write_text(CONFIG if script is WITH_CONFIG else "{ not read")
    run_script(SURROUNDINGS + script, tmp_path, RANK="0")
    assert tree(tmp_path / "dump_path") == ["step0", "step0/rank0", "step0/rank0/debug.json"]
    step = read_step(tmp_path / "dump_path")
    assert [step.data[f"sum.{i}.debug"]["Max"] for i in range(2)] == [1.0, 3.0]


def test_seed_save_script_without_rank(tmp_path):
    run_script(SAVE, tmp_path)
    names = tree(tmp_path / "dump_path")
    folder = names[1].split("/")[1]
    assert folder.startswith("proc")
    assert folder[4:].isdecimal()
    assert names == ["step0", f"step0/{folder}", f"step0/{folder}/debug.json"]
    check_x2(read_step(tmp_path / "dump_path"))


def test_seed_step_script(tmp_path):
    run_script(STEPS, tmp_path, RANK="2")
    wanted = []
    for i in range(10):
        wanted += [f"step{i}", f"step{i}/rank2", f"step{i}/rank2/debug.json"]
        check_x2(read_step(tmp_path / "dump_path", i))
    assert tree(tmp_path / "dump_path") == sorted(wanted)


def test_seed_step_script_with_task_tensor_and_async(tmp_path):
    """The same script, its settings changed in config.json only."""
    settings = {**json.loads(CONFIG), "task": "tensor", "async_dump": True}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    constructor = 'PrecisionDebugger(dump_path="dump_path", level="debug")'
    assert constructor in STEPS
    run_script(STEPS.replace(constructor, 'PrecisionDebugger("./config.json")'), tmp_path, RANK="0")
    for i in range(10):
        step = read_step(tmp_path / "dump_path", i)
        check_x2(step)
        names = sorted(entry.name for entry in step.tensors.iterdir())
        assert names == ["x2.0.debug.pt", "x2_grad.0.debug.pt"]
