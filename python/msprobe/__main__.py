"""The command ``msprobe`` (also ``python -m msprobe``): show, compare, verify."""

import signal
import sys

from msprobe._core import run_command_line


def main() -> int:
    """Runs the command on ``sys.argv``; returns the exit status."""
    # The command is C++, where Python's own handlers would wait for its end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command_line(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
