"""`save`, `save_grad` and `step` in GRAPH_MODE, in functions under ``ms.jit``, and in PyNative."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from support import tree

ms = pytest.importorskip("mindspore", reason="mindspore is not installed")

from mindspore import nn, ops  # noqa: E402

from msprobe.mindspore import save, save_grad, step  # noqa: E402

MODES = pytest.mark.parametrize("mode", ["graph", "jit", "pynative"])
DTYPES = [
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]


@pytest.fixture
def save_dir(tmp_path, monkeypatch, ms):
    monkeypatch.delenv("RANK_ID", raising=False)
    monkeypatch.chdir(tmp_path)  # MindSpore leaves a file here when a graph cannot be compiled
    yield str(tmp_path / "graph")
    step()  # the next test counts from 0
    ms.set_context(mode=ms.PYNATIVE_MODE)


def compiled(cell, mode):
    """The cell as it runs in a mode."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    if mode != "jit":
        return cell

    def run(*inputs):
        return cell(*inputs)

    return ms.jit(run)


def files(save_dir, step=0, rank="rank0"):
    """The arrays that one step holds, by file name; `step` counts from the first one that is there.

    Earlier tests of this process have ended steps too, so that the first is seldom number 0.
    """
    from pathlib import Path

    steps = sorted(Path(save_dir).glob("step*"), key=lambda path: int(path.name[4:]))
    found = steps[step] / rank
    return {path.name: np.load(path, allow_pickle=False) for path in found.glob("*.npy")}


def host(tensor):
    array = tensor.asnumpy()
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def assert_same_bits(array, expected):
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    assert array.tobytes() == expected.tobytes()


def tensor(*shape, seed=0, dtype=None):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return ms.Tensor(values, dtype or ms.float32)


class SaveInput(nn.Cell):
    def __init__(self, save_dir, name="x"):
        super().__init__()
        self.save_dir = save_dir
        self.name = name

    def construct(self, x):
        save(self.save_dir, self.name, x)
        return x * 2


@MODES
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_holds_the_tensor_bit_for_bit(save_dir, mode, dtype):
    values = np.array([[-2.5, 0, 1], [3, 2, 0.5]])
    if dtype.startswith(("u", "b")):
        values = np.abs(values)
    if dtype == "bfloat16":
        x = ms.Tensor(values.astype(np.float32), ms.bfloat16)
    else:
        x = ms.Tensor(values.astype(dtype))

    class Save(nn.Cell):
        def __init__(self):
            super().__init__()
            self.save_dir = save_dir

        def construct(self, x):
            save(self.save_dir, "x", x)
            return x

    compiled(Save(), mode)(x)
    step()
    stored = "float32" if dtype == "bfloat16" else dtype
    assert list(files(save_dir)) == [f"x_{stored}_0.npy"]
    assert_same_bits(files(save_dir)[f"x_{stored}_0.npy"], host(x))


