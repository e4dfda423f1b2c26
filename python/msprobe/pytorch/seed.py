"""Makes two runs comparable: seeds, deterministic kernels, no dropout."""

import functools
import os
import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from msprobe.common import seed as common
from msprobe.common.adapter import logger

_DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)
# Calls that draw random numbers, by the module or class they live in.
_RANDOM_CALLS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        random,
        (
            "random",
            "uniform",
            "randint",
            "randrange",
            "choice",
            "choices",
            "sample",
            "shuffle",
            "gauss",
        )
        + ("normalvariate", "betavariate", "expovariate", "triangular", "getrandbits"),
    ),
    (
        torch,
        (
            "rand",
            "rand_like",
            "randn",
            "randn_like",
            "randint",
            "randint_like",
            "randperm",
            "normal",
        )
        + ("bernoulli", "multinomial", "poisson"),
    ),
    (
        torch.Tensor,
        (
            "bernoulli_",
            "cauchy_",
            "exponential_",
            "geometric_",
            "log_normal_",
            "normal_",
            "random_",
            "uniform_",
        )
        + ("bernoulli", "multinomial"),
    ),
)
_NUMPY_CALLS = (
    "rand",
    "randn",
    "randint",
    "random",
    "random_sample",
    "choice",
    "shuffle",
    "permutation",
) + (
    "normal",
    "uniform",
    "standard_normal",
)


def seed_all(
    seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False
) -> None:
    """Seeds Python, NumPy and PyTorch with its accelerators.

    Args:
        seed: From 0 to 2**32 - 1.
        mode: Asks PyTorch for deterministic kernels (slower; an operation that has none raises when
            it runs).
        rm_dropout: Turns dropout off, in layers and in functions, for the rest of the process.
        is_enhanced: Every call that draws random numbers draws the same ones, however many calls
            came before, so that runs with different numbers of draws stay comparable. For the
            rest of the process.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``seed`` is out of range.
    """
    common.check_arguments(seed, mode=mode, rm_dropout=rm_dropout, is_enhanced=is_enhanced)
    common.seed_python_and_numpy(seed)
    torch.manual_seed(seed)  # CPU and every accelerator
    _set_deterministic(mode)
    if rm_dropout:
        _remove_dropout()
    if is_enhanced:
        _fix_random_state()


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _set_deterministic(mode: bool) -> None:
    if mode:
        # Read by cuBLAS and HCCL when they start, so it has to be there before.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        os.environ.setdefault("HCCL_DETERMINISTIC", "true")
        os.environ.setdefault("LCCL_DETERMINISTIC", "1")
    torch.use_deterministic_algorithms(mode)
    torch.backends.cudnn.deterministic = mode
    if mode:
        torch.backends.cudnn.benchmark = False


def _remove_dropout() -> None:
    """Replaces p by 0 in the functions, which the layers call too."""
    for name in _DROPOUTS:
        function = getattr(F, name)
        if not hasattr(function, "__wrapped__"):
            setattr(F, name, _with_p_zero(function))
    attention = F.scaled_dot_product_attention
    if not hasattr(attention, "__wrapped__"):
        F.scaled_dot_product_attention = _attention_without_dropout(attention)
    logger.info("msprobe: seed_all: dropout is off, every dropout function runs with p=0")


def _with_p_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def without_dropout(input: Any, p: float = 0.5, *args: Any, **kwargs: Any) -> Any:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        return function(input, 0.0, *args, **kwargs)

    return without_dropout


def _attention_without_dropout(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def without_dropout(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,  # noqa: ARG001 - taken, so that 0.0 stands in its place
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return function(query, key, value, attn_mask, 0.0, *args, **kwargs)

    return without_dropout


def _random_state() -> dict[str, Any]:
    numpy = _numpy()
    return {
        "python": random.getstate(),
        "numpy": numpy.random.get_state() if numpy is not None else None,
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None,
    }


def _restore(state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    if state["numpy"] is not None:
        _numpy().random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None:
        torch.cuda.set_rng_state_all(state["cuda"])


def _fix_random_state() -> None:
    state = _random_state()
    targets = list(_RANDOM_CALLS)
    numpy = _numpy()
    if numpy is not None:
        targets.append((numpy.random, _NUMPY_CALLS))
    for owner, names in targets:
        for name in names:
            function = getattr(owner, name, None)
            if function is not None:
                setattr(
                    owner, name, _from_state(getattr(function, "_msprobe_drawn", function), state)
                )


def _from_state(function: Callable[..., Any], state: dict[str, Any]) -> Callable[..., Any]:
    """Runs ``function`` from ``state`` and leaves ``state`` behind."""

    @functools.wraps(function, updated=())
    def draw(*args: Any, **kwargs: Any) -> Any:
        _restore(state)
        try:
            return function(*args, **kwargs)
        finally:
            _restore(state)

    draw._msprobe_drawn = function  # type: ignore[attr-defined]
    return draw
