"""seed_all: what it seeds, its switches, and what it refuses."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from support import run_script

from msprobe.pytorch import seed_all


def draws() -> list:
    return [random.random(), np.random.rand(), torch.rand(3).tolist()]


def test_seed_all_seeds_python_numpy_and_torch():
    seed_all(7)
    first = draws()
    assert draws() != first
    seed_all(seed=7)
    assert draws() == first
    seed_all()
    default = draws()
    seed_all(1234)
    assert draws() == default
    assert default != first


@pytest.mark.parametrize("arguments", [{"seed": -1}, {"seed": 2**32}, {"seed": 1.5}, {"mode": 1}])
def test_seed_all_refuses_wrong_arguments(arguments):
    name = next(iter(arguments))
    with pytest.raises((TypeError, ValueError), match=name):
        seed_all(**arguments)


def test_seed_all_mode_rm_dropout_and_is_enhanced(tmp_path):
    """In one process of its own, because all three last until its end."""
    run_script(
        """
        import random, torch, numpy
        from msprobe.pytorch import seed_all

        seed_all(mode=True)
        assert torch.are_deterministic_algorithms_enabled()
        seed_all(1)
        assert not torch.are_deterministic_algorithms_enabled()
        x = torch.ones(1000)
        layer = torch.nn.Dropout(0.5)
        assert (layer(x) == 0).any()
        seed_all(1, rm_dropout=True)
        for dropped in (layer(x), torch.nn.functional.dropout(x, 0.9), torch.nn.Dropout(0.9)(x)):
            assert torch.equal(dropped, x)
        seed_all(1, is_enhanced=True)
        assert torch.equal(torch.rand(3), torch.rand(3))
        assert numpy.array_equal(numpy.random.rand(3), numpy.random.rand(3))
        assert random.random() == random.random()
        """,
        tmp_path,
    )
