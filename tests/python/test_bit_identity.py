"""Saving changes nothing: not the losses, the parameters, the RNG, nor the tensors themselves."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from support import config, read_step

STEPS = 100


def train(save, step) -> tuple[list[float], list[torch.Tensor]]:
    torch.manual_seed(7)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        data, target = torch.randn(8, 16), torch.randint(0, 4, (8,))
        hidden = model[2](model[1](model[0](data)))
        save(hidden, "hidden")
        save({"input": data, "target": [target, None]}, "nested")
        save(model[3].weight, "weight")
        output = model[3](hidden)
        loss = torch.nn.functional.cross_entropy(output, target)
        save(loss, "loss")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        step()
    return losses, [p.detach().clone() for p in model.parameters()]


@pytest.fixture(scope="module")
def baseline():
    return train(lambda *_: None, lambda: None)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"summary_mode": "md5"},
        {"task": "tensor"},
        {"async_dump": True},
        {"task": "tensor", "async_dump": True, "summary_mode": "md5"},
    ],
    ids=lambda keys: "-".join(map(str, keys.values())) or "default",
)
def test_training_with_saving_is_bit_identical(make_debugger, dump_path, baseline, keys):
    debugger = make_debugger(**keys)
    losses, parameters = train(lambda v, n: debugger.save(v, n, True), debugger.step)
    debugger.close()
    assert losses == baseline[0]
    for found, wanted in zip(parameters, baseline[1], strict=True):
        assert torch.equal(found, wanted)
    # That something was saved, with gradients, or this test would prove nothing.
    for i in (0, STEPS - 1):
        step = read_step(dump_path, i)
        assert step["loss"]["Max"] == losses[i]
        assert step["hidden_grad"]["shape"] == [8, 32]
        assert step["weight_grad"]["shape"] == [4, 32]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("async_dump", [False, True])
def test_save_leaves_every_state_as_it_was(make_debugger, async_dump):
    debugger = make_debugger(task="tensor", summary_mode="md5", async_dump=async_dump)
    x = torch.arange(12.0, requires_grad=True)
    tensors = {
        "leaf": x,
        "graph": x * 2,
        "view": (x * 2).view(3, 4).t(),
        "conj": torch.ones(3, dtype=torch.complex64).conj(),
        "neg": torch._neg_view(torch.ones(3)),
        "float8": torch.arange(6.0).to(torch.float8_e4m3fn),
        "expanded": torch.ones(1).expand(5),
        "sparse": torch.eye(3).to_sparse(),
        "uncoalesced": torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,)),
    }

    def state(t):
        plain = t.layout == torch.strided
        return (
            t.requires_grad,
            t.is_leaf,
            t._version,
            t.grad_fn,
            t.layout,
            t.dtype,
            t.is_conj(),
            t.is_neg(),
            t.stride() if plain else t.is_coalesced(),
            t.data_ptr() if plain else None,
            t.untyped_storage().nbytes() if plain else None,
            bytes(t.untyped_storage()) if plain else t.to_dense().tolist(),
        )

    before = {name: state(tensor) for name, tensor in tensors.items()}
    array = np.arange(6.0)
    array.flags.writeable = False
    random_states = [torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()]
    debugger.save({**tensors, "array": array}, "all", False)
    for name, tensor in tensors.items():
        debugger.save(tensor, name, False)
    debugger.step()
    debugger.close()
    assert {name: state(tensor) for name, tensor in tensors.items()} == before
    assert torch.equal(torch.get_rng_state(), random_states[0])
    assert random.getstate() == random_states[1]
    assert (np.random.get_state()[1] == random_states[2]).all()
    assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_construction_leaves_the_random_state(tmp_path):
    from msprobe.pytorch import PrecisionDebugger

    before = [torch.get_rng_state(), random.getstate()]
    PrecisionDebugger(dump_path=config(tmp_path / "d")["dump_path"])
    PrecisionDebugger.save(torch.ones(2), "x", False)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
