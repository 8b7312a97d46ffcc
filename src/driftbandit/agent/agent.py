"""The online engine: one policy, one decision at a time, on NumPy alone.

    decision = agent.ask()
    agent.tell(decision, reward)        # now, later, in any order, or never

The policies are the very ones `simulate` plays; no compile, no JAX, tens of microseconds. Time
moves with asking, never with telling: so what an agent knows does not depend on the order in which
rewards arrive.
"""

from __future__ import annotations

import logging
from collections import deque
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from driftbandit import errors
from driftbandit.agent import refitting, stored, unit_vectors
from driftbandit.agent.choosing import Choice, by_columns, choose, screen_of
from driftbandit.agent.ledger import Entry, Ledger
from driftbandit.agent.refitting import Refit
from driftbandit.agent.screening import Screen
from driftbandit.arrays import Array
from driftbandit.files import write_whole
from driftbandit.kalman import Belief
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import Policy, Problem, make
from driftbandit.sphere import offer as sphere

__all__ = ["Agent", "Decision"]

Told = Literal["learned", "missing", "duplicate", "too late"]

LAST_ROUND = 2**53
"""Rounds beyond it are no longer told apart."""

log = logging.getLogger("driftbandit")


class Decision(NamedTuple):
    """What to play in a round."""

    id: int
    """Number of the decision, from 0."""
    arm: Any
    """Index of the arm to play, among the agent's arms, or among the features given to `ask`; on
    the sphere the unit vector itself, a NumPy array."""
    round: int
    """The round it is for."""
    mean: float | None
    """The reward the policy expects; None for policies that expect none."""
    bonus: float | None
    """What the policy adds to that, for what it may learn; None for policies without a score, and
    on the sphere."""
    uncertainty: float | None
    """√(aᵀPa), the standard deviation of ⟨a, z⟩; None for policies without a Kalman filter."""


