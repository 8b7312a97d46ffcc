"""What was decided and paid, folded into a policy's state in the order of time.

Rewards arrive in any order. The state is a function of the decisions and of the rewards known of
them, not of when these came: every open decision keeps the state before and after it, and a
reward that comes late has everything from its decision on computed again, by the same operations
in the same order. Decisions older than the window are settled: their states and rewards are let
go, so that memory stays flat.
"""

from __future__ import annotations

import bisect
import copy
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.arrays import Array
from driftbandit.policies import Policy, Problem
from driftbandit.policies.base import check_kinds

__all__ = ["Entry", "Ledger", "fold", "refolded"]


class Entry:
    """One play and, once it is known, what it paid."""

    __slots__ = ("after", "arm", "before", "id", "noted", "removed", "reward", "round", "row")

    def __init__(
        self, id_: int | None, round_: int, arm: Any, row: Array | None, reward: Any = None
    ) -> None:
        self.id, self.round = id_, round_
        """The decision's number; None: somebody else decided."""
        self.arm = arm
        """The arm's row among the agent's own; with ``row``: what the user calls it."""
        self.row = row
        """The features that were played, where they are none of the agent's own arms."""
        self.removed = False
        """Whether they are of an arm that was the agent's own."""
        self.reward = reward
        """None: not known."""
        self.noted = False
        """Whether the reward came late, and no state was computed with it yet."""
        self.before: Any = None
        """The state in this round, before the reward."""
        self.after: Any = None
        """The state in this round, after the reward where one is known."""

    def copy(self) -> Entry:
        """The same play, to be changed apart."""
        return copy.copy(self)


def fold(policy: Policy, problem: Problem, state: Any, entry: Entry) -> Any:
    """The state after the entry's reward, in the same round."""
    if entry.reward is None:
        return state
    learn = policy.agent.observe or policy.update
    if entry.row is None or policy.full_information:
        return learn(state, problem, entry.arm, entry.reward)
    return learn(state, problem._replace(arms=entry.row[None, :]), 0, entry.reward)


