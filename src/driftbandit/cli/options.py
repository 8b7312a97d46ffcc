"""Options that several commands share, checks of what was given, and how a report is printed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

import driftbandit as db
from driftbandit import errors, policies
from driftbandit.cli import interrupt
from driftbandit.io.log_columns import COLUMNS

if TYPE_CHECKING:
    from driftbandit.io.logs import Log
    from driftbandit.report import Report

PICTURES = (".png", ".svg", ".pdf")
POLICIES = f"""
**Policies**: {", ".join(policies.available(independent=True))}.
"""

Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
States = Annotated[
    int | None, typer.Option(help="Number of hidden states of a random system.", show_default="10")
]
Arms = Annotated[
    int | None, typer.Option(help="Number of arms of a random system.", show_default="10")
]
UnitArms = Annotated[bool, typer.Option("--unit-arms", help="Scale random arms to length one.")]
Features = Annotated[
    Path | None,
    typer.Option(
        help="CSV or Parquet file of the arms' features: a column named arm, and one numeric "
        "column per feature. Without it, the features are estimated."
    ),
]
Store = Annotated[
    str,
    typer.Option(
        envvar="DRIFTBANDIT_STORE",
        metavar="URL",
        help="Where experiments are kept: sqlite:///FILE or postgresql://USER@HOST/DB.",
    ),
]
Device = Annotated[str | None, typer.Option(help="cpu or gpu.", show_default="chosen by JAX")]
Engine = Annotated[
    str,
    typer.Option(
        help="What compiles the rounds: lanes (several times faster) or xla. auto: lanes where it "
        "can, xla elsewhere."
    ),
]
Float32 = Annotated[bool, typer.Option("--float32", help="Compute in single precision.")]
Plot = Annotated[Path | None, typer.Option(help="Save a figure (png, svg or pdf).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


class _NoTypeOfFlags:
    """Help that shows no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, also ``--help``."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found


class Command(_NoTypeOfFlags, TyperCommand):
    """A command of the program."""


class Group(_NoTypeOfFlags, TyperGroup):
    """A group of commands."""


class Reading(NamedTuple):
    """The options that say how a log is read, as `read_log` takes them."""

    columns: dict[str, str] | None = None
    every: str | None = None
    zone: str | None = None

    def log(self, path: Any, names: Any = None) -> Log:
        """The log in a file."""
        from driftbandit.io.log_reader import read_log

        return read_log(path, names, **self._asdict())

    @property
    def options(self) -> dict[str, str]:
        """Those that were given, by the names of their parameters."""
        columns = {f"{name}_column": column for name, column in (self.columns or {}).items()}
        rest = {"every": self.every, "zone": self.zone}
        return columns | {name: value for name, value in rest.items() if value is not None}


AS_IT_IS = Reading()


def _reading_option(description: str, default: str, metavar: str = "NAME") -> Any:
    panel = "Columns of the log"
    return Annotated[
        str | None,
        typer.Option(
            metavar=metavar, help=description, show_default=default, rich_help_panel=panel
        ),
    ]


def _reading_options() -> dict[str, Any]:
    """The type of each option of a `Reading`, by the name of its parameter."""
    found = {}
    for name in sorted(COLUMNS, key=lambda name: not COLUMNS[name].required):
        default = name if COLUMNS[name].required else f"{name}, if present"
        found[f"{name}_column"] = _reading_option(COLUMNS[name].meaning, default)
    every = "Length of a round, if rounds are dates or times: 1h, 15min, 7d, …"
    found["every"] = _reading_option(every, "a day, or the step that fits all times", "LENGTH")
    zone = "Time zone whose clocks the rounds count, such as Europe/Berlin."
    found["zone"] = _reading_option(zone, "UTC, or the times as they are", "ZONE")
    return found


