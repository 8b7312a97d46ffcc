"""Advice: what a system is like, its lower bound on regret, and which policy to play on it.

`advise` computes it; nothing here prints. `page.sections` puts it into words and tables, for the
terminal and for an HTML report alike.
"""

from driftbandit.advice.advisor import advise
from driftbandit.advice.parts import (
    Advice,
    Arm,
    Difference,
    Floor,
    Metric,
    Played,
    Recommendation,
    Simulation,
    System,
)

__all__ = [
    "Advice",
    "Arm",
    "Difference",
    "Floor",
    "Metric",
    "Played",
    "Recommendation",
    "Simulation",
    "System",
    "advise",
]
