"""The command line: one file per command, errors on one line with exit code 2."""

import os
import sys

from driftbandit.cli import interrupt

__all__ = ["main"]
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""Variables that NumPy's libraries of linear algebra read when NumPy is loaded."""


def main() -> None:
    """Run the program. Ctrl-C ends it with one line and code 130, a missing extra with code 1.

    Matrices are small: threads of NumPy's linear algebra would wait for each other, at full load,
    for far longer than they compute. Who sets one of `ONE_THREAD` decides otherwise.
    """
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    program = sys._getframe(1).f_globals.get("__name__") == "__main__"  # not called by a test
    with interrupt.handled(last=program):
        from driftbandit import errors  # slow: Ctrl-C may come meanwhile

        try:
            with errors.needing("the command line"):
                from driftbandit.cli.app import run
            run()
        except errors.MissingExtra as error:
            sys.exit(f"error {error}")
