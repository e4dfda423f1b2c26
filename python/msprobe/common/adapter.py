"""What a framework adapter tells the core: the whole surface of a new framework."""

import logging
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msprobe._core import Leaf

_RANK_DIGITS = 9
logger = logging.getLogger("msprobe")


class Adapter(Protocol):
    """Describes one framework. Attributes are read once, when the debugger is constructed."""

    framework: str
    """``framework`` in debug.json, for example ``pytorch``."""
    tensor_type_name: str
    """``type`` of a plain tensor, for example ``torch.Tensor``."""
    dtypes: Mapping[Any, str]
    """The core's name of each dtype object that it decodes, for example ``float32``."""
    tensor_types: Sequence[type]
    """Exact types whose plain instances the core reads itself."""
    plain_attributes: Mapping[str, object]
    """A tensor is plain if each of these attributes is this object ..."""
    plain_methods: Sequence[str]
    """... and each of these methods gives ``False``."""
    leaf_types: tuple[type, ...]
    """Instances go to ``describe`` before the core looks for a container in them."""

    def describe(self, value: Any) -> Leaf | None:
        """Describes a leaf that the core does not know; None: it cannot be read."""

    def rank(self) -> int | None:
        """Gives the rank of this process, None while it is unknown."""

    def on_message(self, is_warning: bool, text: str) -> None:
        """Shows a message of the core to the user."""


def log_message(is_warning: bool, text: str) -> None:
    """Logs a message. What a handler of the user raises must not reach the training."""
    try:
        logger.log(logging.WARNING if is_warning else logging.INFO, "msprobe: %s", text)
    except Exception:  # noqa: BLE001
        traceback.print_exc()


def log_summary(label: str, summary: dict[str, Any]) -> None:
    """Logs what was saved and what was not, at the end; nothing if there was neither.

    Where nothing is set up for logging, a summary without failures would be swallowed: it goes to
    stderr.
    """
    if not summary["saves"] and not summary["failures"]:
        return
    has_failures = bool(summary["failures"])
    text = f"{label}: {summary['text']}"
    if has_failures or logger.hasHandlers():
        log_message(has_failures, text)
    else:
        print(f"msprobe: {text}", file=sys.stderr)  # noqa: T201


def launcher_rank(variable: str) -> int | None:
    """Reads the rank that the launcher left in the environment, None if there is none."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() and len(text) <= _RANK_DIGITS else None
