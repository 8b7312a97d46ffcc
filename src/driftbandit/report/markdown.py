"""Reports as a page of Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandit.report import Block, Cell, Facts, Figure, Heading, Points, Report, Table, Text

WIDTH = 100


def text(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """The text of a page; figures whose name is not in ``pictures`` (name: file) are left out.

    Example:
        >>> table = Table("Regret.", ["policy", "ratio"], [["IDEA", Cell("0.9", tone="good")]])
        >>> print(text(Report("Results", "", [table])))
        # Results
        <BLANKLINE>
        Regret.
        <BLANKLINE>
        | policy | ratio |
        |---|---:|
        | IDEA | **0.9** |
        <BLANKLINE>
    """
    blocks = [f"# {report.title}", _wrapped(report.subtitle)]
    blocks += [_block(block, pictures or {}) for block in report.blocks]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _block(block: Block, pictures: Mapping[str, str]) -> str:
    match block:
        case Heading():
            return f"## {block.text}"
        case Text():
            return _wrapped(block.text)
        case Points():
            return "\n".join(_wrapped(item, "- ") for item in block.items)
        case Facts():
            return "\n".join(_wrapped(f"{name}: {it}", "- ") for name, it in block.pairs.items())
        case Figure():
            if block.name not in pictures:
                return ""
            return f"![{block.alt}]({pictures[block.name]})\n\n{_wrapped(block.caption)}"
        case Table():
            return _table(block)


def _wrapped(paragraph: str, bullet: str = "") -> str:
    whole: Any = {"break_on_hyphens": False, "break_long_words": False}
    indent = " " * len(bullet)
    return textwrap.fill(paragraph, WIDTH, initial_indent=bullet, subsequent_indent=indent, **whole)


def _table(table: Table) -> str:
    ruler = "|---" + "".join("|---:" if kind == "number" else "|---" for kind in table.kinds[1:])
    heads = [Cell(heading) for heading in table.columns]
    lines = [_line(heads), f"{ruler}|", *(_line(row) for row in table.cells)]
    return f"{_wrapped(table.caption)}\n\n" + "\n".join(lines)


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(map(_entry, cells)) + " |"


def _entry(cell: Cell) -> str:
    shown = cell.text.replace("|", "\\|")
    if cell.tone in ("good", "best") and shown:
        shown = f"**{shown}**"
    return f"{shown} {cell.note}".rstrip()
