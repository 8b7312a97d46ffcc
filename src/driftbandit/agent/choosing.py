"""Choosing arms: what a decision says, how one arm or several are chosen, every arm's score."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.agent.arms import Offer, check_can_choose_from_part
from driftbandit.agent.ledger import Entry, observed
from driftbandit.agent.screening import Screen
from driftbandit.arrays import NO_ARM
from driftbandit.kalman import is_belief
from driftbandit.policies.base import (
    COMPUTED_NAN,
    NEEDS_NOISE,
    Scores,
    first_with_score,
    highest,
)

BLOCK = 8192  # arms scored at a time, so that intermediate products stay in the cache
SCREENED = 8 * BLOCK  # number of arms from which screening pays off


def _as_json(values: tuple[Any, ...], names: tuple[str, ...]) -> dict[str, Any]:
    """The fields by name as JSON values: a vector becomes a list, an infinite number None."""
    fields = dict(zip(names, values, strict=True))
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            fields[name] = value.tolist()
        elif isinstance(value, float) and not math.isfinite(value):
            fields[name] = None
    return fields


class Decision(NamedTuple):
    """What to play in a round; `to_dict` returns JSON values.

    `Agent.ask` and `Client.ask` return it.

    Attributes:
        id: the number of the decision, from 0.
        arm: the name of the arm to play; without names, its row number. If `ask` was given
            features, their row number or key; on the sphere, the unit vector, a NumPy array.
        round: the round it is for.
        mean: the reward that the policy expects; None: it expects none.
        bonus: what the policy adds for exploration; infinite for an arm never tried; None for
            policies without a score, and on the sphere.
        uncertainty: √(aᵀPa), the standard deviation of ⟨a, z⟩; None: no Kalman filter.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> model = LGDS([[0.5]], [[3.0]], reward_std=1.0)
        >>> decision = Agent(model, [[2.0], [1.0]], names=["left", "right"]).ask()
        >>> decision.id, decision.arm, decision.round
        (0, 'left', 0)
        >>> decision.mean, round(decision.bonus, 3), decision.uncertainty  # why this arm
        (0.0, 0.398, 4.0)
        >>> decision.to_dict()["arm"]
        'left'
    """

    id: int
    arm: Any
    round: int
    mean: float | None
    bonus: float | None
    uncertainty: float | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values: a vector becomes a list, an infinite bonus None.

        Example:
            >>> Decision(0, "left", 0, 0.0, float("inf"), None).to_dict()
            {'id': 0, 'arm': 'left', 'round': 0, 'mean': 0.0, 'bonus': None, 'uncertainty': None}
        """
        return _as_json(self, self._fields)


class Score(NamedTuple):
    """A policy's score of one arm; the fields mean what they mean in `Decision`.

    `Agent.scores` and `Agent.explain` return one for each arm: arm, mean, bonus, uncertainty.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> agent = Agent(LGDS([[0.5]], [[3.0]], 1.0), [[2.0], [1.0]], policy="kalman_ucb")
        >>> [(score.arm, score.mean + score.bonus) for score in agent.scores()]
        [(0, 4.0), (1, 2.0)]
        >>> agent.scores()[1].to_dict()
        {'arm': 1, 'mean': 0.0, 'bonus': 2.0, 'uncertainty': 2.0}
    """

    arm: Any
    mean: float | None
    bonus: float | None
    uncertainty: float | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, as `Decision.to_dict` returns them."""
        return _as_json(self, self._fields)


# Whoever knows named tuples gets JSON values, too; the body of a NamedTuple cannot say so.
Decision._asdict, Score._asdict = Decision.to_dict, Score.to_dict  # type: ignore


class Chosen(NamedTuple):
    """The arm to play: its place in the offer, and what `Entry` and `Decision` say of it."""

    place: int
    arm: Any
    row: np.ndarray | None
    name: Any
    mean: float | None
    bonus: float | None
    uncertainty: float | None


def by_columns(arms: np.ndarray) -> np.ndarray:
    """The arms; if there are many, stored column by column, which is faster to score.

    Few are stored row by row, as in a file: sums are the same to the last digit.
    """
    if len(arms) <= BLOCK:
        return np.ascontiguousarray(arms)
    arms = np.asfortranarray(arms)
    arms.setflags(write=False)
    return arms


def screen_of(offer: Offer, known: Screen | None) -> Screen | None:
    """A screen of all own arms, if that pays off; perhaps the ``known`` one."""
    can_screen = offer.policy.actions.length_ratio is not None and len(offer.arms) >= SCREENED
    if not can_screen or offer.in_context or offer.arms is not offer.problem.arms:
        return None
    return known if known is not None and known.arms is offer.arms else Screen(offer.arms)


def choose(offer: Offer, state: Any, noise: Any, screen: Screen | None = None) -> Chosen:
    """Choose one arm of the offer, whose ``screen`` may be given."""
    policy = offer.policy
    mean = bonus = uncertainty = None
    if isinstance(policy.choose, highest):
        try:
            place, mean, bonus = _highest(policy.choose, offer, state, screen)
        except errors.InvalidInput as error:
            raise error.of(f"policy {policy.name!r}") from error.__cause__
    else:
        place = _chosen(offer, state, noise)
        last = len(offer.arms) - 1
        errors.whole_number(place, f"arm of policy {policy.name!r}", low=0, high=last)
    row = offer.arms[place]
    if is_belief(state):
        mean = float(row.dot(state.mean)) if mean is None else mean
        uncertainty = math.sqrt(max(float(row.dot(state.cov).dot(row)), 0.0))
    arm = place if offer.rows is None else int(offer.rows[place])
    if mean is not None and (math.isnan(mean) or (bonus is not None and math.isnan(bonus))):
        wrong = f"gives arm {arm} the expected reward {mean} and the bonus {bonus}"
        remedy = "check its bonus; or a state of the model has outgrown the largest number"
        raise errors.InvalidInput(f"policy {policy.name!r}", wrong, remedy)
    name = offer.names[arm]
    if offer.new or offer.in_context:
        return Chosen(place, name, row.copy(), name, mean, bonus, uncertainty)
    return Chosen(place, arm, None, name, mean, bonus, uncertainty)


def _chosen(offer: Offer, state: Any, noise: Any) -> int:
    """What the policy's own ``choose`` returns; its likely mistakes get one line."""
    policy = offer.policy
    try:
        place = int(policy.choose(state, offer.problem._replace(arms=offer.arms), noise))
    except (TypeError, AttributeError) as error:
        if noise is not None or "NoneType" not in str(error):
            raise
        wrong = f"uses None as a number ({error}), and the policy asks for no noise"
        raise errors.InvalidInput(f"policy {policy.name!r} choose", wrong, NEEDS_NOISE) from error
    if place == NO_ARM:
        raise errors.InvalidInput(f"policy {policy.name!r}", "computed NaN", COMPUTED_NAN)
    return place


