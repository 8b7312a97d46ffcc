"""Verdict words of paired comparisons: how a policy does against a baseline."""

from __future__ import annotations

from driftbandit.report import Cell, Tone

__all__ = ["BETTER", "NO_DIFFERENCE", "SYMBOLS", "TOO_FEW", "WORSE", "cell", "tone"]

BETTER = "better"
WORSE = "worse"
NO_DIFFERENCE = "no difference seen"
TOO_FEW = "too few to tell"
SYMBOLS = {BETTER: "▲", WORSE: "▼", NO_DIFFERENCE: "≈", TOO_FEW: "?"}


def tone(verdict: str) -> Tone:
    """Better is good, worse is bad."""
    return "good" if verdict == BETTER else "bad" if verdict == WORSE else ""


def cell(verdict: str, *, symbol: bool = False) -> Cell:
    """A table's entry: the words, or the symbol alone."""
    return Cell(SYMBOLS.get(verdict, "") if symbol else verdict, tone=tone(verdict))
