"""Every policy on the paper's systems and on changed ones: which wins, and how certain that is."""

from driftbandit.leaderboard import report
from driftbandit.leaderboard.ranking import QUICK, SETTINGS, SITS_OUT, document, specification
from driftbandit.studies import Size, Target

__all__ = ["QUICK", "SETTINGS", "SITS_OUT", "TARGET"]

TARGET = Target(
    "leaderboard",
    "Leaderboard",
    full=Size(200, 5, 1000),
    quick=Size(12, 2, 100),
    specification=specification,
    document=document,
    blocks=report.blocks,
    summary=report.summary,
    page=report.page,
    published=False,
)
