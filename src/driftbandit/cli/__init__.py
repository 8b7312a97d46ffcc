"""The command line: one file per command, errors on one line with exit code 2."""

import sys

from driftbandit import errors

__all__ = ["main"]


def main() -> None:
    """Run the program; a missing extra ends it with one line on stderr and exit code 1."""
    try:
        with errors.needing("the command line"):
            from driftbandit.cli.app import main as run
        run()
    except errors.MissingExtra as error:
        sys.exit(f"error {error}")
