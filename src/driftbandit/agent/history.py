"""What an agent has been through: its time, its model and arms, its open decisions, its log.

Plays in the window are open, in the ledger; older ones with a reward are in the log. A change that
can fail half-way is made on a `History.copy`, which is adopted at the end: all or nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import heapq
import itertools
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE, ActionSet
from driftbandit.agent import logged
from driftbandit.agent.arms import ArmNames, new_arms
from driftbandit.agent.choosing import Chosen, Decision
from driftbandit.agent.first_rewards import COUNTS, MOST_SETTLED, Size, learned_size, walk_of
from driftbandit.agent.ledger import Entry, Ledger, fold, replayed, room_for
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
    log: deque[Entry]  # the newest settled plays with their rewards
    until_refit: int | None  # settled rewards until the next refit; None: the agent never refits
    offsets: bool  # whether refits learn an offset for each arm, so that new arms cannot be played
    keeps_arms: bool  # whether, for that reason, arms can be neither added nor removed
    has_model: bool  # whether the model was given or learned; if not, it is a random walk
    actions: ActionSet
    contexts: Contexts  # the B_j; without any, features are the same in every round
    # The round of the model's initial state, which contains what was learned from earlier rounds,
    # so that their plays are refused. None: time begins with the first question or play.
    start: int | None = None
    clock: Clock | None = None  # how rounds count times; None: not known
    on_alarm: OnAlarm | None = None
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
    settled_since_refit: int = 0  # how many plays were settled during the refit in progress
    # Whether the model is still the random walk whose size the first rewards give; that size; and
    # the rounds of settled plays without a reward, through which it is filtered again.
    guess: bool = False
    size: Size | None = None
    silent: list[int] = dataclasses.field(default_factory=list)
    lock: Any = dataclasses.field(default_factory=threading.RLock)

    def __post_init__(self, model: LGDS) -> None:
        self.problem, state = self.prepared(model, self.features)
        if self.start is not None:
            self.round = self.now = self.base = self.start
        self.ledger = Ledger(self.policy, self.problem, state, round=self.base)
        watched = is_belief(state) and not self.policy.full_information
        self.watch = Watch(model, self.on_alarm) if watched else None

    def copy(self) -> History:
        """An independent copy."""
        other = copy.copy(self)
        other.ledger, other.log = self.ledger.copy(), self.log.copy()
        other.since_refit, other.silent = self.since_refit.copy(), self.silent.copy()
        other.watch = None if self.watch is None else self.watch.copy()
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
        """The policy's state in a round that is not before any decision; see `check_reach`."""
        untouched = not self.decided and self._is_untouched()
        state = self.ledger.state if untouched else self.ledger.at(round)
        if not self.problem.model.is_stable:
            _check_size(state, round)
        return state

    def check_reach(self, round: int) -> None:
        """Refuse a round by which an unstable model's state has outgrown the largest number."""
        if not self.problem.model.is_stable and round >= self.now:
            _check_size(self.ledger.at(round), round)

    def begin(self, round: int) -> None:
        """Let time begin in this round, if nothing has happened before."""
        if not self.decided and self._is_untouched():
            self.base = self.ledger.round = round

    def _is_untouched(self) -> bool:
        """Whether nothing was ever decided or told, and time may begin in any round."""
        if self.start is not None:
            return False
        return not (self.decided or len(self.ledger) or self.log or self.round or self.ledger.round)

    def advance(self, round: int) -> None:
        """Let time pass until this round."""
        self.check_reach(round)
        self.now = self.round = round

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
        if isinstance(id_, np.integer):
            id_ = int(id_)
        if type(id_) is not int:
            if isinstance(id_, str) and id_.isdecimal():
                remedy = f"ids are whole numbers: give {int(id_)}, not text"
            raise errors.InvalidInput("decision", f"is {decision!r}", remedy)
        if not 0 <= id_ < self.decided:
            raise errors.InvalidInput("decision", never_made(id_, self.decided), remedy)
        entry = self.ledger.find(id_)
        if entry is None or not isinstance(decision, Decision):
            return entry
        name: Any = self.names[entry.arm] if entry.row is None else entry.arm
        if self.actions.listed:
            same_arm = decision.arm == name
        else:
            same_arm, name = np.array_equal(decision.arm, entry.row), entry.row  # type: ignore[arg-type]
        if not (same_arm and decision.round == entry.round):
            problem = f"{id_} is arm {name} in round {entry.round}, not {decision!r}"
            raise errors.Conflict("decision", " ".join(problem.split()), remedy)
        return entry

    def outcome(
        self, decision: Decision | int, reward: Any, told: Mapping[int, Any]
    ) -> tuple[Told, Any, Any]:
        """What telling a reward does, the decision's entry and the reward, checked.

        ``told``: rewards by decision that are told together with this one and before it.
        """
        entry = self.open_entry(decision)
        reward = self.checked_reward(reward)
        if entry is None:
            return "too late", entry, reward
        old = told.get(entry.id, entry.reward)  # type: ignore[arg-type]
        if old is None:
            return "missing" if reward is None else "learned", entry, reward
        if reward is None or not np.array_equal(reward, old):
            new, old = (" ".join(repr(one).split()) for one in (reward, old))
            problem = f"is {new}, but decision {entry.id} was told {old}"
            remedy = "a decision has one reward; the first is kept"
            raise errors.Conflict("reward", problem, remedy)
        return "duplicate", entry, reward

    def tell_many(self, rewards: Sequence[Any]) -> list[Told]:
        """Give several decisions their rewards: all of them or, after an error, none."""
        told: dict[int, Any] = {}
        found = []
        for place, pair in enumerate(rewards):
            try:
                decision, reward = pair
            except (TypeError, ValueError):
                remedy = "give pairs of a decision and its reward"
                raise errors.InvalidInput(f"rewards[{place}]", f"is {pair!r:.60}", remedy) from None
            try:
                outcome, entry, reward = self.outcome(decision, reward, told)
            except errors.InvalidInput as error:
                raise error.of(f"rewards[{place}]") from None
            if outcome == "learned":
                told[entry.id] = reward
            found.append((outcome, entry, reward))
        learned = []
        try:
            for outcome, entry, reward in found:
                if outcome == "learned":
                    self.learn(entry, reward)
                    learned.append(entry)
        except BaseException:  # the policy cannot take one of them
            self.ledger.unlearn(learned)
            self.resize()
            raise
        return [outcome for outcome, _, _ in found]

    def settle(self, now: int) -> None:
        """Move what has left the window in round ``now`` from the ledger to the log.

        And what need not stay: see `KEPT` and `MOST`.
        """
        settled = self.ledger.settle(now - self.window)
        if len(self.ledger) > self.window:
            room = room_for(self.ledger.state)
            keep, most = (max(self.window, min(number, room)) for number in (KEPT, MOST))
            settled += self.ledger.settle_excess(keep, most)
        if settled:
            told = [entry for entry in settled if entry.reward is not None]
            if self.on_alarm is not None:
                self._act_on_alarms(settled)
            for entry in settled:
                if self.on_alarm is None:
                    self._note(entry, entry.before)
                entry.before = entry.after = entry.surprise = None
            self._remember(told)
            if self.until_refit is not None:
                self.until_refit -= len(told)
            if self.refit_task is not None:
                self.since_refit.extend(told)
                self.settled_since_refit += len(told)
            if self.guess:
                self.silent += [entry.round for entry in settled if entry.reward is None]
                self.resize()

    def learn(self, entry: Entry, reward: Any) -> None:
        """Give an open decision its reward."""
        self.ledger.learn(entry, reward)
        if self.watch is not None and not entry.pending:  # now: the belief is in the cache
            row = self.problem.arms[entry.arm] if entry.row is None else entry.row
            entry.surprise = self.watch.surprise(row, entry.before, reward)
        self.resize()

    def resize(self, *, anew: bool = False) -> None:
        """Give the first random walk the size of the first rewards, if that is another now.

        ``anew``: also if it is not. All plays are filtered again. It ends when enough rewards are
        settled, and only those count then, so that it does not matter when rewards came.
        """
        if not self.guess:
            return
        enough = len(self.log) >= COUNTS[-1] or len(self.log) + len(self.silent) >= MOST_SETTLED
        ends = enough or not self.complete
        plays = self.log if ends else itertools.chain(self.log, self.ledger)
        size = learned_size(plays, self.problem.arms)
        if self.complete and (anew or size != self.size):
            model = walk_of(self.problem.arms, size)
            self.problem, prior = self.prepared(model, self.problem.arms)
            self.ledger.restart(self.problem, *self.replay(prior, self.base, self._settled_plays()))
            self.size = size
        if ends:
            self.guess, self.silent = False, []

    def _settled_plays(self) -> Iterable[Entry]:
        """The settled plays in the order of rounds, with those that have no reward."""
        silent = (Entry(None, round_, 0, None) for round_ in self.silent)
        return heapq.merge(self.log, silent, key=lambda entry: entry.round)

    def _note(self, entry: Entry, state: Any) -> bool:
        """Note the surprise of a settled play, if it has one, from the state before it."""
        if self.watch is None or entry.reward is None:
            return False
        value = entry.surprise
        if value is None:
            row = self.problem.arms[entry.arm] if entry.row is None else entry.row
            value = self.watch.surprise(row, state, entry.reward)
        if value is None:
            return False
        arm = self.names[entry.arm] if entry.row is None else entry.arm
        self.watch.surprises.append((entry.round, arm, value))
        return True

    def _act_on_alarms(self, settled: list[Entry]) -> None:
        """Note the surprises of settled plays, which still have their states; act on alarms."""
        assert self.watch is not None
        for place, entry in enumerate(settled):
            if self._note(entry, entry.before) and (factor := self.watch.alarm()) is not None:
                self._widen(factor, entry, settled[place + 1 :])

    def replay(self, state: Any, round: int, entries: Iterable[Entry]) -> tuple[Any, int]:
        """`replayed` under the present problem; surprises are noted anew."""
        if self.watch is not None:
            self.watch.restart(self.problem.model)
        return replayed(self.policy, self.problem, state, round, entries, self._note)

    def _widen(self, factor: float, entry: Entry, later: list[Entry]) -> None:
        """Go on with Q times ``factor`` after an entry; ``later`` ones are settled, too."""
        assert self.watch is not None
        if not self.problem.model.process_cov.any():
            return  # nothing drifts, and zero times a factor is zero: the watch goes on
        model = widened(self.problem.model, factor)
        self.problem, _ = self.prepared(model, self.problem.arms)
        self.watch.restart(model)
        state, round_ = fold(self.policy, self.problem, entry.after, entry.round, later)
        self.ledger.restart(self.problem, state, round_)

    def _remember(self, told: list[Entry]) -> None:
        assert self.log.maxlen is not None
        self.complete &= len(self.log) + len(told) <= self.log.maxlen
        self.log.extend(told)

    def forget(self, base: int) -> None:
        """Let time begin in round ``base``; drop older plays from the log."""
        self.base = base
        while self.log and self.log[0].round < base:
            self.log.popleft()
            self.complete = False

    def change_model(self, problem: Problem, state: Any, round: int) -> None:
        """Go on with another model or other arms, from a settled state in a round."""
        self.problem, self.has_model, self.refit_failure = problem, True, None
        self.guess, self.silent = False, []
        self.ledger.restart(problem, state, round)
        self.check_reach(self.round)
        self.ledger.at(self.round)  # a model that cannot take the rewards fails here

    def first_round(self) -> int:
        """Where the log begins: at the prior's round, while nothing was dropped."""
        return self.base if self.complete or not self.log else self.log[0].round

    # Plays that the agent did not choose.

    def check_told(self, first: int, last: int, argument: str = "log") -> None:
        """Refuse plays of rounds that the model's initial state contains already."""
        if self.start is None or first >= self.start:
            return
        remedy = f"tell only rounds from {self.start} on"
        learned = f"from earlier rounds and starts in round {self.start}"
        said = f"is {first}"
        if argument == "log":
            said = f"holds rounds {first} to {last}"
            learned = f"from those before round {self.start}, in which it starts"
            if last < self.start:
                remedy = "leave tell_log out"
                learned = f"from them and starts in round {self.start}"
        problem = f"{said}, but the model was learned {learned}"
        raise errors.InvalidInput(argument, problem, f"{remedy}, or make the agent of start_system")

    def play(
        self,
        round: Any,
        arm: Any,
        reward: Any,
        features: Any = None,
        context: Any = None,
        *,
        in_log: bool = False,
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
            arm = self.names.row_in_log(arm) if in_log else self.names.row(arm)
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

    def tell_plays(self, entries: list[Entry]) -> dict[Told, int]:
        """Fold in plays: all of them or, after an error, none. Time moves to the last of them."""
        counts: Counter[Told] = Counter()
        if not entries:
            return {}
        new = self.copy()
        entries = sorted(entries, key=lambda entry: entry.round)
        last = entries[-1].round
        told = [entry for entry in entries if entry.reward is not None]
        counts["missing"] = len(entries) - len(told)
        oldest = max(new.now - new.window, new.ledger.round)
        if new._is_untouched() and told:
            oldest = entries[0].round  # with or without its reward
            new.begin(oldest)
        late = [entry for entry in told if entry.round < oldest]
        if late and new.complete:
            new._insert_settled(late)
            counts["learned"] += len(late)
        else:
            counts["too late"] += len(late)
        recent = told[len(late) :]
        for begin in range(0, len(recent), BLOCK):
            block = recent[begin : begin + BLOCK]
            for entry in block:
                new.check_reach(entry.round)
                new.ledger.insert(entry)
            new.settle(max(new.now, block[-1].round))
        counts["learned"] += len(recent)
        new.resize()
        new.check_reach(last)
        new.ledger.at(max(new.round, last))  # a reward that the policy cannot take fails here
        new.now, new.round = max(new.now, last), max(new.round, last + 1)
        self.adopt(new)
        return {name: number for name, number in counts.items() if number}

    def _insert_settled(self, late: list[Entry]) -> None:
        """Fold in plays among settled ones, all of which are still in the log."""
        entries = sorted([*self.log, *late], key=lambda entry: entry.round)
        self.base, self.refit_task = min(self.base, entries[0].round), None
        self.log.clear()
        self._remember(entries)
        _, prior = self.prepared(self.problem.model, self.problem.arms)
        self.ledger.restart(self.problem, *self.replay(prior, self.base, entries))
        if self.until_refit is not None:
            self.until_refit -= len(late)

    def tell_log(self, log: Any) -> dict[Told, int]:
        """Fold in a log of plays; see `logged.rows_of` for its forms."""
        next_, entries, clock = self.round, [], getattr(log, "clock", None)
        untouched, ahead = self._is_untouched(), 0
        if clock is not None and self.clock is not None:
            ahead = self.clock.rounds_until(clock)
        log = log if hasattr(log, "__len__") or not isinstance(log, Iterable) else list(log)
        rows = logged.rows_of(log)
        contexts = logged.contexts_of(log, tuple(self.contexts), len(rows))
        for number, ((round_, arm, reward), context) in enumerate(zip(rows, contexts, strict=True)):
            round_ = next_ if round_ is None else round_ + ahead if ahead else round_
            try:
                entry = self.play(round_, arm, reward, context=context, in_log=True)
            except errors.InvalidInput as error:
                if error.argument == "round" and isinstance(round_, str | datetime.date):
                    error = errors.InvalidInput("round", error.problem, logged.TIMES)
                raise error.of(f"log row {number}:") from None
            next_ = max(next_, entry.round + 1)
            entries.append(entry)
        if entries:
            rounds = [entry.round for entry in entries]
            self.check_told(min(rounds), max(rounds))
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
    made = "no decision was made yet"
    if decided:
        made = "the only decision so far is 0"
    if decided > 1:
        made = f"the decisions so far are 0 to {decided - 1}"
    return f"{decision} was never made: {made}"


def _check_size(state: Any, round: int) -> None:
    if is_belief(state) and not (
        np.abs(state.cov).max() <= errors.LARGEST and np.abs(state.mean).max() <= errors.LARGEST
    ):
        problem = f"is {round}, by when the state has outgrown the largest number"
        raise errors.InvalidInput("round", problem, "give an earlier one, or another model")


def whole_round(round: Any) -> int:
    """A round within ±2⁵³."""
    try:
        return errors.whole_number(round, "round", low=-LAST_ROUND, high=LAST_ROUND)
    except errors.InvalidInput as error:
        remedy = "give a whole number from -2**53 to 2**53"
        raise errors.InvalidInput("round", error.problem, remedy) from None


def _missing_as_none(reward: Any) -> Any:
    is_nan = isinstance(reward, float | np.floating) and np.isnan(reward)
    pandas = sys.modules.get("pandas")
    is_na = pandas is not None and reward is getattr(pandas, "NA", None)
    return None if is_nan or is_na else reward
