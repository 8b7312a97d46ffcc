"""Which arms a policy names in the rounds of a log, and what it learns from.

Either it learns from every reward of the log, whoever chose the arm. Or, by rejection, only where
its own choice is the logged arm (Li et al. 2011). If the log drew that arm with chance p, the round
is accepted with probability p_min/p, so that every choice gets its reward with the same chance
p_min. Without this thinning the policy would mostly see what the log preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.agent.ledger import advanced
from driftbandit.model import LGDS
from driftbandit.policies import Policy, Problem
from driftbandit.replays.decisions import Decisions

Tick = Callable[[], None]  # called after every decision


class Player(NamedTuple):
    """A policy with its model, before its first round."""

    policy: Policy
    problem: Problem
    state: Any
    arms: np.ndarray  # k × d, or of each decision, n × k × d

    def at(self, number: int) -> Player:
        """The policy with the arms of a decision."""
        if self.arms.ndim == 2:
            return self
        return self._replace(problem=self.problem._replace(arms=self.arms[number]))

    def choose(self, state: Any, rng: np.random.Generator) -> int:
        """The arm that the policy names."""
        noise = self.policy.noise
        drawn = None
        if noise is not None:
            shape = noise.shape(*reversed(self.problem.arms.shape))
            drawn = rng.random(shape) if noise.distribution == "uniform" else rng.normal(size=shape)
        last = len(self.problem.arms) - 1
        place = int(self.policy.choose(state, self.problem, drawn))
        return errors.whole_number(place, f"arm of policy {self.policy.name!r}", low=0, high=last)

    def learn(self, state: Any, arm: int, reward: float) -> Any:
        """The state after a reward, in the same round."""
        observe = self.policy.agent.observe or self.policy.update
        return observe(state, self.problem, arm, reward)


def online(
    policies: Mapping[str, Policy], baseline: str | None
) -> tuple[dict[str, Policy], list[str]]:
    """The policies, by label, that can play arms that contexts change; notes on the others."""
    able = {who: one for who, one in policies.items() if one.actions.contexts == "online"}
    unable = [who for who in policies if who not in able]
    said = f"{', '.join(unable)} cannot play arms that contexts change"
    if baseline in unable or not able:
        argument = "baseline" if able else "policies"
        raise errors.InvalidInput(argument, said, "name others, or leave the regression out")
    return able, [f"Left out: {said}."] if unable else []


def player(policy: Policy, model: LGDS, arms: np.ndarray, decisions: Decisions) -> Player:
    """The policy, prepared for as many rounds as the decisions span.

    ``arms`` are k × d, or those of each decision, n × k × d, if contexts change them.
    """
    span = int(decisions.times[-1] - decisions.times[0]) + 1
    first = arms if arms.ndim == 2 else arms[0]
    rows = arms if arms.ndim == 2 else first[:, None]  # as `simulate` gives them
    constants, state = policy.prepare(model, rows, max(span, len(decisions)))
    return Player(policy, Problem(model, first, constants), state, arms)


def named(
    who: Player,
    decisions: Decisions,
    first: int,
    runs: int,
    seed: int,
    tick: Tick,
    least: float | None = None,
) -> np.ndarray:
    """The arms named from decision ``first`` on, runs × n.

    If ``least`` is None, the policy learns from every reward, and runs differ in random numbers
    alone. Else there is one run, which learns by rejection, with ``least`` as p_min.
    """
    rng = np.random.default_rng(seed)
    arms = np.empty((runs, len(decisions) - first), np.int64)
    # A decision whose chance is not known is never accepted: a comparison with NaN is false.
    accepted = None if least is None else rng.random(len(decisions)) * decisions.chances < least
    state = who.state
    rows = decisions.waits.tolist(), decisions.arms.tolist(), decisions.rewards.tolist()
    for t, (wait, arm, reward) in enumerate(zip(*rows, strict=True)):
        state, now, learns = advanced(who.policy, who.problem, state, wait), who.at(t), True
        if t >= first or accepted is not None:
            choices = [now.choose(state, rng) for _ in range(runs)]
            learns = accepted is None or bool(choices[0] == arm and accepted[t])
            if t >= first:
                arms[:, t - first] = choices
        if learns:
            state = now.learn(state, arm, reward)
        tick()
    return arms


def least_chance(decisions: Decisions) -> float:
    """p_min: the smallest chance in the log."""
    return float(np.nanmin(decisions.chances))
