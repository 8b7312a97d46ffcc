"""Advice from a log: is there drift, is it predictable, and what would policies have earned?"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit import policies as registry
from driftbandit.advice import log_facts, log_findings, log_play, log_rules
from driftbandit.advice.finding import TIME_UP, Advice, Finding, Recommendation, Tell, asked
from driftbandit.advice.log_facts import Contents
from driftbandit.advice.log_findings import FIXED, POLICIES, PREDICTABLE, QUESTIONS, untold
from driftbandit.advice.log_play import Forecast, Replayed
from driftbandit.identify.findings import Verdict, answer, drift_of
from driftbandit.identify.structured.comparison import Comparison, drifts, repeats
from driftbandit.identify.structured.fitting import fit_structure
from driftbandit.identify.structured.periods import season_warning, shown_periods
from driftbandit.identify.structured.selection import LEAST, compare, recent, season_pair
from driftbandit.io.log_reader import as_log
from driftbandit.io.logs import Log
from driftbandit.replays.decisions import CHANCES, has_chances
from driftbandit.replays.result import LEADER
from driftbandit.structure import Structure, parse, season
from driftbandit.system import label

STAGES = ("structures", "training part", "fit", "play", "forecast")
OWN = "level(arm)"
FEWEST = 2 * LEAST  # rewards, of which models can be compared
ENOUGH = 4 * LEAST  # rewards: each half must allow to compare models


def advise_log(
    data: Any,
    *,
    seasons: Sequence[float] | None = None,
    chances: str | None = None,
    policies: Any = None,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    budget: float | None = None,
    progress: Tell | None = None,
    ready: Tell | None = None,
    source: str | None = None,
) -> Advice:
    """Advice from a log; see `advise`.

    ``source``: how a command line names the log, with the options that read it; None: its path.
    """
    runs = errors.whole_number(log_play.RUNS if runs is None else runs, "runs", low=6)
    if rounds is not None:
        rounds = errors.whole_number(rounds, "rounds", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    if seasons is not None:
        seasons = _checked_periods(seasons)
    if source is None and isinstance(data, str | os.PathLike):
        source = shlex.quote(os.fspath(data))
    whole = as_log(data)
    if whole.rewards_seen < FEWEST:
        remedy = f"advice needs at least {FEWEST}: half of them to learn from, half to test"
        raise errors.InvalidInput("log", f"has {whole.rewards_seen} rewards", remedy)
    log, notes = recent(whole)
    if chances is not None:
        errors.closest(chances, "chances", CHANCES)
        if has_chances(log):
            problem = f"is {chances!r}, and the log has a column of chances"
            raise errors.InvalidInput("chances", problem, "leave it out, or remove the column")
    chosen = log_play.checked(policies, len(log.names))
    known: dict[str, Any] = {"held": log_facts.contents(log, chances)}

    def answers(tell: Tell) -> Iterator[Finding]:
        held = known["held"]
        yield log_findings.on_contents(held)
        compared = _comparison(log, seasons, lambda share: tell("structures", 0.9 * share))
        if compared is None:
            for question in list(QUESTIONS)[1:]:
                yield untold(question, _too_few(log))
            return
        drift = known["drift"] = _drift(compared, log, seed, tell)
        yield log_findings.on_drift(drift, held, log)
        tell("structures", 1)
        if log.rewards_seen < ENOUGH:
            for question in (PREDICTABLE, POLICIES, FIXED):
                yield untold(question, _too_few(log))
            return
        uses = drift.fit.structure.features
        test = log_facts.split(log)
        train = log_facts.training(log, test, features=bool(uses))
        early = drift.fit.structure  # a replay, which must not know the test part, has no features
        if not uses:
            early = _of_training(train, seasons, lambda share: tell("training part", 0.9 * share))
        fit = fit_structure(train, early)
        known["ahead"] = log_facts.predictability(fit, log, test, drift.fit, seed)
        yield log_findings.on_predictability(known["ahead"], held.span)
        tell("training part", 1)
        if len(held.arms) == 1 or held.constant:
            why = (
                "There is only one arm." if len(held.arms) == 1 else log_findings.ALWAYS_SAME + "."
            )
            yield untold(POLICIES, why, "nothing to decide")
            yield untold(FIXED, why, "nothing to decide")
            return
        why = known["untested"] = _untested(held, uses)
        done = None
        if not why and held.evidence != "none":
            done, known["replay"] = log_play.replayed(
                log, early, chosen, chances=chances, seed=seed, progress=tell
            )
            yield log_findings.on_policies(done, drift.structure)
        else:
            yield untold(POLICIES, why or "This log cannot tell: it has no column `chance`.")
        known["done"], known["forecast"] = done, None
        if not uses:
            length = rounds or (done.test_rounds if done else max(held.span // 2, 1))
            who = _player(chosen, done)
            settings: dict[str, Any] = {"runs": runs, "seed": seed}
            settings["progress"] = lambda share: tell("forecast", share)
            known["forecast"] = log_play.forecast(drift.fit, chosen, who, length, **settings)
        yield log_findings.on_fixed(done, known["forecast"])

    findings = asked(QUESTIONS, answers, budget, progress, ready)
    said, warnings, fit = _recommended(known, findings, chosen, log), notes, None
    if "drift" in known:
        held, fit = known["held"], known["drift"].fit
        missed = "" if repeats(fit.structure) or held.constant else season_warning(fit, log)
        warnings = [*notes, *fit.warnings, *filter(None, [missed])]
        warnings += known["done"].notes if known.get("done") else ()
        warnings = [text for text in dict.fromkeys(warnings) if text not in held.notes]
        structure, several = str(fit.structure), held.sequences > 1
        asks = said.choice or "", held.evidence, several, chances
        commands = log_rules.commands(said.kind, source, structure, *asks)
        said = said._replace(commands=commands)
    said = said._replace(warnings=warnings)
    system = None if fit is None else fit.system
    return Advice(findings, said, system, fit, log, known.get("replay"))


def _checked_periods(seasons: Any) -> tuple[float, ...]:
    if isinstance(seasons, str) or not isinstance(seasons, Iterable):
        raise errors.InvalidInput("seasons", f"is {seasons!r}", "give a list of periods, as [7]")
    periods = tuple(seasons)
    for period in periods:
        season(period)  # raises an error that names the period
    return periods


def _too_few(log: Log) -> str:
    return (
        f"Too few to compare: the log has {log.rewards_seen} rewards, and this takes {ENOUGH}, "
        "half of them to learn from, half to test."
    )


def _comparison(
    log: Log, seasons: Sequence[float] | None, report: Callable[[float], None]
) -> Comparison | None:
    """Of structures; None: there are too few rewards."""
    try:
        compared = compare(log, periods=seasons, report=report)
    except errors.InvalidInput:
        if log.rewards_seen >= ENOUGH:
            raise
        return None
    return compared


def _drift(compared: Comparison, log: Log, seed: int, tell: Tell) -> log_findings.Drift:
    """Whether anything drifts or repeats, by a comparison, and how fast, by the chosen model."""
    places = [i for i, one in enumerate(compared.structures) if isinstance(one, Structure)]
    scores = compared.part(places)
    best = scores.chosen
    assert isinstance(best, Structure)
    fit = fit_structure(log, best, report=lambda share: tell("structures", 0.9 + 0.09 * share))
    wandering = answer(scores, drifts).best_with
    walk = fit if drifts(best) or wandering is None else fit_structure(log, wandering)
    return log_findings.Drift(
        drift_of(compared),
        answer(scores, repeats),
        log_facts.speed(walk, log_facts.horizon(log), seed),
        log_facts.seasons(fit, scores),
        compared,
        fit,
    )


def _of_training(
    train: Log, seasons: Sequence[float] | None, report: Callable[[float], None]
) -> Structure:
    """The structure that policies are replayed with: the test part has no say in it.

    Every arm has a level of its own, however little half of a log shows of it; a season is added
    if that predicts better.
    """
    if train.rewards_seen < 2 * LEAST + 2:  # of each half, which rounding may shift by one
        return parse(OWN)
    periods = shown_periods(train) if seasons is None else seasons
    tried = [parse(OWN)]
    tried += [tried[0] + one for period in periods for one in season_pair(period)]
    chosen = tried[0] if len(tried) == 1 else compare(train, tried, report=report).chosen
    assert isinstance(chosen, Structure)
    return chosen


def _untested(held: Contents, uses: Sequence[str]) -> str:
    if uses and held.evidence != "none":
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


def _recommended(
    known: Mapping[str, Any], findings: Sequence[Finding], chosen: Mapping[str, Any], log: Log
) -> Recommendation:
    """By the rules, as far as the questions were answered."""
    held: Contents = known["held"]
    facts = log_rules.Known(len(held.arms), "cannot tell", held.evidence, "", rounds=held.rounds)
    if held.constant:
        paid = {arm.name: arm.mean for arm in held.arms if arm.rewards}
        best = max(paid, key=lambda name: paid[name])
        alike = len(set(paid.values())) == 1
        return log_rules.recommend(facts._replace(fixed=best, constant=paid[best], alike=alike))
    if len(held.arms) == 1:
        return log_rules.recommend(facts)
    if findings[list(QUESTIONS).index(POLICIES)].verdict == TIME_UP:
        return Recommendation("open", "No recommendation: time was up before all was looked at.")
    if "done" not in known:
        return Recommendation("collect", "Collect more data first.", (_too_few(log),))
    return log_rules.recommend(_known(facts, known, _player(chosen, known["done"])))


def _known(facts: log_rules.Known, known: Mapping[str, Any], policy: str) -> log_rules.Known:
    """What the rules ask for."""
    held: Contents = known["held"]
    drift: log_findings.Drift = known["drift"]
    done: Replayed | None = known["done"]
    forecast: Forecast | None = known["forecast"]
    both = {drift.drift.verdict, drift.season.verdict}
    moves: Verdict = "yes" if "yes" in both else "no" if both == {"no"} else "cannot tell"
    if any(one.features and one.scope == "arm" for one in drift.fit.structure.components):
        moves = "yes"  # the best arm depends on the context
    least = held.least_chance or 0.0
    drawn = held.evidence == "chances" and least >= log_rules.SHARE / len(held.arms)
    facts = facts._replace(
        moves=moves,
        policy=policy,
        untested=known["untested"],
        randomized=drawn or held.evidence == "full",
        rare=tuple(arm.name for arm in held.arms if arm.share < log_rules.RARE),
        forecast=None if forecast is None else forecast.over_fixed,
    )
    if done is None:
        return facts
    row, fixed = done.row(done.best), done.row(LEADER)
    unknown = {registry.title(done.best): row, f"always playing {label(done.fixed)}": fixed}
    unsupported = max(own.unsupported for own in unknown.values())
    return facts._replace(
        doubt=next((f"{who}: {own.reason}" for who, own in unknown.items() if not own.trusted), ""),
        randomized=facts.randomized and not unsupported,
        fixed=done.fixed,
        over_fixed=row.over_fixed,
        over_log=row.over_log,
        fixed_over_log=fixed.over_log,
        effective=row.effective,
    )
