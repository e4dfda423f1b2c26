"""The leaves that every framework has: NumPy's, and a few of Python's."""

from typing import Any

from msprobe._core import Debugger, Leaf

try:
    from msprobe.common import arrays
except ImportError:  # a framework without NumPy: there are no arrays then
    arrays = None  # type: ignore[assignment]

ARRAY_TYPES: tuple[type, ...] = arrays.LEAF_TYPES if arrays is not None else ()


def first_line(error: Exception) -> str:
    """Gives the part of a message that says what is wrong; frameworks add their C++ stack."""
    return str(error).strip().partition("\n")[0]


class BaseLeafDescriber:
    """Describes leaves for one debugger."""

    core: Debugger | None = None
    """Set once the core is there; says whether files and checksums are wanted."""

    @property
    def wants_files(self) -> bool:
        """Whether tensor files are wanted, so that nothing is serialised in vain."""
        return self.core is not None and self.core.wants_files

    @property
    def wants_checksums(self) -> bool:
        """Whether checksums are wanted."""
        return self.core is not None and self.core.wants_checksums

    def describe_common(self, value: Any) -> Leaf | None:
        """Describes what is of no framework; None if it is nothing that can be read."""
        if arrays is not None and isinstance(value, ARRAY_TYPES):
            return arrays.describe(value, with_file=self.wants_files)
        if isinstance(value, slice):
            return Leaf.scalar("slice", [value.start, value.stop, value.step])
        if value is Ellipsis:
            return Leaf.scalar("ellipsis", "...")
        return None
