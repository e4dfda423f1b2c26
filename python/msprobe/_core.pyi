"""The C++ core. Private: use msprobe.pytorch or msprobe.mindspore."""

from collections.abc import Iterable, Sequence
from typing import Any

from msprobe.common.adapter import Adapter

class Error(RuntimeError): ...
class ConfigError(Error, ValueError): ...
class UnsupportedDtype(Error): ...
class FormatError(Error): ...
class IoError(Error): ...
class StateError(Error): ...

class Leaf:
    @staticmethod
    def scalar(type: str, value: Any) -> Leaf: ...
    @staticmethod
    def tensor(
        type: str,
        dtype: str,
        shape: Sequence[int | None],
        *,
        requires_grad: bool | None = None,
        data: Iterable[Any] = (),
        checksum_data: Iterable[Any] = (),
        element_dtype: str | None = None,
        conj: bool = False,
        neg: bool = False,
        file: bytes | None = None,
        npy: bool = False,
        checksum_of_npy: bool = False,
        extra: dict[str, Any] | None = None,
        expects_gradient: bool = False,
        sparse_starts: Sequence[int] | None = None,
        sparse_run: int = 1,
        dense_numel: int = 0,
    ) -> Leaf: ...

class Ticket: ...

class Debugger:
    def __init__(
        self,
        adapter: Adapter,
        config_path: str | None,
        task: str | None,
        dump_path: str | None,
        level: str | None,
        step: Sequence[int | str] | None,
    ) -> None: ...
    def save(
        self, variable: Any, name: str, save_backward: bool
    ) -> tuple[Ticket, list[Any]] | None: ...
    def save_gradient(self, ticket: Ticket, leaf: int, gradient: Any) -> None: ...
    def step(self) -> None: ...
    def set_init_step(self, step: int) -> None: ...
    def close(self) -> None: ...
    @property
    def wants_files(self) -> bool: ...
    @property
    def wants_checksums(self) -> bool: ...
    @property
    def current_step(self) -> int: ...
    @property
    def dump_path(self) -> str: ...
    def summary(self) -> dict[str, Any]: ...
