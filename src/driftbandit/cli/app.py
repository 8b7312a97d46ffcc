"""The `driftbandit` program: its commands, and how errors leave it."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

import driftbandit
from driftbandit.cli import advise, fit, replay, reproduce, simulate

__all__ = ["app", "main"]

app = typer.Typer(
    name="driftbandit",
    help="Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command(name="fit", epilog=fit.EXAMPLES)(fit.command)
app.command(name="advise", epilog=advise.EXAMPLES)(advise.command)
app.command(name="simulate", epilog=simulate.EXAMPLES)(simulate.command)
app.command(name="replay", epilog=replay.EXAMPLES)(replay.command)
app.command(name="reproduce", epilog=reproduce.EXAMPLES)(reproduce.command)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system."""
    if show:
        print(driftbandit.__version__)
        raise typer.Exit


def main() -> None:
    """Run the program; wrong input ends it with one line on stderr and exit code 2."""
    try:
        app()
    except (driftbandit.InvalidInput, driftbandit.NotDetectable) as error:
        Console(stderr=True).print(f"[bold red]error[/] {_plain(str(error))}", soft_wrap=True)
        sys.exit(2)
    except OSError as error:  # a full disk, a folder that went away
        reason = f"{error.filename or ''} {error.strerror or error}".strip()
        Console(stderr=True).print(f"[bold red]error[/] {_plain(reason)}", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
