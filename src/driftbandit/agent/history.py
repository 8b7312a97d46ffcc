"""What an agent has been through: its time, its model and arms, its open decisions, its log.

Plays in the window are open, in the ledger; older ones with a reward are in the log. A change that
can fail half-way is made on a `History.copy`, which is adopted at the end: all or nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import heapq
import itertools
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE, ActionSet
from driftbandit.agent import logged
from driftbandit.agent.arms import ArmNames, new_arms
from driftbandit.agent.choosing import Chosen, Decision
from driftbandit.agent.first_rewards import COUNTS, MOST_SETTLED, Size, learned_size, walk_of
from driftbandit.agent.ledger import Entry, Ledger, fold, replayed
from driftbandit.agent.watch import OnAlarm, Watch, widened
from driftbandit.contexts import Contexts, arms_in
from driftbandit.io.times import Clock
from driftbandit.kalman import is_belief
from driftbandit.model import LGDS
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import checked_prepared
from driftbandit.system import LAST_ROUND, Name, checked_names

Told = Literal["learned", "missing", "duplicate", "too late"]

BLOCK = 1000  # plays of a log that are open at a time; each keeps the state before and after it
# The window is a number of rounds, and a round may have very many decisions. Of those, so many stay
# open, unless the window has more rounds or memory has less room.
KEPT = 1000  # if they and all before them have their rewards: one that is told twice is noticed
MOST = 2**17  # at all: a late reward costs time for every later decision


@dataclasses.dataclass(eq=False)
class History:
    """Everything about an agent that changes. Callers hold ``lock``."""

    policy: Policy
    model: dataclasses.InitVar[LGDS]
    features: np.ndarray  # the arms as they were given; a model learned with offsets adds a column
    names: ArmNames
    horizon: int  # the number of rounds that the policy is tuned to
    window: int  # how many rounds late a reward may come
    memory: int  # how many settled plays are kept
    until_refit: int  # settled rewards until the next refit, if the agent ever refits
    offsets: bool  # whether refits learn an offset for each arm, so that new arms cannot be played
    keeps_arms: bool  # whether, for that reason, arms can be neither added nor removed
    has_model: bool  # whether the model was given or learned; if not, it is a random walk
    actions: ActionSet
    contexts: Contexts  # the B_j; without any, features are the same in every round
    # The round of the model's initial state, which contains what was learned from earlier rounds,
    # so that their plays are refused. None: time begins with the first question or play.
    start: int | None
    clock: Clock | None  # how rounds count times; None: not known
    on_alarm: OnAlarm | None
    # While the model is a random walk of the first rewards' size: the rounds of settled plays
    # without a reward, through which it is filtered again. None: the model does not change so.
    silent: list[int] | None
    size: Size | None = None  # of the first rewards
    log: deque[Entry] = dataclasses.field(init=False)  # the newest settled plays with their rewards
    watch: Watch | None = dataclasses.field(init=False)  # None: the policy has no Kalman filter
    problem: Problem = dataclasses.field(init=False)
    ledger: Ledger = dataclasses.field(init=False)
    removed: tuple[Name, ...] = ()  # names of removed arms, which no new model brings back
    complete: bool = True  # whether the log holds everything that was ever settled
    round: int = 0  # the round of the next `ask`
    now: int = 0  # the earliest round that can still be asked for
    base: int = 0  # the round of the prior
    decided: int = 0  # how many decisions were made
    refit_failure: str | None = None
    refit_task: Any = None  # the refit in progress
    # Plays settled during the refit in progress that are not in its state yet.
    since_refit: list[Entry] = dataclasses.field(default_factory=list)
    lock: Any = dataclasses.field(default_factory=threading.RLock)

    def __post_init__(self, model: LGDS) -> None:
        self.log = deque(maxlen=self.memory)
        self.problem, state = self.prepared(model, self.features)
        if self.start is not None:
            self.round = self.now = self.base = self.start
        self.ledger = Ledger(self.policy, self.problem, state, self.base)
        watched = is_belief(state) and not self.policy.full_information
        self.watch = Watch(model, self.on_alarm) if watched else None

    def copy(self, changed: Callable[[Entry], Entry] | None = None) -> History:
        """An independent copy; ``changed`` makes the plays that it keeps instead of these."""
        other = copy.copy(self)
        other.ledger = self.ledger.copy(changed or copy.copy)
        other.log = deque(map(changed, self.log) if changed else self.log, self.memory)
        other.since_refit = self.since_refit.copy()
        other.silent = self.silent and self.silent.copy()
        other.watch = self.watch and self.watch.copy()
        return other

    def adopt(self, other: History) -> None:
        """Become what a copy has become."""
        vars(self).update(vars(other))

    def prepared(self, model: LGDS, arms: np.ndarray) -> tuple[Problem, Any]:
        """The policy's problem for a model and arms, and its state before the first round."""
        rows = arms[:, None] if self.contexts else arms  # as `simulate` gives them
        constants, state = checked_prepared(self.policy, model, rows, self.horizon)
        return Problem(model, arms, constants), state

    @property
    def fixed(self) -> str | None:
        """Why only the agent's own arms can be played; None: others can, by their features."""
        if self.contexts:
            return "what contexts add to them"
        return "what the agent learns for each arm" if self.offsets else None

    def rows_in(self, context: Any) -> np.ndarray | None:
        """The features of all own arms in a context; None: the agent has no contexts."""
        if self.contexts:
            return arms_in(self.problem.arms, self.contexts, context, self.names.all)
        if context is not None:
            problem, remedy = "was given, and the agent has none", "make it of a System with some"
            raise errors.InvalidInput("context", problem, remedy)
        return None

    # Time.

    def checked_round(self, round: Any) -> int:
        """The round of a question; None: the next one."""
        if round is None and self.round <= LAST_ROUND:
            return self.round
        now = whole_round(self.round if round is None else round)
        if now < self.now:
            where = "the model starts in" if self.now == self.start else "the agent is already at"
            problem = f"is {now}, but {where} round {self.now}"
            raise errors.InvalidInput("round", problem, "give this round or a later one")
        return now

    def state_at(self, round: int) -> Any:
        """The policy's state in a round that is not before any decision.

        A round by which an unstable model's state has outgrown the largest number is refused.
        """
        begun = self.decided or not self._is_untouched()
        state = self.ledger.at(round) if begun else self.ledger.state
        is_large = not self.problem.model.is_stable and is_belief(state)
        if is_large and not (errors.finite(state.cov) and errors.finite(state.mean)):
            problem = f"is {round}, by when the state has outgrown the largest number"
            raise errors.InvalidInput("round", problem, "give an earlier one, or another model")
        return state

    def begin(self, round: int) -> None:
        """Let time begin in this round, if nothing has happened before."""
        if not self.decided and self._is_untouched():
            self.base = self.ledger.round = round

    def _is_untouched(self) -> bool:
        """Whether nothing was ever decided or told, and time may begin in any round."""
        if self.decided or self.start is not None:
            return False
        return not (len(self.ledger) or self.log or self.round or self.ledger.round)

    # Decisions.

    def decide(self, now: int, state: Any, chosen: Chosen) -> Decision:
        """Note a decision that was made in ``state``.

        Each of a batch settles what it makes superfluous, as if it were recorded alone.
        """
        if len(self.ledger) > self.window:
            before = self.problem
            self.settle(now)
            if self.problem is not before:  # an alarm changed the model
                state = self.state_at(now)
        id_ = self.decided
        self.ledger.add(Entry(id_, now, chosen.arm, chosen.row), state)
        self.decided, self.now, self.round = id_ + 1, now, now + 1
        return Decision(id_, chosen.name, now, chosen.mean, chosen.bonus, chosen.uncertainty)

    def open_entry(self, decision: Decision | int) -> Entry | None:
        """The ledger's entry for a decision; None: it is settled."""
        remedy = "tell what ask returned, or its id"
        id_: Any = decision.id if isinstance(decision, Decision) else decision
        if isinstance(id_, bool) or not isinstance(id_, int | np.integer):
            if isinstance(id_, str) and id_.isdecimal():
                remedy = f"ids are whole numbers: give {int(id_)}, not text"
            raise errors.InvalidInput("decision", f"is {decision!r}", remedy)
        if not 0 <= id_ < self.decided:
            raise errors.InvalidInput("decision", never_made(int(id_), self.decided), remedy)
        entry = self.ledger.find(int(id_))
        if entry is None or not isinstance(decision, Decision):
            return entry
        listed = self.actions.listed
        arm: Any = entry.name(self.names) if listed else entry.row
        same_arm = decision.arm == arm if listed else np.array_equal(decision.arm, arm)
        if not (same_arm and decision.round == entry.round):
            problem = f"{id_} is arm {arm} in round {entry.round}, not {decision!r}"
            raise errors.Conflict("decision", " ".join(problem.split()), remedy)
        return entry

    def tell(self, decision: Decision | int, reward: Any) -> tuple[Told, Entry | None]:
        """Learn the reward of a decision: what that does, and the decision's entry."""
        entry = self.open_entry(decision)
        reward = self.checked_reward(reward)
        if entry is None:
            return "too late", None
        if entry.reward is None:
            if reward is None:
                return "missing", entry
            self.ledger.learn(entry, reward)
            self.resize()
            return "learned", entry
        if reward is None or not np.array_equal(reward, entry.reward):
            new, old = (" ".join(repr(value).split()) for value in (reward, entry.reward))
            problem = f"is {new}, but decision {entry.id} was told {old}"
            remedy = "a decision has one reward; the first is kept"
            raise errors.Conflict("reward", problem, remedy)
        return "duplicate", entry

    def tell_many(self, rewards: Sequence[Any]) -> list[Told]:
        """Give several decisions their rewards: all of them or, after an error, none."""
        outcomes, learned = [], []
        try:
            for place, pair in enumerate(rewards):
                try:
                    decision, reward = pair
                except (TypeError, ValueError):
                    problem, remedy = f"is {pair!r:.60}", "give pairs of a decision and its reward"
                    raise errors.InvalidInput(f"rewards[{place}]", problem, remedy) from None
                try:
                    outcome, entry = self.tell(decision, reward)
                except errors.InvalidInput as error:
                    raise error.of(f"rewards[{place}]") from error.__cause__
                outcomes.append(outcome)
                if outcome == "learned" and entry is not None:
                    learned.append(entry)
        except BaseException:
            self.ledger.unlearn(learned)
            self.resize()
            raise
        return outcomes

    def settle(self, now: int) -> None:
        """Move what has left the window in round ``now`` from the ledger to the log.

        And what need not stay: see `KEPT` and `MOST`.
        """
        keep = max(self.window, min(KEPT, self.ledger.room))
        most = max(self.window, min(MOST, self.ledger.room))
        settled = self.ledger.settle(now - self.window, keep, most)
        if not settled:
            return
        for place, entry in enumerate(settled):
            if self._note(entry, entry.before) and self.watch is not None and self.on_alarm:
                self._widen(self.watch.alarm(), settled[place:])
        for entry in settled:
            entry.before = entry.after = None
        told = [entry for entry in settled if entry.reward is not None]
        self._remember(told)
        self.until_refit -= len(told)
        if self.refit_task is not None:
            self.since_refit.extend(told)
        if self.silent is not None:
            self.silent += [entry.round for entry in settled if entry.reward is None]
            self.resize()

    def resize(self, *, anew: bool = False) -> None:
        """Give the first random walk the size of the first rewards, if that is another now.

        ``anew``: also if it is not. All plays are filtered again. It ends when enough rewards are
        settled, and only those count then, so that it does not matter when rewards came.
        """
        if self.silent is None:
            return
        n_settled, arms = len(self.log) + len(self.silent), self.problem.arms
        ends = len(self.log) >= COUNTS[-1] or n_settled >= MOST_SETTLED or not self.complete
        size = learned_size(self.log if ends else itertools.chain(self.log, self.ledger), arms)
        if self.complete and (anew or size != self.size):
            self.size = size
            self.problem, prior = self.prepared(walk_of(arms, size), arms)
            silent = (Entry(None, round_, 0, None) for round_ in self.silent)
            plays = heapq.merge(self.log, silent, key=lambda entry: entry.round)
            self.ledger.restart(self.problem, *self.replay(prior, self.base, plays))
        if ends:
            self.silent = None

    def _note(self, entry: Entry, before: Any, after: Any = None) -> bool:
        """Note the surprise of a settled play, if it has one, from the state before it."""
        if self.watch is None or entry.reward is None:
            return False
        value = self.watch.surprise(entry.features(self.problem.arms), before, entry.reward)
        if value is None:
            return False
        self.watch.surprises.append((entry.round, entry.name(self.names), value))
        return True

    def replay(self, state: Any, round: int, entries: Iterable[Entry]) -> tuple[Any, int]:
        """`replayed` under the present problem; surprises are noted anew."""
        if self.watch is not None:
            self.watch.restart(self.problem.model)
        return replayed(self.policy, self.problem, state, round, entries, self._note)

    def _widen(self, factor: float | None, settled: list[Entry]) -> None:
        """Go on with Q times ``factor`` after the first of these plays; None: as before."""
        model = self.problem.model
        if factor is None or not model.process_cov.any():  # zero times a factor is zero
            return
        model = widened(model, factor)
        self.problem, _ = self.prepared(model, self.problem.arms)
        if self.watch is not None:
            self.watch.restart(model)
        entry, *later = settled
        last = fold(self.policy, self.problem, entry.after, entry.round, later)
        self.ledger.restart(self.problem, *last)

    def _remember(self, told: Sequence[Entry]) -> None:
        self.complete &= len(self.log) + len(told) <= self.memory
        self.log.extend(told)

    def forget(self, base: int) -> None:
        """Let time begin in round ``base``; drop older plays from the log."""
        self.base = base
        while self.log and self.log[0].round < base:
            self.log.popleft()
            self.complete = False

    def change_model(self, problem: Problem, state: Any, round: int) -> None:
        """Go on with another model or other arms, from a settled state in a round."""
        self.problem, self.has_model, self.refit_failure, self.silent = problem, True, None, None
        self.ledger.restart(problem, state, round)
        self.state_at(self.round)  # a model that cannot take the rewards fails here

    # Plays that the agent did not choose.

    def play(
        self, round: Any, arm: Any, reward: Any, features: Any = None, context: Any = None
    ) -> Entry:
        """A play that the agent did not choose, checked."""
        round, row, rows = whole_round(round), None, self.rows_in(context)
        if features is not None:
            self.actions.check_listed("features", "were given", "give the vector as arm")
        if not self.actions.listed:
            row, arm = SPHERE.checked_vector(arm, self.problem.model.n_states), 0
        elif features is not None:
            (arm,) = checked_names([arm], 1, "arm")
            row = errors.matrix(features, "features", shape=(self.problem.model.n_states,))
            row = new_arms([row], self.policy, self.problem, self.fixed, "features")[0]
        else:
            arm = self.names.row_in_log(arm)
            if rows is not None:
                arm, row = self.names[arm], rows[arm].copy()
        return Entry(None, round, arm, row, self.checked_reward(_missing_as_none(reward)))

    def checked_reward(self, reward: Any) -> Any:
        """A finite number, or those of all arms if the policy sees them; None: not known."""
        if reward is None:
            return None
        if self.policy.full_information:
            return errors.matrix(reward, "reward", shape=(len(self.problem.arms),))
        if isinstance(reward, bool | np.bool):  # a click
            return float(reward)
        return errors.number(reward, "reward")

    def tell_plays(self, entries: list[Entry], argument: str = "log") -> dict[Told, int]:
        """Fold in plays: all of them or, after an error, none. Time moves to the last of them."""
        if not entries:
            return {}
        entries = sorted(entries, key=lambda entry: entry.round)
        first, last = entries[0].round, entries[-1].round
        if self.start is not None and first < self.start:  # the model contains them already
            rounds = f"is {first}" if argument == "round" else f"holds rounds {first} to {last}"
            wrong = f"the model was learned from the rounds before {self.start}, in which it starts"
            remedy = f"tell only rounds from {self.start} on, or make the agent of start_system"
            raise errors.InvalidInput(argument, f"{rounds}, but {wrong}", remedy)
        new = self.copy()
        told = [entry for entry in entries if entry.reward is not None]
        oldest = max(new.now - new.window, new.ledger.round)
        if told and new._is_untouched():
            oldest = first  # with or without its reward
            new.begin(oldest)
        recent = [entry for entry in told if entry.round >= oldest]
        n_late = len(told) - len(recent)
        if n_late and new.complete:
            new._insert_settled(told[:n_late])
            n_late = 0
        for begin in range(0, len(recent), BLOCK):
            block = recent[begin : begin + BLOCK]
            for entry in block:
                new.check_reach(entry.round)
                new.ledger.insert(entry)
            new.settle(max(new.now, block[-1].round))
        new.resize()
        new.check_reach(last)
        new.ledger.at(max(new.round, last))  # a reward that the policy cannot take fails here
        new.now, new.round = max(new.now, last), max(new.round, last + 1)
        self.adopt(new)
        n_missing, n_learned = len(entries) - len(told), len(told) - n_late
        counts: dict[Told, int] = {"missing": n_missing, "too late": n_late, "learned": n_learned}
        return {outcome: count for outcome, count in counts.items() if count}

    def check_reach(self, round: int) -> None:
        """Refuse a round that an unstable model cannot reach; see `state_at`."""
        if not self.problem.model.is_stable and round >= self.now:
            self.state_at(round)

    def _insert_settled(self, late: list[Entry]) -> None:
        """Fold in plays among settled ones, all of which are still in the log."""
        entries = sorted([*self.log, *late], key=lambda entry: entry.round)
        self.base, self.refit_task = min(self.base, entries[0].round), None
        self.log.clear()
        self._remember(entries)
        self.until_refit -= len(late)
        _, prior = self.prepared(self.problem.model, self.problem.arms)
        self.ledger.restart(self.problem, *self.replay(prior, self.base, entries))

    def tell_log(self, log: Any) -> dict[Told, int]:
        """Fold in a log of plays; see `logged.plays_of` for its forms."""
        clock, untouched, ahead = getattr(log, "clock", None), self._is_untouched(), 0
        if clock is not None and self.clock is not None:
            ahead = self.clock.rounds_until(clock)
        next_, entries = self.round, []
        plays = logged.plays_of(log, tuple(self.contexts))
        for number, (round_, arm, reward, context) in enumerate(plays):
            round_ = next_ if round_ is None else round_ + ahead if ahead else round_
            try:
                entry = self.play(round_, arm, reward, None, context)
            except errors.InvalidInput as error:
                raise error.of(f"log row {number}:") from None
            next_ = max(next_, entry.round + 1)
            entries.append(entry)
        told = self.tell_plays(entries)
        if untouched and self.clock is None:
            self.clock = clock
        return told


def never_made(decision: int, decided: int) -> str:
    """What is wrong with a decision's number, of ``decided`` decisions.

    Example:
        >>> never_made(99, 31)
        '99 was never made: the decisions so far are 0 to 30'
    """
    made = f"the decisions so far are 0 to {decided - 1}" if decided else "no decision was made yet"
    return f"{decision} was never made: {made}"


def whole_round(round: Any) -> int:
    """A round within ±2⁵³."""
    try:
        return errors.whole_number(round, "round", low=-LAST_ROUND, high=LAST_ROUND)
    except errors.InvalidInput as error:
        remedy = "give a whole number from -2**53 to 2**53; times are for round_of, or read_log"
        raise errors.InvalidInput("round", error.problem, remedy) from None


def _missing_as_none(reward: Any) -> Any:
    is_nan = isinstance(reward, float | np.floating) and np.isnan(reward)
    is_na = reward is getattr(sys.modules.get("pandas"), "NA", None)
    return None if is_nan or is_na else reward
