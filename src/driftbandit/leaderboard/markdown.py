"""A report's blocks as a Markdown page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from driftbandit.report import Block, Cell, Facts, Figure, Heading, Points, Table, Text

__all__ = ["markdown"]

WIDTH = 100


def markdown(title: str, blocks: Iterable[Block], picture: str) -> str:
    """The text of a page.

    Args:
        title: its heading.
        blocks: what stands below it.
        picture: the file that every `Picture` is linked to.

    Example:
        >>> table = Table("Regret.", ["policy", "ratio"], [["IDEA", Cell("0.9", tone="good")]])
        >>> print(markdown("Results", [table], "results.png"))
        # Results
        <BLANKLINE>
        Regret.
        <BLANKLINE>
        | policy | ratio |
        |---|---:|
        | IDEA | **0.9** |
        <BLANKLINE>
    """
    parts = [f"# {title}", *(_block(block, picture) for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block, picture: str) -> str:
    match block:
        case Heading():
            return f"## {block.text}"
        case Text():
            return _wrapped(block.text)
        case Points():
            return "\n".join(_wrapped(item, "- ") for item in block.items)
        case Facts():
            return "\n".join(
                _wrapped(f"{name}: {fact}", "- ") for name, fact in block.pairs.items()
            )
        case Figure():
            return f"![{block.alt}]({picture})\n\n{_wrapped(block.caption)}"
        case Table():
            return _table(block)


def _wrapped(text: str, bullet: str = "") -> str:
    if text.startswith("#"):  # a heading is one line
        return text
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _table(table: Table) -> str:
    ruler = "|---|" + "---:|" * (len(table.columns) - 1)
    rows = [_line(table.columns), ruler, *(_line(row) for row in table.rows)]
    return f"{_wrapped(table.caption)}\n\n" + "\n".join(rows)


def _line(entries: Sequence[Cell | str | float]) -> str:
    return "| " + " | ".join(_entry(entry) for entry in entries) + " |"


def _entry(entry: Cell | str | float) -> str:
    if not isinstance(entry, Cell):
        return str(entry).replace("|", "\\|")
    text = entry.text.replace("|", "\\|")
    strong = f"**{text}**" if entry.tone == "good" and text else text
    return f"{strong} {entry.note}".rstrip()
