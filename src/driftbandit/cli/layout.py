"""Tables that keep every name, number and verdict at any width of the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.cells import cell_len
from rich.style import Style
from rich.table import Table
from rich.text import Text

__all__ = ["Row", "tables"]


class Row(NamedTuple):
    """The cells of a row, its name first."""

    cells: Sequence[str | Text]
    style: str | Style = ""
    ruled: bool = False
    """Whether a line sets it apart from the row above."""


def tables(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Row],
    width: int,
    *,
    left: Sequence[int] = (0,),
    gap: int = 1,
) -> Iterator[Text | Table]:
    """A title and a table; several, each with the names and some of the columns, if need be.

    Headings are wrapped before columns move to a second table. Names are never cut: one that is
    wider than the terminal is wrapped.

    Args:
        title: above the table.
        headings: of the columns; the first is that of the names.
        rows: cells of the same number.
        width: columns of the terminal.
        left: which columns are left-aligned.
        gap: blanks between columns.
    """
    texts = [
        Row([cell if isinstance(cell, Text) else Text(cell) for cell in row.cells], *row[1:])
        for row in rows
    ]
    content = [
        max((_width(row.cells[place]) for row in texts), default=0)
        for place in range(len(headings))
    ]
    full = [max(size, _width(heading)) for size, heading in zip(content, headings, strict=True)]
    if sum(full) + gap * (len(full) - 1) <= width:
        groups, sizes = [list(range(1, len(full)))], full
    else:
        sizes = [
            max([size, *(cell_len(word) for word in heading.split())])
            for size, heading in zip(content, headings, strict=True)
        ]
        sizes[0] = min(sizes[0], max(width - max(sizes[1:], default=0) - gap, 8))
        groups = _groups(sizes, width, gap)
    yield Text(title, "italic")
    for number, group in enumerate(groups):
        if number > 0:
            yield Text("")
        shown = [0, *group]
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, gap - 1, 0, 0),  # beside the box's own blank
        )
        for place in shown:
            table.add_column(
                Text("\n".join(textwrap.wrap(headings[place], max(sizes[place], 1)))),
                justify="left" if place in left else "right",
                overflow="fold",
                min_width=min(sizes[place], width),
            )
        for row in texts:
            if row.ruled:
                table.add_section()
            table.add_row(*(row.cells[place] for place in shown), style=row.style)
        yield table


def _groups(sizes: Sequence[int], width: int, gap: int) -> list[list[int]]:
    """Columns but the first, cut into as few groups as fit beside the first."""
    groups: list[list[int]] = [[]]
    used = sizes[0]
    for place in range(1, len(sizes)):
        if groups[-1] and used + gap + sizes[place] > width:
            groups.append([])
            used = sizes[0]
        groups[-1].append(place)
        used += gap + sizes[place]
    return groups


def _width(text: str | Text) -> int:
    """Of its widest line."""
    return max(map(cell_len, str(text).split("\n")))
