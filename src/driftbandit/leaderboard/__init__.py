"""Every policy on the paper's systems and on changed ones: who wins, and how sure that is."""

from driftbandit.leaderboard.page import blocks, page, summary
from driftbandit.leaderboard.ranking import document
from driftbandit.leaderboard.settings import QUICK, SETTINGS, SITS_OUT, specification
from driftbandit.studies import Size, Target

__all__ = ["QUICK", "SETTINGS", "SITS_OUT", "TARGET"]

TARGET = Target(
    "leaderboard",
    "Leaderboard",
    full=Size(200, 5, 1000),
    quick=Size(12, 2, 100),
    specification=specification,
    document=document,
    blocks=blocks,
    summary=summary,
    page=page,
    published=False,
)
