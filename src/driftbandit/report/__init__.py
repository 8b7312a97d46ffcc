"""Reports: what a result shows, made of blocks, and the only code that renders them.

Each result composes its own `Report`. ``report.terminal``, ``report.html`` and
``report.markdown`` render it, and `as_json` gives its data. ``report.numbers`` holds the number
formats, ``report.figures`` the style of figures.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from driftbandit import errors, statistics

__all__ = ["Block", "Cell", "Facts", "Figure", "Heading", "Points", "Report", "Table", "Text"]
__all__ += ["Tone", "as_json", "storable", "verdict_cell"]

Tone: TypeAlias = Literal["", "good", "bad", "dim", "best"]
"""Good and bad stand out, best is the single best one, dim is less visible."""
EMPTY = ("", "-", "–", "—")  # texts of cells without a value: they sort last in both directions
VERDICTS: dict[str, tuple[str, Tone]] = {
    statistics.BETTER: ("▲", "good"),
    statistics.WORSE: ("▼", "bad"),
    statistics.NO_DIFFERENCE: ("≈", ""),
    statistics.TOO_FEW: ("?", ""),
}
"""The symbol and the tone of each verdict."""


@dataclass(frozen=True)
class Heading:
    """Starts a section; ``id`` is the HTML anchor, by default the text with hyphens."""

    text: str
    id: str = ""

    def __post_init__(self) -> None:
        anchor = self.id or re.sub(r"[^a-z0-9]+", "-", self.text.lower()).strip("-")
        if not self.id and not anchor[:1].isalpha():
            anchor = f"section-{anchor}".rstrip("-")
        if not re.fullmatch(r"[A-Za-z][\w-]*", anchor, re.ASCII):
            remedy = "give a letter, then letters, digits, - or _"
            raise errors.InvalidInput("id", f"{anchor!r} is not an anchor", remedy)
        object.__setattr__(self, "id", anchor)


@dataclass(frozen=True)
class Text:
    """A paragraph; text between `backticks` is set as code."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True)
class Points:
    """A bullet list; each item follows the rules of `Text`."""

    items: Sequence[str]
    tone: Tone = ""


@dataclass(frozen=True)
class Facts:
    """Names and values: settings, versions, the seed."""

    pairs: Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    Args:
        text, tone: what it shows, and how.
        sort: what it sorts by; by default the text, or the number in it.
        note: a small second line, such as the published value.
    """

    text: str
    sort: float | str | None = None
    note: str = ""
    tone: Tone = ""

    @property
    def key(self) -> float | str | None:
        """What the cell sorts by; None if it has no value."""
        key = self.text if self.sort is None else self.sort
        try:
            number = float(key)
        except ValueError:
            return None if key in EMPTY else str(key).casefold()
        return None if math.isnan(number) else number


Row: TypeAlias = Sequence[Cell | str | float]


@dataclass(frozen=True)
class Table:
    """A table; the first column names the rows, and sorting leaves the footer in place."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    footer: Sequence[Row] = ()

    def __post_init__(self) -> None:
        for number, row in enumerate([*self.rows, *self.footer]):
            if len(row) != len(self.columns):
                problem = f"row {number} of {self.caption!r} has {len(row)} entries"
                remedy = f"give {len(self.columns)}, one per column"
                raise errors.InvalidInput("rows", problem, remedy)

    @property
    def cells(self) -> list[list[Cell]]:
        """All rows as cells, the footer last."""
        return [[_cell(entry) for entry in row] for row in (*self.rows, *self.footer)]

    @property
    def kinds(self) -> list[Literal["text", "number"]]:
        """Of each column; numbers are right-aligned."""
        body = self.cells[: len(self.rows)]
        types = [{type(row[place].key) for row in body} for place in range(len(self.columns))]
        return ["number" if found - {type(None)} == {float} else "text" for found in types]


def _cell(entry: Cell | str | float) -> Cell:
    if isinstance(entry, Cell):
        return entry
    if isinstance(entry, str | int):
        return Cell(str(entry))
    return Cell(f"{entry:g}", sort=entry)


@dataclass(frozen=True)
class Figure:
    """A figure.

    Args:
        caption, alt: what stands below it, and what it shows, for readers who cannot see it.
        draw: returns a matplotlib figure; called only when a picture is needed.
        name: the key of ``markdown.text(report, pictures={name: file})``.
    """

    caption: str
    alt: str
    draw: Callable[[], Any]
    name: str = ""

    @functools.cached_property
    def svg(self) -> str:
        """The text of its SVG file, made once: saving a figure takes longer than drawing it."""
        from driftbandit.report import figures

        return figures.svg(self.draw())


Block: TypeAlias = Heading | Text | Points | Table | Figure | Facts


@dataclass(frozen=True)
class Report:
    """What a result shows; ``subtitle`` may be empty, and ``data`` is what ``--json`` prints."""

    title: str
    subtitle: str
    blocks: Sequence[Block]
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = Counter(block.id for block in self.blocks if isinstance(block, Heading))
        for anchor, times in ids.items():
            if times > 1:
                problem = f"{times} headings have the id {anchor!r}"
                raise errors.InvalidInput("blocks", problem, "give each an id of its own")

    @property
    def sections(self) -> list[tuple[Heading | None, list[Block]]]:
        """The blocks by section; the first one has no heading if text comes before any."""
        found: list[tuple[Heading | None, list[Block]]] = [(None, [])]
        for block in self.blocks:
            if isinstance(block, Heading):
                found.append((block, []))
            else:
                found[-1][1].append(block)
        return found if found[0][1] else found[1:]


def verdict_cell(verdict: str, *, symbol: bool = False) -> Cell:
    """A verdict of a paired comparison in a table, in words or as a symbol; "" has neither."""
    sign, tone = VERDICTS.get(verdict, ("", ""))
    return Cell(sign if symbol else verdict, tone=tone)


def as_json(report: Report) -> str:
    """The report's data as JSON text; infinite numbers and NaN become null."""
    return json.dumps(storable(report.data), indent=2, allow_nan=False)


def storable(value: Any) -> Any:
    """The value with None in place of numbers that JSON does not have: infinite ones and NaN.

    Example:
        >>> storable({"low": float("nan"), "runs": [1, 2.5]})
        {'low': None, 'runs': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {key: storable(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [storable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
