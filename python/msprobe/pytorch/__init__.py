"""Single-point save for PyTorch.

from msprobe.pytorch import PrecisionDebugger, seed_all

debugger = PrecisionDebugger(dump_path="./dump")
debugger.save(x, "x", save_backward=True)
debugger.step()
"""

from msprobe.pytorch.debugger import PrecisionDebugger
from msprobe.pytorch.seed import seed_all

__all__ = ["PrecisionDebugger", "seed_all"]
