"""Reports as one self-contained HTML page.

Style, script and figures are inlined, so the file opens anywhere without a network. All text is
escaped, and the page's own security policy lets the browser run no other script and load no
other file.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from driftbandit import errors
from driftbandit.report import Cell, Figure, Report, Table

if TYPE_CHECKING:
    from markupsafe import Markup


def page(report: Report) -> str:
    """The text of the file, to be written in UTF-8; equal reports give equal text.

    Example:
        >>> from driftbandit.report import Heading
        >>> table = Table("Regret", ["policy", "median"], [["idea", 1.4], ["kode", 1.5]])
        >>> text = page(Report("Reproduction", "Seed 0", [Heading("Regret"), table]))
        >>> text.startswith("<!doctype html>"), '<section id="regret"' in text
        (True, True)
    """
    with errors.needing("a page"):
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(columns=_columns, drawn=_drawn, prose=_prose)
    script = _read("page.js")
    return environment.from_string(_read("page.html.j2")).render(
        report=report,
        style=Markup(_read("style.css")),
        script=Markup(script),
        script_hash=_base64(hashlib.sha256(script.encode()).digest()),
    )


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _drawn(figure: Figure) -> dict[str, Any]:
    """The picture as a data URL, and its width over its height."""
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', figure.svg)
    return {
        "address": "data:image/svg+xml;base64," + _base64(figure.svg.encode()),
        "aspect": round(float(box[1]) / float(box[2]), 3) if box else 1.0,
    }


def _prose(text: str) -> Markup:
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _columns(table: Table) -> list[dict[str, Any]]:
    columns = zip(*table.cells, strict=True) if table.cells else [()] * len(table.columns)
    return [
        {"heading": heading, "kind": kind, "cells": _ranked(cells)}
        for heading, kind, cells in zip(table.columns, table.kinds, columns, strict=True)
    ]


def _ranked(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with their rank as ``sort``, so that the script compares integers."""
    given = {cell.key for cell in cells if cell.key is not None}
    ordered = sorted(given, key=lambda key: (isinstance(key, str), key))
    ranks: dict[Any, int] = {key: rank for rank, key in enumerate(ordered)}
    return [replace(cell, sort=ranks.get(cell.key)) for cell in cells]