class SaveNested(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        inner = [x + 1, None, (x + 2, x.sum())]
        save(self.save_dir, "n", {"a": x, "b": inner, "c": {"d": x > 0}})
        return x


@MODES
def test_nested_data_gives_a_file_for_each_tensor(save_dir, mode):
    x = tensor(2, 3)
    compiled(SaveNested(save_dir), mode)(x)
    step()
    found = files(save_dir)
    assert sorted(found) == [
        "n.a_float32_0.npy",
        "n.b.0_float32_0.npy",
        "n.b.2.0_float32_0.npy",
        "n.b.2.1_float32_0.npy",
        "n.c.d_bool_0.npy",
    ]
    assert_same_bits(found["n.a_float32_0.npy"], host(x))
    assert_same_bits(found["n.b.2.0_float32_0.npy"], host(x) + np.float32(2))
    assert found["n.b.2.1_float32_0.npy"].shape == ()
    assert_same_bits(found["n.c.d_bool_0.npy"], host(x) > 0)


class Classifier(nn.Cell):
    """A small network; with a folder it saves activations and gradients."""

    def __init__(self, save_dir=None):
        super().__init__()
        rng = np.random.default_rng(1)

        def weight(*shape):
            return ms.Tensor(rng.standard_normal(shape), ms.float32)

        self.hidden = nn.Dense(8, 6, weight_init=weight(6, 8), bias_init=weight(6))
        self.output = nn.Dense(6, 3, weight_init=weight(3, 6), bias_init=weight(3))
        self.save_dir = save_dir

    def construct(self, x):
        h = ops.tanh(self.hidden(x))
        if self.save_dir is not None:
            save(self.save_dir, "h", h)
            h = save_grad(self.save_dir, "h", h)
        return self.output(h)


class Loss(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, labels):
        return self.loss(self.network(x), labels)


def train(mode, save_dir=None, steps=3):
    """Trains with an optimizer, in `mode`; gives the losses, then the parameters."""
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    network = Classifier(save_dir)
    cell = Loss(network)
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    value_and_grad = ms.value_and_grad(cell, None, optimizer.parameters)

    def train_step(x, labels):
        loss, gradients = value_and_grad(x, labels)
        optimizer(gradients)
        return loss

    run = train_step if mode == "pynative" else ms.jit(train_step)
    labels = ms.Tensor([0, 1, 2, 1], ms.int32)
    losses = []
    for index in range(steps):
        losses.append(host(run(tensor(4, 8, seed=index), labels)))
        if save_dir is not None:
            step()
    return losses + [host(parameter) for parameter in network.trainable_params()]


@MODES
def test_training_with_an_optimizer_is_bit_identical_with_and_without(save_dir, mode):
    got, expected = train(mode, save_dir), train(mode)
    for array, expected_array in zip(got, expected, strict=True):
        assert_same_bits(array, expected_array)
    for index in range(3):
        assert sorted(files(save_dir, index)) == ["h_float32_0.npy", "h_grad_float32_0.npy"]


@MODES
def test_gradients_are_those_that_mindspore_computes(save_dir, mode):
    x = tensor(4, 8)
    labels = ms.Tensor([0, 1, 2, 1], ms.int32)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    network = Classifier(save_dir)
    cell = Loss(network)

    def gradient(x):
        return ms.grad(cell)(x, labels)

    run = ms.jit(gradient) if mode == "jit" else gradient
    whole = host(run(x))
    step()
    found = files(save_dir)
    h = host(ops.tanh(network.hidden(x)))
    np.testing.assert_allclose(found["h_float32_0.npy"], h, rtol=1e-6)

    # d loss / d h, by a graph of its own from h on
    ms.set_context(mode=ms.PYNATIVE_MODE)
    loss = nn.CrossEntropyLoss()

    def tail(h):
        return loss(network.output(h), labels)

    expected = host(ms.grad(tail)(ms.Tensor(found["h_float32_0.npy"])))
    np.testing.assert_allclose(found["h_grad_float32_0.npy"], expected, rtol=1e-5, atol=1e-8)
    # ... which goes on unchanged through save_grad:
    network.save_dir = None
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    without = Loss(network)

    def gradient_without(x):
        return ms.grad(without)(x, labels)

    run = ms.jit(gradient_without) if mode == "jit" else gradient_without
    assert_same_bits(whole, host(run(x)))


class IfOnTensor(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        if x.sum() > 0:
            save(self.save_dir, "positive", x)
            y = x * 2
        else:
            save(self.save_dir, "negative", x)
            y = x * 3
        return y


class Loops(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x, limit):
        for index in range(3):
            x = x + index
            save(self.save_dir, "for", x)
        while x.sum() < limit:
            x = x * 2
            save(self.save_dir, "while", x)
        return x


@MODES
def test_a_branch_saves_only_where_it_is_taken(save_dir, mode):
    run = compiled(IfOnTensor(save_dir), mode)
    for sign in (1, -1, 1):
        run(ms.Tensor([sign, sign], ms.float32))
    step()
    found = files(save_dir)
    assert sorted(found) == [
        "negative_float32_0.npy",
        "positive_float32_0.npy",
        "positive_float32_1.npy",
    ]
    assert found["negative_float32_0.npy"].tolist() == [-1, -1]


@MODES
def test_loops_save_in_each_round(save_dir, mode):
    compiled(Loops(save_dir), mode)(ms.Tensor([1, 1], ms.float32), ms.Tensor(50, ms.float32))
    step()
    found = {name: array.tolist() for name, array in files(save_dir).items()}
    assert found == {
        "for_float32_0.npy": [1, 1],
        "for_float32_1.npy": [2, 2],
        "for_float32_2.npy": [4, 4],
        "while_float32_0.npy": [8, 8],
        "while_float32_1.npy": [16, 16],
        "while_float32_2.npy": [32, 32],
    }


class CallsOften(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.first = SaveInput(save_dir)
        self.second = SaveInput(save_dir)  # another cell that uses the same name

    def construct(self, x):
        x = self.first(x)
        x = self.first(x)
        return self.second(x)


@MODES
def test_cells_called_often_or_with_one_name_count_on(save_dir, mode):
    run = compiled(CallsOften(save_dir), mode)
    run(ms.Tensor([1], ms.float32))
    run(ms.Tensor([10], ms.float32))
    step()
    found = files(save_dir)
    assert [found[f"x_float32_{k}.npy"].tolist() for k in range(6)] == [
        [1], [2], [4], [10], [20], [40]
    ]  # fmt: skip


@MODES
def test_a_graph_compiled_again_for_another_shape_counts_on(save_dir, mode):
    run = compiled(SaveInput(save_dir), mode)
    run(tensor(2, 3))
    run(tensor(5))
    run(tensor(2, 3))
    step()
    found = files(save_dir)
    assert [found[f"x_float32_{k}.npy"].shape for k in range(3)] == [(2, 3), (5,), (2, 3)]


class DataDependent(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        places = ops.nonzero(x)
        save(self.save_dir, "places", places)
        save(self.save_dir, "chosen", ops.masked_select(x, x > 1))
        return places


@MODES
def test_shapes_that_depend_on_the_data(save_dir, mode):
    run = compiled(DataDependent(save_dir), mode)
    run(ms.Tensor([0.0, 2, 3], ms.float32))
    run(ms.Tensor([1.0, 0, 0], ms.float32))
    step()
    found = files(save_dir)
    assert found["places_int64_0.npy"].tolist() == [[1], [2]]
    assert found["chosen_float32_0.npy"].tolist() == [2, 3]
    assert found["places_int64_1.npy"].tolist() == [[0]]
    assert found["chosen_float32_1.npy"].shape == (0,)


@pytest.mark.parametrize("mode", ["graph", "jit"])
def test_dynamic_input_shapes(save_dir, mode):
    cell = SaveInput(save_dir)
    cell.set_inputs(ms.Tensor(shape=[None, 3], dtype=ms.float32))
    run = compiled(cell, mode)
    for rows in (2, 7):
        run(tensor(rows, 3))
    step()
    assert [files(save_dir)[f"x_float32_{k}.npy"].shape for k in range(2)] == [(2, 3), (7, 3)]


class Slow(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        for _ in range(10):
            x = ops.matmul(x, x) * 0.001
        save(self.save_dir, "x", x)
        return x


@MODES
def test_step_puts_what_was_called_before_it_into_the_old_step(save_dir, mode):
    run = compiled(Slow(save_dir), mode)
    x = tensor(600, 600)
    run(x)
    step()
    for _ in range(3):
        for _ in range(2):
            run(x)
        step()
    assert [len(files(save_dir, index)) for index in range(4)] == [1, 2, 2, 2]


@MODES
def test_names_that_a_file_cannot_have(save_dir, mode):
    name = "../层 1/%"
    compiled(SaveInput(save_dir, name), mode)(tensor(2))
    compiled(SaveInput(save_dir, "n" * 300), mode)(tensor(2))
    step()
    found = sorted(files(save_dir))
    assert len(found) == 2
    assert found[0] == "..%2F层 1%2F%25_float32_0.npy"
    assert found[1].startswith("nnn")
    assert len(found[1]) == 255


@MODES
def test_two_spellings_of_a_folder_are_one(save_dir, mode, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path.parent)
    compiled(SaveInput(f"./{tmp_path.name}/graph"), mode)(tensor(2))
    compiled(SaveInput(save_dir), mode)(tensor(2))
    step()
    assert sorted(files(save_dir)) == ["x_float32_0.npy", "x_float32_1.npy"]


class WrongArgument(nn.Cell):
    def __init__(self, which, save_dir):
        super().__init__()
        self.which = which
        self.save_dir = save_dir

    def construct(self, x):
        if self.which == "save_dir":
            save(3, "x", x)
        elif self.which == "name":
            save(self.save_dir, 3, x)
        elif self.which == "data":
            save(self.save_dir, "x", [x, "text"])
        elif self.which == "grad data":
            save_grad(self.save_dir, "x", [x])
        elif self.which == "grad name":
            save_grad(self.save_dir, None, x)
        return x


@MODES
@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("save_dir", "save: save_dir must be str, found int"),
        ("name", "save: name must be str, found int"),
        ("data", "save: data must be a Tensor, or a list, tuple or dict of such, found str"),
        ("grad data", "save_grad: data must be a Tensor, found list"),
        ("grad name", "save_grad: name must be str, found NoneType"),
    ],
)
def test_wrong_arguments_raise_type_error(save_dir, mode, which, message):
    with pytest.raises(TypeError, match=message):
        compiled(WrongArgument(which, save_dir), mode)(tensor(2))


@MODES
def test_outputs_are_the_same_with_and_without(save_dir, mode):
    x = tensor(4, 8)
    with_tool = compiled(Classifier(save_dir), mode)(x)
    without = compiled(Classifier(), mode)(x)
    assert_same_bits(host(with_tool), host(without))
    assert tree(save_dir)


class GradientInIf(nn.Cell):
    def __init__(self, save_dir=None):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        if x.sum() > 0:
            y = x * 2
            if self.save_dir is not None:
                y = save_grad(self.save_dir, "y", y)
        else:
            y = x * 3
        return (y * y).sum()


class GradientInWhile(nn.Cell):
    def __init__(self, save_dir=None):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        y = x
        count = ms.Tensor(0, ms.int32)
        while count < 2:
            y = y * 2
            if self.save_dir is not None:
                y = save_grad(self.save_dir, "y", y)
            count = count + 1
        return (y * y).sum()


class Recomputed(nn.Cell):
    def __init__(self, save_dir=None):
        super().__init__()
        self.block = GradientInBlock(save_dir)
        self.block.recompute()

    def construct(self, x):
        return (self.block(x) * 1).sum()


class GradientInBlock(nn.Cell):
    def __init__(self, save_dir):
        super().__init__()
        self.save_dir = save_dir

    def construct(self, x):
        y = x * x
        if self.save_dir is not None:
            y = save_grad(self.save_dir, "y", y)
        return y * y


@MODES
@pytest.mark.parametrize(
    ("cell", "gradients"),
    [
        (GradientInIf, [[4, 8]]),  # d(y * y) / dy = 2 y = 4 x
        (GradientInWhile, [[8, 16], [16, 32]]),  # 2 y, then twice that
        (Recomputed, [[2, 8]]),  # 2 y = 2 x * x
    ],
)
def test_gradients_in_branches_loops_and_recomputed_cells(save_dir, mode, cell, gradients):
    x = ms.Tensor([1, 2], ms.float32)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)

    def gradient_of(network):
        def run(x):
            return ms.grad(network)(x)

        return host((ms.jit(run) if mode == "jit" else run)(x))

    assert_same_bits(gradient_of(cell(save_dir)), gradient_of(cell()))
    step()
    found = files(save_dir)
    assert [found[f"y_grad_float32_{k}.npy"].tolist() for k in range(len(found))] == gradients


class SavesConstant(nn.Cell):
    def __init__(self, save_dir, data):
        super().__init__()
        self.save_dir = save_dir
        self.data = data

    def construct(self, x):
        save(self.save_dir, "data", self.data)
        return x


@MODES
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_stored_as_float32(save_dir, mode, dtype):
    data = ms.Tensor(np.array([1.5, -2], np.float32), getattr(ms, dtype))
    compiled(SavesConstant(save_dir, data), mode)(tensor(2))
    step()
    assert files(save_dir)["data_float32_0.npy"].tolist() == [1.5, -2]


@MODES
def test_what_a_graph_cannot_take_apart_is_refused_with_the_truth(save_dir, mode):
    pair = collections.namedtuple("Pair", "a b")

    class Save(nn.Cell):
        def __init__(self):
            super().__init__()
            self.save_dir = save_dir

        def construct(self, x):
            save(self.save_dir, "pair", pair(x, x + 1))
            return x

    run = compiled(Save(), mode)
    if mode == "pynative":
        run(tensor(2))
        step()
        assert len(files(save_dir)) == 2
    else:
        with pytest.raises(TypeError, match="what a graph cannot take apart"):
            run(tensor(2))


@pytest.mark.parametrize("mode", ["graph", "jit"])
@pytest.mark.parametrize("call", ["save", "step"])
def test_the_debugger_of_dynamic_graphs_says_where_it_does_not_work(mode, call):
    from msprobe.mindspore import PrecisionDebugger

    class Uses(nn.Cell):
        def construct(self, x):
            if call == "save":
                PrecisionDebugger.save(x, "x")
            else:
                PrecisionDebugger.step()
            return x

    with pytest.raises(RuntimeError, match=f"PrecisionDebugger.{call} works in PyNative mode only"):
        compiled(Uses(), mode)(tensor(2))


def test_data_inside_itself_ends(save_dir):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    loop = [tensor(1)]
    loop.append(loop)
    with pytest.raises(TypeError, match="nested less than 400 deep"):
        save(save_dir, "loop", loop)


def test_a_name_of_any_code_points(save_dir):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    save(save_dir, "a\ud800", tensor(2))
    step()
    assert len(files(save_dir)) == 1
