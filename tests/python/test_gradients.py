"""Gradients: which one is recorded, where it goes, and that nothing is left behind."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from oracles import check_statistics, crc32, logical_bytes, logical_values
from support import load_json, read_step


def check(record: dict | None, gradient: torch.Tensor) -> None:
    assert record is not None, "no gradient was recorded"
    assert record["type"] == "torch.Tensor"
    assert record["dtype"] == str(gradient.dtype)
    assert record["shape"] == list(gradient.shape)
    assert record["requires_grad"] is False
    check_statistics(record, logical_values(gradient))


def hooks(tensor: torch.Tensor) -> int:
    return len(tensor._backward_hooks or ())


def test_gradient_of_one_tensor(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.arange(4.0, requires_grad=True)
    y = x * 2
    debugger.save(y, "y", True)
    assert read_step(dump_path).data["y_grad.0.debug"] is None
    (y**2).sum().backward()
    step = read_step(dump_path)
    assert list(step.data) == ["y.0.debug", "y_grad.0.debug"]
    check(step["y_grad"], 2 * y.detach())


def test_gradient_is_saved_by_default(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 3
    debugger.save(y, "y")
    y.sum().backward()
    check(read_step(dump_path)["y_grad"], torch.ones(2))


def test_gradients_of_a_nesting_leave_null_where_none_comes(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.arange(4.0, requires_grad=True)
    y, plain, unused = x * 2, torch.ones(1), x * 5
    value = {"a": y, "b": [plain, unused, 3, None, "s"], "c": (y * 3, {"d": y[1:]})}
    debugger.save(value, "n", True)
    (y.sum() + value["c"][0].sum() * 2 + value["c"][1]["d"].sum() * 7).backward()
    gradient = read_step(dump_path)["n_grad"]
    assert gradient["b"] == [None] * 5
    check(gradient["a"], torch.tensor([7.0, 14.0, 14.0, 14.0]))
    check(gradient["c"][0], torch.full((4,), 2.0))
    check(gradient["c"][1]["d"], torch.full((3,), 7.0))


@pytest.mark.parametrize("value", [3, "s", None, [], {}, [1, {"a": None}], torch.Size([1])])
def test_gradient_key_exists_for_any_variable(make_debugger, dump_path, value):
    debugger = make_debugger()
    debugger.save(value, "x", True)
    data = read_step(dump_path).data
    assert list(data) == ["x.0.debug", "x_grad.0.debug"]

    def emptied(part):
        if isinstance(part, dict):
            return {key: emptied(child) for key, child in part.items()}
        return [emptied(child) for child in part] if type(part) is list else None

    assert data["x_grad.0.debug"] == emptied(value)


def test_no_gradient_key_without_save_backward(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    debugger.save(y, "y", False)
    debugger.save(3, "i", save_backward=False)
    y.sum().backward()
    assert list(read_step(dump_path).data) == ["y.0.debug", "i.0.debug"]
    assert hooks(y) == 0


def test_tensors_that_need_no_gradient_get_null_and_no_hook(make_debugger, dump_path):
    debugger = make_debugger()
    values = [torch.ones(2), torch.arange(3), torch.ones(2, requires_grad=True).detach()]
    with torch.no_grad():
        values.append(torch.ones(2, requires_grad=True) * 2)
    for value in values:
        debugger.save(value, "x", True)
        assert hooks(value) == 0
    data = read_step(dump_path).data
    assert [data[f"x_grad.{i}.debug"] for i in range(4)] == [None] * 4


def test_save_inside_no_grad_of_a_tensor_with_a_graph_records_its_gradient(
    make_debugger, dump_path
):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    with torch.no_grad():
        debugger.save(y, "y", True)
    (y * 3).sum().backward()
    check(read_step(dump_path)["y_grad"], torch.full((2,), 3.0))


def test_gradient_follows_directly_behind_its_forward_key(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    for value, name in [(y, "y"), (z, "z"), (y, "y"), (1, "i")]:
        debugger.save(value, name, True)
    (y.sum() + 2 * z.sum()).backward()
    data = read_step(dump_path).data
    keys = [
        f"{n}{g}.{c}.debug"
        for n, c in [("y", 0), ("z", 0), ("y", 1), ("i", 0)]
        for g in ("", "_grad")
    ]
    assert list(data) == keys
    check(data["y_grad.0.debug"], torch.ones(2))
    check(data["y_grad.1.debug"], torch.ones(2))
    check(data["z_grad.0.debug"], torch.full((2,), 2.0))


def test_tensor_used_twice_gets_its_whole_gradient(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(3, requires_grad=True) * 2
    debugger.save(y, "y", True)
    a, b = y * 3, y * 4
    (a.sum() + b.sum() + y.sum()).backward()
    check(read_step(dump_path)["y_grad"], torch.full((3,), 8.0))


def test_leaf_used_twice_gets_what_the_backward_contributes(make_debugger, dump_path):
    debugger = make_debugger()
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.full((3,), 100.0)
    debugger.save(p, "p", True)
    (p * 3 + p * 4).sum().backward()
    check(read_step(dump_path)["p_grad"], torch.full((3,), 7.0))
    assert torch.equal(p.grad, torch.full((3,), 107.0))


def test_same_tensor_under_two_names(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(3, requires_grad=True) * 2
    p = torch.nn.Parameter(torch.ones(3))
    for name in ("a", "b"):
        debugger.save(y, name, True)
        debugger.save(p, "p" + name, True)
    (y * 5 + p * 2).sum().backward()
    step = read_step(dump_path)
    for name in ("a", "b"):
        check(step[f"{name}_grad"], torch.full((3,), 5.0))
        check(step[f"p{name}_grad"], torch.full((3,), 2.0))


def test_leaf_over_many_steps_leaves_no_hook(make_debugger, dump_path):
    debugger = make_debugger()
    p = torch.nn.Parameter(torch.ones(3))
    most = 0
    for i in range(20):
        debugger.save(p, "p", True)
        most = max(most, hooks(p))
        (p * (i + 1)).sum().backward()
        debugger.step()
        assert hooks(p) == 0
        check(read_step(dump_path, i)["p_grad"], torch.full((3,), i + 1.0))
    assert most <= 1
    assert not getattr(p, "_post_accumulate_grad_hooks", None)


def test_leaf_without_backward_over_many_steps_leaves_no_hook(make_debugger, dump_path):
    debugger = make_debugger()
    p = torch.nn.Parameter(torch.ones(3))
    for _ in range(5):
        for _ in range(3):
            debugger.save(p, "p", True)
        debugger.step()
        assert hooks(p) == 0
    (p * 2).sum().backward()
    debugger.save(p, "p", True)
    (p * 9).sum().backward()
    for i in range(5):
        data = read_step(dump_path, i).data
        assert [data[f"p_grad.{k}.debug"] for k in range(3)] == [None] * 3
    check(read_step(dump_path, 5)["p_grad"], torch.full((3,), 9.0))


def test_leaf_several_backwards_of_one_step_spend_one_ticket_each(make_debugger, dump_path):
    """Gradient accumulation: save, backward, save, backward before one step()."""
    debugger = make_debugger()
    p = torch.nn.Parameter(torch.ones(3))
    for i in range(3):
        debugger.save(p, "p", True)
        (p * (i + 1)).sum().backward()
    data = read_step(dump_path).data
    for i in range(3):
        check(data[f"p_grad.{i}.debug"], torch.full((3,), i + 1.0))
    debugger.step()
    assert hooks(p) == 0


def test_leaf_tickets_are_spent_oldest_first(make_debugger, dump_path):
    debugger = make_debugger()
    p = torch.nn.Parameter(torch.ones(2))
    for _ in range(3):
        debugger.save(p, "p", True)
    (p * 1).sum().backward()
    (p * 2).sum().backward()
    data = read_step(dump_path).data
    check(data["p_grad.0.debug"], torch.ones(2))
    check(data["p_grad.1.debug"], torch.full((2,), 2.0))
    assert data["p_grad.2.debug"] is None


def test_graph_saved_in_each_of_several_backwards_of_one_step(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.ones(2, requires_grad=True)
    for i in range(3):
        y = x * 2
        debugger.save(y, "y", True)
        (y * (i + 1)).sum().backward()
    data = read_step(dump_path).data
    for i in range(3):
        check(data[f"y_grad.{i}.debug"], torch.full((2,), i + 1.0))


def test_gradient_after_step_goes_to_the_step_of_its_save(make_debugger, dump_path):
    debugger = make_debugger(task="tensor", summary_mode="md5")
    x = torch.ones(2, requires_grad=True)
    late = []
    for i in range(3):
        y = x * (i + 1)
        debugger.save(y, "y", True)
        late.append(y)
        debugger.step()
    debugger.save(1, "other", False)
    for i in (2, 0, 1):
        (late[i] * (10 + i)).sum().backward()
    for i in range(3):
        step = read_step(dump_path, i)
        assert list(step.data) == ["y.0.debug", "y_grad.0.debug"]
        check(step["y_grad"], torch.full((2,), 10.0 + i))
        assert torch.equal(torch.load(step.file(step["y_grad"])), torch.full((2,), 10.0 + i))
    assert list(read_step(dump_path, 3).data) == ["other.0.debug"]


def test_second_backward_over_the_same_graph_keeps_the_first(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    debugger.save(y, "y", True)
    (y * 3).sum().backward(retain_graph=True)
    (y * 4).sum().backward()
    check(read_step(dump_path)["y_grad"], torch.full((2,), 3.0))


def test_in_place_change_after_save_changes_neither_value_nor_training(make_debugger, dump_path):
    def forward(save):
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        save(y)
        y.mul_(5)
        y.add_(1)
        (y**2).sum().backward()
        return x.grad

    debugger = make_debugger()
    found = forward(lambda y: debugger.save(y, "y", True))
    assert torch.equal(found, forward(lambda y: None))
    step = read_step(dump_path)
    check_statistics(step["y"], [2.0] * 3)
    # Of the value that was saved: d(5y + 1)^2/dy = 10 (5y + 1).
    check(step["y_grad"], torch.full((3,), 110.0))


def test_gradients_come_with_checksum_and_file(make_debugger, dump_path):
    debugger = make_debugger(task="tensor", summary_mode="md5")
    x = torch.arange(6.0, requires_grad=True)
    value = {"a": (x * 2).view(2, 3), "b": [x * 3]}
    debugger.save(value, "n", True)
    weight = torch.arange(6.0).view(3, 2)
    ((value["a"].t() * weight).sum() + value["b"][0].sum()).backward()
    step = read_step(dump_path)
    record = step["n_grad"]
    for leaf, gradient, name in [
        (record["a"], weight.t(), "n_grad.0.debug.a.pt"),
        (record["b"][0], torch.ones(6), "n_grad.0.debug.b.0.pt"),
    ]:
        check(leaf, gradient)
        assert leaf["md5"] == crc32(logical_bytes(gradient))
        assert leaf["data_name"] == name
        assert torch.equal(torch.load(step.file(leaf), weights_only=True), gradient)
        assert list(leaf)[-3:] == ["requires_grad", "md5", "data_name"]


def test_gradients_with_nan_and_infinity_are_recorded(make_debugger, dump_path):
    debugger = make_debugger(summary_mode="md5")
    y = torch.ones(4, requires_grad=True) * 2
    debugger.save(y, "y", True)
    y.backward(torch.tensor([float("nan"), float("inf"), -float("inf"), -float("inf")]))
    record = read_step(dump_path)["y_grad"]
    assert [record[f"{kind}_count"] for kind in ("nan", "pos_inf", "neg_inf")] == [1, 1, 2]


@pytest.mark.parametrize("async_dump", [False, True])
def test_gradients_async_are_complete_after_close(make_debugger, dump_path, async_dump):
    debugger = make_debugger(async_dump=async_dump, task="tensor")
    x = torch.ones(100, requires_grad=True)
    for i in range(50):
        y = x * 2
        debugger.save([y, x], "y", True)
        gradient = torch.full((100,), float(i))
        y.backward(gradient)
        gradient.zero_()
        debugger.step()
    debugger.close()
    for i in range(50):
        step = read_step(dump_path, i)
        check(step["y_grad"][0], torch.full((100,), float(i)))
        check(step["y_grad"][1], torch.full((100,), 2.0 * i))
        loaded = torch.load(step.file(step["y_grad"][0]), weights_only=True)
        assert torch.equal(loaded, torch.full((100,), float(i)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.complex64])
def test_gradients_of_other_dtypes(make_debugger, dump_path, dtype):
    debugger = make_debugger()
    y = torch.ones(3, dtype=dtype, requires_grad=True) * 2
    debugger.save(y, "y", True)
    y.backward(torch.full((3,), 1.5, dtype=dtype))
    check(read_step(dump_path)["y_grad"], torch.full((3,), 1.5, dtype=dtype))


def test_broadcast_gradient_is_recorded_whole(make_debugger, dump_path):
    debugger = make_debugger(task="tensor")
    y = torch.ones(30, 40, requires_grad=True) * 2
    debugger.save(y, "y", True)
    y.sum().backward()  # the gradient is one element, expanded
    step = read_step(dump_path)
    check(step["y_grad"], torch.ones(30, 40))
    assert torch.load(step.file(step["y_grad"]), weights_only=True).shape == (30, 40)


def test_gradient_through_autograd_grad(make_debugger, dump_path):
    debugger = make_debugger()
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    debugger.save(y, "y", True)
    torch.autograd.grad((y * 3).sum(), [x])
    check(read_step(dump_path)["y_grad"], torch.full((2,), 3.0))


def test_gradient_of_a_view_and_of_its_base(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, 3, requires_grad=True) * 2
    debugger.save({"base": y, "view": y.t()[1:]}, "n", True)
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    gradient = read_step(dump_path)["n_grad"]
    check(gradient["base"], torch.arange(6.0).view(2, 3))
    assert gradient["view"] is None  # the loss does not use the view


def test_gradients_of_checkpointed_code_are_recorded(make_debugger, dump_path):
    from torch.utils.checkpoint import checkpoint

    debugger = make_debugger()

    def block(x):
        y = x * 2
        debugger.save(y, "y", True)
        return y * 3

    x = torch.ones(2, requires_grad=True)
    checkpoint(block, x, use_reentrant=False).sum().backward()
    data = read_step(dump_path).data
    found = [v for k, v in data.items() if k.startswith("y_grad") and v is not None]
    assert found
    for record in found:
        check(record, torch.full((2,), 3.0))


def test_user_variable_with_the_name_of_a_gradient_collides_to_number_2(
    make_debugger, dump_path, caplog
):
    debugger = make_debugger(task="tensor")
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    debugger.save(y, "x", True)
    for _ in range(2):
        debugger.save(torch.full((2,), 7.0), "x_grad", False)
    (y * 3).sum().backward()
    step = read_step(dump_path)
    assert list(step.data) == [
        "x.0.debug",
        "x_grad.0.debug",
        "x_grad#2.0.debug",
        "x_grad#2.1.debug",
    ]
    check(step["x_grad"], torch.full((2,), 3.0))
    assert step["x_grad#2"]["data_name"] == "x_grad#2.0.debug.pt"
    assert torch.load(step.file(step["x_grad#2"]))[0] == 7.0
    assert torch.load(step.file(step["x_grad"]))[0] == 3.0
    assert sum("#2" in r.getMessage() for r in caplog.records) == 1


def test_gradient_that_comes_second_gets_number_2(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    debugger.save(1, "x_grad", False)
    debugger.save(y, "x", True)
    (y * 3).sum().backward()
    data = read_step(dump_path).data
    assert list(data) == ["x_grad.0.debug", "x.0.debug", "x_grad#2.0.debug"]
    check(data["x_grad#2.0.debug"], torch.full((2,), 3.0))


def test_graph_is_freed_when_the_user_lets_go(make_debugger):
    debugger = make_debugger()
    y = torch.ones(10, requires_grad=True) * 2
    debugger.save({"a": y}, "y", True)
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_hooks_of_the_user_still_run_and_see_the_same_gradient(make_debugger, dump_path):
    debugger = make_debugger()
    y = torch.ones(2, requires_grad=True) * 2
    seen = []
    y.register_hook(seen.append)
    debugger.save(y, "y", True)
    (y * 3).sum().backward()
    assert [g.tolist() for g in seen] == [[3.0, 3.0]]
    check(read_step(dump_path)["y_grad"], torch.full((2,), 3.0))


def test_debug_json_is_valid_after_every_gradient(make_debugger, dump_path):
    debugger = make_debugger(summary_mode="md5")
    x = torch.ones(2, requires_grad=True)
    ys = [x * i for i in range(100)]
    for y in ys:
        debugger.save([y, y * 2], "y", True)
    for i, y in enumerate(ys):
        (y * i).sum().backward()
        data = load_json(dump_path / "step0/rank0/debug.json")["data"]
        assert data[f"y_grad.{i}.debug"][0]["Max"] == i
        assert data[f"y_grad.{i}.debug"][1] is None
    assert len(data) == 200
