"""The online engine: one policy, one decision at a time, on NumPy alone.

    decision = agent.ask()
    agent.tell(decision, reward)        # now, later, in any order, or never

The policies are the very ones `simulate` plays; no compile, no JAX, tens of microseconds. Time
moves with asking, never with telling: so what an agent knows does not depend on the order in which
rewards arrive. Threads may share an agent: a lock makes each of its methods atomic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from driftbandit import errors
from driftbandit.actions import action_set
from driftbandit.agent import changes, history, learning, refitting, scoring, stored, unit_vectors
from driftbandit.agent.arm_names import ArmNames
from driftbandit.agent.choosing import Choice, Chosen, by_columns
from driftbandit.agent.core import LAST_ROUND, Core, unpacked
from driftbandit.agent.decision import Decision, Score, Told
from driftbandit.agent.refitting import Refit
from driftbandit.model import LGDS, checked_arms
from driftbandit.policies import Policy, make
from driftbandit.system import Name, System

__all__ = ["Agent"]


class Agent(Core):
    """Decides round by round and learns from rewards, whenever they come.

    Args:
        model: the system that drives the rewards; None: not known, see ``refit``. Or a `System`,
            which has the arms and their names, too.
        arms: k × d; or "sphere": every unit vector.
        policy: a name such as "idea" or "kalman_ucb(width=2)", or a `Policy` of your own.
        names: what the arms are called, texts or whole numbers; None: their row numbers.
        rounds: the horizon, for policies that tune themselves to it.
        seed: of the policy's own random numbers, for those that draw some.
        window: how many rounds late a reward may come; 0: before the next round.
        refit: when and how to learn the model from the agent's own log. None: never; without a
            model: `Refit()`, and the agent starts with a random walk.
        screen: whether to screen very many arms in single precision first. The decisions are the
            same, several times faster; it takes half as much memory again as the arms.
        memory: how many rewards older than the window the agent keeps, the newest ones, for
            `replace_model`. With ``refit`` it keeps `Refit.memory` of them.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> agent = Agent(model, arms=[[1.0, 0.0], [0.0, 1.0]], names=["slow", "fast"])
        >>> first, second = agent.ask(), agent.ask()  # two rounds; no reward has come yet
        >>> agent.tell(second, reward=-3.0), agent.tell(first, reward=-4.0)
        ('learned', 'learned')
        >>> agent.tell(first, reward=-4.0)
        'duplicate'
        >>> first.arm, agent.ask().arm
        ('slow', 'fast')
    """

    def __init__(
        self,
        model: LGDS | System | None,
        arms: Any = None,
        policy: str | Policy = "idea",
        *,
        names: Any = None,
        rounds: int = 1000,
        seed: int = 0,
        window: int = 100,
        refit: Refit | None = None,
        screen: bool = True,
        memory: int = 1000,
    ) -> None:
        model, arms, names = unpacked(model, arms, names)
        self.policy = make(policy)
        self.rounds = errors.whole_number(rounds, "rounds", low=1)
        self.seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
        self.window = errors.whole_number(window, "window", low=0)
        memory = errors.whole_number(memory, "memory", low=0, high=refitting.MOST)
        if refit is not None and not isinstance(refit, Refit):
            raise errors.InvalidInput("refit", f"is {refit!r}", "give a Refit, or None")
        if not isinstance(screen, bool):
            raise errors.InvalidInput("screen", f"is {screen!r}", "give True or False")
        self.screen = screen
        self.actions = action_set(arms)
        """What can be played: a list of arms, or the sphere."""
        if not self.actions.listed:
            unit_vectors.check(self.policy, model, refit, names)
            arms = self.actions.rows(arms, model)
        knows = model is not None
        if model is None:
            refit = refit or Refit()
            model = refitting.random_walk(arms, refit.scale)
        if refit is not None:
            errors.require("refit", "jax")
        if refit is not None and self.policy.full_information:
            problem = f"cannot be learned by {self.policy.name}, which sees all rewards"
            name = "refit" if knows else "model"
            raise errors.InvalidInput(name, problem, "choose a policy that plays a bandit")
        arms = by_columns(checked_arms(arms, model))
        self.policy.check_plays(self.actions, len(arms))
        self._names = ArmNames(names, len(arms))
        self.refit_options = refit
        self.memory = memory
        self._start(model, arms, knows)

    @property
    def model(self) -> LGDS:
        """The system as the agent believes it to be."""
        return self.problem.model

    @property
    def names(self) -> tuple[Name, ...]:
        """What the arms are called, in the order of rows."""
        return tuple(self._names.all)

    @property
    def state(self) -> Any:
        """The policy's state as the next `ask` finds it: for Kalman policies the belief."""
        with self._lock:
            return self._ledger.at(self.round)

    def __repr__(self) -> str:
        with self._lock:
            arms = self.actions.describe(len(self._names))
            waiting = sum(entry.reward is None for entry in self._ledger)
            return f"Agent({self.policy.label}, {arms}, round {self.round}, {waiting} open)"

    def ask(self, arms: Any = None, *, round: int | None = None) -> Decision:
        """Choose an arm for the next round, or for a round of your own.

        Args:
            arms: which arms are on offer: names of the agent's own; or others by their features,
                rows of d numbers or a mapping from names to them; None: all of the agent's own,
                and on the sphere there is nothing else to give.
            round: when; None: one round after the last. The same round again is another decision
                in it (see `ask_many`); a later one lets time pass.
        """
        with self._lock:
            now, offer, state, chosen = self._asked(arms, round, self._choose)
            if not self.actions.listed:
                vector, figures = chosen
                return self._decide(now, state, 0, vector, vector, figures)
            name, row = self._called(offer, chosen)
            return self._decide(now, state, chosen.arm, name, row, chosen.figures)

    def ask_many(
        self, count: int, arms: Any = None, *, round: int | None = None, distinct: bool = True
    ) -> list[Decision]:
        """Choose several arms for one round.

        Each choice assumes that the earlier ones pay exactly what the policy expects. This changes
        no expected reward but shrinks the uncertainty: P ← P − K aᵀP. A decision's ``mean``,
        ``bonus`` and ``uncertainty`` are those under this assumption. The state itself does not
        change before real rewards come.

        Args:
            count: how many.
            arms: as for `ask`.
            round: as for `ask`.
            distinct: no arm twice.

        Example:
            >>> from driftbandit import LGDS, Agent
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [0.8], [-0.5]])
            >>> [decision.arm for decision in agent.ask_many(2)]
            [0, 1]
        """
        count = errors.whole_number(count, "count", low=1)
        if not isinstance(distinct, bool):
            raise errors.InvalidInput("distinct", f"is {distinct!r}", "give True or False")
        with self._lock:
            remedy = "ask for one decision at a time"
            self.actions.check_listed("ask_many", "is for a list of arms", remedy)
            scoring.check_several(self.policy, self._offer(arms), count, distinct)

            def noise(number: int, n_arms: int) -> Any:
                return self._noise(n_arms, self._decided + number)

            def several(offer: Choice, state: Any) -> list[Chosen]:
                given = (self.policy, self.problem, state, offer, count, distinct)
                return scoring.several(*given, noise)

            now, offer, state, found = self._asked(arms, round, several)
            decisions = []
            for chosen in found:
                name, row = self._called(offer, chosen)
                decisions.append(self._decide(now, state, chosen.arm, name, row, chosen.figures))
            return decisions

    def scores(self, arms: Any = None) -> list[Score]:
        """What the policy thinks of every arm in the next round, in the order of arms.

        Args:
            arms: as for `ask`; None: all.

        Example:
            >>> from driftbandit import LGDS, Agent
            >>> agent = Agent(LGDS([[0.6]], [[0.64]], 1.0), [[1.0], [2.0]], names=["a", "b"])
            >>> agent.scores()[0]
            Score(arm='a', mean=0.0, bonus=0.42..., uncertainty=1.0)
        """
        with self._lock:
            self.actions.check_listed("scores", "are of a list of arms", "ask for a decision")
            offer = self._offer(arms)
            if offer.new:
                names = list(range(len(offer.arms)) if offer.labels is None else offer.labels)
            else:
                rows = range(len(offer.arms)) if offer.places is None else offer.places.tolist()
                names = [self._names[row] for row in rows]
            return scoring.table(self.policy, self.problem, self.state, offer, names)

    def tell(self, decision: Decision | int, reward: Any) -> Told:
        """Learn what a decision paid; the order does not matter.

        Args:
            decision: what `ask` returned, or its id.
            reward: a finite number, or True or False, such as a click; for the Kalman Oracle the
                rewards of all k arms. None: not known, which is how every decision starts.

        Returns:
            "learned"; or, where nothing changes, "missing": there is no reward yet; "duplicate":
            the same was told before; "too late": the decision's round has left the window.
        """
        with self._lock:
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

    def tell_play(
        self, arm: Any, reward: Any, *, round: int | None = None, features: Any = None
    ) -> Told:
        """Learn from a play that the agent did not choose, as if it had.

        Args:
            arm: the arm's name.
            reward: what it paid; None: not known, so that only time passes.
            round: when; None: the next round, as for `ask`. It may be in the past, even before
                the agent's first round.
            features: d numbers, if the arm is not one of the agent's own.

        Returns:
            "learned"; "missing"; or "too late": the round has left the window, and the agent no
            longer keeps all rewards since then (see ``memory``).
        """
        with self._lock:
            entry = self._play(self.round if round is None else round, arm, reward, features)
            return next(iter(history.tell(self, [entry])))

    def tell_log(self, log: Any) -> dict[Told, int]:
        """Learn from a log of plays that the agent did not choose; a bad log changes nothing.

        Args:
            log: a mapping or table with columns ``arm``, ``reward`` and perhaps ``round``; rows of
                (round, arm, reward), or mappings; or a `Log` of one sequence. A reward of None or
                NaN is missing.

        Returns:
            How many plays were "learned", "missing" and "too late"; see `tell_play`.

        Example:
            >>> from driftbandit import LGDS, Agent
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> agent.tell_log({"round": [-2, -1], "arm": [0, 1], "reward": [0.5, -0.3]})
            {'learned': 2}
            >>> agent.ask().round
            0
        """
        with self._lock:
            return history.tell_log(self, log)

    def advance(self, rounds: int = 1) -> None:
        """Let rounds pass in which nothing is decided."""
        if errors.whole_number(rounds, "rounds", low=0, high=LAST_ROUND) == 0:
            return
        with self._lock:
            now = self._checked_round(self.round + rounds)
            self._check_reach(now)
            self._now = self.round = now
            self._settle(now)

    def add_arm(self, name: Name, features: Any = None) -> None:
        """Offer one more arm from now on.

        Args:
            name: a name that no other arm has.
            features: d numbers; None: they are not known. The arm then gets a level of its own,
                which drifts, and lies as far off, as the other arms' do (`changes.with_level`).

        A Kalman policy keeps its belief. Any other policy computes its state again from the rewards
        that the agent keeps (see ``memory``).
        """
        with self._lock:
            changes.add_arm(self, name, features)

    def remove_arm(self, name: Name) -> None:
        """Stop offering an arm. Its open decisions can still be told.

        A Kalman policy keeps its belief. Any other policy computes its state again from the rewards
        that the agent keeps (see ``memory``).
        """
        with self._lock:
            changes.remove_arm(self, name)

    def replace_model(self, model: LGDS | System) -> None:
        """Switch to another model and filter the kept rewards again under it.

        The agent keeps the rewards inside its window, and the newest ``memory`` older ones. A refit
        under way is dropped; the next follows after its usual pause.

        Args:
            model: an `LGDS` that fits the arms' features; or a `System` that has an arm for each of
                the agent's names.
        """
        with self._lock:
            changes.replace_model(self, model)

    def refit(self) -> None:
        """Learn the model from the agent's own log: the rewards older than the window.

        The new model is in use when this returns. Other threads may ask in the meantime. An agent
        with a `Refit` refits by itself when it is asked; if that fails, it keeps its model, and
        `refit_failure` says why.
        """
        with self._lock:
            if self.refit_options is None or len(self._log) < 2:
                few = f"has {len(self._log)} settled rewards"
                remedy = "make the agent with refit=Refit(), and play on"
                raise errors.InvalidInput("log", few, remedy)
            task = learning.start(self)
        learning.run(self, task)

    def wait_for_refit(self, timeout: float | None = None) -> bool:
        """Wait until no refit is under way, and return whether that is so.

        Args:
            timeout: the most seconds to wait; None: as long as it takes.
        """
        with self._lock:
            task = self._learning
        return task is None or task.done.wait(timeout)

    def to_json(self) -> str:
        """The whole agent as JSON text; `from_json` goes on where this one stands, bit for bit."""
        with self._lock:
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
        stored.save(self, path)

    @classmethod
    def load(cls, path: str | Path, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `save`; a damaged file, or a newer version's, is refused."""
        return stored.read(cls, stored.text_of(path), policy, str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy an agent as the text that `to_json` writes."""
        return stored.revived, (type(self), self.to_json(), self.policy)
