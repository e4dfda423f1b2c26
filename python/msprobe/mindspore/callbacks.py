"""Callbacks for ``Model.train``, which leaves no other place for ``step()``."""

from typing import Any

from mindspore.train.callback import Callback

from msprobe._core import StateError
from msprobe.common.adapter import logger
from msprobe.mindspore.debugger import PrecisionDebugger


class MsprobeStep(Callback):  # type: ignore[misc]
    """Ends the debugger's step after each step of the training."""

    def __init__(self, debugger: PrecisionDebugger) -> None:
        super().__init__()
        if not isinstance(debugger, PrecisionDebugger):
            raise TypeError(
                "MsprobeStep: debugger must be a PrecisionDebugger, "
                f"found {type(debugger).__name__}"
            )
        self._debugger = debugger

    def on_train_step_begin(self, run_context: Any) -> None:
        """Starts the debugger, as scripts for msProbe's other levels expect."""
        self._debugger.start(run_context.original_args().network)

    def on_train_step_end(self, run_context: Any) -> None:
        """Ends the step."""
        self._debugger.stop()
        self._debugger.step()


class MsprobeInitStep(Callback):  # type: ignore[misc]
    """Numbers the debugger's first step as the training does, for a run that resumes."""

    def on_train_begin(self, run_context: Any) -> None:
        """Takes over the step number of the training."""
        done = getattr(run_context.original_args(), "cur_step_num", 0)
        try:
            PrecisionDebugger.set_init_step(int(done))
        except StateError:
            logger.info("msprobe: MsprobeInitStep: there is no PrecisionDebugger to number")
