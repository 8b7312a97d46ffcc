"""Every arm's score, and several decisions at once that know of each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.choosing import Choice, Chosen, choose
from driftbandit.agent.decision import Score
from driftbandit.agent.ledger import Entry, fold
from driftbandit.kalman import Belief
from driftbandit.policies import Policy, Problem
from driftbandit.system import Name

__all__ = ["check_several", "several", "table"]


def table(
    policy: Policy, problem: Problem, state: Any, offer: Choice, names: list[Name]
) -> list[Score]:
    """What the policy thinks of every arm on offer."""
    means = bonuses = uncertainties = None
    if policy.scores is not None:
        own = not policy.agent.reads_features or (
            policy.actions.compares and offer.places is not None
        )
        means, bonuses = policy.scores(state, problem if own else problem._replace(arms=offer.arms))
        if own and offer.places is not None:
            means, bonuses = means[offer.places], bonuses[offer.places]
    if isinstance(state, Belief):
        means = offer.arms @ state.mean if means is None else means
        variances = np.vecdot(offer.arms @ state.cov, offer.arms)
        uncertainties = np.sqrt(np.maximum(variances, 0.0))
    columns = [
        [None] * len(names) if values is None else np.asarray(values).tolist()
        for values in (means, bonuses, uncertainties)
    ]
    return [Score(*row) for row in zip(names, *columns, strict=True)]


def several(
    policy: Policy,
    problem: Problem,
    state: Any,
    offer: Choice,
    count: int,
    distinct: bool,
    noise: Callable[[int, int], Any],
) -> list[Chosen]:
    """Choose one arm after the other, each as if the earlier ones had paid what is expected.

    A reward that equals its expectation leaves every expectation as it is and shrinks the doubt:
    ẑ stays, P ← P − K aᵀP. So the next choice does not pay for knowledge that is on its way. A
    policy without expected rewards (`random`) just chooses again.

    Args:
        policy: which is to choose.
        problem: the policy's.
        state: as it is; the pretended rewards are forgotten.
        offer: the arms.
        count: how many to choose.
        distinct: no arm twice.
        noise: the random numbers of the i-th choice among so many arms.
    """
    left = _different(offer)
    found = []
    for number in range(count):
        part = offer if len(left) == len(offer.arms) else offer.part(left)
        chosen = choose(policy, problem, state, part, noise(number, len(left)))
        place = int(left[chosen.place])
        found.append(Chosen(place, place if offer.new else chosen.arm, chosen.figures))
        if distinct:
            left = np.delete(left, chosen.place)
        expected = chosen.figures[0]
        if expected is not None and math.isfinite(expected):
            row = offer.arms[place] if offer.new else None
            state = fold(policy, problem, state, Entry(None, 0, chosen.arm, row, expected))
    return found


def check_several(policy: Policy, offer: Choice, count: int, distinct: bool) -> None:
    """Refuse what `several` cannot do, before any time passes."""
    arms = len(_different(offer))
    if distinct and count > arms:
        problem = f"is {count}, and {arms} different arms are on offer"
        raise errors.InvalidInput("count", problem, f"give at most {arms}, or distinct=False")
    if policy.full_information or not (policy.scores or policy.agent.reads_features):
        problem = f"is {policy.name}, which chooses among all of its arms"
        raise errors.InvalidInput("policy", problem, "ask for one decision at a time")


def _different(offer: Choice) -> np.ndarray:
    """Places of the offer's arms; a name that was given twice is one arm."""
    if offer.places is None:
        return np.arange(len(offer.arms))
    return np.sort(np.unique(offer.places, return_index=True)[1])
