"""Every unit vector an arm (P2): who plays what, and how sure it is that nothing is better.

A Kalman policy plays argmax ⟨a, ẑ⟩ + u(a | P) over the unit sphere. Kalman-UCB's is a trust-region
problem (`secular`), IDEA's lies on a curve (`path`) that is searched and climbed from (`ascent`);
both have bounds (`bounds`) that prove it. Runs under NumPy and JAX, where the slowest of a batch
says how long; `best`, which proves, on NumPy alone.
"""

from driftbandit.sphere import offer
from driftbandit.sphere.solution import (
    Solution,
    best,
    direction,
    idea,
    idea_arm,
    kalman_ucb,
    kalman_ucb_arm,
    kode,
    lookahead,
    lookahead_arm,
)

__all__ = [
    "Solution",
    "best",
    "direction",
    "idea",
    "idea_arm",
    "kalman_ucb",
    "kalman_ucb_arm",
    "kode",
    "lookahead",
    "lookahead_arm",
    "offer",
]
