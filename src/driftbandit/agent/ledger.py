"""The ledger of open decisions: rewards folded into a policy's state in the order of rounds.

Rewards arrive in any order, but the state depends only on the decisions and on the rewards known so
far. Every open decision keeps the state before and after it. After a late reward, the states from
its decision on are out of date; they are computed again when needed, by the same operations in the
same order. Decisions older than the window are settled: their states are dropped. So are the oldest
of very many decisions inside the window, as soon as all of them have their rewards.
"""

from __future__ import annotations

import bisect
import copy
import dataclasses
import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import check_kinds


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """One play and, once it is known, its reward."""

    id: int | None  # the decision's number; None: the agent did not choose this play
    round: int
    arm: Any  # the arm's row among the agent's own; with ``row``: its name
    row: Array | None  # the features that were played, unless the arm is one of the agent's own
    reward: Any = None  # None: not known
    removed: bool = False  # whether ``row`` belongs to an arm that was removed from the agent
    pending: bool = False  # whether the reward came late and is not in any state yet
    before: Any = None  # the state in this round, before the reward
    after: Any = None  # the state in this round, after the reward if it is known
    surprise: float | None = None  # of the reward in ``before``; None: not computed, or not there


MEMORY = 2**31  # bytes for the states of open decisions


def room_for(state: Any) -> int:
    """How many open decisions, each with two such states, there is `MEMORY` for."""
    return MEMORY // max(1, 2 * size_of(state))


def size_of(state: Any) -> int:
    """The bytes of a policy's state, which may be nested.

    Example:
        >>> size_of((np.zeros(2), (np.zeros((2, 2)), None)))
        48
    """
    if isinstance(state, tuple):
        return sum(map(size_of, state))
    return 0 if state is None else np.asarray(state).nbytes


def advanced(policy: Policy, problem: Problem, state: Any, rounds: int) -> Any:
    """The state after so many rounds without a reward."""
    if rounds == 0 or policy.agent.advance is None:
        return state
    return policy.agent.advance(state, problem, rounds)


def observed(policy: Policy, problem: Problem, state: Any, entry: Entry) -> Any:
    """The state after the entry's reward, in the same round."""
    if entry.reward is None:
        return state
    observe = policy.agent.observe or policy.update
    if entry.row is None or policy.full_information:
        return observe(state, problem, entry.arm, entry.reward)
    return observe(state, problem._replace(arms=entry.row[None, :]), 0, entry.reward)


def replayed(
    policy: Policy,
    problem: Problem,
    state: Any,
    round: int,
    entries: Iterable[Entry],
    see: Callable[[Entry, Any], Any] | None = None,
) -> tuple[Any, int]:
    """The state after all entries, and its round, starting from a state in an earlier round.

    ``see`` is called with every entry and the state before it.
    """
    for entry in entries:
        state = advanced(policy, problem, state, entry.round - round)
        if see is not None:
            see(entry, state)
        state, round = observed(policy, problem, state, entry), entry.round
    return state, round


def fold(
    policy: Policy, problem: Problem, state: Any, round: int, entries: Iterable[Entry]
) -> tuple[Any, int]:
    """`replayed`; every entry keeps the states before and after it."""
    for entry in entries:
        entry.before, entry.surprise = advanced(policy, problem, state, entry.round - round), None
        state = entry.after = observed(policy, problem, entry.before, entry)
        round = entry.round
    return state, round


class Unlearnable(errors.InvalidInput):
    """Late rewards that the policy cannot take; they were dropped."""


