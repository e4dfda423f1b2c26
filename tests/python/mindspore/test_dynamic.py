"""`msprobe.mindspore.PrecisionDebugger` in PyNative mode, on real MindSpore."""

from __future__ import annotations

import gc
import math
import zlib

import numpy as np
import pytest
from support import read_step

MODES = pytest.mark.parametrize("async_dump", [False, True], ids=["sync", "async"])


def tensors_of_every_dtype(ms):
    base = np.array([[0, 1, 2], [3, 4, 5]])
    named = {
        name: ms.Tensor(base.astype(name))
        for name in (
            *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "bool"),
        )
    }
    named["bfloat16"] = ms.Tensor(base.astype(np.float32), ms.bfloat16)
    return named


def host(tensor):
    """The values as NumPy knows them."""
    array = tensor.asnumpy()
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


@MODES
def test_records_have_the_form_and_the_values_of_every_dtype(
    make_ms_debugger, ms, dump_path, async_dump
):
    debugger = make_ms_debugger(async_dump=async_dump)
    tensors = tensors_of_every_dtype(ms)
    for name, tensor in tensors.items():
        debugger.save(tensor, name, False)
    debugger.close()
    step = read_step(dump_path)
    assert step.top["framework"] == "mindspore"
    for name, tensor in tensors.items():
        record = step[name]
        assert list(record) == ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm"]
        assert record["type"] == "mindspore.Tensor"
        assert record["dtype"] == str(tensor.dtype)
        assert record["shape"] == [2, 3]
        values = np.abs(host(tensor).astype(np.complex128)).ravel().tolist()
        assert record["Max"] == max(values)
        assert record["Min"] == min(values)
        assert record["Mean"] == pytest.approx(math.fsum(values) / 6, rel=1e-12)
        assert record["Norm"] == pytest.approx(
            math.sqrt(math.fsum(v * v for v in values)), rel=1e-12
        )


@MODES
def test_files_hold_asnumpy_bit_for_bit(make_ms_debugger, ms, dump_path, async_dump):
    debugger = make_ms_debugger(task="tensor", async_dump=async_dump)
    tensors = tensors_of_every_dtype(ms)
    tensors["transposed"] = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).T
    tensors["zero_dim"] = ms.Tensor(3.5, ms.float32)
    for name, tensor in tensors.items():
        debugger.save(tensor, name, False)
    debugger.save(ms.Tensor(np.zeros((0, 3), np.float32)), "empty", False)
    debugger.close()
    step = read_step(dump_path)
    for name, tensor in tensors.items():
        assert step[name]["data_name"] == f"{name}.0.debug.npy"
        array = np.load(step.file(step[name]), allow_pickle=False)
        expected = host(tensor)
        assert array.dtype == expected.dtype
        assert array.shape == expected.shape
        assert array.tobytes() == expected.tobytes()
    assert "data_name" not in step["empty"]


@MODES
def test_md5_covers_the_bytes_of_the_npy_file(make_ms_debugger, ms, dump_path, async_dump):
    debugger = make_ms_debugger(task="tensor", summary_mode="md5", async_dump=async_dump)
    tensors = tensors_of_every_dtype(ms)
    for name, tensor in tensors.items():
        debugger.save(tensor, name, False)
    debugger.close()
    step = read_step(dump_path)
    for name, tensor in tensors.items():
        array = np.load(step.file(step[name]), allow_pickle=False)
        assert step[name]["md5"] == f"{zlib.crc32(array.tobytes()):08x}", name
        assert array.tobytes() == host(tensor).tobytes()


def test_other_leaves_are_recorded(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()
    coo = ms.COOTensor(ms.Tensor([[0, 1], [0, 1], [2, 0]]), ms.Tensor([1.0, 2.0, -4.0]), (3, 4))
    csr = ms.CSRTensor(
        ms.Tensor([0, 1, 3]), ms.Tensor([0, 1, 2]), ms.Tensor([1.0, 2.0, -4.0]), (2, 3)
    )
    nested = {"a": [ms.Tensor([1.0]), None, 3], "b": (np.ones(2), ms.float32, "text", slice(1, 2))}
    debugger.save([coo, csr, nested], "x")
    debugger.close()
    record = read_step(dump_path)["x"]
    assert [record[0][k] for k in ("Max", "Min", "Mean")] == [3.0, -4.0, pytest.approx(-1 / 12)]
    assert [record[1][k] for k in ("Max", "Min")] == [2.0, -4.0]
    assert record[2]["a"][0]["type"] == "mindspore.Tensor"
    assert record[2]["a"][1] is None
    assert record[2]["b"][1] == {"type": "mindspore.dtype", "value": "Float32"}
    gradient = read_step(dump_path).data["x_grad.0.debug"]
    assert gradient == [None, None, {"a": [None] * 3, "b": [None] * 4}]


def network(ms, debugger):
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = ms.nn.Dense(8, 4)
            self.second = ms.nn.Dense(4, 2)

        def construct(self, x):
            hidden = ms.ops.relu(self.first(x))
            out = self.second(hidden)
            if debugger is not None:
                debugger.save({"hidden": hidden, "n": 1}, "nested", save_backward=True)
                debugger.save(self.second.weight, "weight", save_backward=True)
                debugger.save(out, "out", True)
            return (out**2).sum()

    return Net()


def train(ms, debugger, steps):
    """Losses and final parameters of a few steps of SGD."""
    from msprobe.mindspore import seed_all

    seed_all(7)
    net = network(ms, debugger)
    optimizer = ms.nn.SGD(net.trainable_params(), 0.01)
    grad = ms.value_and_grad(net, None, net.trainable_params())
    x = ms.Tensor(np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32))
    losses, gradients = [], []
    for _ in range(steps):
        loss, gradient = grad(x)
        losses.append(float(loss))
        gradients.append([g.asnumpy().tobytes() for g in gradient])
        optimizer(gradient)
        if debugger is not None:
            debugger.step()
    return losses, gradients, [p.asnumpy().tobytes() for p in net.trainable_params()]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@MODES