class Agent:
    """Decides round by round and learns from rewards, whenever they come.

    Args:
        model: the system that drives the rewards; None: not known, see ``refit``.
        arms: k × d; or "sphere": every unit vector.
        policy: a name such as "idea" or "kalman_ucb(width=2)", or a `Policy` of your own.
        rounds: the horizon, for policies that tune themselves to it.
        seed: of the policy's own random numbers, for those that draw some.
        window: how many rounds late a reward may come; 0: before the next round.
        refit: when and how to learn the model from the agent's own log. None: never, or, where no
            model is given, `Refit` as it comes: the agent starts with a random walk.
        screen: whether very many arms are looked at in single precision first, so that few need be
            scored. The decisions are the same, several times faster, for half as much memory again
            as the arms take.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> agent = Agent(model, arms=[[1.0, 0.0], [0.0, 1.0]])
        >>> first, second = agent.ask(), agent.ask()  # two rounds; no reward has come yet
        >>> agent.tell(second, reward=-3.0), agent.tell(first, reward=-4.0)
        ('learned', 'learned')
        >>> agent.tell(first, reward=-4.0)
        'duplicate'
        >>> first.arm, agent.ask().arm
        (0, 1)
    """

    def __init__(
        self,
        model: LGDS | None,
        arms: Any,
        policy: str | Policy = "idea",
        *,
        rounds: int = 1000,
        seed: int = 0,
        window: int = 100,
        refit: Refit | None = None,
        screen: bool = True,
    ) -> None:
        self.policy = make(policy)
        self.rounds = errors.whole_number(rounds, "rounds", low=1)
        self.seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
        self.window = errors.whole_number(window, "window", low=0)
        if refit is not None and not isinstance(refit, Refit):
            raise errors.InvalidInput("refit", f"is {refit!r}", "give a Refit, or None")
        if not isinstance(screen, bool):
            raise errors.InvalidInput("screen", f"is {screen!r}", "give True or False")
        self.screen = screen
        self._screen: Screen | None = None
        self.on_sphere = sphere.is_sphere(arms)
        """Whether every unit vector is an arm."""
        if self.on_sphere:
            unit_vectors.check(self.policy, model, refit)
            arms = sphere.coordinates(model)
        self._learned = model is not None
        """Whether there is a model to begin the next refit from."""
        if model is None:
            refit = refit or Refit()
            model = refitting.random_walk(arms, refit.scale)
        if refit is not None:
            errors.require("refit", "jax")
        if refit is not None and self.policy.sees_all_rewards:
            problem = f"cannot be learned by {self.policy.name}, which sees all rewards"
            name = "refit" if self._learned else "model"
            raise errors.InvalidInput(name, problem, "choose a policy that plays a bandit")
        arms = by_columns(checked_arms(arms, model))
        self.policy.check_count(len(arms))
        self.refit_options = refit
        self.features = arms
        """The arms as they were given; a model learned with offsets reads more of them."""
        constants, state = self.policy.prepare(model, arms, self.rounds)
        self.problem = Problem(model, arms, constants)
        self.round = 0
        """The round that the next `ask` is for."""
        self._decided = 0
        self._now = 0  # no round before it can be asked for any more
        self._ledger = Ledger(self.policy, self.problem, state, round=0)
        self._log: deque[Entry] = deque(maxlen=refit.memory if refit else 0)
        self._until_refit = refit.after if refit else 0
        self.refit_failure: str | None = None
        """Why the last refit on schedule failed and left the model as it was; None: it did not."""

    @property
    def model(self) -> LGDS:
        """The system as the agent believes it to be."""
        return self.problem.model

    @property
    def state(self) -> Any:
        """The policy's state as the next `ask` finds it: for Kalman policies the belief."""
        return self._ledger.at(self.round)

    def ask(self, arms: Any = None, *, round: int | None = None) -> Decision:
        """Choose an arm for the next round, or for a round of your own.

        Args:
            arms: which arms are on offer: indices among the agent's own, or the features of
                others, rows of d numbers; None: all of the agent's own, and on the sphere there
                is nothing else to give.
            round: when; None: one round after the last. The same round again is another decision
                in it; a later one lets time pass.
        """
        now = self.round if round is None else self._checked_round(round)
        offer = self._offer(arms)
        state = self._ledger.at(now)
        jumps = now != self._now + 1
        if jumps and isinstance(state, Belief) and not np.isfinite(state.cov).all():
            problem = f"is {now}, by when the state has outgrown the largest number"
            raise errors.InvalidInput("round", problem, "ask for an earlier one")
        if self._settle(now):
            offer = self._offer(arms)  # a new model may read its arms otherwise
            state = self._ledger.at(now)
        noise = self._noise(len(offer.arms))
        row: Array | None
        if self.on_sphere:
            row, figures = unit_vectors.choose(self.policy, self.problem, state, noise)
            arm = 0
        else:
            screen = self._screen_of(offer)
            chosen = choose(self.policy, self.problem, state, offer, noise, screen)
            row = offer.arms[chosen.place] if offer.new else None
            arm, figures = chosen.arm, chosen.figures
        self._ledger.add(Entry(self._decided, now, arm, row), state)
        self._decided += 1
        self._now, self.round = now, now + 1
        return Decision(self._decided - 1, row if self.on_sphere else arm, now, *figures)

    def tell(self, decision: Decision | int, reward: Any) -> Told:
        """Learn what a decision paid; the order does not matter.

        Args:
            decision: what `ask` returned, or its id.
            reward: a finite number; for the Kalman Oracle the rewards of all k arms. None: no
                reward is known, which is how every decision starts.

        Returns:
            "learned"; or, where nothing changes, "missing": there is no reward yet; "duplicate":
            the same was told before; "too late": the decision's round has left the window.
        """
        entry = self._entry(decision)
        if reward is not None:
            reward = self._checked_reward(reward)
        if entry is None:
            return "too late"
        if entry.reward is None:
            if reward is None:
                return "missing"
            self._ledger.learn(entry, reward)
            return "learned"
        if reward is None or not np.array_equal(reward, entry.reward):
            new, old = (" ".join(repr(one).split()) for one in (reward, entry.reward))
            raise errors.InvalidInput(
                "reward",
                f"is {new}, but decision {entry.id} was told {old}",
                "a decision has one reward; what was told first is kept",
            )
        return "duplicate"

    def advance(self, rounds: int = 1) -> None:
        """Let rounds pass in which nothing is decided."""
        if errors.whole_number(rounds, "rounds", low=0, high=LAST_ROUND) > 0:
            self._now = self.round = self._checked_round(self.round + rounds)
            self._settle(self._now)

    def refit(self) -> None:
        """Learn the model from the agent's own log: the settled rewards, and what follows now.

        An agent with a `Refit` does so by itself, as it is asked; where that fails, it keeps the
        model it has, and `refit_failure` says why.
        """
        if self.refit_options is None or len(self._log) < 2:
            few = f"has {len(self._log)} settled rewards"
            remedy = "make the agent with refit=Refit(), and play on"
            raise errors.InvalidInput("log", few, remedy)
        start = self.model if self._learned else None
        entries = list(self._log)
        self._until_refit = self.refit_options.pause(len(entries))
        model, arms = refitting.learned(
            entries, self.features, self.refit_options, start, self.seed
        )
        constants, state = self.policy.prepare(model, arms, self.rounds)
        problem = Problem(model, arms, constants)
        state, round_ = refitting.refolded(self.policy, problem, state, entries)
        self.problem, self._learned, self.refit_failure = problem, True, None
        self._ledger.restart(problem, state, round_)

    def to_json(self) -> str:
        """The whole agent as JSON text; `from_json` goes on where this one stands, bit for bit."""
        return stored.written(self)

    @classmethod
    def from_json(cls, text: str, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `to_json`.

        Args:
            text: what `to_json` returned.
            policy: the `Policy` itself, where it is one of your own.
        """
        return stored.read(cls, text, policy)

    def save(self, path: str | Path) -> None:
        """Write the whole agent to a file, which is seen complete or not at all."""
        write_whole(Path(path), self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `save`; a damaged file, or a newer version's, is refused."""
        return stored.read(cls, stored.text_of(path), policy, str(path))

    def _checked_round(self, round: Any) -> int:
        now = errors.whole_number(round, "round", low=0, high=LAST_ROUND)
        if now < self._now:
            problem = f"is {now}, and time has come to round {self._now}"
            raise errors.InvalidInput("round", problem, "give this round or a later one")
        return now

    def _offer(self, arms: Any) -> Choice:
        if arms is None:
            return Choice(self.problem.arms)
        if self.on_sphere:
            problem = f"is {errors.printable(repr(arms)[:60])}, and the agent plays on the sphere"
            raise errors.InvalidInput("arms", problem, "ask without arms")
        fixed = self.refit_options is not None and self.refit_options.offsets
        return Choice.of(arms, self.policy, self.problem, fixed)

    def _screen_of(self, offer: Choice) -> Screen | None:
        """The screen of all arms, made when first needed and whenever a new model reads others."""
        arms = self.problem.arms
        if not self.screen or offer.arms is not arms:
            return None
        if self._screen is None or self._screen.arms is not arms:
            self._screen = screen_of(self.policy, arms)
        return self._screen

    def _settle(self, now: int) -> bool:
        """Let go of what is too old, and learn from it if it is time to; whether it was."""
        settled = self._ledger.settle(now - self.window)
        if self.refit_options is None or not settled:
            return False
        told = [entry for entry in settled if entry.reward is not None]
        self._log.extend(told)
        self._until_refit -= len(told)
        if self._until_refit > 0:
            return False
        try:
            self.refit()
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            self.refit_failure = str(error)
            log.warning("the model could not be learned anew: %s", error)
        return True

    def _entry(self, decision: Decision | int) -> Entry | None:
        """The open decision; None where it is settled."""
        remedy = "tell what ask returned"
        id_: Any = decision.id if isinstance(decision, Decision) else decision
        if isinstance(id_, np.integer):
            id_ = int(id_)
        if type(id_) is not int:
            raise errors.InvalidInput("decision", f"is {decision!r}", remedy)
        if not 0 <= id_ < self._decided:
            problem = f"{id_} was never made: there are {self._decided}"
            raise errors.InvalidInput("decision", problem, remedy)
        entry = self._ledger.find(id_)
        if (
            entry is not None
            and isinstance(decision, Decision)
            and not (decision.round == entry.round and self._is_arm(decision.arm, entry))
        ):
            problem = f"{id_} is arm {entry.arm} in round {entry.round}, not {decision!r}"
            if self.on_sphere:
                shown = " ".join(repr(decision).split())
                problem = f"{id_} is another vector or round than {shown}"
            raise errors.InvalidInput("decision", problem, remedy)
        return entry

    def _is_arm(self, arm: Any, entry: Entry) -> bool:
        played: Any = entry.row if self.on_sphere else entry.arm
        return np.array_equal(arm, played)

    def _checked_reward(self, reward: Any) -> Any:
        if self.policy.sees_all_rewards:
            return errors.matrix(reward, "reward", shape=(len(self.problem.arms),))
        return errors.number(reward, "reward")

    def _noise(self, arms: int) -> Any:
        noise = unit_vectors.noise_of(self.policy) if self.on_sphere else self.policy.noise
        if noise is None:
            return None
        # Counter-based: what a decision draws does not depend on what was drawn before it.
        counter = [0, 0, 0, self._decided]
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=counter))
        shape = noise.shape(self.problem.model.states, arms)
        return np.asarray(
            rng.random(shape) if noise.law == "uniform" else rng.standard_normal(shape)
        )
