"""Reports in a terminal: every name, number and verdict stays whole at any width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from driftbandit import errors, report

with errors.needing("a terminal report"):
    from rich import box, table
    from rich.cells import cell_len
    from rich.console import Console, RenderableType
    from rich.text import Text

LEAST_NAME = 24  # columns in which names of rows are wrapped, before a table is split in two
STYLES = {"good": "green", "best": "bold green", "bad": "red", "dim": "dim"}


def show(shown: report.Report | Iterable[report.Block], console: Console) -> None:
    """Print a report, or blocks alone; figures are skipped."""
    if isinstance(shown, report.Report):
        if shown.title:
            console.print(Text(shown.title, "bold"), soft_wrap=True)
        if shown.subtitle:
            console.print(Text(shown.subtitle))
        shown = shown.blocks
    before: report.Block | None = None
    for block in shown:
        if isinstance(block, report.Figure):
            continue
        if _apart(before, block):
            console.print()
        for line in _lines(block, console):
            console.print(line)
        before = block


def _apart(before: report.Block | None, block: report.Block) -> bool:
    """Whether a blank line separates two blocks; none separates a table from its notes."""
    if isinstance(block, report.Heading):
        return True
    if before is None or isinstance(before, report.Heading):
        return False
    return isinstance(block, report.Table) or (
        isinstance(before, report.Table) and getattr(block, "tone", "") != "dim"
    )


def _lines(block: report.Block, console: Console) -> Iterator[RenderableType]:
    match block:
        case report.Heading():
            yield Text(block.text, "bold cyan")
        case report.Text():
            yield _wrapped(block.text, STYLES.get(block.tone, ""), console)
        case report.Points():
            mark = "! " if block.tone == "bad" else "· "
            style = "yellow" if block.tone == "bad" else STYLES.get(block.tone, "")
            grid = table.Table.grid()
            for item in block.items:
                grid.add_row(Text(mark, style), _wrapped(item, style, console, len(mark)))
            yield grid
        case report.Facts():
            grid = table.Table.grid(padding=(0, 2, 0, 0))
            for name, value in block.pairs.items():
                grid.add_row(Text(name, "dim"), Text(value))
            yield grid
        case report.Table():
            yield from _tables(block, console.width)


def _wrapped(text: str, style: str, console: Console, indent: int = 0) -> Text:
    """The text without its backticks, in lines that fit beside an indent."""
    plain = Text(text.replace("`", ""), style)
    return Text("\n").join(plain.wrap(console, max(console.width - indent, 1)))


def _tables(block: report.Table, width: int) -> Iterator[RenderableType]:
    """The caption and a table, or several if the terminal is narrow, each with all row names."""
    # Headings are wrapped before columns move to a second table. Long names are wrapped, not cut.
    rows = [[_entry(cell) for cell in row] for row in block.cells]
    content = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    content = content or [0] * len(block.columns)
    full = [max(size, _width(text)) for size, text in zip(content, block.columns, strict=True)]
    gap = 2 if sum(full) + 2 * (len(full) - 1) <= width else 1
    if sum(full) + gap * (len(full) - 1) <= width:
        groups, sizes = [list(range(1, len(full)))], full
    else:
        sizes = [
            max([size, *(cell_len(word) for word in heading.split())])
            for size, heading in zip(content, block.columns, strict=True)
        ]
        left = width - sum(sizes[1:]) - gap * (len(sizes) - 1)  # for names, beside all columns
        if left < LEAST_NAME:
            left = max(width - max(sizes[1:], default=0) - gap, 8)
        sizes[0] = min(sizes[0], left)
        groups = _groups(sizes, width, gap)
    if block.caption:
        yield Text(block.caption, "italic")
    for number, group in enumerate(groups):
        if number > 0:
            yield Text("")
        yield _table(block, rows, [0, *group], sizes, gap, width)


def _table(
    block: report.Table,
    rows: list[list[Text]],
    shown: list[int],
    sizes: list[int],
    gap: int,
    width: int,
) -> table.Table:
    padding = (0, gap - 1, 0, 0)  # in addition to the box's own blank
    drawn = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=padding)
    for place in shown:
        drawn.add_column(
            Text("\n".join(textwrap.wrap(block.columns[place], max(sizes[place], 1)))),
            justify="right" if place and block.kinds[place] == "number" else "left",
            overflow="fold",
            min_width=min(sizes[place], width),
        )
    for number, row in enumerate(rows):
        if number == len(block.rows):
            drawn.add_section()
        drawn.add_row(*(row[place] for place in shown))
    return drawn


def _entry(cell: report.Cell) -> Text:
    text = Text(cell.text, STYLES.get(cell.tone, ""))
    if cell.note:
        text.append("\n" + cell.note, "dim")
    return text


def _groups(sizes: Sequence[int], width: int, gap: int) -> list[list[int]]:
    """All columns except the first, in as few groups as fit beside the first."""
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
    """The width of the widest line."""
    return max(map(cell_len, str(text).split("\n")))