def test_training_is_bit_identical_with_and_without(make_ms_debugger, ms, task, async_dump):
    without = train(ms, None, 20)
    with_saving = train(ms, make_ms_debugger(task=task, async_dump=async_dump), 20)
    assert with_saving == without


@MODES
def test_gradients_are_those_that_mindspore_computes(make_ms_debugger, ms, dump_path, async_dump):
    debugger = make_ms_debugger(task="tensor", async_dump=async_dump)
    x = ms.Tensor(np.arange(4, dtype=np.float32))

    def forward(x):
        y = 2 * x
        debugger.save([y, ms.Tensor([1.0]), 3 * y], "y", True)
        return (y**2).sum()

    gradient = ms.grad(forward)(x)
    debugger.close()
    step = read_step(dump_path)
    record = step.data["y_grad.0.debug"]
    assert list(step.data) == ["y.0.debug", "y_grad.0.debug"]
    assert record[1] is None
    assert record[2] is None
    saved = np.load(step.file(record[0]))
    assert saved.tolist() == [0.0, 4.0, 8.0, 12.0]
    assert (2 * saved).tolist() == gradient.asnumpy().tolist()


def test_a_parameter_saved_each_step_keeps_one_hook_and_then_none(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()
    weight = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

    def forward(x):
        debugger.save(weight, "w", True)
        return (x * weight).sum()

    grad = ms.value_and_grad(forward, None, [weight])
    for i in range(5):
        grad(ms.Tensor([float(i), 1.0]))
        assert len(weight.hooks()) == 1
        debugger.step()
        assert len(weight.hooks()) == 0
    debugger.close()
    for i in range(5):
        assert read_step(dump_path, i).data["w_grad.0.debug"]["Max"] == max(i, 1.0)


def test_each_backward_of_a_step_spends_one_save_of_a_parameter(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()
    weight = ms.Parameter(ms.Tensor([1.0]), name="w")

    def forward(x):
        debugger.save(weight, "w", True)
        return (x * weight).sum()

    grad = ms.value_and_grad(forward, None, [weight])
    for value in (3.0, 5.0):
        grad(ms.Tensor([value]))
    debugger.close()
    data = read_step(dump_path).data
    assert [data[f"w_grad.{k}.debug"]["Max"] for k in range(2)] == [3.0, 5.0]


def test_tickets_of_a_parameter_end_with_the_step(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()
    weight = ms.Parameter(ms.Tensor([1.0]), name="w")
    debugger.save(weight, "w", True)  # no backward in this step
    debugger.step()
    ms.value_and_grad(lambda x: (x * weight).sum(), None, [weight])(ms.Tensor([2.0]))
    debugger.close()
    assert read_step(dump_path).data["w_grad.0.debug"] is None


def test_an_input_saved_in_many_steps_leaves_nothing_behind(make_ms_debugger, ms):
    debugger = make_ms_debugger()
    data = ms.Tensor([1.0, 2.0])
    for _ in range(50):
        debugger.save(data, "data", True)
        debugger.save(data * 2, "activation without backward", True)
        debugger.step()
    gc.collect()
    assert len(data.hooks()) == 1
    debugger.save(1, "cleans up", False)
    assert len(debugger._gradients._tensors) <= 2


def test_a_gradient_after_step_goes_to_the_step_of_its_save(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()

    def forward(x):
        y = x * 3
        debugger.save(y, "y", True)
        debugger.step()
        return (y * y).sum()

    ms.grad(forward)(ms.Tensor([1.0]))
    debugger.save(1, "z", False)
    debugger.close()
    assert read_step(dump_path, 0).data["y_grad.0.debug"]["Max"] == 6.0
    assert list(read_step(dump_path, 1).data) == ["z.0.debug"]


def test_filters_steps_and_ranks(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger(step=[1], rank=[0])
    for _ in range(3):
        debugger.save(ms.Tensor([1.0]), "x")
        debugger.step()
    debugger.close()
    assert sorted(entry.name for entry in dump_path.glob("step*")) == ["step1"]
    assert (dump_path / "step1" / "rank0").is_dir()


def test_changes_after_save_do_not_show_in_async(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger(async_dump=True)
    parameter = ms.Parameter(ms.Tensor(np.ones(200_000, np.float32)), name="p")
    for _ in range(5):
        debugger.save(parameter, "p", False)
        ms.ops.assign(parameter, ms.Tensor(np.full(200_000, 9.0, np.float32)))
        ms.ops.assign(parameter, ms.Tensor(np.ones(200_000, np.float32)))
    debugger.close()
    data = read_step(dump_path).data
    assert [data[f"p.{k}.debug"]["Max"] for k in range(5)] == [1.0] * 5


def test_callbacks_number_the_steps_of_model_train(make_ms_debugger, ms, dump_path):
    from msprobe.mindspore import MsprobeInitStep, MsprobeStep

    debugger = make_ms_debugger()

    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.dense = ms.nn.Dense(4, 2)

        def construct(self, x):
            out = self.dense(x)
            debugger.save(out, "out", True)
            return out

    def batches():
        for i in range(3):
            yield np.full((2, 4), i, np.float32), np.zeros((2, 2), np.float32)

    data = ms.dataset.GeneratorDataset(list(batches()), ["x", "y"], shuffle=False)
    net = Net()
    model = ms.train.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1))
    model.train(
        1, data, callbacks=[MsprobeInitStep(), MsprobeStep(debugger)], dataset_sink_mode=False
    )
    debugger.close()
    assert sorted(entry.name for entry in dump_path.glob("step*")) == ["step0", "step1", "step2"]
    for step in range(3):
        data = read_step(dump_path, step).data
        assert list(data) == ["out.0.debug", "out_grad.0.debug"]
        assert data["out_grad.0.debug"]["shape"] == [2, 2]
    with pytest.raises(TypeError, match="debugger"):
        MsprobeStep("no debugger")


def test_seed_all_repeats_and_removes_dropout(pynative, ms):
    from msprobe.mindspore import seed_all

    def draws():
        seed_all(11)
        return np.random.rand(3).tolist() + ms.ops.standard_normal((3,)).asnumpy().tolist()

    assert draws() == draws()
    for arguments in ({"seed": -1}, {"seed": "1"}, {"mode": 1}, {"rm_dropout": None}):
        with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
            seed_all(**arguments)


def test_tensors_that_get_no_gradient_have_null_and_are_no_failure(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger()
    frozen = ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="frozen", requires_grad=False)
    weight = ms.Parameter(ms.Tensor(np.ones(2, np.float32)), name="weight")

    def forward(x):
        debugger.save(frozen, "frozen")
        debugger.save(ms.ops.stop_gradient(x * 2), "stopped")
        return (x * frozen * weight).sum()

    ms.grad(forward, None, [weight])(ms.Tensor(np.ones(2, np.float32)))
    summary = debugger._debugger.summary()
    debugger.close()
    step = read_step(dump_path)
    assert step["frozen_grad"] is None
    assert step["stopped_grad"] is None
    assert summary["failures"] == 0


def test_four_bit_integers_have_no_statistics(make_ms_debugger, ms, dump_path):
    debugger = make_ms_debugger(task="tensor")
    debugger.save(ms.Tensor(np.array([1, 2, 3, -4], np.int8), ms.qint4x2), "q", False)
    debugger.close()
    record = read_step(dump_path)["q"]
    assert [record[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    assert "data_name" not in record


def test_init_step_numbers_a_training_that_resumes_at_an_epoch(make_ms_debugger, ms, dump_path):
    from mindspore import nn

    from msprobe.mindspore import MsprobeInitStep, MsprobeStep

    debugger = make_ms_debugger()

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layer = nn.Dense(4, 2)

        def construct(self, x):
            y = self.layer(x)
            debugger.save(y, "y")
            return y

    rows = [(np.ones(4, np.float32), np.zeros(2, np.float32))] * 6
    data = ms.dataset.GeneratorDataset(rows, ["x", "label"], shuffle=False).batch(2)
    network = Net()
    optimizer = nn.SGD(network.trainable_params())
    model = ms.train.Model(network, nn.MSELoss(), optimizer)
    callbacks = [MsprobeInitStep(), MsprobeStep(debugger)]
    model.train(3, data, callbacks, dataset_sink_mode=False, initial_epoch=2)
    debugger.close()
    assert sorted(path.name for path in dump_path.glob("step*")) == ["step6", "step7", "step8"]
