"""The part of ``PrecisionDebugger`` that no framework changes."""

import atexit
import operator
import os
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from msprobe._core import Debugger, StateError
from msprobe.common.adapter import Adapter, log_summary, logger
from msprobe.common.gradients import GradientHooks

_LARGEST_STEP = 2**53  # the core's limit


class BasePrecisionDebugger:
    """One debugger a process. Every method works on the instance and on the class."""

    _instance: ClassVar["BasePrecisionDebugger | None"] = None
    _lock: ClassVar[threading.RLock] = threading.RLock()

    _owner: ClassVar[type["BasePrecisionDebugger"]]
    """The framework's class, which keeps the instance for its subclasses too."""

    _settings: tuple[Any, ...]
    _debugger: Debugger
    _gradients: GradientHooks

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if BasePrecisionDebugger in cls.__bases__:
            cls._owner = cls

    def __new__(
        cls,
        config_path: str | os.PathLike[str] | None = None,
        task: str | None = None,
        dump_path: str | os.PathLike[str] | None = None,
        level: str | None = None,
        step: Sequence[int | str] | None = None,
    ) -> "BasePrecisionDebugger":
        """Makes the debugger of this process, or returns the one that is there.

        Args:
            config_path: A config.json; without it nothing is read.
            task: ``statistics`` or ``tensor``. This and the following override the file.
            dump_path: Where the dump goes; created with its parents.
            level: ``debug``.
            step: The steps to save, such as ``[0, "3-5"]``; empty: all.

        Raises:
            ConfigError: The file or an argument is wrong (a ValueError).
            IoError: ``dump_path`` cannot be created.
        """
        settings = (config_path, task, dump_path, level, step)
        with BasePrecisionDebugger._lock:
            kept = cls._instance
            if kept is None:
                kept = super().__new__(cls)
                kept._start_session(settings)
                cls._owner._instance = kept
            elif any(value is not None for value in settings) and settings != kept._settings:
                logger.warning(
                    "msprobe: PrecisionDebugger is constructed again with other settings; "
                    "the first ones stay"
                )
            return kept

    def _start_session(self, settings: tuple[Any, ...]) -> None:
        config_path, task, dump_path, level, step = settings
        core = Debugger(
            self._make_adapter(), _path(config_path), task, _path(dump_path), level, step
        )
        self._settings = settings
        self._debugger = core
        self._gradients = self._make_gradient_hooks(core)
        atexit.register(self._finish)

    def _make_adapter(self) -> Adapter:
        raise NotImplementedError

    def _make_gradient_hooks(self, core: Debugger) -> GradientHooks:
        raise NotImplementedError

    @classmethod
    def _current(cls, call: str) -> "BasePrecisionDebugger":
        if cls._instance is None:
            raise StateError(
                f"PrecisionDebugger.{call}: there is no debugger yet; "
                "construct PrecisionDebugger(config_path=...) or "
                "PrecisionDebugger(dump_path=...) first"
            )
        return cls._instance

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Saves a variable, and its gradient when it comes.

        The values are those at the time of the call. Blocks until the record is on disk, in async
        mode until the data is copied. Touches neither the values, the gradients nor the random
        state of the training.

        Args:
            variable: A tensor, an array, a number, text, None, or any nesting of list, tuple,
                namedtuple, dict, set and dataclass. What cannot be read is recorded with
                ``"value": null``.
            name: The name of the record; each use in a step counts up: ``x.0.debug``,
                ``x.1.debug``.
            save_backward: Whether the gradients are recorded too, under ``{name}_grad``.

        Raises:
            TypeError: ``name`` is no str or ``save_backward`` no bool.
            StateError: There is no debugger yet.
        """
        instance = cls._instance or cls._current("save")
        pending = instance._debugger.save(variable, name, save_backward)
        if pending is not None:
            instance._gradients.register(*pending, name)

    @classmethod
    def step(cls) -> None:
        """Ends the step: what is saved from now on belongs to the next one. Does not wait."""
        instance = cls._current("step")
        instance._gradients.end_step()
        instance._debugger.step()

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Numbers the step that begins now, for a run that resumes from a checkpoint.

        Raises:
            TypeError, ValueError: ``step`` is no int, or negative.
        """
        if isinstance(step, bool) or not hasattr(step, "__index__"):
            raise TypeError(f"set_init_step: step must be int, found {type(step).__name__}")
        number = operator.index(step)
        if not 0 <= number <= _LARGEST_STEP:
            raise ValueError(f"set_init_step: step must be from 0 to 2**53, found {number}")
        instance = cls._current("set_init_step")
        instance._gradients.end_step()
        instance._debugger.set_init_step(number)

    @classmethod
    def start(
        cls,
        model: Any = None,
        token_range: Any = None,
        rank_id: Any = None,
        scheduled_tokens: Any = None,
    ) -> None:
        """Does nothing: for scripts written for msProbe's other levels; debug needs no start."""
        cls._current("start")

    @classmethod
    def stop(cls) -> None:
        """Does nothing, as `start`."""
        cls._current("stop")

    @classmethod
    def close(cls) -> None:
        """Waits until everything is on disk and forgets the debugger; then a new one may be made.

        A training script needs no call: the end of the process does the same.
        """
        with BasePrecisionDebugger._lock:
            instance, cls._owner._instance = cls._instance, None
        if instance is not None:
            atexit.unregister(instance._finish)
            instance._finish()

    def _finish(self) -> None:
        self._gradients.end_step()
        self._debugger.close()
        log_summary(self._debugger.dump_path, self._debugger.summary())

    # A model that holds the debugger can be copied (EMA) and pickled; there is one in a process.

    def __copy__(self) -> "BasePrecisionDebugger":
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> "BasePrecisionDebugger":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _stand_in, (type(self),)


def _stand_in(cls: type[BasePrecisionDebugger]) -> BasePrecisionDebugger:
    """Gives what an unpickled debugger is: its calls go to the debugger of this process."""
    return cls._instance or object.__new__(cls)


def _path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value
