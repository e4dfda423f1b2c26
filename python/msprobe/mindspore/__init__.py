"""Single-point save for MindSpore.

In PyNative mode, with statistics and gradients in one record:

from msprobe.mindspore import PrecisionDebugger, seed_all

debugger = PrecisionDebugger(dump_path="./dump")
debugger.save(x, "x", save_backward=True)
debugger.step()

In a graph, and everywhere else too, as .npy files:

from msprobe.mindspore import save, save_grad, step

save("./dump", "x", x)
x = save_grad("./dump", "x", x)
"""

from msprobe.mindspore.callbacks import MsprobeInitStep, MsprobeStep
from msprobe.mindspore.debugger import PrecisionDebugger
from msprobe.mindspore.graph import save, save_grad, step
from msprobe.mindspore.seed import seed_all

__all__ = [
    "MsprobeInitStep",
    "MsprobeStep",
    "PrecisionDebugger",
    "save",
    "save_grad",
    "seed_all",
    "step",
]
