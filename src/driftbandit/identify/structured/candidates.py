"""Candidates of a comparison: structures, and hidden states that arms share, which EM learns.

    reward = constant(arm) + cᵀz + noise,   z ← Γ z + ξ,   c the weights of the arm, all learned

A component learns a number or two per arm or for all arms; this learns a matrix Γ, so that it sees
rotations and states that drive each other. Expectation maximization (`em`) finds it, as gradients
from a guess seldom do.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from driftbandit.structure import Component, Structure

WORDS = re.compile(r"\s*constant\(\s*(?:arm)?\s*\)\s*\+\s*factors\(\s*(\d{1,4})\s*\)\s*")
MOVES = ("level", "trend", "ar")  # components that drift


@dataclasses.dataclass(frozen=True)
class Factors:
    """So many hidden states that drift together; each arm has a weight on each, and a mean.

    Example:
        >>> str(Factors(2)), read_factors("constant(arm) + factors(2)"), read_factors("level(arm)")
        ('constant(arm) + factors(2)', Factors(n_states=2), None)
    """

    n_states: int

    components: tuple[Component, ...] = dataclasses.field(default=(), init=False, repr=False)
    """None that `Layout` knows."""
    features: tuple[str, ...] = dataclasses.field(default=(), init=False, repr=False)

    def __str__(self) -> str:
        return f"constant(arm) + factors({self.n_states})"


Candidate = Structure | Factors


def read_factors(text: Any) -> Factors | None:
    """What a text such as "constant(arm) + factors(2)" names; None if it has only components."""
    if isinstance(text, Factors):
        return text
    match = WORDS.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else Factors(int(match[1]))


def drifts(candidate: Candidate) -> bool:
    """Whether something wanders, seasons aside.

    Example:
        >>> from driftbandit.structure import parse
        >>> [drifts(parse(text)) for text in ("constant(arm) + season(7)", "level(arm)")]
        [False, True]
    """
    moves = any(component.kind in MOVES for component in candidate.components)
    return moves or isinstance(candidate, Factors)


def repeats(candidate: Candidate) -> bool:
    """Whether there is a season."""
    return any(component.kind == "season" for component in candidate.components)
