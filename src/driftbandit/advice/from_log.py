"""Advice from a log: is there drift, is it predictable, and what would policies have earned?"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit import policies as registry
from driftbandit.advice import log_facts, log_play, log_rules, log_seasons
from driftbandit.advice.log_facts import Contents, Predictability, Speed
from driftbandit.advice.log_play import Forecast, Replayed
from driftbandit.advice.log_rules import Findings, Recommendation
from driftbandit.advice.log_seasons import Season
from driftbandit.identify.findings import Answer, answer, drift_of
from driftbandit.identify.structured.comparison import Comparison, drifts, repeats
from driftbandit.identify.structured.fitting import StructuredFit, fit_structure
from driftbandit.identify.structured.periods import shown_periods
from driftbandit.identify.structured.selection import LEAST, compare, recent, season_pair
from driftbandit.io import log_columns, model_file
from driftbandit.io.log_reader import as_log
from driftbandit.io.logs import Log
from driftbandit.replays.decisions import CHANCES, has_chances
from driftbandit.replays.result import LEADER, Replay
from driftbandit.report import storable
from driftbandit.structure import Structure, parse, season
from driftbandit.system import label

STAGES = ("structures", "training part", "fit", "play", "forecast")
OWN = "level(arm)"
FEWEST = 4 * LEAST  # rewards: each half must allow to compare structures
Tell = Callable[[float], None]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LogAdvice:
    """What a log shows, and what to do; ``print`` shows the recommendation."""

    contents: Contents
    drift: Answer
    season: Answer
    speed: Speed
    seasons: tuple[Season, ...]
    structure: str  # chosen by how well it predicts
    comparison: Comparison
    predictability: Predictability
    replayed: Replayed | None
    forecast: Forecast | None
    untested: str  # why nothing was replayed
    warnings: tuple[str, ...]
    recommendation: Recommendation
    commands: tuple[str, ...]
    fit: StructuredFit = dataclasses.field(repr=False)
    log: Log = dataclasses.field(repr=False)
    replay: Replay | None = dataclasses.field(repr=False)

    @property
    def system(self) -> Any:
        """The chosen model; it knows the log, and starts in the round after it."""
        return self.fit.system

    def __str__(self) -> str:
        said = self.recommendation
        return "\n".join([said.headline, *said.reasons])

    def __repr__(self) -> str:
        return f"LogAdvice(drift={self.drift.verdict!r}, kind={self.recommendation.kind!r})"

    def to_document(self) -> dict[str, Any]:
        """Everything but figures, ready for JSON."""
        tried = zip(self.comparison.structures, self.comparison.scores, strict=True)
        scores = [{"structure": str(one), "score": score} for one, score in tried]
        return dict(
            storable(
                {
                    "contents": _plain(self.contents),
                    "drift": _plain(self.drift),
                    "season": _plain(self.season),
                    "speed": _plain(self.speed),
                    "seasons": _plain(self.seasons),
                    "structure": self.structure,
                    "structures": scores,
                    "predictability": _plain(self.predictability),
                    "replayed": _plain(self.replayed),
                    "forecast": _plain(self.forecast),
                    "untested": self.untested,
                    "warnings": list(self.warnings),
                    "recommendation": _plain(self.recommendation),
                    "commands": list(self.commands),
                    "model": model_file.to_document(self.system),
                }
            )
        )


def _plain(value: Any) -> Any:
    """Named tuples as dictionaries, at any depth."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def advise_log(
    data: Any,
    *,
    seasons: Sequence[float] | None = None,
    chances: str | None = None,
    policies: Any = None,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
    progress: Callable[..., None] | None = None,
    ready: Callable[..., None] = lambda **fields: None,
) -> LogAdvice:
    """Advice from a log; see `advise`.

    ``ready`` is called with fields of the advice as soon as they are known.
    """
    runs = errors.whole_number(log_play.RUNS if runs is None else runs, "runs", low=6)
    if rounds is not None:
        rounds = errors.whole_number(rounds, "rounds", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    if seasons is not None:
        seasons = _checked_periods(seasons)
    log, notes = _read(data, columns, every, zone)
    if chances is not None:
        errors.closest(chances, "chances", CHANCES)
        if has_chances(log):
            problem = f"is {chances!r}, and the log has a column of chances"
            raise errors.InvalidInput("chances", problem, "leave it out, or remove the column")
    chosen = log_play.checked(policies, len(log.names))
    tell = progress or (lambda *_: None)

    held = log_facts.contents(log, chances)
    ready(contents=held)
    compared = compare(log, periods=seasons, report=lambda share: tell("structures", 0.9 * share))
    drift, scores = drift_of(compared), compared
    best = scores.chosen
    assert isinstance(best, Structure)
    found = fit_structure(log, best, report=lambda share: tell("structures", 0.9 + 0.09 * share))
    season_shown = answer(scores, repeats)
    wandering = answer(scores, drifts).best_with
    walk = found if drifts(best) or wandering is None else fit_structure(log, wandering)
    speed = log_facts.speed(walk, log_facts.horizon(log), seed)
    cycles = log_seasons.seasons(found, scores)
    ready(drift=drift, season=season_shown, speed=speed, seasons=cycles, structure=str(best))
    ready(comparison=compared, fit=found, log=log)
    tell("structures", 1)

    test = log_facts.split(log)
    uses = best.features
    train = log_facts.training(log, test, features=bool(uses))
    early = best  # a replay, which must not know the test part, has no features
    if not uses:
        early = _of_training(train, seasons, lambda share: tell("training part", 0.9 * share))
    known = log_facts.predictability(fit_structure(train, early), log, test, found, seed)
    ready(predictability=known)
    tell("training part", 1)

    done, replay, untested = None, None, _untested(held, uses)
    if not untested and held.evidence != "none":
        given: dict[str, Any] = {"chances": chances, "runs": 10, "seed": seed, "progress": tell}
        done, replay = log_play.replayed(log, early, chosen, **given)
    ready(replayed=done, untested=untested)
    who = _player(chosen, done)
    ahead = None
    if len(log.names) > 1 and not uses:
        length = rounds or (done.test_rounds if done else max(held.span // 2, 1))
        settings: dict[str, Any] = {"runs": runs, "seed": seed}
        ahead = log_play.forecast(
            found, chosen, who, length, **settings, progress=lambda share: tell("forecast", share)
        )
    findings = _findings(held, drift, season_shown, done, ahead, untested, who)
    if any(one.features and one.scope == "arm" for one in best.components):
        findings = findings._replace(moves="yes")  # the best arm depends on the context
    said = log_rules.recommend(findings)
    flags = log_columns.flags(columns, every, zone)
    source = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    several = held.sequences > 1
    warnings = [*notes, *found.warnings, *(done.notes if done else ())]
    return LogAdvice(
        contents=held,
        drift=drift,
        season=season_shown,
        speed=speed,
        seasons=cycles,
        structure=str(best),
        comparison=compared,
        predictability=known,
        replayed=done,
        forecast=ahead,
        untested=untested,
        warnings=tuple(one for one in dict.fromkeys(warnings) if one not in held.notes),
        recommendation=said,
        commands=log_rules.commands(
            said.kind,
            source,
            flags,
            str(best),
            findings.policy,
            held.evidence,
            several,
            chances,
        ),
        fit=found,
        log=log,
        replay=replay,
    )


def _checked_periods(seasons: Any) -> tuple[float, ...]:
    if isinstance(seasons, str) or not isinstance(seasons, Iterable):
        raise errors.InvalidInput("seasons", f"is {seasons!r}", "give a list of periods, as [7]")
    periods = tuple(seasons)
    for period in periods:
        season(period)  # raises an error that names the period
    return periods


def _read(data: Any, columns: Any, every: Any, zone: Any) -> tuple[Log, list[str]]:
    log = as_log(data, columns=columns, every=every, zone=zone)
    if log.rewards_seen < FEWEST:
        remedy = f"advice needs at least {FEWEST}: half of them to learn from, half to test"
        raise errors.InvalidInput("log", f"has {log.rewards_seen} rewards", remedy)
    return recent(log)


def _of_training(train: Log, seasons: Sequence[float] | None, report: Tell) -> Structure:
    """The structure that policies are replayed with: the test part has no say in it.

    Every arm has a level of its own, however little half of a log shows of it; a season is added
    if that predicts better.
    """
    if train.rewards_seen < 2 * LEAST + 2:  # of each half, which rounding may shift by one
        return parse(OWN)
    periods = shown_periods(train) if seasons is None else seasons
    given = [parse(OWN)]
    given += [given[0] + one for period in periods for one in season_pair(period)]
    if len(given) == 1:
        return given[0]
    chosen = compare(train, given, report=report).chosen
    assert isinstance(chosen, Structure)
    return chosen


def _untested(held: Contents, uses: Sequence[str]) -> str:
    if len(held.arms) > 1 and uses and held.evidence != "none":
        names = ", ".join(errors.printable(name) for name in uses)
        replay = "driftbandit replay with --structure, which takes them"
        return f"Policies were not replayed: the model uses {names}. Run {replay}."
    if held.sequences > 1:
        return "Policies were not replayed: the log holds several sequences."
    return ""


def _player(chosen: Mapping[str, Any], done: Replayed | None) -> str:
    """The policy in question: the best of the replay, or the first that knows the model."""
    if done is not None:
        return done.best
    return next((name for name in chosen if registry.filters(name)), next(iter(chosen)))


def _findings(
    held: Contents,
    drift: Answer,
    repeats: Answer,
    done: Replayed | None,
    ahead: Forecast | None,
    untested: str,
    policy: str,
) -> Findings:
    both = {drift.verdict, repeats.verdict}
    moves = "yes" if "yes" in both else "no" if both == {"no"} else "cannot tell"
    facts = Findings(len(held.arms), moves, held.evidence, policy, untested=untested)  # type: ignore[arg-type]
    least = held.least_chance or 0.0
    drawn = held.evidence == "chances" and least >= log_rules.SHARE / len(held.arms)
    facts = facts._replace(randomized=drawn or held.evidence == "full", rounds=held.rounds)
    rare = tuple(arm.name for arm in held.arms if arm.share < log_rules.RARE)
    facts = facts._replace(rare=rare, forecast=None if ahead is None else ahead.over_fixed)
    if done is None:
        return facts
    row, fixed = done.row(done.best), done.row(LEADER)
    unknown = [(registry.title(done.best), row), (f"always playing {label(done.fixed)}", fixed)]
    unsupported = max(own.unsupported for _, own in unknown)
    return facts._replace(
        doubt=next((f"{who}: {own.reason}" for who, own in unknown if not own.trusted), ""),
        randomized=facts.randomized and not unsupported,
        policy=done.best,
        fixed=done.fixed,
        over_fixed=row.over_fixed,
        over_log=row.over_log,
        fixed_over_log=fixed.over_log,
        effective=row.effective,
    )
