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
        self._steps_done = int(run_context.original_args().get("cur_step_num") or 0)
        self._is_first_epoch = True
        _number_step(self._steps_done)

    def on_train_epoch_begin(self, run_context: Any) -> None:
        """Takes over the epoch of a training with `initial_epoch`, which has no step number."""
        parameters = run_context.original_args()
        epochs_done = int(parameters.get("cur_epoch_num") or 1) - 1
        if self._is_first_epoch and self._steps_done == 0 and epochs_done > 0:
            _number_step(epochs_done * int(parameters.get("batch_num") or 0))
        self._is_first_epoch = False


def _number_step(number: int) -> None:
    try:
        PrecisionDebugger.set_init_step(number)
    except StateError:
        logger.info("msprobe: MsprobeInitStep: there is no PrecisionDebugger to number")
