"""One run of a policy in a simulated world, recorded round by round; NumPy alone.

`simulate` answers how well policies do on average. A `Trace` shows how one of them decides: what
the arms really paid, what the policy believed, and what it played.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.agent import Agent
from driftbandit.agent.arms import ArmNames
from driftbandit.agent.watch import OnAlarm
from driftbandit.arrays import first_highest
from driftbandit.model import LGDS, factor
from driftbandit.policies import PREFERRED, Policy, short_label, title
from driftbandit.system import Name, System, checked_system

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What happened in each of n rounds, with k arms and d hidden states.

    ``len`` is n. ``means``, ``uncertainties`` and ``bonuses`` are what the policy knew when it
    chose; NaN if it has none: `random` expects no reward, and only a Kalman filter has an
    uncertainty.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), np.eye(2), reward_std=0.1)
        >>> system = System(model, np.eye(2), ["left", "right"])
        >>> found = trace(system, policy="kalman_ucb", rounds=50)
        >>> len(found), found.label, found.title, found.index("right")
        (50, 'kalman_ucb', 'Kalman-UCB', 1)
        >>> lost = found.expected.max(axis=1) - found.of_chosen(found.expected)
        >>> bool(np.isclose(lost.sum(), found.regret[-1]))
        True
        >>> bool((lost[found.chosen == found.best] == 0).all())
        True

        Pictures: two panels; or the upper one, on an axis of yours.

        >>> figure = found.plot("trace.png", arm="left")
        >>> figure.axes[0].get_title()
        'Choices of Kalman-UCB (dots)'
        >>> from matplotlib.figure import Figure
        >>> found.draw(Figure().subplots())
    """

    names: tuple[Name, ...]  # of the k arms
    states: np.ndarray  # z, n × d
    expected: np.ndarray  # ⟨a, z⟩, the true expected reward of every arm, n × k
    means: np.ndarray  # the reward that the policy expects of every arm, n × k
    uncertainties: np.ndarray  # √(aᵀPa), the standard deviation of its ⟨a, z⟩, n × k
    bonuses: np.ndarray  # what the policy adds for exploration, n × k
    chosen: np.ndarray  # the row of the arm that was played, n whole numbers
    rewards: np.ndarray  # what it paid, n numbers
    agent: Agent
    """The agent after the last round: ask it on, or for its ``health()`` and ``alarms``."""

    def __len__(self) -> int:
        return len(self.chosen)

    def __repr__(self) -> str:
        return f"Trace({self.label}, {len(self.names)} arms, {len(self)} rounds)"

    @property
    def label(self) -> str:
        """The policy, with its parameters unless they are the default ones."""
        return short_label(self.agent.policy)

    @property
    def title(self) -> str:
        """The same as papers write it."""
        return title(self.label)

    @property
    def best(self) -> np.ndarray:
        """The row of the arm with the highest expected reward, n whole numbers."""
        return np.array([int(first_highest(row)) for row in self.expected])

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret after each round: Σ max_b ⟨b, z⟩ − ⟨a, z⟩ (P4), n numbers."""
        return np.cumsum(self.expected.max(axis=1) - self.of_chosen(self.expected))

    def of_chosen(self, values: np.ndarray) -> np.ndarray:
        """The played arm's entry in each row of an n × k array, such as ``means``."""
        return np.take_along_axis(values, self.chosen[:, None], axis=1)[:, 0]

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas table with one row per round.

        ``expected``, ``mean``, ``bonus`` and ``uncertainty`` are those of the arm that was played,
        ``best_expected`` is the expected reward of the best one.

        Example:
            >>> found = trace(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], rounds=3)
            >>> list(found.to_dataframe())[:5]
            ['round', 'arm', 'reward', 'expected', 'best']
        """
        with errors.needing("to_dataframe"):
            import pandas as pd

        names = np.array([*self.names, None], dtype=object)[:-1]  # numbers stay Python's
        columns = {
            "round": np.arange(len(self)),
            "arm": names[self.chosen],
            "reward": self.rewards,
            "expected": self.of_chosen(self.expected),
            "best": names[self.best],
            "best_expected": self.expected.max(axis=1),
            "mean": self.of_chosen(self.means),
            "bonus": self.of_chosen(self.bonuses),
            "uncertainty": self.of_chosen(self.uncertainties),
            "regret": self.regret,
        }
        return pd.DataFrame(columns)

    def plot(
        self, path: str | Path | None = None, *, arm: Name | None = None, against: Any = ()
    ) -> Figure:
        """Draw what the policy played, and below it what it lost; needs matplotlib.

        Args:
            path: a .png, .svg or .pdf file, or None.
            arm: draw what the policy believes of this arm instead of its cumulative regret.
            against: a `Trace` of the same world, several, or several by what to call them: their
                cumulative regret is drawn, too.
        """
        from driftbandit.agent import trace_figures
        from driftbandit.report import figures

        others = against if isinstance(against, Mapping) else trace_figures.named(against)
        figure = trace_figures.of(self, None if arm is None else self.index(arm), others)
        if path is not None:
            figures.save(figure, path)
        return figure

    def draw(self, axis: Any) -> None:
        """Draw the upper panel of `plot` on a matplotlib axis: arms as lines, choices as dots."""
        from driftbandit.agent import trace_figures

        trace_figures.choices(axis, self)

    def index(self, arm: Name) -> int:
        """The row of the arm with that name."""
        return ArmNames(self.names, len(self.names)).row(arm, may_be_new=False)


def trace(
    model: LGDS | System,
    arms: Any = None,
    policy: str | Policy = PREFERRED,
    rounds: int = 200,
    *,
    seed: int = 0,
    delay: int = 0,
    assumed: LGDS | System | None = None,
    jumps: Mapping[int, Any] | None = None,
    on_alarm: OnAlarm | None = None,
) -> Trace:
    """Play one run of a policy with an `Agent` in a simulated world, and record every round.

    The world depends on ``seed`` alone: every policy meets the same states and, on the same arm in
    the same round, the same noise; a longer run begins like a shorter one. The states start with
    the model's ``initial_mean`` and ``initial_cov``, or stationary. Runs of `simulate` draw other
    random numbers of the same distribution.

    Args:
        model: the true model, or a `System`, which includes the arms and their names.
        arms: k × d.
        policy: a name such as "reach" or "kalman_ucb(width=2)", or a `Policy`.
        rounds: how many; also the horizon that the policy is told.
        seed: of the world, and of the policy's random numbers.
        delay: how many rounds later than usual a reward arrives; 0: before the next round.
        assumed: what the policy takes the model to be; None: the truth. An `LGDS` keeps the arms; a
            `System` has an arm for each name, such as `Fit.system`. Its number of states may
            differ.
        jumps: by round, d numbers that are added to the state just before it. The policy does not
            know of them.
        on_alarm: as for `Agent`.

    Returns:
        A `Trace`.

    Example:
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> found = trace(System(model, [[1.0, 0.0], [0.0, 1.0]], ["slow", "fast"]), rounds=100)
        >>> found
        Trace(reach, 2 arms, 100 rounds)
        >>> [found.names[row] for row in found.chosen[:3]], bool(found.regret[-1] > 0)
        (['slow', 'fast', 'fast'], True)
    """
    world = checked_system(model, arms)
    rounds = errors.whole_number(rounds, "rounds", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    delay = errors.whole_number(delay, "delay", low=0)
    believed = world if assumed is None else _believed(assumed, world)
    believed = dataclasses.replace(believed, first_round=None)  # a trace counts rounds from 0
    agent = Agent(
        believed, policy=policy, rounds=rounds, seed=seed, window=delay, on_alarm=on_alarm
    )
    streams = [np.random.default_rng(key) for key in np.random.SeedSequence(seed).spawn(2)]
    states = _states(world.model, _jumps(jumps, rounds, world.model), streams[0])
    expected = states @ world.arms.T
    noise = streams[1].standard_normal(expected.shape)
    paid = expected + world.model.reward_std * noise
    chosen, decisions, tables = np.empty(rounds, int), [], []
    for now in range(rounds):
        decisions.append(agent.ask())
        tables.append([score[1:] for score in agent.explain() or ()])
        chosen[now] = world.names.index(decisions[now].arm)
        if now >= delay:
            then = now - delay
            seen = paid[then] if agent.policy.full_information else paid[then, chosen[then]]
            agent.tell(decisions[then], seen)
    rewards = paid[np.arange(rounds), chosen]
    scores = np.array(tables, float)  # None becomes NaN
    means, bonuses, uncertainties = scores.transpose(2, 0, 1)
    parts = (states, expected, means, uncertainties, bonuses, chosen, rewards)
    for part in parts:
        part.setflags(write=False)
    return Trace(world.names, *parts, agent)


def _believed(assumed: Any, world: System) -> System:
    """What the policy takes the world to be, with the world's names in the world's order."""
    try:
        if not isinstance(assumed, System):
            checked_system(assumed, world.arms)  # says what is wrong, if something is
            return System(assumed, world.arms, world.names)
        checked_system(assumed)
        rows = [assumed.index(name) for name in world.names]
    except errors.InvalidInput as error:
        raise error.of("assumed") from None
    return System(assumed.model, assumed.arms[rows], world.names)


def _jumps(jumps: Any, rounds: int, model: LGDS) -> np.ndarray:
    """What is added to the state before each round, n × d."""
    if not isinstance(jumps, Mapping | None):
        problem = f"has type {type(jumps).__name__}"
        raise errors.InvalidInput("jumps", problem, "give a mapping from rounds to d numbers")
    added = np.zeros((rounds, model.n_states))
    for now, size in (jumps or {}).items():
        errors.whole_number(now, "jumps round", low=0, high=rounds - 1)
        added[now] = errors.matrix(size, f"jumps[{now}]", shape=(model.n_states,))
    return added


def _states(model: LGDS, jumps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """z(0), …, z(n − 1): the first from its own distribution, then z ↦ Γz + ξ, and the jumps."""
    draws, moved = rng.standard_normal(jumps.shape), factor(model.process_cov)
    states = np.empty(jumps.shape)
    state = model.start_mean() + factor(model.start_cov()) @ draws[0]
    for now, jump in enumerate(jumps):
        if now:
            state = model.transition @ state + moved @ draws[now]
        state = state + jump
        if not errors.finite(state):
            n, most = len(jumps), errors.LARGEST
            problem = f"are {n}, and the state outgrows {most:g} in round {now}"
            raise errors.InvalidInput("rounds", problem, "give fewer, or a stable model")
        states[now] = state
    return states
