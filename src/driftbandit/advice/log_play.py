"""What policies would have earned on a log, and what the model expects of the next rounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import policies, statistics
from driftbandit.advice.finding import Number
from driftbandit.advice.log_facts import TRAIN
from driftbandit.arrays import Array, namespace
from driftbandit.identify.structured.fitting import Fit
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.policies import PREFERRED
from driftbandit.policies.base import Policy, Prepared, Problem, highest
from driftbandit.replays import replay, support
from driftbandit.replays.result import ALWAYS, LEADER, LOGGING, Replay, Row
from driftbandit.structure import Structure
from driftbandit.system import Name, System

PLAYED = (PREFERRED, "kalman_ucb", "ucb", "discounted_ucb")  # by default
RANDOM, FIXED = "random", "fixed"
ROUNDING = 1e-9  # share of a mean: narrower intervals have no width
RUNS = 200  # of the forecast
LONGEST = 1000  # rounds of the forecast


class Earned(NamedTuple):
    """What a policy or a reference strategy would have earned per round in the test part."""

    label: str
    kind: str  # "policy" or "reference"
    arm: Name | None  # of a strategy that always plays the same one
    mean: float
    low: float
    high: float
    effective: float  # rounds of the log that show it
    trusted: bool  # whether they are enough for an interval
    reason: str  # why they are not
    unsupported: float  # share of rounds in which the log gives no chance to what it names
    over_fixed: Number | None  # compared with the best arm of the training part
    over_log: Number | None  # compared with what the log earned; None: it had no policy of its own


class Replayed(NamedTuple):
    """The test part of the log, played by policies that learned from the training part."""

    method: str  # "full" or "dr"
    train_rounds: int
    test_rounds: int
    structure: str  # chosen on the training part
    confidence: float  # of each interval, so that those of all policies hold together with 95%
    fixed: Name  # the best arm of the training part
    rows: tuple[Earned, ...]  # highest mean first
    best: str  # the policy to prefer: `PREFERRED` if it is as good as any, else the highest
    # of those that the log shows; if it shows none, `PREFERRED`, and nothing is known of it
    notes: tuple[str, ...]
    equal: tuple[str, ...] = ()  # policies whose difference from the highest may be luck

    def row(self, label: str) -> Earned:
        """The row with that label."""
        return next(row for row in self.rows if row.label == label)


class Forecast(NamedTuple):
    """What the model expects of the rounds after the log's last."""

    policy: str
    rounds: int
    runs: int
    fixed: Name  # the arm with the highest expected reward in these rounds
    over_fixed: Number
    over_random: Number


def replayed(
    log: Log,
    structure: Structure,
    chosen: Mapping[str, Policy],
    *,
    chances: str | None,
    seed: int,
    progress: Callable[..., None],
) -> tuple[Replayed, Replay]:
    """Play the second half of a log, and compare with the best arm of the first half."""
    # Policies that know the model; intervals are widened because the best of them is looked at.
    confidence = 1 - 0.05 / len(chosen)
    how: dict[str, Any] = {"chances": chances, "seed": seed, "progress": progress}
    result = replay(log, list(chosen.values()), structure=structure, train=TRAIN, runs=10, **how)
    return _summary(result, structure, confidence), result


def _summary(result: Replay, structure: Structure, confidence: float) -> Replayed:
    over = {
        base: {
            row.label: row
            for row in dataclasses.replace(result, compared=base).rows(confidence=confidence)
        }
        for base in (LEADER, *([LOGGING] if result.logged else []))
    }

    def gain(base: str, label: str) -> Number | None:
        row = over.get(base, {}).get(label)
        if row is None or label == base:
            return None
        # Two that hardly ever differ are known to be alike: more data would not tell them apart.
        verdict = statistics.NO_DIFFERENCE if row.reason == support.ALIKE else row.verdict
        return Number(row.difference, row.difference_low, row.difference_high, verdict)

    same = ("label", "kind", "arm", "mean", "low", "high", "effective")
    rows = [
        Earned(
            **{name: getattr(row, name) for name in same},
            trusted=not (doubt := result.doubt(row.label)),
            reason=doubt,
            unsupported=result.unsupported(row.label),
            over_fixed=gain(LEADER, row.label),
            over_log=gain(LOGGING, row.label),
        )
        for row in over[LEADER].values()
    ]
    known = [row.label for row in rows if row.kind == "policy" and row.trusted]
    highest = (known or [row.label for row in rows if row.kind == "policy"])[0]
    apart = dataclasses.replace(result, compared=highest).rows(confidence=confidence)
    equal = tuple(_equal([row for row in apart if row.label in known]))
    fixed = result.references[LEADER].arm
    assert fixed is not None
    best = PREFERRED if PREFERRED in (equal if known else result.played) else highest
    parts = result.method, result.train_rounds, result.test_rounds
    return Replayed(
        *parts, str(structure), confidence, fixed, tuple(rows), best, result.notes, equal
    )


