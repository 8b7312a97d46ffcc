"""The `driftbandit` program: its commands, and how errors leave it."""

from __future__ import annotations

import sys
import warnings

import typer
from rich.console import Console
from rich.text import Text

import driftbandit
from driftbandit import program_cache
from driftbandit.cli import advise, fit, interrupt, replay, reproduce, simulate

__all__ = ["app", "run"]

app = typer.Typer(
    name="driftbandit",
    help="Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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


def run() -> None:
    """Run the program; wrong input ends it with one line on stderr and exit code 2."""
    try:
        with program_cache.in_environment(), warnings.catch_warnings():
            # A program that cannot be read back is compiled anew, which nobody need know.
            warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
            app()
    except (driftbandit.InvalidInput, driftbandit.NotDetectable) as error:
        _fail(str(error).removeprefix("n_"))  # n_states is --states here
    except OSError as error:  # a full disk, a folder that went away
        where = (
            ""
            if error.filename is None
            else f"{driftbandit.errors.printable(str(error.filename))}: "
        )
        _fail(f"{where}{error.strerror or error}")
    except MemoryError as error:
        _fail(f"out of memory: {error or 'the system refused more'}; {SMALLER}")
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # as JAX says it
            raise
        _fail(f"out of memory on the device; {SMALLER}")
    except KeyboardInterrupt:  # where no handler could be set
        sys.exit(interrupt.EXIT_CODE)


SMALLER = "give smaller sizes (--states, --arms, --runs)"


def _fail(reason: str) -> None:
    line = " ".join(reason.split())
    Console(stderr=True).print(Text.assemble(("error", "bold red"), " ", line), soft_wrap=True)
    sys.exit(2)
