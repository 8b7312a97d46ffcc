"""The pages of the API reference: which public name is on which page.

The text of the pages comes from the docstrings. A test compares the pages with `__all__`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple


class Shelf(NamedTuple):
    """A page of the reference: its title, one line about it, and what it documents.

    A name of ``contents`` with a capital after its last dot, or of a function, stands for itself;
    a module stands for everything in its ``__all__``.
    """

    title: str
    about: str
    contents: tuple[str, ...]


PAGES = {
    "models": Shelf(
        "Models and systems",
        "How the hidden state moves, and how arms read it.",
        ("LGDS", "System", "load_model", "save_model", "families"),
    ),
    "agent": Shelf(
        "Agent",
        "One decision at a time. Needs only NumPy and SciPy.",
        ("Agent", "Decision", "Refit", "trace", "Trace"),
    ),
    "simulation": Shelf(
        "Simulation",
        "Many runs of many policies, paired by common noise.",
        ("simulate", "simulation.Options", "Result", "advise", "statistics"),
    ),
    "logs": Shelf(
        "Learning from logs",
        "Models learned from logs, checked on logs, and policies replayed on data.",
        ("fit", "read_log", "replay", "monitoring", "identify"),
    ),
    "structure": Shelf("Structures", "Models made of named components.", ("structure",)),
    "policies": Shelf("Policies", "The contract of a policy, and the registry.", ("policies",)),
    "kalman": Shelf(
        "Filter and steady state",
        "Kalman filter, smoother and likelihood; Riccati equations.",
        ("kalman", "steady_state"),
    ),
    "theory": Shelf("Theory", "The paper's theorems as functions.", ("theory",)),
    "client": Shelf(
        "Service client",
        "Decisions over HTTP, safely repeated.",
        ("Client", "AsyncClient", "Unavailable"),
    ),
    "studies": Shelf(
        "Studies and the paper",
        "Large resumable studies, on one machine or a Ray cluster.",
        ("studies", "paper"),
    ),
    "actions": Shelf("Action sets", "A list of arms, or the unit sphere.", ("actions",)),
    "adapters": Shelf(
        "Adapters",
        "driftbandit inside Gymnasium and river.",
        ("adapters.gymnasium.LGDSBandit", "adapters.river.KalmanPolicy"),
    ),
    "errors": Shelf(
        "Errors",
        "The errors of driftbandit's own. The [clients of the service](client.md) also raise "
        "`Unavailable` if the server does not answer, `PermissionError` if a key is missing or "
        "lacks a scope, and `RuntimeError` if the server fails: see [which status raises which "
        "exception](../../do/serve.md#errors).",
        ("InvalidInput", "MissingExtra", "NotDetectable", "errors.Conflict"),
    ),
}


def documented(contents: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Yield the full name and the object of everything a page documents."""
    for name in contents:
        path, _, last = name.rpartition(".")
        home = importlib.import_module(f"driftbandit.{path}" if path else "driftbandit")
        found = getattr(home, last)
        yield f"driftbandit.{name}", found
        if inspect.ismodule(found):
            for member in found.__all__:
                yield f"{found.__name__}.{member}", getattr(found, member)


def page(shelf: Shelf) -> str:
    """Return the Markdown of a page: directives that mkdocstrings fills from the docstrings."""
    lines = [f"# {shelf.title}", "", shelf.about, ""]
    for name, found in documented(shelf.contents):
        if inspect.ismodule(found):
            about = inspect.cleandoc(found.__doc__ or "")
            lines += [f"## `{name}` {{ #module-{name.replace('.', '-')} }}", "", about, ""]
            lines += [*_constants(found), ""]
        elif inspect.isclass(found) or inspect.isroutine(found):
            lines += [f"::: {name}", ""]
    return "\n".join(lines)


def _constants(module: ModuleType) -> list[str]:
    values = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    plain = {name: value for name, value in values.items() if isinstance(value, str | float)}
    tables = [name for name, value in values.items() if isinstance(value, dict | tuple)]
    lines = [f"- `{name}` = `{value!r}`" for name, value in plain.items()]
    return lines + [
        f"- `{name}`: {', '.join(f'`{key}`' for key in values[name])}" for name in tables
    ]


def index() -> str:
    """Return the page that lists all names."""
    lines = ["# API", "", "Every public name, from the docstrings. `import driftbandit as db`.", ""]
    for file, shelf in PAGES.items():
        names = [
            name
            for name, found in documented(shelf.contents)
            if inspect.isclass(found) or inspect.isroutine(found)
        ]
        lines += [f"## [{shelf.title}]({file}.md)", "", shelf.about, ""]
        links = (f"[`{name.removeprefix('driftbandit.')}`][{name}]" for name in names)
        lines += [" · ".join(links), ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Return all pages of the reference, by file name."""
    return {"index.md": index(), **{f"{name}.md": page(shelf) for name, shelf in PAGES.items()}}


def commands() -> str:
    """Return the help of every command, as a page's sections."""
    from typer.testing import CliRunner

    from driftbandit.cli.app import COMMANDS, app

    lines = []
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80", "NO_COLOR": "1"})
        text = "\n".join(line.rstrip() for line in shown.stdout.strip("\n").splitlines())
        lines += [f"## driftbandit {name}", "", "```text", text, "```", ""]
    return "\n".join(lines)
