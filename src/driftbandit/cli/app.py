"""The `driftbandit` program: its commands, and how errors end it."""

from __future__ import annotations

import importlib
import sys
import warnings

import typer
from rich.console import Console
from rich.text import Text

import driftbandit
from driftbandit import errors, program_cache
from driftbandit.cli import interrupt, options

COMMANDS = ("fit", "advise", "simulate", "replay", "reproduce", "serve", "keys", "verify")
"""Modules of this folder, in the order of the help. Each has EXAMPLES and a ``command``, or a
``group`` of them."""
SMALLER = "give smaller sizes (--states, --arms, --runs)"

app = typer.Typer(
    name="driftbandit",
    cls=options.Group,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name in COMMANDS:
    _module = importlib.import_module(f"driftbandit.cli.{_name}")
    if hasattr(_module, "group"):
        app.add_typer(_module.group, name=_name, epilog=_module.EXAMPLES)
    else:
        app.command(name=_name, cls=options.Command, epilog=_module.EXAMPLES)(_module.command)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Bandits whose rewards drift: policies, simulation and model fitting."""
    if show:
        print(driftbandit.__version__)
        raise typer.Exit


def run() -> None:
    """Run the program; wrong input ends it with one line on stderr and exit code 2."""
    try:
        with program_cache.in_environment(), warnings.catch_warnings():
            # A cached program that cannot be read is compiled again: no need to say so.
            warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
            app()
    except (errors.InvalidInput, errors.NotDetectable) as error:
        _fail(str(error).removeprefix("n_"))  # n_states is --states here
    except OSError as error:  # a full disk, a folder that was deleted
        name = "" if error.filename is None else f"{errors.printable(str(error.filename))}: "
        _fail(f"{name}{error.strerror or error}")
    except MemoryError as error:
        _fail(f"out of memory: {error or 'the system refused more'}; {SMALLER}")
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # JAX's word for it
            raise
        _fail(f"out of memory on the device; {SMALLER}")
    except KeyboardInterrupt:  # where no handler could be set
        sys.exit(interrupt.EXIT_CODE)


def _fail(reason: str) -> None:
    line = " ".join(reason.split())
    Console(stderr=True).print(Text.assemble(("error", "bold red"), " ", line), soft_wrap=True)
    sys.exit(2)
