"""Choosing one arm of those on offer: all, a part of them, or ones never seen before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE
from driftbandit.agent.arm_names import ArmNames
from driftbandit.agent.screening import Screen
from driftbandit.kalman import Belief
from driftbandit.model import checked_arms
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import first_best
from driftbandit.system import Name, checked_names

__all__ = ["Choice", "Chosen", "by_columns", "choose", "new_arms", "screen_of"]

BLOCK = 8192
"""Arms scored at a time: their products stay in the cache."""
SCREENED = 8 * BLOCK
"""Arms from which it pays to screen them."""


def by_columns(arms: np.ndarray) -> np.ndarray:
    """The arms, if they are many laid out column by column, which is faster to score."""
    if len(arms) <= BLOCK:
        return arms
    arms = np.asfortranarray(arms)
    arms.setflags(write=False)
    return arms


class Choice(NamedTuple):
    """The arms on offer."""

    arms: np.ndarray
    """Their rows."""
    places: np.ndarray | None = None
    """Their rows among the agent's own; None: all of these in order, or new ones."""
    new: bool = False
    """Whether they are none of the agent's own."""
    labels: Sequence[Name] | None = None
    """What new ones are called; None: by their places."""

    @classmethod
    def of(
        cls, arms: Any, names: ArmNames, policy: Policy, problem: Problem, fixed: bool
    ) -> Choice:
        """The offer from what a user gave: names, or features unless arms are fixed.

        Args:
            arms: names of the agent's arms; rows of features; or features by name.
            names: of the agent's arms.
            policy: which is to choose.
            problem: the policy's.
            fixed: whether features of other arms are refused.
        """
        if isinstance(arms, Set | ValuesView | Iterator):
            raise errors.InvalidInput("arms", f"is a {type(arms).__name__}", "give a list")
        if isinstance(arms, Mapping) and arms:
            labels = checked_names(arms, len(arms), "arms")
            return cls(
                new_arms(list(arms.values()), policy, problem, fixed), new=True, labels=labels
            )
        try:
            given = np.asarray(arms)
        except ValueError:  # ragged
            given = np.empty((), object)
        if isinstance(arms, Mapping) or given.shape == (0,):
            raise errors.InvalidInput("arms", "is empty", names.remedy())
        if given.ndim == 2:
            return cls(new_arms(arms, policy, problem, fixed), new=True)
        if given.ndim != 1 or given.dtype.kind not in ("iu" if names.plain else "iuUO"):
            what = "indices" if names.plain else "names"
            raise errors.InvalidInput(
                "arms",
                f"is {errors.printable(repr(arms)[:60])}",
                f"give {what} of the agent's arms, or rows of features",
            )
        k = len(problem.arms)
        if not names.plain:
            given = names.rows(arms)  # not those of the array, whose numbers may have become text
        elif given.min() < 0 or given.max() >= k:
            raise errors.InvalidInput("arms", f"holds {_outside(given, k)}", names.remedy())
        if policy.full_information or not (policy.scores or policy.agent.reads_features):
            problem_ = f"are a part, and {policy.name} chooses among all of its arms"
            raise errors.InvalidInput("arms", problem_, "choose a policy with scores")
        return cls(problem.arms[given], given)

    def part(self, places: np.ndarray) -> Choice:
        """Some of the arms on offer, by their places in it."""
        if self.new:
            return Choice(self.arms[places], new=True)
        return Choice(self.arms[places], places if self.places is None else self.places[places])


def _outside(given: np.ndarray, k: int) -> int:
    return int(given[(given < 0) | (given >= k)][0])


def new_arms(
    arms: Any, policy: Policy, problem: Problem, fixed: bool, argument: str = "arms"
) -> np.ndarray:
    """Rows of arms that are none of the agent's own, if the policy can play such."""
    if not policy.agent.reads_features:
        problem_ = f"are new, and {policy.name} keeps a score for each of its own arms"
        raise errors.InvalidInput(argument, problem_, "choose a policy that reads features")
    policy.check_plays(FINITE, len(arms))
    if fixed:
        problem_ = "are new, and what they pay beside their features is not known"
        raise errors.InvalidInput(argument, problem_, "refit without offsets")
    return checked_arms(arms, problem.model, argument)


class Chosen(NamedTuple):
    """The arm to play."""

    place: int
    """Its row in the offer."""
    arm: int
    """Its row among the agent's own arms; of new ones its row in the offer."""
    figures: tuple[float | None, float | None, float | None]
    """Expected reward, bonus, uncertainty."""


def screen_of(policy: Policy, arms: np.ndarray) -> Screen | None:
    """A screen of the arms, where the policy can be screened and they are many enough."""
    return (
        Screen(arms) if policy.actions.length_ratio is not None and len(arms) >= SCREENED else None
    )


def choose(
    policy: Policy,
    problem: Problem,
    state: Any,
    offer: Choice,
    noise: Any,
    screen: Screen | None = None,
) -> Chosen:
    """Play the policy on what is on offer, whose ``screen`` may be given."""
    mean = bonus = uncertainty = None
    if policy.scores is not None:
        place, mean, bonus = _highest(policy, problem, state, offer, screen)
    else:
        place = int(policy.choose(state, problem._replace(arms=offer.arms), noise))
        last = len(offer.arms) - 1
        errors.whole_number(place, f"arm of policy {policy.name!r}", low=0, high=last)
    if isinstance(state, Belief):
        row = offer.arms[place]
        mean = float(row @ state.mean) if mean is None else mean
        uncertainty = math.sqrt(max(float(row @ state.cov @ row), 0.0))
    arm = place if offer.places is None else int(offer.places[place])
    if mean is not None and (math.isnan(mean) or (bonus is not None and math.isnan(bonus))):
        problem_ = f"gives arm {arm} the expected reward {mean} and the bonus {bonus}"
        remedy = "check the model: a state has outgrown the largest number, or a bonus is wrong"
        raise errors.InvalidInput(f"policy {policy.name!r}", problem_, remedy)
    return Chosen(place, arm, (mean, bonus, uncertainty))


def _highest(
    policy: Policy, problem: Problem, state: Any, offer: Choice, screen: Screen | None
) -> tuple[int, float, float]:
    """The first of the highest scores."""
    assert policy.scores is not None
    if not policy.agent.reads_features or (policy.actions.compares and offer.places is not None):
        expected, bonuses = policy.scores(state, problem)
        if offer.places is not None:
            expected, bonuses = expected[offer.places], bonuses[offer.places]
        return _first(expected, bonuses)
    if offer.arms is not problem.arms:
        problem = problem._replace(arms=offer.arms)
    if len(offer.arms) <= BLOCK or policy.actions.compares:
        return _first(*policy.scores(state, problem))
    blocks = None if screen is None else screen.blocks(policy, problem, state, BLOCK)
    begins = range(0, len(offer.arms), BLOCK) if blocks is None else blocks
    scored = [
        policy.scores(state, problem._replace(arms=offer.arms[begin : begin + BLOCK]))
        for begin in begins
    ]
    place, mean, bonus = _first(*map(np.concatenate, zip(*scored, strict=True)))
    return begins[place // BLOCK] + place % BLOCK, mean, bonus


def _first(expected: np.ndarray, bonuses: np.ndarray) -> tuple[int, float, float]:
    place = int(first_best(expected, bonuses))
    return place, expected.item(place), bonuses.item(place)
