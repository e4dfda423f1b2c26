"""Makes two MindSpore runs comparable: seeds, deterministic kernels, no dropout."""

import os
from typing import Any

import mindspore as ms
from mindspore import nn, ops

from msprobe.common import seed as common
from msprobe.common.adapter import logger


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seeds Python, NumPy and MindSpore.

    Args:
        seed: From 0 to 2**32 - 1.
        mode: Asks MindSpore for deterministic kernels.
        rm_dropout: Turns dropout off, in cells made from now on and in functions, for the rest of
            the process.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: ``seed`` is out of range.
    """
    common.check_arguments(seed, mode=mode, rm_dropout=rm_dropout)
    common.seed_python_and_numpy(seed)
    ms.set_seed(seed)
    ms.set_context(deterministic="ON" if mode else "OFF")
    os.environ["HCCL_DETERMINISTIC"] = str(mode).lower()
    if rm_dropout:
        _remove_dropout()


class _NoDropout(nn.Cell):  # type: ignore[misc]
    """Takes the place of a dropout cell, whatever its arguments."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """Passes ``x`` on."""
        return x


def _no_dropout(input: Any, *_args: Any, **_kwargs: Any) -> Any:
    return input


def _remove_dropout() -> None:
    for owner in (nn, ms.mint.nn):
        for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"):
            if hasattr(owner, name):
                setattr(owner, name, _NoDropout)
    for owner in (ops, ops.function.nn_func, ms.mint.nn.functional):
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
            if hasattr(owner, name):
                setattr(owner, name, _no_dropout)
    logger.info("msprobe: seed_all: dropout is off")
