"""The online engine: one policy, one decision at a time, on NumPy, or compiled.

    decision = agent.ask()
    agent.tell(decision, reward)        # now, later, in any order, or never

The policies are the same ones that `simulate` runs; tens of microseconds, and unless ``compiled``
is asked for (`agent.compiled`), without JAX.
Only asking moves time, so what an agent knows does not depend on the order in which rewards
arrive. Threads may share an agent: a lock makes each of its methods atomic.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from driftbandit import errors
from driftbandit.actions import action_set
from driftbandit.agent import changes, choosing, logged, stored
from driftbandit.agent.arms import ArmNames, Offer, offered
from driftbandit.agent.choosing import Chosen, Decision, Score
from driftbandit.agent.compiled import compiled as compile_policy
from driftbandit.agent.first_rewards import random_walk
from driftbandit.agent.history import History, Told
from driftbandit.agent.refitting import Refit, RefitTask
from driftbandit.agent.screening import Screen
from driftbandit.agent.watch import OnAlarm, Watch, checked_on_alarm
from driftbandit.contexts import NO_CONTEXTS, Contexts
from driftbandit.io.atomic import write_whole
from driftbandit.model import LGDS
from driftbandit.policies import PREFERRED, Policy, Problem, check_contexts, make
from driftbandit.system import LAST_ROUND, Name, System, checked_names, round_of

if TYPE_CHECKING:
    from driftbandit.monitoring import Change, Health

Choose = Callable[[Offer, Any], list[Chosen]]


class Agent:
    """Decides round by round and learns from rewards, whenever they come.

    Args:
        model: the model of the rewards, or a `System`, which includes the arms, their names and
            perhaps contexts. If it has a ``first_round``, as one learned from components has, the
            agent starts in that round. None: not known; see ``refit``.
        arms: k × d; or "sphere": every unit vector. None, without a model: nothing is known of
            the arms but their ``names``.
        policy: a name such as "reach", which plays by default, or "kalman_ucb(width=2)", or a
            `Policy` of your own.
        names: the arms' names, strings or whole numbers; None: their row numbers.
        rounds: the horizon, for policies that are tuned to it.
        seed: of the policy's random numbers, if it draws any.
        window: how many rounds late a reward may come; 0: before the next round. Of very many
            decisions in a round some are settled earlier (`settled`).
        refit: when and how to learn the model from the agent's own log. None: never; without a
            model: `Refit()`, and the agent starts with a random walk, whose mean and scale it takes
            from the first rewards.
        screen: whether to screen very many arms in single precision first: the same decisions,
            several times faster, for half as much memory again as the arms take.
        memory: how many rewards older than the window the agent keeps for `replace_model`, the
            newest ones; with ``refit``, `Refit.memory`.
        compiled: whether to compile the policy's functions: the same numbers up to rounding, in
            half the time for small models, after up to a second for compiling. Needs the extra
            ``fast``. What cannot be compiled stays with NumPy.
        on_alarm: what to do when settled rewards show that the model no longer holds. "widen":
            multiply Q by up to 2. "refit": learn the model from the rewards since the change, at
            least `Refit.after` of them; once there is a model, only alarms lead to refits. None:
            nothing; see `health`.

    Example:
        Rewards may come late, and in any order.

        >>> from driftbandit import LGDS, Agent
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> agent = Agent(model, arms=[[1.0, 0.0], [0.0, 1.0]], names=["slow", "fast"])
        >>> first, second = agent.ask(), agent.ask()  # two rounds; no reward has come yet
        >>> agent.round, agent.open_decisions, agent.in_window()
        (2, [0, 1], 2)
        >>> agent.tell(second, reward=-3.0), agent.tell(first, reward=-4.0)
        ('learned', 'learned')
        >>> agent.tell(first, reward=-4.0)
        'duplicate'
        >>> first.arm, agent.ask().arm
        ('slow', 'fast')

        What it knows now, and what it assumes:

        >>> float(agent.state.mean[0].round(1))  # of the belief about the slow state
        -2.4
        >>> agent.names, agent.model is agent.problem.model, dict(agent.contexts)
        (('slow', 'fast'), True, {})

        It goes on from a file where it stopped.

        >>> agent.save("agent.json")
        >>> again = Agent.load("agent.json")
        >>> again.round, again.ask() == agent.ask()
        (3, True)
    """

    def __init__(
        self,
        model: LGDS | System | None = None,
        arms: Any = None,
        policy: str | Policy = PREFERRED,
        *,
        names: Any = None,
        rounds: int = 1000,
        seed: int = 0,
        window: int = 100,
        refit: Refit | None = None,
        screen: bool = True,
        memory: int = 1000,
        compiled: bool = False,
        on_alarm: OnAlarm | None = None,
    ) -> None:
        system = model if isinstance(model, System) else None
        model, arms, names = _unpacked(model, arms, names)
        contexts = NO_CONTEXTS if system is None else system.contexts
        self.policy = make(policy)
        self.rounds = errors.whole_number(rounds, "rounds", low=1)
        self.seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
        self.window = errors.whole_number(window, "window", low=0)
        self.memory = errors.whole_number(memory, "memory", low=0, high=LAST_ROUND)
        self.screen = errors.boolean(screen, "screen")
        self.compiled = errors.boolean(compiled, "compiled")
        if not isinstance(refit, Refit | None):
            raise errors.InvalidInput("refit", f"is {refit!r}", "give a Refit, or None")
        has_model = model is not None
        self.on_alarm = checked_on_alarm(on_alarm, has_model and refit is None)
        self.actions = action_set(arms)
        """What can be played: a list of arms, or the sphere."""
        if names is not None:
            self.actions.check_listed("names", "were given", "leave them out")
        if contexts:
            check_contexts(self.policy)
            if refit is not None:
                problem = "was given, and an agent with contexts cannot learn its model"
                raise errors.InvalidInput("refit", problem, "leave it out, and use replace_model")
        if model is None or refit is not None:
            argument, value = ("model", model) if model is None else ("refit", refit)
            self.actions.check_listed(argument, f"is {value!r}", "give a model and no refit")
            if self.policy.full_information:
                problem = f"cannot be learned by {self.policy.name}, which sees all rewards"
                raise errors.InvalidInput(argument, problem, "choose a policy that plays a bandit")
            refit = refit or Refit()
            if model is None:
                arms = errors.matrix(arms, "arms", shape=(None, None))
                model = random_walk(arms, refit.scale or 1.0)
            refit = refit.for_agent(np.asarray(arms), has_model=has_model)
            errors.require("refit", "jax")
        self.refit_options = refit
        arms = choosing.by_columns(arms if contexts else self.actions.rows(arms, model))
        self.policy.check_plays(self.actions, len(arms))
        self._history = History(
            compile_policy(self.policy) if self.compiled else self.policy,
            model,
            arms,
            ArmNames(names, len(arms)),
            horizon=self.rounds,
            window=self.window,
            memory=refit.memory if refit else self.memory,
            until_refit=refit.pause(0) if refit else 0,
            offsets=refit is not None and refit.by_arm,
            keeps_arms=refit is not None and refit.keeps_arms,
            has_model=has_model,
            actions=self.actions,
            contexts=contexts,
            start=system.first_round if system else None,
            clock=system.clock if system else None,
            on_alarm=self.on_alarm,
            silent=[] if refit and refit.scale is None else None,
        )
        if self.on_alarm is not None:
            self._watch("on_alarm")
        self._lock = self._history.lock
        self._saving = threading.Lock()  # so that files are replaced in the order of their states
        self._screen: Screen | None = None
        self._asked: tuple[Offer, Any] | None = None  # from what the last decision was chosen

    @property
    def model(self) -> LGDS:
        """The model that the agent assumes."""
        return self.problem.model

    @property
    def problem(self) -> Problem:
        """The model, the arms and the policy's constants, as the policy's functions take them."""
        return self._history.problem

    @property
    def contexts(self) -> Contexts:
        """How the features of a decision change the arms: a matrix for each, if there are some."""
        return self._history.contexts

    @property
    def names(self) -> tuple[Name, ...]:
        """The names of the arms, in the order of rows."""
        return tuple(self._history.names.all)

    @property
    def round(self) -> int:
        """The round that the next `ask` is for."""
        return self._history.round

    @property
    def first_round(self) -> int:
        """The round in which the model's initial state holds.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> agent.ask(round=7).round, agent.first_round
            (7, 7)
        """
        return self._history.base

    def round_of(self, time: Any) -> int:
        """The round in which a time falls, for `ask`; also after `load`.

        An agent knows how rounds count times from its `System`, if that was learned from components
        and a log with times; or from the first log with times that it is told.

        Args:
            time: as for `Log.round_of`: text such as "2024-01-31T09:30", a date or a datetime; with
                a time zone if the log's times have one.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], names=["a", "b"])
            >>> hours = ["2024-01-31 09:00", "2024-01-31 10:00"]
            >>> agent.tell_log({"round": hours, "arm": ["a", "b"], "reward": [1.0, 2.0]})
            {'learned': 2}
            >>> agent.save("agent.json")
            >>> agent = Agent.load("agent.json")
            >>> agent.ask(round=agent.round_of("2024-01-31 12:15")).round
            3
        """
        return round_of(self._history.clock, time, "agent")

    @property
    def open_decisions(self) -> list[int]:
        """The ids of the decisions inside the window that have no reward yet, oldest first."""
        with self._lock:
            return [e.id for e in self._history.ledger if e.reward is None and e.id is not None]

    @property
    def state(self) -> Any:
        """The policy's state in the next round: for Kalman policies the belief."""
        with self._lock:
            return self._history.ledger.at(self._history.round)

    @property
    def refit_failure(self) -> str | None:
        """Why the last scheduled refit failed and left the model as it was; None: it did not.

        Example:
            >>> agent = Agent(None, [[1.0], [-1.0]], refit=Refit(after=50))
            >>> agent.refit_failure is None
            True
        """
        return self._history.refit_failure

    @property
    def alarms(self) -> tuple[Change, ...]:
        """The last alarms that ``on_alarm`` acted on, the oldest first.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0]], window=0, on_alarm="widen")
            >>> rewards = 30 * [0.5, -0.5] + 20 * [9.0, -9.0]  # from round 60 on, far larger
            >>> agent.tell_log({"arm": [0] * 100, "reward": rewards})
            {'learned': 100}
            >>> agent.alarms[0].kind, agent.alarms[0].since
            ('larger', 60)
        """
        with self._lock:
            return tuple(self._watch("alarms").alarms)

    def health(self, level: float = 0.01) -> Health:
        """Does the model hold? The verdict on the last 1000 settled rewards (see ``window``).

        After a change of the model it begins again.

        Args:
            level: the probability that a true model is called wrong; see `monitoring.monitor`.

        Returns:
            `Health`; ``print`` says it in words.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0]], window=0)
            >>> rewards = 30 * [5.0, -5.0]
            >>> agent.tell_log({"arm": [0] * 60, "reward": rewards})
            {'learned': 60}
            >>> print(agent.health().tests["mean square"].holds)
            False
        """
        with self._lock:
            return self._watch("health").health(level)

    def _watch(self, what: str) -> Watch:
        if self._history.watch is None:
            sees = self.policy.full_information
            lacks = "sees the rewards of all arms" if sees else "predicts no rewards"
            problem = f"needs a policy with a Kalman filter, and {self.policy.name} {lacks}"
            raise errors.InvalidInput(what, problem, "choose reach, idea or kalman_ucb")
        return self._history.watch

    def __repr__(self) -> str:
        with self._lock:
            arms = self.actions.describe(len(self._history.names))
            waiting = len(self.open_decisions)
            return f"Agent({self.policy.label}, {arms}, round {self.round}, {waiting} open)"

    def in_window(self, round: int | None = None) -> int:
        """How many decisions are inside the window in a round and not `settled`.

        Args:
            round: the round, not before the agent's own; None: the next one.
        """
        with self._lock:
            now = self._history.checked_round(round)
            return self._history.ledger.count_since(now - self.window)

    def waiting(self, round: int | None = None) -> int:
        """How many decisions inside the window in a round have no reward yet.

        Args:
            round: as for `in_window`.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], window=3)
            >>> for _ in range(3):
            ...     decision = agent.ask()
            >>> agent.tell(decision, 0.5), agent.waiting(), agent.waiting(round=4)
            ('learned', 2, 1)
        """
        with self._lock:
            now = self._history.checked_round(round)
            return self._history.ledger.waiting_since(now - self.window)

    @property
    def settled(self) -> int:
        """How many decisions are settled: for those with lower ids a reward comes too late.

        Decisions are settled in their order, when their round leaves the window. If rounds have
        several, it may be earlier: 1000 later decisions settle one with a reward, if all before it
        have theirs, and 131,072 any; each number is larger if the window is, and smaller if the
        states of so many take more than 2 GiB.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> for _ in range(20):  # of at most 100 rounds
            ...     batch = agent.ask_many(100, distinct=False)
            ...     told = agent.tell_many([(decision, 0.5) for decision in batch])
            >>> agent.round, agent.settled, agent.tell(0, 0.5)
            (20, 999, 'too late')
        """
        with self._lock:
            return self._history.decided - self._history.ledger.n_decisions

    def ask(self, arms: Any = None, *, round: int | None = None, context: Any = None) -> Decision:
        """Choose an arm for the next round, or for the round you name.

        Args:
            arms: the arms on offer: names of the agent's own; or other arms by their features,
                rows of d numbers or a mapping from names to them. None: all of the agent's own;
                the only choice on the sphere.
            round: None: one round after the last. The same round again makes another decision in
                it (see `ask_many`); a later one lets time pass.
            context: the features of this decision, as in `System.arms_in`; required if the agent
                was made of a `System` with contexts, and refused otherwise.

        Returns:
            `Decision`: the arm to play, and the id under which to `tell` its reward.

        Example:
            >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
            >>> agent = Agent(model, [[1.0, 0.0], [0.0, 1.0]], names=["slow", "fast"])
            >>> agent.ask().arm, agent.ask(["fast"]).arm  # of all arms; of those on offer
            ('slow', 'fast')
            >>> agent.ask({"both": [0.7, 0.7]}).arm  # an arm of this round only
            'both'
            >>> decision = agent.ask(round=10)  # seven rounds in which nobody asked
            >>> decision.id, decision.round
            (3, 10)
        """
        with self._lock:
            return self._ask(arms, round, context, self._choose_one)[0]

    def ask_many(
        self,
        count: int,
        arms: Any = None,
        *,
        round: int | None = None,
        distinct: bool = True,
        context: Any = None,
    ) -> list[Decision]:
        """Choose several arms for one round.

        Each choice assumes that the earlier ones pay exactly what the policy expects. This changes
        no expected reward but shrinks the uncertainty: P ← P − K aᵀP. A decision's ``mean``,
        ``bonus`` and ``uncertainty`` are those under this assumption. The state itself does not
        change before real rewards come.

        Args:
            count: how many.
            arms: as for `ask`, like ``round`` and ``context``.
            distinct: choose no arm twice.

        Returns:
            ``count`` decisions, each with an id of its own.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [0.8], [-0.5]])
            >>> [decision.arm for decision in agent.ask_many(2)]
            [0, 1]
        """
        count = errors.whole_number(count, "count", low=1)
        errors.boolean(distinct, "distinct")

        def choose(offer: Offer, state: Any) -> list[Chosen]:
            return choosing.choose_several(offer, state, count, distinct, self._noise)

        with self._lock:
            remedy = "ask for one decision at a time"
            self.actions.check_listed("ask_many", "needs a list of arms", remedy)
            return self._ask(arms, round, context, choose)

    def _ask(self, arms: Any, round: int | None, context: Any, choose: Choose) -> list[Decision]:
        """Choose, note the decisions and let time pass; an error changes nothing."""
        history = self._history
        now, offer = history.checked_round(round), self._offer(history, arms, context)
        state = history.state_at(now)
        refit, until = self.refit_options, self._until_refit(history)
        may_refit = refit is not None and not refit.background and until <= len(history.ledger)
        if may_refit:  # before the choice, and on a copy: if the choice fails, nothing changes
            history = history.copy()
            if self._settle(history, now):  # a new model may read its arms differently
                offer, state = self._offer(history, arms, context), history.state_at(now)
        several = choose(offer, state)
        self._asked = offer, state
        if not may_refit:
            return self._decide(now, state, several)
        self._history.adopt(history)
        return [self._history.decide(now, state, chosen) for chosen in several]

    def _decide(self, now: int, state: Any, several: list[Chosen]) -> list[Decision]:
        """Let time pass, and note decisions that were chosen in ``state``."""
        history = self._history
        history.begin(now)
        changed = self._settle(history, now)  # by an alarm, from the next choice on
        if changed or (state is None and not history.ledger.is_stale):
            state = history.state_at(now)
        return [history.decide(now, state, chosen) for chosen in several]

    def record(
        self,
        decision: Decision,
        *,
        arms: Any = None,
        features: Any = None,
        context: Any = None,
        explain: bool = True,
    ) -> None:
        """Note a decision that a copy of this agent made, as if this agent had made it.

        An agent that records the decisions of another and is told the same rewards, in the same
        order, has the same state, bit for bit. Nothing is chosen: the recorded arm counts, even if
        another machine would round differently and prefer another one.

        Args:
            decision: what the copy's `ask` returned; its id must be this agent's next.
            arms: the names of the arms that were on offer, for `explain`; None: all.
            features: the d numbers that were played, if the arm is not one of the agent's own.
            context: as for `ask`.
            explain: whether `explain` must tell its scores. If not, states that late rewards
                changed are computed when they are needed, once for many of them.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], names=["up", "down"])
            >>> copy = Agent.from_json(agent.to_json())
            >>> copy.record(agent.ask())
            >>> copy.to_json() == agent.to_json()
            True
        """
        with self._lock:
            history = self._history
            self.actions.check_listed("record", "needs a list of arms", "ask this agent")
            if not isinstance(decision, Decision) or decision.id != history.decided:
                problem = f"is {errors.printable(repr(decision)[:60])}"
                remedy = f"give the copy's decision with the id {history.decided}"
                raise errors.InvalidInput("decision", problem, remedy)
            now = history.checked_round(decision.round)
            play = history.play(now, decision.arm, None, features, context)
            offer = None if features is not None else self._offer(history, arms, context)
            later = history.ledger.is_stale and not explain
            state = None if later else history.state_at(now)
            self._asked = None if later or offer is None else (offer, state)
            expected = decision[3:]
            self._decide(now, state, [Chosen(0, play.arm, play.row, decision.arm, *expected)])

    def explain(self) -> list[Score] | None:
        """The scores from which the last decision was chosen; None: they are not known.

        They are not stored with the agent. After `ask_many` they are those of its first decision.

        Returns:
            A `Score` for each arm on offer, in their order.

        Example:
            >>> agent = Agent(LGDS([[0.6]], [[0.64]], 1.0), [[1.0], [2.0]], names=["a", "b"])
            >>> agent.tell(agent.ask(), 1.5)
            'learned'
            >>> [score.arm for score in agent.explain()], agent.explain()[1].mean
            (['a', 'b'], 0.0)
        """
        with self._lock:
            if self._asked is None or not self.actions.listed:
                return None
            return choosing.score_table(*self._asked)

    def _offer(self, history: History, arms: Any, context: Any) -> Offer:
        problem, rows = history.problem, history.rows_in(context)
        if rows is not None:
            problem = problem._replace(arms=rows)
        own = Offer(history.policy, problem, problem.arms, history.names, rows is not None)
        if arms is None:
            return own
        shown = f"is {errors.printable(repr(arms)[:60])}"
        self.actions.check_listed("arms", shown, "ask without arms")
        return offered(arms, history.names, own, history.fixed)

    def _choose_one(self, offer: Offer, state: Any) -> list[Chosen]:
        noise = self._noise(len(offer.arms))
        if not self.actions.listed:
            return [choosing.choose_vector(offer, state, noise)]
        screen = choosing.screen_of(offer, self._screen) if self.screen else None
        self._screen = screen or self._screen
        return [choosing.choose(offer, state, noise, screen)]

    def _noise(self, n_arms: int, ahead: int = 0) -> Any:
        """The random numbers of the decision ``ahead`` of the next, whatever was drawn before."""
        noise = self.actions.noise(self.policy)
        if noise is None:
            return None
        counter = [0, 0, 0, self._history.decided + ahead]
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=counter))
        draw = rng.random if noise.distribution == "uniform" else rng.standard_normal
        return np.asarray(draw(noise.shape(self.model.n_states, n_arms)))

    def _settle(self, history: History, now: int) -> bool:
        """Settle what has left the window, act on alarms, and refit if that is due.

        Return whether the model is another one.
        """
        before = history.problem
        history.settle(now)
        refit, watch = self.refit_options, history.watch
        since = None if watch is None else watch.refit_since
        if refit is not None and history.refit_task is None:
            if watch is not None and since is not None and len(history.log) >= refit.pause(0):
                watch.refit_since = None
                RefitTask(history, refit, since).begin()
            elif self._until_refit(history) <= 0 and len(history.log) >= 2:
                RefitTask(history, refit).begin()
        return history.problem is not before

    def _until_refit(self, history: History) -> float:
        """Settled rewards until the next scheduled refit."""
        waits = self.on_alarm == "refit" and history.has_model
        return math.inf if waits else history.until_refit

    def scores(
        self, arms: Any = None, *, round: int | None = None, context: Any = None
    ) -> list[Score]:
        """The policy's score of every arm in the next round, in the order of ``arms`` (see `ask`).

        `ask` moves to the next round: the scores of the decision that it made are `explain`.

        Args:
            arms: as for `ask`, like ``context``.
            round: a later round, as it looks from now; None: the next.

        Returns:
            A `Score` for each arm.

        Example:
            >>> agent = Agent(LGDS([[0.6]], [[0.64]], 1.0), [[1.0], [2.0]], names=["a", "b"])
            >>> agent.scores()[0]
            Score(arm='a', mean=0.0, bonus=0.22..., uncertainty=1.0)
        """
        with self._lock:
            self.actions.check_listed("scores", "needs a list of arms", "ask for a decision")
            offer = self._offer(self._history, arms, context)
            now = self._history.checked_round(round)
            state = self.state if round is None else self._history.state_at(now)
            return choosing.score_table(offer, state)

    def tell(self, decision: Decision | int, reward: Any) -> Told:
        """Learn the reward of a decision; the order of rewards does not matter.

        Args:
            decision: what `ask` returned, or its id.
            reward: a finite number, or True or False, such as a click; for the Kalman Oracle the
                rewards of all k arms. None: not known, which is how every decision starts.

        Returns:
            "learned"; or, if nothing changes, "missing": there is no reward yet; "duplicate":
            the same was told before; "too late": the decision is `settled`, as its round has left
            the window.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], window=2)
            >>> early, late = agent.ask(), agent.ask()
            >>> agent.tell(late, 0.3), agent.tell(early, None)
            ('learned', 'missing')
            >>> agent.advance(3)
            >>> agent.tell(early.id, 0.5)
            'too late'
        """
        with self._lock:
            return self._history.tell(decision, reward)[0]

    def tell_many(self, rewards: Iterable[tuple[Decision | int, Any]]) -> list[Told]:
        """Learn the rewards of several decisions: all of them or, after an error, none.

        Args:
            rewards: pairs of a decision, or its id, and its reward.

        Returns:
            What `tell` returns, for each pair.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [0.8], [-0.5]])
            >>> first, second = agent.ask_many(2)
            >>> agent.tell_many([(second, 0.4), (first, 1.1), (first, 1.1)])
            ['learned', 'learned', 'duplicate']
        """
        with self._lock:
            return self._history.tell_many(list(rewards))

    def tell_play(
        self,
        arm: Any,
        reward: Any,
        *,
        round: int | None = None,
        features: Any = None,
        context: Any = None,
    ) -> Told:
        """Learn from a play that the agent did not choose, as if it had.

        Args:
            arm: the arm's name; on the sphere, the unit vector.
            reward: its reward; None: not known, so that only time passes.
            round: when; None: the next round, as for `ask`. It may be in the past, even before
                the agent's first round, but not before the system's ``first_round``.
            features: d numbers, if the arm is not one of the agent's own.
            context: as for `ask`.

        Returns:
            "learned"; "missing"; or "too late": the round has left the window, and the agent no
            longer keeps all rewards since then (see ``memory``).

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], names=["up", "down"])
            >>> agent.tell_play("down", 2.0)  # somebody else played it, in round 0
            'learned'
            >>> agent.round, agent.ask().arm
            (1, 'down')
        """
        with self._lock:
            round = self.round if round is None else round
            entry = self._history.play(round, arm, reward, features, context)
            (told,) = self._history.tell_plays([entry], "round")
            self._settle(self._history, self._history.now)
            return told

    def tell_log(self, log: Any) -> dict[Told, int]:
        """Learn from a log of plays that the agent did not choose; a bad log changes nothing.

        An agent of a model that starts where the log ends (``System.first_round``), such as one
        learned from components, knows the log already and refuses it.

        Args:
            log: the path of a file; a mapping or table with columns ``arm``, ``reward`` and perhaps
                ``round``; rows of (round, arm, reward), or mappings; or a `Log` of one sequence. A
                reward of None or NaN is missing. Times are counted as `round_of` does, if the agent
                can; else from the log's first one. With contexts: a file, a table, mappings or a
                `Log` that has all features. If its columns have other names, give
                ``read_log(data, columns=…)``.

        Returns:
            How many plays were "learned", "missing" and "too late"; see `tell_play`.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> agent.tell_log({"round": [-2, -1], "arm": [0, 1], "reward": [0.5, -0.3]})
            {'learned': 2}
            >>> agent.ask().round
            0
        """
        log = logged.read(log, self._history.clock)
        with self._lock:
            told = self._history.tell_log(log)
            if told:
                self._settle(self._history, self._history.now)
            return told

    def advance(self, rounds: int = 1) -> None:
        """Let rounds pass in which nothing is decided.

        Args:
            rounds: how many, ≥ 0. None pass by 0, and what need not stay open is `settled`.

        Example:
            >>> agent = Agent(LGDS([[0.5]], [[3.0]], 1.0), [[1.0]])
            >>> agent.tell(agent.ask(), 5.0)
            'learned'
            >>> sure = agent.scores()[0].uncertainty
            >>> agent.advance(20)
            >>> agent.round, sure < agent.scores()[0].uncertainty
            (21, True)
        """
        rounds = errors.whole_number(rounds, "rounds", low=0, high=LAST_ROUND)
        with self._lock:
            if rounds == 0:
                self._history.settle(self._history.now)
                return
            now = self._history.checked_round(self.round + rounds)
            self._history.check_reach(now)
            self._history.now = self._history.round = now
            self._settle(self._history, now)

    def add_arm(self, name: Name, features: Any = None) -> None:
        """Offer one more arm from now on.

        A Kalman policy keeps its belief. Any other policy computes its state again from the rewards
        that the agent keeps (see ``memory``).

        Args:
            name: a name that no other arm has.
            features: d numbers; None: they are not known. The arm then gets a reward of its own
                that drifts and varies as the other arms' do (`changes.with_new_arm`). Leave them
                out if the agent learns components.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], names=["a", "b"])
            >>> agent.add_arm("c", features=[2.0])
            >>> agent.add_arm("d")  # nothing is known of it
            >>> agent.names, agent.model.n_states
            (('a', 'b', 'c', 'd'), 2)
        """
        with self._lock:
            changes.add_arm(self._history, name, features)

    def remove_arm(self, name: Name) -> None:
        """Stop offering an arm. Its open decisions can still be told.

        The policy's state is kept or computed again as in `add_arm`.

        Args:
            name: of one of the agent's arms.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[2.0], [1.0]], names=["a", "b"])
            >>> decision = agent.ask()
            >>> agent.remove_arm("a")
            >>> decision.arm, agent.ask().arm, agent.tell(decision, 0.4)
            ('a', 'b', 'learned')
        """
        with self._lock:
            changes.remove_arm(self._history, name)

    def replace_model(self, model: LGDS | System, *, start: int | None = None) -> None:
        """Switch to another model and filter the kept rewards again under it.

        The agent keeps the rewards inside its window, and the newest ``memory`` older ones. A refit
        in progress is dropped; the next follows after its usual pause.

        Args:
            model: an `LGDS` that fits the arms' features; or a `System` that has an arm for each of
                the agent's names.
            start: the round in which the model's initial state holds, such as the first round of
                the log that it was learned from. Older rewards are forgotten. None: the system's
                ``first_round``; if it has none, the first round that the agent keeps.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> agent.tell(agent.ask(), 2.0)
            'learned'
            >>> agent.replace_model(LGDS([[0.5]], [[1.0]], 1.0))  # forgets sooner
            >>> agent.model.spectral_radius, agent.scores()[0].mean < 1
            (0.5, True)
        """
        with self._lock:
            changes.replace_model(self._history, model, start)
            if self.refit_options is not None:  # one that was due would replace the model at once
                pause = self.refit_options.pause(len(self._history.log))
                self._history.until_refit = pause

    def refit(self) -> None:
        """Learn the model from the agent's own log: the rewards older than the window.

        The new model is in use when this returns. Other threads may ask in the meantime. An agent
        with a `Refit` refits by itself when it is asked; if that fails, it keeps its model, and
        `refit_failure` says why.

        Example:
            >>> once = Refit(after=30, background=False)
            >>> agent = Agent(None, [[1.0], [0.5]], window=0, refit=once)
            >>> for t in range(20):
            ...     told = agent.tell(agent.ask(), np.sin(t / 5))
            >>> before = agent.model
            >>> agent.refit()  # sooner than planned
            >>> agent.wait_for_refit(), agent.model == before
            (True, False)
        """
        with self._lock:
            settled = len(self._history.log)
            if self.refit_options is None or settled < 2:
                remedy = "make the agent with refit=Refit(), and play on"
                raise errors.InvalidInput("log", f"has {settled} settled rewards", remedy)
            task = RefitTask(self._history, self.refit_options)
        task.run()

    def wait_for_refit(self, timeout: float | None = None) -> bool:
        """Wait until no refit is in progress, or ``timeout`` seconds; return whether none is.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
            >>> agent.wait_for_refit(timeout=5)  # this one never learns its model
            True
        """
        with self._lock:
            task = self._history.refit_task
        return task is None or task.done.wait(timeout)

    def to_json(self) -> str:
        """The whole agent as JSON text; `from_json` continues from it, bit for bit.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], policy="thompson")
            >>> copy = Agent.from_json(agent.to_json())
            >>> [agent.ask().arm for _ in range(5)] == [copy.ask().arm for _ in range(5)]
            True
        """
        settings = {name: getattr(self, name) for name in stored.SETTINGS}
        with self._lock:
            return stored.text_of(self._history, settings, self.refit_options)

    @classmethod
    def from_json(cls, text: str, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `to_json`.

        Args:
            text: what `to_json` returned.
            policy: the agent's policy, if it is one of your own: text holds only its name.

        Example:
            >>> from driftbandit import policies
            >>> own = policies.optimistic("bold", lambda cov, model, arms: 3 * arms[:, 0])
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], policy=own)
            >>> Agent.from_json(agent.to_json(), policy=own).ask() == agent.ask()
            True
        """
        return cls._read(text, policy, "text")

    def save(self, path: str | Path) -> None:
        """Write the whole agent to a file; readers see the old file or the new one, whole.

        Args:
            path: of the file, which is replaced if it exists.

        Example:
            >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]], names=["up", "down"])
            >>> decision = agent.ask()
            >>> agent.save("agent.json")
            >>> Agent.load("agent.json").tell(decision, 0.5)  # after a restart
            'learned'
        """
        target = stored.checked_path(path)
        with self._saving:
            write_whole(target, self.to_json().encode())

    @classmethod
    def load(cls, path: str | Path, policy: str | Policy | None = None) -> Self:
        """Bring back an agent from `save`; a damaged file, or a newer version's, is refused.

        Args:
            path: of the file.
            policy: as for `from_json`.

        Example:
            >>> Agent.load("none.json")
            Traceback (most recent call last):
            driftbandit.errors.InvalidInput: none.json: cannot be read (No such file or ...
        """
        return cls._read(stored.file_text(path), policy, str(path))

    @classmethod
    def _read(cls, text: str, policy: str | Policy | None, source: str) -> Self:
        with stored.reading(source):
            document = stored.document(text)
            agent = cls(**stored.arguments(document, policy))
            stored.restore(agent._history, document)
        return agent

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy an agent as the text that `to_json` writes."""
        return type(self).from_json, (self.to_json(), self.policy)


def sized_by_rewards(agent: Agent) -> Agent:
    """An agent of a random walk that stands for no model; it takes its size from first rewards."""
    agent._history.silent = []
    return agent


def _unpacked(model: Any, arms: Any, names: Any) -> tuple[LGDS | None, Any, Any]:
    """The model, arms and names from an agent's arguments; a `System` is all three."""
    if isinstance(model, System):
        if arms is not None or names is not None:
            argument = "names" if arms is None else "arms"
            problem = "were given together with a System, which has its own"
            raise errors.InvalidInput(argument, problem, "write Agent(system, policy=…)")
        return model.model, model.arms, model.names
    if model is not None:
        changes.check_model(model)
    elif arms is None and names is not None:
        names = names if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        names = checked_names(names, len(names) if isinstance(names, list) else 0)
        if not names:
            raise errors.InvalidInput("names", "is empty", "name at least one arm")
        return None, np.eye(len(names)), names
    if arms is None:
        remedy = "give a k × d array, or a System, or only the arms' names"
        raise errors.InvalidInput("arms", "is missing", remedy)
    return model, arms, names