def _equal(rows: Sequence[Row]) -> Iterator[str]:
    """The policies whose difference from the baseline, the highest, may be luck.

    An interval without width comes from rounds in which the log plays what neither policy names:
    then only predictions differ, and the log shows nothing.
    """
    for row in rows:
        if row.kind != "policy" or math.isnan(row.mean):
            continue
        nothing = row.difference_high - row.difference_low <= ROUNDING * abs(row.mean)
        if nothing or row.verdict != statistics.WORSE:
            yield row.label


def shown_rows(found: Replayed) -> list[Earned]:
    """The rows of a table: policies, the fixed choice, the log, random, the best arm in hindsight.

    Arms that are always played have a row each; only the best is shown, of those that are known.
    """
    hindsight = [row for row in found.rows if row.label.startswith(ALWAYS) and row.trusted]
    hindsight += [row for row in found.rows if row.label == "best_arm"]
    best = next((row for row in hindsight if row.arm != found.fixed), None)
    leader = found.row(LEADER)
    keep = [row for row in found.rows if row.kind == "policy" or row.label in (LOGGING, RANDOM)]
    keep.append(leader)
    if best is not None and best.mean > leader.mean:
        keep.append(best)
    return sorted(keep, key=lambda row: math.inf if math.isnan(row.mean) else -row.mean)


# The forecast


class Nothing(NamedTuple):
    """No memory."""


@dataclasses.dataclass(frozen=True)
class _Preferring:
    """``prepare`` of the policy that always plays one arm."""

    arm: int

    def __call__(self, model: LGDS, arms: Array, rounds: int) -> Prepared:
        return {"preferred": np.eye(len(arms))[self.arm]}, Nothing()


def _preferred(state: Nothing, problem: Problem) -> tuple[Array, Array]:
    wanted = problem.constants["preferred"]
    return wanted, namespace(wanted).zeros_like(wanted)


def _unmoved(state: Nothing, problem: Problem, arm: Array, reward: Array) -> Nothing:
    return state


def fixed_policy(arm: int) -> Policy:
    """The policy that always plays the arm of that number."""
    return Policy(FIXED, _Preferring(arm), highest(_preferred), _unmoved)


def forecast(
    found: Fit,
    chosen: Mapping[str, Policy],
    who: str,
    rounds: int,
    *,
    runs: int = RUNS,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Forecast:
    """Simulate the rounds after the log's last: policy ``who``, the best fixed arm, random choice.

    Paired: all see the same states and noise, so differences of regret are differences of rewards.
    """
    from driftbandit.simulation import Options, simulate

    rounds = min(rounds, LONGEST)
    system = found.system
    arm = best_fixed(system, rounds)
    played: list[str | Policy] = [chosen[who], fixed_policy(arm), RANDOM]
    how: dict[str, Any] = {"device": "cpu", "options": Options(checkpoints=1), "progress": progress}
    result = simulate(system, policies=played, rounds=rounds, runs=runs, seed=seed, **how)
    rows = result.compare(next(iter(set(result.regret) - {FIXED, RANDOM})), seed=seed)

    def gain(other: str) -> Number:  # regret of the other, minus the policy's
        row = rows[other]
        ends = row.mean_low / rounds, row.mean_high / rounds
        verdict = statistics.verdict(-ends[1], -ends[0], runs)
        return Number(row.mean_difference / rounds, *ends, verdict)

    return Forecast(who, rounds, runs, system.names[arm], gain(FIXED), gain(RANDOM))


def best_fixed(system: System, rounds: int) -> int:
    """The arm with the highest expected reward, averaged over the next rounds."""
    mean, total = system.model.start_mean(), np.zeros(system.model.n_states)
    for _ in range(rounds):
        total += mean
        mean = system.model.transition @ mean
    return int(np.argmax(system.arms @ total))


def checked(names: Any, n_arms: int) -> dict[str, Policy]:
    """The policies to play, by label; None: `PLAYED`."""
    given = PLAYED if names is None else names
    return policies.chosen(given, n_arms=n_arms)
