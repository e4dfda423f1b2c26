"""The modules of bench/ are scripts beside each other, not a package."""

import sys

from support import REPOSITORY

sys.path.append(str(REPOSITORY / "bench"))
