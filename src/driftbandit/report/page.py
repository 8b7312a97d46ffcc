"""The page of a report: what may stand on it, and its HTML.

Everything is inlined (style, script, figures), so the file opens anywhere, years from now and
without a network. All text is escaped, and the page's own security policy lets the browser run no
other script and load no other file.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from driftbandit import errors

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "Block",
    "Cell",
    "Facts",
    "Paragraph",
    "Picture",
    "Points",
    "Section",
    "Table",
    "page",
]

EMPTY = ("", "-", "–", "—")
"""Texts of cells without a value: they sort last in both directions."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Args:
        text: what it shows.
        sort: what it sorts by; the text, or the number it spells, if None.
        note: a small second line, such as the published value.
        tone: good and bad stand out, dim steps back.
    """

    text: str
    sort: float | str | None = None
    note: str = ""
    tone: Literal["", "good", "bad", "dim"] = ""


@dataclass(frozen=True)
class Table:
    """A table that readers can sort; the first column names the rows.

    Args:
        caption: stands above it.
        columns: headings.
        rows: one entry per column; texts and numbers are plain cells.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str | float]]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise errors.InvalidInput(
                    "rows",
                    f"row {number} of {self.caption!r} has {len(row)} entries",
                    f"give {len(self.columns)}, one per column",
                )


@dataclass(frozen=True)
class Picture:
    """A figure.

    Args:
        caption: stands below it.
        alt: what it shows, for readers who cannot see it.
        svg: the text of an SVG file.
    """

    caption: str
    alt: str
    svg: str

    def __post_init__(self) -> None:
        if "<svg" not in self.svg:
            raise errors.InvalidInput(
                "svg", f"{self.svg[:40]!r} holds no <svg> element", "give the SVG file's text"
            )


@dataclass(frozen=True)
class Facts:
    """Names and values: settings, versions, the seed."""

    pairs: Mapping[str, str]


@dataclass(frozen=True)
class Paragraph:
    """Plain text; what stands between `backticks` is set as code."""

    text: str


@dataclass(frozen=True)
class Points:
    """A bullet list; each item follows the rules of a paragraph."""

    items: Sequence[str]


Block: TypeAlias = Table | Picture | Facts | Paragraph | Points


@dataclass(frozen=True)
class Section:
    """A titled part of the page.

    Args:
        id: its anchor: the page opens there when its address ends in ``#id``.
        title: its heading, also in the table of contents.
        blocks: what it holds, from top to bottom.
    """

    id: str
    title: str
    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z][\w-]*", self.id, re.ASCII):
            raise errors.InvalidInput(
                "id", f"{self.id!r} is no anchor", "give a letter, then letters, digits, - or _"
            )


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the HTML of a report: one file, readable anywhere; equal input gives equal text.

    Args:
        title: the page's heading.
        subtitle: a sentence below it; may be empty.
        sections: what it holds; their ids differ.

    Returns:
        The text of the file, to be written in UTF-8.

    Example:
        >>> table = Table("Regret", ["policy", "median"], [["idea", 1.4], ["kode", 1.5]])
        >>> html = page("Reproduction", "Seed 0", [Section("regret", "Regret", [table])])
        >>> html.startswith("<!doctype html>"), '<section id="regret"' in html
        (True, True)
    """
    for anchor, times in Counter(section.id for section in sections).items():
        if times > 1:
            raise errors.InvalidInput(
                "sections", f"{times} of them have the id {anchor!r}", "give each an id of its own"
            )
    with errors.needing("a page"):
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(aspect=_aspect, columns=_columns, data_uri=_data_uri, prose=_prose)
    script = _read("page.js")
    return environment.from_string(_read("page.html.j2")).render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        style=Markup(_read("style.css")),
        script=Markup(script),
        script_hash=_base64(hashlib.sha256(script.encode()).digest()),
    )


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + _base64(svg.encode())


def _aspect(svg: str) -> float:
    """Return width over height as the view box says, 1 without one."""
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', svg)
    return round(float(box[1]) / float(box[2]), 3) if box else 1.0


def _prose(text: str) -> Markup:
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class _Column(NamedTuple):
    """A table's column as the template shows it."""

    heading: str
    kind: Literal["text", "number"]
    cells: list[Cell]
    """Each with its place in ascending order as ``sort``, so that the script compares integers."""


def _columns(table: Table) -> list[_Column]:
    return [
        _column(heading, [_cell(row[place]) for row in table.rows])
        for place, heading in enumerate(table.columns)
    ]


def _column(heading: str, cells: list[Cell]) -> _Column:
    keys = [_key(cell) for cell in cells]
    given = {key for key in keys if key is not None}
    texts = sorted(key for key in given if isinstance(key, str))
    numbers = sorted(key for key in given if not isinstance(key, str))
    ranks = {key: rank for rank, key in enumerate([*numbers, *texts])}
    ranked = [replace(cell, sort=ranks.get(key)) for cell, key in zip(cells, keys, strict=True)]
    return _Column(heading, "number" if numbers and not texts else "text", ranked)


def _cell(entry: Cell | str | float) -> Cell:
    if isinstance(entry, Cell):
        return entry
    if isinstance(entry, str | int):
        return Cell(str(entry))
    return Cell(f"{entry:g}", sort=entry)


def _key(cell: Cell) -> float | str | None:
    """Return what the cell sorts by; None, of a cell without a value, comes last."""
    key = cell.text if cell.sort is None else cell.sort
    try:
        number = float(key)
    except ValueError:
        return None if key in EMPTY else str(key).casefold()
    return None if math.isnan(number) else number
