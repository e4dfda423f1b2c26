"""Single-point save for MindSpore.

from msprobe.mindspore import PrecisionDebugger, seed_all

debugger = PrecisionDebugger(dump_path="./dump")
debugger.save(x, "x", save_backward=True)
debugger.step()
"""

from msprobe.mindspore.callbacks import MsprobeInitStep, MsprobeStep
from msprobe.mindspore.debugger import PrecisionDebugger
from msprobe.mindspore.seed import seed_all

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "seed_all"]
