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
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import check_kinds

if TYPE_CHECKING:
    from driftbandit.agent.arms import ArmNames


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

    def features(self, arms: Array) -> Array:
        """What was read of the states: the features that were played, or those of the own arm."""
        return arms[self.arm] if self.row is None else self.row

    def name(self, names: ArmNames) -> Any:
        """The name of the arm."""
        return names[self.arm] if self.row is None else self.arm

    @property
    def waits(self) -> bool:
        """Whether it is a decision without a reward; plays of others never wait."""
        return self.reward is None and self.id is not None

    def keep(self, before: Any, after: Any) -> None:
        """Keep the states before and after the reward."""
        self.before, self.after = before, after


MEMORY = 2**31  # bytes for the states of open decisions


def room_for(state: Any) -> int:
    """How many open decisions, each with two such states, there is `MEMORY` for."""
    return MEMORY // max(1, 2 * size_of(state))


def leaves(state: Any) -> Iterator[np.ndarray]:
    """The arrays of a policy's state, which may be nested."""
    if isinstance(state, tuple):
        for part in state:
            yield from leaves(part)
    elif state is not None:
        yield np.asarray(state)


def size_of(state: Any) -> int:
    """The bytes of a policy's state.

    Example:
        >>> size_of((np.zeros(2), (np.zeros((2, 2)), None)))
        48
    """
    return sum(leaf.nbytes for leaf in leaves(state))


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
    see: Callable[[Entry, Any, Any], Any] | None = None,
) -> tuple[Any, int]:
    """The state after all entries, and its round, starting from a state in an earlier round.

    ``see`` is called with every entry and the states before and after it.
    """
    for entry in entries:
        before = advanced(policy, problem, state, entry.round - round)
        state, round = observed(policy, problem, before, entry), entry.round
        if see is not None:
            see(entry, before, state)
    return state, round


def fold(
    policy: Policy, problem: Problem, state: Any, round: int, entries: Iterable[Entry]
) -> tuple[Any, int]:
    """`replayed`; every entry keeps the states before and after it."""
    return replayed(policy, problem, state, round, entries, Entry.keep)


class Unlearnable(errors.InvalidInput):
    """Late rewards that the policy cannot take; they were dropped."""


class Ledger:
    """The open decisions, oldest first, on top of a settled state and its round."""

    def __init__(
        self,
        policy: Policy,
        problem: Problem,
        state: Any,
        round: int,
        entries: Sequence[Entry] = (),
    ) -> None:
        self.policy = policy
        self._open = deque(entries)
        self._by_id = {entry.id: entry for entry in entries if entry.id is not None}
        self._waiting = sum(entry.waits for entry in entries)  # decisions without a reward
        self._checked = False  # whether the policy was seen to keep its state's types
        self._stale: int | None = None  # place of the first entry whose states are out of date
        self.restart(problem, state, round)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._open)

    def copy(self, changed: Callable[[Entry], Entry] = copy.copy) -> Ledger:
        """An independent copy, with the entries that ``changed`` makes of the open ones.

        If they are other plays, `restart` must follow.
        """
        other = copy.copy(self)
        other._open = deque(map(changed, self._open))
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
        return len(self._open) - self._first_of(oldest)

    def waiting_since(self, oldest: int) -> int:
        """How many decisions in round ``oldest`` or later have no reward."""
        gone = itertools.takewhile(lambda entry: entry.round < oldest, self._open)
        return self._waiting - sum(entry.waits for entry in gone)

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
        self._mark_stale(self._first_of(entry.round))

    def unlearn(self, entries: Iterable[Entry]) -> None:
        """Take back the rewards of open decisions."""
        for entry in entries:
            entry.reward, entry.pending = None, False
            self._waiting += 1
            self._mark_stale(self._first_of(entry.round))

    def _first_of(self, round: int) -> int:
        """The place of the first entry in the round, or after it."""
        return bisect.bisect_left(self._open, round, key=_round)

    def insert(self, entry: Entry) -> None:
        """Add a play with its reward, after all others of its round; none of it is settled."""
        place = bisect.bisect_right(self._open, entry.round, key=_round)
        self._open.insert(place, entry)
        self._mark_stale(place)

    def _mark_stale(self, place: int) -> None:
        self._stale = place if self._stale is None else min(self._stale, place)

    def settle(self, oldest: int, keep: int, most: int) -> list[Entry]:
        """Remove all decisions before round ``oldest``; return them, oldest first.

        And the oldest of more than ``keep``, up to the first decision without a reward; of more
        than ``most`` even that one. They still have their states; the caller drops them.
        """
        count, left = 0, len(self._open)
        for entry in self._open:
            if entry.round >= oldest and (left <= keep or (left <= most and entry.waits)):
                break
            count, left = count + 1, left - 1
        if not count:
            return []
        self._compute_first(count)
        settled = [self._open.popleft() for _ in range(count)]
        self.state, self.round = settled[-1].after, settled[-1].round
        for entry in settled:
            if entry.id is not None:
                del self._by_id[entry.id]
                self._waiting -= entry.waits
        if self._stale is not None:
            self._stale -= count
        return settled

    def restart(self, problem: Problem, state: Any, round: int) -> None:
        """Put the open entries on top of another settled state, for another model."""
        self.problem, self.state, self.round = problem, state, round
        self.room = room_for(state)
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
            self._waiting += sum(entry.waits for entry in pending)
            which = ", ".join(str(entry.id) for entry in pending)
            problem = f"told late for decision {which} cannot be learned ({error})"
            remedy = "it was dropped; go on, or tell another"
            raise Unlearnable("reward", problem, remedy) from error
        for entry in entries:
            entry.pending = False
        self._stale = count if count < len(self._open) else None


_round = operator.attrgetter("round")