def reads_log(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a `Reading` in place of its parameter ``reading``."""
    types, parameters = _reading_options(), []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        if parameter.name == "reading":
            kept = [kept[0].replace(name=n, annotation=t, default=None) for n, t in types.items()]
        parameters += kept

    @functools.wraps(command)
    def read(**arguments: Any) -> None:
        values = {name: arguments.pop(name) for name in types}
        every, zone = values.pop("every"), values.pop("zone")
        named = {name.removesuffix("_column"): v for name, v in values.items() if v is not None}
        command(**arguments, reading=Reading(named or None, every, zone))

    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    read.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return read


def several(text: str, option: str, valid: Iterable[str]) -> list[str]:
    """The names in a comma-separated text, in lower case; "all" is every valid one.

    Example:
        >>> several("Cauchy, gaussian", "--family", ["cauchy", "gaussian", "uniform"])
        ['cauchy', 'gaussian']
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return list(valid)
    if not names:
        raise errors.InvalidInput(option, f"{text!r} names none", "name one, or all")
    for place, name in enumerate(names):
        errors.closest(name, option, valid)
        if name in names[:place]:
            raise errors.InvalidInput(option, f"names {name} twice", "name it once")
    return names


def split_policies(text: str) -> list[str]:
    """Split at commas outside parentheses.

    Example:
        >>> split_policies("idea, oful(delta=0.1, ridge=2)")
        ['idea', 'oful(delta=0.1, ridge=2)']
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    return [part for part in parts if part]


def exclude(other: str, given: Iterable[str]) -> None:
    """Refuse options that cannot be combined with ``other``."""
    for key in given:
        option = "--" + key.replace("_", "-")
        raise errors.InvalidInput(option, f"was given together with {other}", "give only one")


def check_file(option: str, path: Path | None, *endings: str) -> None:
    """Refuse, before any work, a file that cannot be written or has the wrong ending."""
    if path is None:
        return
    name, folder = errors.printable(str(path)), errors.printable(str(path.parent))
    if path.suffix.lower() not in endings:
        wanted = ", ".join(endings[:-1]) + " or " * (len(endings) > 1) + endings[-1]
        raise errors.InvalidInput(option, f"is {name}", f"end it in {wanted}")
    if ".html" in endings:
        errors.require(option, "jinja2")
    if ".html" in endings or endings == PICTURES:
        errors.require(option, "matplotlib")
    if not path.parent.is_dir():
        raise errors.InvalidInput(option, f"{folder} is not a folder", "make it first")
    if path.is_dir():
        raise errors.InvalidInput(option, f"cannot write {name}, a folder", "name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise errors.InvalidInput(option, f"cannot write {name}", "name a file you can write")
    probe = path.parent / f".driftbandit.{secrets.token_hex(6)}~"
    try:  # permissions are not enough: the disk may be read-only, or full
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        probe.unlink()
    except OSError as error:
        problem = f"cannot write {name} ({error.strerror})"
        raise errors.InvalidInput(option, problem, "name a file you can write") from None
    interrupt.output(path)


def available_memory() -> float | None:
    """Bytes of free memory; None if the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return None


def check_memory(option: str, asked: str, size: float) -> None:
    """Refuse a study of ``size`` bytes that does not fit; ``asked`` says what it consists of."""
    room = available_memory()
    if room is not None and size > room:
        problem = f"{asked} need about {_bytes(size)} of memory, and {_bytes(room)} are free"
        raise errors.InvalidInput(option, problem, "give smaller numbers")


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} EiB"


def show(report: Report, as_json: bool, **header: Any) -> None:
    """Print a report in the terminal, or its data as JSON after the version and ``header``."""
    from driftbandit.report import as_json as json_text
    from driftbandit.report import terminal

    if as_json:
        data = {"driftbandit": db.__version__} | header | dict(report.data)
        print(json_text(dataclasses.replace(report, data=data)))
    else:
        terminal.show(report, Console(highlight=False))


def saved(what: str, path: Path, as_json: bool) -> None:
    """Say that a file was written; on stderr beside JSON."""
    line = Text.assemble(f"{what} saved to ", (errors.printable(str(path)), "bold"))
    Console(stderr=as_json, highlight=False).print(line, soft_wrap=True)


def save_plot(report: Report, plot: Path | None, as_json: bool) -> None:
    """Write the report's first figure to the file of --plot, if that was given."""
    from driftbandit.report import Figure, figures

    if plot is not None:
        figure = next(block for block in report.blocks if isinstance(block, Figure))
        figures.save(figure.draw(), plot)
        saved("Plot", plot, as_json)