class Ledger:
    """The open decisions, oldest first, on top of a settled state and its round."""

    def __init__(self, policy: Policy, problem: Problem, state: Any, round: int) -> None:
        self.policy, self.problem = policy, problem
        self.state, self.round = state, round
        self._open: deque[Entry] = deque()
        self._by_id: dict[int, Entry] = {}
        self._waiting = 0  # decisions without a reward
        self._checked = False  # whether the policy was seen to keep its state's types
        self._stale: int | None = None  # place of the first entry whose states are out of date

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._open)

    def copy(self) -> Ledger:
        """An independent copy."""
        other = copy.copy(self)
        other._open = deque(copy.copy(entry) for entry in self._open)
        other._by_id = {entry.id: entry for entry in other._open if entry.id is not None}
        return other

    @property
    def is_stale(self) -> bool:
        """Whether some states are out of date, so that `at` has to compute them."""
        return self._stale is not None

    @property
    def n_decisions(self) -> int:
        """How many open decisions there are; plays of others do not count."""
        return len(self._by_id)

    def at(self, round: int) -> Any:
        """The state in a round that is not before the newest decision's."""
        self.refresh()
        state, last = self.state, self.round
        if self._open:
            newest = self._open[-1]
            state, last = newest.after, newest.round
        return advanced(self.policy, self.problem, state, round - last)

    def add(self, entry: Entry, state: Any) -> None:
        """Add a decision that was just made in ``state``, which `at` returned.

        While states are out of date, ``state`` may be None: the decision's own is computed with
        theirs.
        """
        entry.before = entry.after = state
        self._open.append(entry)
        self._by_id[entry.id] = entry  # type: ignore[index]
        self._waiting += 1

    def count_since(self, oldest: int) -> int:
        """How many decisions are in round ``oldest`` or later."""
        if not self._open or self._open[0].round >= oldest:
            return len(self._open)
        return len(self._open) - bisect.bisect_left(self._open, oldest, key=_round)

    def waiting_since(self, oldest: int) -> int:
        """How many decisions in round ``oldest`` or later have no reward."""
        gone = itertools.takewhile(lambda entry: entry.round < oldest, self._open)
        return self._waiting - sum(map(_waits, gone))

    def find(self, id_: int) -> Entry | None:
        """The open decision with that number."""
        return self._by_id.get(id_)

    def learn(self, entry: Entry, reward: Any) -> None:
        """Give an open decision its reward.

        It is tried on the state that was known in its round, so that a reward that the policy
        cannot take is refused. After a late reward, later states are computed when needed.
        """
        if entry.before is None and self.state is not None:  # added while states were out of date
            self.refresh()
        entry.reward = reward
        try:
            after = observed(self.policy, self.problem, entry.before, entry)
            if not self._checked:
                check_kinds(entry.before, after)
                self._checked = True
        except BaseException:  # if the policy fails, nothing is learned
            entry.reward = None
            raise
        self._waiting -= 1
        if self._stale is None and entry is self._open[-1]:
            entry.after = after
            return
        entry.pending = True
        self._mark_stale(self._place(entry))

    def unlearn(self, entries: Iterable[Entry]) -> None:
        """Take back the rewards of open decisions."""
        for entry in entries:
            entry.reward, entry.pending, entry.surprise = None, False, None
            self._waiting += 1
            self._mark_stale(self._place(entry))

    def _place(self, entry: Entry) -> int:
        oldest = self._open[0].id
        if entry.id is not None and oldest is not None:
            place = entry.id - oldest
            if place < len(self._open) and self._open[place] is entry:  # no plays of others between
                return place
        place = bisect.bisect_left(self._open, entry.round, key=_round)
        while self._open[place] is not entry:  # one of several in its round
            place += 1
        return place

    def insert(self, entry: Entry) -> None:
        """Add a play with its reward, after all others of its round; none of it is settled."""
        newest = self._open[-1] if self._open else None
        if self._stale is None and (newest is None or newest.round <= entry.round):
            entry.before = self.at(entry.round)
            entry.after = observed(self.policy, self.problem, entry.before, entry)
            self._open.append(entry)
            return
        place = bisect.bisect_right(self._open, entry.round, key=_round)
        self._open.insert(place, entry)
        self._mark_stale(place)

    def _mark_stale(self, place: int) -> None:
        self._stale = place if self._stale is None else min(self._stale, place)

    def settle(self, oldest: int) -> list[Entry]:
        """Remove all decisions before round ``oldest``; return them, oldest first.

        They still have their states; the caller drops them.
        """
        count = 0
        for entry in self._open:
            if entry.round >= oldest:
                break
            count += 1
        return self._settle_first(count)

    def settle_excess(self, keep: int, most: int) -> list[Entry]:
        """Remove the oldest of more than ``keep``, up to the first decision without a reward.

        Of more than ``most`` even that one goes.
        """
        count, left = 0, len(self._open)
        for entry in self._open:
            if left <= keep or (left <= most and _waits(entry)):
                break
            count, left = count + 1, left - 1
        return self._settle_first(count)

    def _settle_first(self, count: int) -> list[Entry]:
        if not count:
            return []
        self._compute_first(count)
        settled = [self._open.popleft() for _ in range(count)]
        self.state, self.round = settled[-1].after, settled[-1].round
        for entry in settled:
            if entry.id is not None:
                del self._by_id[entry.id]
                self._waiting -= entry.reward is None
        if self._stale is not None:
            self._stale -= count
        return settled

    def change(self, changed: Callable[[Entry], Entry]) -> None:
        """Put other entries in the places of the open ones; `restart` must follow."""
        self._open = deque(map(changed, self._open))
        self._by_id = {entry.id: entry for entry in self._open if entry.id is not None}

    def restart(self, problem: Problem, state: Any, round: int) -> None:
        """Put the open entries on top of another settled state, for another model."""
        self.problem, self.state, self.round = problem, state, round
        self._stale = 0 if self._open else None

    def reopen(self, entries: Sequence[Entry]) -> None:
        """Put stored entries back."""
        self._open.extend(entries)
        self._by_id.update((entry.id, entry) for entry in entries if entry.id is not None)
        self._waiting += sum(map(_waits, entries))
        self._stale = 0 if self._open else None

    def refresh(self) -> None:
        """Compute the states that are out of date; late rewards that make it fail are dropped."""
        self._compute_first(len(self._open))

    def _compute_first(self, count: int) -> None:
        """Compute the states of the first entries that are out of date; see `refresh`."""
        if self._stale is None or self._stale >= count:
            return
        entries = list(itertools.islice(self._open, self._stale, count))
        state, round_ = self.state, self.round
        if self._stale:
            previous = self._open[self._stale - 1]
            state, round_ = previous.after, previous.round
        try:
            fold(self.policy, self.problem, state, round_, entries)
        except Exception as error:
            pending = [entry for entry in self._open if entry.pending]
            if not pending:
                raise
            for entry in pending:
                entry.reward, entry.pending = None, False
            self._waiting += sum(map(_waits, pending))
            which = ", ".join(str(entry.id) for entry in pending)
            problem = f"told late for decision {which} cannot be learned ({error})"
            remedy = "it was dropped; go on, or tell another"
            raise Unlearnable("reward", problem, remedy) from error
        for entry in entries:
            entry.pending = False
        self._stale = count if count < len(self._open) else None


def _waits(entry: Entry) -> bool:
    """Whether it is a decision without a reward; plays of others never wait."""
    return entry.reward is None and entry.id is not None


_round = operator.attrgetter("round")
