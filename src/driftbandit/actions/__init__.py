"""What can be played (P2): a list of arms or the unit sphere, and the best unit vectors.

`sets` has both action sets; `sphere` solves argmax ⟨a, ẑ⟩ + u(a | P) over unit vectors: Kalman-UCB
as a trust-region problem, IDEA by a search along a curve (`idea_search`). Everything except IDEA's
upper bound runs under NumPy and JAX.
"""

from driftbandit.actions import sphere
from driftbandit.actions.sets import FINITE, SPHERE, ActionSet, FiniteArms, Sphere, action_set

__all__ = ["FINITE", "SPHERE", "ActionSet", "FiniteArms", "Sphere", "action_set", "sphere"]
