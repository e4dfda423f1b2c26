"""Single-point save for model training.

Import the package of your framework: ``from msprobe.pytorch import PrecisionDebugger, seed_all``.
This package itself imports no framework. ``msprobe.load(path)`` reads a dump.
"""

from importlib.metadata import version as _version

from msprobe._core import (
    ConfigError,
    Error,
    FormatError,
    IoError,
    StateError,
    UnsupportedDtype,
)
from msprobe.dump import Dump, load

__version__ = _version("msprobe-save")
__all__ = [
    "ConfigError",
    "Dump",
    "Error",
    "FormatError",
    "IoError",
    "StateError",
    "UnsupportedDtype",
    "load",
]
