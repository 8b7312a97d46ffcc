"""What advice is made of: plain numbers and sentences."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from driftbandit.policies import REGISTRY, TITLES
from driftbandit.system import Name

__all__ = [
    "PLAYED",
    "POLICIES",
    "Advice",
    "Arm",
    "Difference",
    "Floor",
    "Metric",
    "Played",
    "Recommendation",
    "Simulation",
    "System",
    "title",
]

POLICIES = tuple(name for name, entry in REGISTRY.items() if entry.bonus is not None)
"""The paper's policies, for which the metric φ is known."""
PLAYED = tuple(
    name
    for name, entry in REGISTRY.items()
    if entry.filters and entry.default and not entry.policy.full_information
)
"""What is played by default: every policy that knows the model and plays fast."""


def title(label: str) -> str:
    """A policy as the papers write it, with its parameters if it has any.

    Example:
        >>> title("idea"), title("kalman_ucb(width=2)")
        ('IDEA', 'Kalman-UCB(width=2)')
    """
    name, bracket, rest = label.partition("(")
    return TITLES.get(name, name) + bracket + rest


@dataclass(frozen=True)
class System:
    """The system at a glance (P1, P3)."""

    n_states: int
    """d."""
    n_arms: int
    """k."""
    reward_std: float
    """σ."""
    spectral_radius: float
    """ρ(Γ), known constants left out."""
    stable: bool
    """ρ(Γ) < 1."""
    noise_reaches_all: bool
    """(Γ, Q^½) is controllable."""
    starts_stationary: bool
    """False: the state starts from ``initial_cov``, or from a mean that it does not keep."""
    constants: int = 0
    """How many of the states are known constants, which arms read with offsets of their own."""


@dataclass(frozen=True)
class Arm:
    """What one arm pays and teaches (P3, P14)."""

    name: Name
    """What it is called; its row number if it has no name."""
    detectable: bool
    """Every mode that does not die out shows in its rewards."""
    error_trace: float | None
    """tr P_a, the error that is left if it is played forever; None: it grows, or was not found."""
    removed_share: float | None
    """1 − tr P_a / tr Z, the share of the state's variance that playing it removes."""
    gramian_condition: float | None
    """Condition number of O after d rounds of it; None: O is singular."""
    gramian_rank: int
    """Rank of O; d, less the known constants: it shows every direction of what moves."""
    reward_spread: float | None
    """√(aᵀZa), the standard deviation of ⟨a, z⟩ once the state has settled."""
    best_share: float | None
    """How often it is the best arm, from draws of the state."""
    same_as: Name | None
    """The first arm that is equal to it, by name."""
    mean_reward: float | None = 0.0
    """⟨a, E z⟩ once the state has settled: its offset; None: the state never settles."""


@dataclass(frozen=True)
class Floor:
    """The lower bound on regret per round (P11)."""

    value: float | None
    error: float | None
    """Half-width of a 99 % interval."""
    rounds: int | None
    """Over how many first rounds; None: any, the state has settled."""
    reason: str
    """Why there is no value."""

    @property
    def when(self) -> str:
        """Which rounds it is of, in words."""
        if self.rounds is None:
            return "once the state has settled"
        return f"over the first {self.rounds} rounds"


@dataclass(frozen=True)
class Metric:
    """The interval of φ for each policy (P17), and which of IDEA and Kalman-UCB it favors."""

    printed: dict[str, tuple[float, float]] | None
    squared: dict[str, tuple[float, float]] | None
    winner: str | None
    """Smaller upper end as printed, the paper's rule; None: a tie, or no intervals."""
    squared_winner: str | None
    reason: str
    """Why there are no intervals."""


@dataclass(frozen=True)
class Played:
    """One policy's regret per round, and the 95 % interval of its mean."""

    policy: str
    regret: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How much more regret per round ``policy`` has than ``baseline``, run by run."""

    policy: str
    baseline: str
    mean: float
    low: float
    """Ends of the mean's 95 % interval."""
    high: float
    verdict: str
    """Of the mean: "worse", "better", "no difference seen" or "too few to tell"."""


@dataclass(frozen=True)
class Simulation:
    """A short paired simulation."""

    runs: int
    rounds: int
    seed: int
    policies: tuple[Played, ...]
    """From the lowest mean regret up; random choice comes last."""
    differences: tuple[Difference, ...]
    """Every other one against the lowest, in the same order."""
    rivals: Difference | None
    """Kalman-UCB against IDEA, which the metric ranks; None: not both were played."""

    @property
    def best(self) -> Played:
        """The policy with the lowest mean regret."""
        return self.policies[0]


@dataclass(frozen=True)
class Recommendation:
    """What to play, in words."""

    choice: str | None
    """A policy's name; None: nothing to decide."""
    headline: str
    reasons: tuple[str, ...]
    agreement: str | None
    """Metric and simulation about IDEA and Kalman-UCB: "agree", "disagree" or "cannot tell"."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """All of it."""

    system: System
    arms: tuple[Arm, ...]
    floor: Floor
    metric: Metric
    simulation: Simulation | None
    """None where there is nothing to decide."""
    recommendation: Recommendation

    def to_document(self) -> dict[str, Any]:
        """The same as JSON can hold it: None for what is infinite or not a number."""
        return dict(_storable(dataclasses.asdict(self)))

    def __str__(self) -> str:
        said = self.recommendation
        return "\n".join([said.headline, *said.reasons, *(f"Note: {w}" for w in said.warnings)])


def _storable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
