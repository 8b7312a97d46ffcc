"""Reports: one self-contained HTML page that needs nothing else to be read."""

from driftbandit.report.page import (
    Block,
    Cell,
    Facts,
    Paragraph,
    Picture,
    Points,
    Section,
    Table,
    page,
)

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