def choose_vector(offer: Offer, state: Any, noise: Any) -> Chosen:
    """Choose any unit vector."""
    vector = SPHERE.choose(offer.policy)(state, offer.problem, noise)
    argument = f"arm of policy {offer.policy.name!r}"
    vector = SPHERE.checked_vector(vector, offer.problem.model.n_states, argument)
    mean = uncertainty = None
    if is_belief(state):
        mean = float(vector @ state.mean)
        uncertainty = math.sqrt(max(float(vector @ state.cov @ vector), 0.0))
    return Chosen(0, 0, vector, vector, mean, None, uncertainty)


def _highest(
    choose: highest, offer: Offer, state: Any, screen: Screen | None
) -> tuple[int, float, float]:
    """Place, expected reward and bonus of the first arm with the highest score."""
    policy, problem, n_arms = offer.policy, offer.problem, len(offer.arms)
    if n_arms <= max(BLOCK, policy.actions.compares) or not policy.agent.reads_features:
        if offer.arms is problem.arms:
            return choose.best(state, problem)
        return first_with_score(*_scored(choose.scores, offer, state))
    if offer.arms is not problem.arms:
        problem = problem._replace(arms=offer.arms)
    blocks = None if screen is None else screen.blocks(policy, problem, state, BLOCK)
    begins = range(0, n_arms, BLOCK) if blocks is None else blocks
    scored = [
        choose.scores(state, problem._replace(arms=offer.arms[begin : begin + BLOCK]))
        for begin in begins
    ]
    place, mean, bonus = first_with_score(*map(np.concatenate, zip(*scored, strict=True)))
    return begins[place // BLOCK] + place % BLOCK, mean, bonus


def _scored(scores: Scores, offer: Offer, state: Any) -> Any:
    """Expected rewards and bonuses of all arms on offer."""
    policy, problem = offer.policy, offer.problem
    if offer.arms is problem.arms:
        return scores(state, problem)
    compared = len(problem.arms) <= policy.actions.compares
    if policy.agent.reads_features and (offer.new or not compared):
        return scores(state, problem._replace(arms=offer.arms))
    means, bonuses = scores(state, problem)  # of all own arms, even if only some are on offer
    return means[offer.rows], bonuses[offer.rows]


def score_table(offer: Offer, state: Any) -> list[Score]:
    """The score of every arm on offer."""
    means = bonuses = uncertainties = None
    if offer.policy.scores is not None:
        means, bonuses = _scored(offer.policy.scores, offer, state)
    if is_belief(state):
        means = offer.arms @ state.mean if means is None else means
        variances = np.vecdot(offer.arms @ state.cov, offer.arms)
        uncertainties = np.sqrt(np.maximum(variances, 0.0))
    rows = range(len(offer.arms)) if offer.rows is None else offer.rows.tolist()
    columns = [
        [None] * len(rows) if values is None else np.asarray(values).tolist()
        for values in (means, bonuses, uncertainties)
    ]
    names = (offer.names[row] for row in rows)
    return [Score(*score) for score in zip(names, *columns, strict=True)]


def choose_several(
    offer: Offer, state: Any, count: int, distinct: bool, noise: Callable[[int, int], Any]
) -> list[Chosen]:
    """Choose one arm after another, each as if the earlier ones had paid what is expected.

    Such a reward changes no mean and shrinks the uncertainty: ẑ stays, P ← P − K aᵀP. So the next
    choice gets no bonus for what earlier ones will already teach. A policy without expected rewards
    (`random`) simply chooses again. ``noise(k, i)`` draws for the i-th choice, among k arms.
    """
    check_can_choose_from_part(offer.policy, "policy", "ask for one decision at a time")
    left = offer.distinct()
    if distinct and count > len(left):
        wrong = f"is {count}, and {len(left)} different arms are on offer"
        remedy = f"give at most {len(left)}, or distinct=False"
        raise errors.InvalidInput("count", wrong, remedy)
    several = []
    for number in range(count):
        part = offer if len(left) == len(offer.arms) else offer.part(left)
        chosen = choose(part, state, noise(len(left), number))
        several.append(chosen)
        if distinct:
            left = np.delete(left, chosen.place)
        if chosen.mean is not None and math.isfinite(chosen.mean):
            entry = Entry(None, 0, chosen.arm, chosen.row, chosen.mean)
            state = observed(offer.policy, offer.problem, state, entry)
    return several
