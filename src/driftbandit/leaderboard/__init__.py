"""Every policy on many kinds of systems, by memory: which is best, and how certain that is."""

from driftbandit.leaderboard import report
from driftbandit.leaderboard.problems import MEMORIES, PROBLEMS
from driftbandit.leaderboard.ranking import document, specification
from driftbandit.studies import Size, Target

__all__ = ["MEMORIES", "PROBLEMS", "TARGET"]

TARGET = Target(
    "leaderboard",
    "Leaderboard",
    full=Size(24, 4, 8000),
    quick=Size(8, 1, 1000),
    specification=specification,
    document=document,
    blocks=report.blocks,
    summary=report.summary,
    page=report.page,
    published=False,
)
