"""The part of ``seed_all`` that every framework shares."""

import os
import random

_MAX_SEED = 2**32 - 1


def check_arguments(seed: int, **flags: bool) -> None:
    """Checks the arguments of ``seed_all``.

    Raises:
        TypeError: ``seed`` is no int, or a flag no bool.
        ValueError: ``seed`` is not from 0 to 2**32 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed_all: seed must be int, found {type(seed).__name__}")
    if not 0 <= seed <= _MAX_SEED:
        raise ValueError(f"seed_all: seed must be from 0 to {_MAX_SEED}, found {seed}")
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"seed_all: {name} must be bool, found {type(value).__name__}")


def seed_python_and_numpy(seed: int) -> None:
    """Seeds Python, its child processes, and NumPy if it is there."""
    os.environ["PYTHONHASHSEED"] = str(seed)  # for children: this process has hashed already
    random.seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(seed)
