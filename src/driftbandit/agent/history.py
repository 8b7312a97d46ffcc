"""Plays that the agent did not choose: one of them, or a whole log."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.agent.decision import Told
from driftbandit.agent.ledger import Entry, refolded

if TYPE_CHECKING:
    from driftbandit.agent.core import Core

__all__ = ["reward_of", "rows_of", "tell", "tell_log"]

BLOCK = 1000
"""Plays that are open at a time; each keeps the state before and after it."""
COLUMNS = ("round", "arm", "reward")
REMEDY = "give columns round, arm and reward, or rows of these three"


def rows_of(log: Any) -> list[tuple[Any, Any, Any]]:
    """(round, arm, reward) of every play; a round of None is the next one.

    Args:
        log: a mapping or table of columns ``arm``, ``reward`` and perhaps ``round``; rows of
            (round, arm, reward), or mappings of these names; or a `Log` of one sequence, or a
            `Sequence`, of `identify`.

    Example:
        >>> rows_of({"arm": ["left", "right"], "reward": [0.5, None]})
        [(None, 'left', 0.5), (None, 'right', None)]
    """
    if hasattr(log, "sequences"):
        if len(log.sequences) != 1:
            problem = f"has {len(log.sequences)} sequences"
            raise errors.InvalidInput("log", problem, "give one of log.sequences, or a table")
        one = log.sequences[0]
        arms = [log.names[number] for number in one.arms]
        return list(zip(one.rounds.tolist(), arms, one.rewards.tolist(), strict=True))
    if all(hasattr(log, field) for field in ("rounds", "arms", "rewards")):
        columns = [_column(getattr(log, f"{name}s"), name) for name in COLUMNS]
        return list(zip(*columns, strict=True))
    named = getattr(log, "column_names", getattr(log, "columns", None))
    if isinstance(log, Mapping) or named is not None:
        return _by_column(log, list(log if named is None else named))
    if isinstance(log, str | bytes) or not isinstance(log, Iterable):
        raise errors.InvalidInput("log", f"is {errors.printable(repr(log)[:60])}", REMEDY)
    rows = []
    for number, row in enumerate(log):
        try:
            if isinstance(row, Mapping):
                round_, arm, reward = row.get("round"), row["arm"], row["reward"]
            else:
                round_, arm, reward = row
        except KeyError as error:
            problem = f"row {number} has no {error.args[0]!r}"
            raise errors.InvalidInput("log", problem, REMEDY) from None
        except (TypeError, ValueError):
            problem = f"row {number} is {errors.printable(repr(row)[:60])}"
            raise errors.InvalidInput("log", problem, REMEDY) from None
        rows.append((round_, arm, reward))
    return rows


def _by_column(log: Any, names: list[Any]) -> list[tuple[Any, Any, Any]]:
    for name in ("arm", "reward"):
        if name not in names:
            raise errors.InvalidInput("log", f"has no column {name!r}", REMEDY)
    arms, rewards = _column(log["arm"], "arm"), _column(log["reward"], "reward")
    rounds = _column(log["round"], "round") if "round" in names else [None] * len(arms)
    if not len(rounds) == len(arms) == len(rewards):
        problem = f"has {len(rounds)} rounds, {len(arms)} arms and {len(rewards)} rewards"
        raise errors.InvalidInput("log", problem, "give one of each per row")
    return list(zip(rounds, arms, rewards, strict=True))


def _column(values: Any, name: str) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):  # pyarrow; NumPy and pandas; polars
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise errors.InvalidInput("log", f"column {name} is {values!r:.60}", REMEDY)
    return list(values)


def tell_log(agent: Core, log: Any) -> dict[Told, int]:
    """See `Agent.tell_log`. The caller holds the lock."""
    next_, entries = agent.round, []
    for number, (round_, arm, reward) in enumerate(rows_of(log)):
        try:
            entry = agent._play(next_ if round_ is None else round_, arm, reward, by_text=True)
        except errors.InvalidInput as error:
            raise error.of(f"log row {number}:") from None
        next_ = max(next_, entry.round + 1)
        entries.append(entry)
    return tell(agent, entries)


def tell(agent: Core, entries: list[Entry]) -> dict[Told, int]:
    """Fold plays in, all of them or, after an error, none. Time moves to the last of them."""
    counts: Counter[Told] = Counter()
    if not entries:
        return dict(counts)
    entries = sorted(entries, key=lambda entry: entry.round)
    last = entries[-1].round
    told = [entry for entry in entries if entry.reward is not None]
    counts["missing"] = len(entries) - len(told)
    kept = agent._backup()
    try:
        if agent._untouched() and told:
            agent._base = agent._ledger.round = told[0].round  # where time begins
            oldest = told[0].round
        else:
            oldest = max(agent._now - agent.window, agent._ledger.round)
        late = [entry for entry in told if entry.round < oldest]
        if late and agent._complete:
            _insert_settled(agent, late)
            counts["learned"] += len(late)
        else:
            counts["too late"] += len(late)
        new = told[len(late) :]
        for begin in range(0, len(new), BLOCK):
            block = new[begin : begin + BLOCK]
            for entry in block:
                agent._check_reach(entry.round)
                agent._ledger.insert(entry)
            now = max(agent._now, block[-1].round)
            agent._keep(agent._ledger.settle(now - agent.window))
        counts["learned"] += len(new)
        agent._check_reach(last)
        agent._ledger.at(max(agent.round, last))  # a reward that the policy cannot take fails here
    except BaseException:
        agent._restore(kept)
        raise
    agent._now, agent.round = max(agent._now, last), max(agent.round, last + 1)
    agent._settle(agent._now)
    return {name: number for name, number in counts.items() if number}


def _insert_settled(agent: Core, late: list[Entry]) -> None:
    """Fold plays in among settled ones, all of which the agent still keeps."""
    entries = sorted([*agent._log, *late], key=lambda entry: entry.round)
    agent._base = min(agent._base, entries[0].round)
    agent._learning = None
    state, round_ = refolded(agent.policy, agent.problem, agent._prior(), agent._base, entries)
    agent._ledger.restart(agent.problem, state, round_)
    agent._log.clear()
    agent._remember(entries)
    agent._until_refit -= len(late)


def reward_of(reward: Any) -> Any:
    """The reward of a log's row: None where there is none."""
    is_nan = isinstance(reward, float | np.floating) and np.isnan(reward)
    pandas = sys.modules.get("pandas")
    is_na = pandas is not None and reward is getattr(pandas, "NA", None)
    return None if reward is None or is_nan or is_na else reward