class Ledger:
    """The open decisions, oldest first, on top of a state that is settled.

    Args:
        policy: how rewards are folded in.
        problem: the policy's.
        state: what is known at ``round``.
        round: when.
    """

    def __init__(self, policy: Policy, problem: Problem, state: Any, round: int) -> None:
        self.policy, self.problem = policy, problem
        self.state, self.round = state, round
        self._open: deque[Entry] = deque()
        self._by_id: dict[int, Entry] = {}
        self._checked = False
        """Whether the policy was seen to keep its state's kinds."""
        self._stale: int | None = None
        """Place of the first entry whose states are out of date."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._open)

    def copy(self) -> Ledger:
        """The same ledger, to be changed apart."""
        other = copy.copy(self)
        other._open = deque(entry.copy() for entry in self._open)
        other._by_id = {entry.id: entry for entry in other._open if entry.id is not None}
        return other

    def waited(self, state: Any, rounds: int) -> Any:
        """The state after so many rounds in which nothing is learned."""
        if rounds == 0 or self.policy.agent.advance is None:
            return state
        return self.policy.agent.advance(state, self.problem, rounds)

    def at(self, round: int) -> Any:
        """The state in a round that is not before the newest decision's."""
        self.refresh()
        if self._open:
            newest = self._open[-1]
            return self.waited(newest.after, round - newest.round)
        return self.waited(self.state, round - self.round)

    def add(self, entry: Entry, state: Any) -> None:
        """Add a decision that was just made in ``state``, which `at` gave."""
        entry.before = entry.after = state
        self._open.append(entry)
        self._by_id[entry.id] = entry  # type: ignore[index]

    def find(self, id_: int) -> Entry | None:
        """The open decision of that number."""
        return self._by_id.get(id_)

    def learn(self, entry: Entry, reward: Any) -> None:
        """Note what an open decision paid.

        A reward that comes late is tried on the state that was known in its round, so that one
        that the policy cannot take is refused; the states from there on are computed when they are
        needed, once for all rewards that came until then.
        """
        entry.reward = reward
        try:
            after = fold(self.policy, self.problem, entry.before, entry)
            if not self._checked:
                check_kinds(entry.before, after)
                self._checked = True
        except BaseException:  # a policy that fails has learned nothing
            entry.reward = None
            raise
        if self._stale is None and entry is self._open[-1]:
            entry.after = after
            return
        entry.noted = True
        place = bisect.bisect_left(self._open, entry.round, key=_round)
        while self._open[place] is not entry:  # one of several in its round
            place += 1
        self._spoil(place)

    def insert(self, entry: Entry) -> None:
        """Add a play with its reward, in the order of time, after all others of its round.

        Its round is not before the settled state's.
        """
        newest = self._open[-1] if self._open else None
        if self._stale is None and (newest is None or newest.round <= entry.round):
            entry.before = self.at(entry.round)
            entry.after = fold(self.policy, self.problem, entry.before, entry)
            self._open.append(entry)
            return
        place = bisect.bisect_right(self._open, entry.round, key=_round)
        self._open.insert(place, entry)
        self._spoil(place)

    def _spoil(self, place: int) -> None:
        """States from an entry on are out of date."""
        self._stale = place if self._stale is None else min(self._stale, place)

    def settle(self, oldest: int) -> list[Entry]:
        """Let go of all decisions before round ``oldest``; they come back, oldest first."""
        settled = []
        if self._open and self._open[0].round < oldest:
            self.refresh()
            while self._open and self._open[0].round < oldest:
                entry = self._open.popleft()
                self.state, self.round = entry.after, entry.round
                if entry.id is not None:
                    del self._by_id[entry.id]
                entry.before = entry.after = None
                settled.append(entry)
        return settled

    def restart(self, problem: Problem, state: Any, round: int) -> None:
        """Compute all open entries again on another settled state, for another model."""
        self.problem, self.state, self.round = problem, state, round
        self._stale = 0 if self._open else None

    def reopen(self, entries: Sequence[Entry]) -> None:
        """Put stored entries back."""
        self._open.extend(entries)
        self._by_id.update((entry.id, entry) for entry in entries if entry.id is not None)
        self._stale = 0 if self._open else None

    def refresh(self) -> None:
        """Compute what is out of date; if that fails, forget the late rewards that are to blame."""
        if self._stale is None:
            return
        try:
            self._compute(self._stale)
        except Exception as error:
            noted = [entry for entry in self._open if entry.noted]
            if not noted:
                raise
            for entry in noted:
                entry.reward, entry.noted = None, False
            which = ", ".join(str(entry.id) for entry in noted)
            problem = f"told late for decision {which} cannot be learned ({error})"
            remedy = "it was forgotten; go on, or tell another"
            raise errors.InvalidInput("reward", problem, remedy) from error
        for entry in itertools.islice(self._open, self._stale, None):
            entry.noted = False
        self._stale = None

    def _compute(self, place: int) -> None:
        """The states from an entry on."""
        state, round_ = self.state, self.round
        if place > 0:
            before = self._open[place - 1]
            state, round_ = before.after, before.round
        for entry in itertools.islice(self._open, place, None):
            entry.before = self.waited(state, entry.round - round_)
            entry.after = fold(self.policy, self.problem, entry.before, entry)
            state, round_ = entry.after, entry.round


def refolded(
    policy: Policy, problem: Problem, state: Any, round: int, entries: Sequence[Entry]
) -> tuple[Any, int]:
    """The state after all entries, and its round, from a state in a round before them."""
    for entry in entries:
        if entry.round != round and policy.agent.advance is not None:
            state = policy.agent.advance(state, problem, entry.round - round)
        state = fold(policy, problem, state, entry)
        round = entry.round
    return state, round


def _round(entry: Entry) -> int:
    return entry.round
