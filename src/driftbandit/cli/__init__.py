"""The command line: one file per command, errors on one line with exit code 2."""

from driftbandit.cli.app import main

__all__ = ["main"]
