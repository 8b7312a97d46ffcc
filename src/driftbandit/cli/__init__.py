"""The command line: one file per command, errors on one line with exit code 2."""

from driftbandit.cli import interrupt

__all__ = ["main"]


def main() -> None:
    """Run the program; from its first moment on, Ctrl-C ends it with one line and code 130."""
    with interrupt.handled():
        from driftbandit.cli.app import run  # takes a second: Ctrl-C may come before it is over

        run()
