"""Advice from a log: is there drift, is it predictable, and what would policies have earned?"""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from driftbandit import errors, policies
from driftbandit.advice import log_facts, log_findings
from driftbandit.advice.finding import Advice, Finding, Recommendation, Request, Tell, asked
from driftbandit.advice.log_facts import Contents, Drift, Earned, Evidence, Forecast, Replayed
from driftbandit.advice.log_findings import DRIFTS, FIXED, POLICIES, PREDICTABLE, QUESTIONS, untold
from driftbandit.identify import Log, as_log, compare
from driftbandit.identify.findings import Verdict, answer, drift_of
from driftbandit.identify.structured.comparison import drifts, repeats
from driftbandit.identify.structured.fitting import fit_structure
from driftbandit.identify.structured.periods import season_warning, shown_periods
from driftbandit.identify.structured.selection import LEAST, can_compare, recent, season_pair
from driftbandit.policies import title
from driftbandit.replays import Replay, replay, support
from driftbandit.replays.decisions import CHANCES, has_chances
from driftbandit.replays.result import LEADER
from driftbandit.report.numbers import percent, short
from driftbandit.statistics import TOO_FEW
from driftbandit.structure import Structure, parse, season
from driftbandit.system import label

STAGES = ("structures", "training part", "fit", "play", "forecast")
OWN = "level(arm)"
FEWEST = 2 * LEAST  # rewards, of which models can be compared
ENOUGH = 4 * LEAST  # rewards: each half must allow to compare models
SHARE = 0.1  # of the decisions to draw at random, if a log cannot tell
RARE = 0.02  # an arm with a smaller share of the plays is played rarely


def advise_log(
    data: Any, seasons: Sequence[float] | None, chances: str | None, request: Request
) -> Advice:
    """Advice from a log; see `advise`."""
    runs, rounds = request.runs, request.rounds
    if runs is not None:
        runs = errors.whole_number(runs, "runs", low=6)
    if rounds is not None:
        rounds = errors.whole_number(rounds, "rounds", low=1)
    seed = errors.whole_number(request.seed, "seed", low=0, high=2**62)
    seasons = _checked_periods(seasons)
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
    names = log_facts.PLAYED if request.policies is None else request.policies
    chosen = policies.chosen(names, n_arms=len(log.names))
    held = log_facts.contents(log, chances)
    obvious = f"{log_findings.ALWAYS_SAME}." if held.constant else ""
    obvious = "There is only one arm." if len(held.arms) == 1 else obvious
    advised = Recommendation("open", "No recommendation: time was up before all was looked at.")
    if obvious:
        advised = recommend(held)
    drift: Drift | None = None
    result: Replay | None = None

    def answers(tell: Tell) -> Iterator[Finding]:
        nonlocal advised, drift, result
        yield log_findings.on_contents(held)
        few = log.rewards_seen < ENOUGH
        if not few or can_compare(log):
            drift = _drift(log, seasons, seed, tell)
            yield log_findings.on_drift(drift, held, log)
            tell("structures", 1)
        if drift is None or few:
            why = (
                f"Too few to compare: the log has {log.rewards_seen} rewards, and this takes "
                f"{ENOUGH}, half of them to learn from, half to test."
            )
            if not obvious:
                advised = Recommendation("collect", "Collect more data first.", (why,))
            left = [PREDICTABLE, POLICIES, FIXED]
            yield from untold(left if drift else [DRIFTS, *left], "cannot tell", why)
            return
        uses = drift.fit.structure.features
        test = log_facts.split(log)
        train = log.only(~test)
        early = drift.fit.structure  # a replay, which must not know the test part, has no features
        if not uses:
            early = _of_training(train, seasons, lambda share: tell("training part", 0.9 * share))
        fit = fit_structure(train, early)
        ahead = log_facts.predictability(fit, log, test, drift.fit, seed)
        yield log_findings.on_predictability(ahead, held.span)
        tell("training part", 1)
        if obvious:
            yield from untold((POLICIES, FIXED), "nothing to decide", obvious)
            return
        done, untested = None, _untested(held, uses)
        if untested or held.evidence == "none":
            why = untested or "This log cannot tell: it has no column `chance`."
            yield from untold((POLICIES,), "cannot tell", why)
        else:
            how: dict[str, Any] = {"chances": chances, "seed": seed, "progress": tell}
            how |= {"structure": early, "train": log_facts.TRAIN, "runs": 10}
            result = replay(log, list(chosen.values()), **how)
            # Intervals are widened because the best of several policies is looked at.
            done = log_facts.replayed(result, 1 - 0.05 / len(chosen))
            yield log_findings.on_policies(done, drift.structure)
        rules = functools.partial(recommend, held, drift.moves, done, untested=untested)
        advised = rules()
        forecast = None
        if not uses:
            length = rounds or (done.test_rounds if done else max(held.span // 2, 1))
            knowing = (name for name in chosen if policies.filters(name))
            who = done.best if done else next(knowing, next(iter(chosen)))
            forecast = log_facts.forecast(
                drift.fit, who, chosen[who], length, runs, seed, functools.partial(tell, "forecast")
            )
            advised = rules(forecast)
        yield log_findings.on_fixed(done, forecast)

    findings = asked(QUESTIONS, answers, request)
    fit = system = None
    warnings = notes
    if drift is not None:
        fit, system = drift.fit, drift.fit.system
        missed = "" if repeats(fit.structure) or held.constant else season_warning(fit, log)
        warnings = [*notes, *fit.warnings, missed, *(result.notes if result else ())]
        source, several = shlex.join(map(errors.printable, whole.source)), held.sequences > 1
        asks = str(fit.structure), advised.choice or "", held.evidence, several, chances
        advised = advised._replace(commands=commands(advised.kind, source, *asks))
    warnings = [text for text in dict.fromkeys(warnings) if text and text not in held.notes]
    advised = advised._replace(warnings=warnings)
    return Advice(findings, advised, system, fit, log, result)


def _checked_periods(seasons: Any) -> tuple[float, ...] | None:
    if seasons is None:
        return None
    if isinstance(seasons, str) or not isinstance(seasons, Iterable):
        raise errors.InvalidInput("seasons", f"is {seasons!r}", "give a list of periods, as [7]")
    periods = tuple(seasons)
    for period in periods:
        season(period)  # raises an error that names the period
    return periods


def _drift(log: Log, seasons: Sequence[float] | None, seed: int, tell: Tell) -> Drift:
    """Whether anything drifts or repeats, by a comparison, and how fast, by the chosen model."""
    compared = compare(log, periods=seasons, report=lambda share: tell("structures", 0.9 * share))
    best, drift = compared.chosen, drift_of(compared)
    fit = fit_structure(log, best, report=lambda share: tell("structures", 0.9 + 0.09 * share))
    walk = fit
    if not drifts(best) and drift.best_with is not None:
        walk = fit_structure(log, drift.best_with)
    speed = log_facts.speed(walk, log_facts.horizon(log), seed)
    seasonal = answer(compared, repeats)
    return Drift(drift, seasonal, speed, log_facts.seasons(fit, compared), compared, fit)


def _of_training(
    train: Log, seasons: Sequence[float] | None, report: Callable[[float], None]
) -> Structure:
    """The structure that policies are replayed with: the test part has no say in it.

    Every arm has a level of its own, however little half of a log shows of it; a season is added
    if that predicts better.
    """
    plain = parse(OWN)
    if train.rewards_seen < 2 * LEAST + 2:  # of each half, which rounding may shift by one
        return plain
    periods = shown_periods(train) if seasons is None else seasons
    seasonal = [plain + waves for period in periods for waves in season_pair(period)]
    return compare(train, [plain, *seasonal], report=report).chosen if seasonal else plain


def _untested(held: Contents, uses: Sequence[str]) -> str:
    """Why policies are not replayed, although the log would allow it."""
    if uses and held.evidence != "none":
        names = ", ".join(errors.printable(name) for name in uses)
        replay = "driftbandit replay with --structure, which takes them"
        return f"Policies were not replayed: the model uses {names}. Run {replay}."
    if held.sequences > 1:
        return "Policies were not replayed: the log holds several sequences."
    return ""


# The rules


def recommend(
    held: Contents,
    moves: Verdict = "cannot tell",
    done: Replayed | None = None,
    ahead: Forecast | None = None,
    untested: str = "",
) -> Recommendation:
    """Apply the rules, the first that fits.

    An agent is recommended only if the interval of its gain is above zero: over the best arm of
    the training part, and over what the log earned.

    Args:
        held: what the log holds.
        moves: whether arms drift, or have a season.
        done: what policies would have earned; None: nothing was replayed.
        ahead: what the model expects of the next rounds; None: it makes no forecast.
        untested: why nothing was replayed, if the log would allow it.
    """
    if len(held.arms) == 1:
        return Recommendation("nothing", "Nothing to decide: the log has one arm.")
    if held.constant:
        return _constant(held)
    if done is None:
        return _not_replayed(held, moves, ahead, untested)
    row, leader = done.row(done.best), done.row(LEADER)
    assert row.over_fixed is not None
    name, arm = title(done.best), label(done.fixed)
    if held.evidence == "chances" and row.effective < support.FEWEST:
        seldom = f"It plays what {name} names in about {row.effective:.0f} effective rounds"
        reason = f"{seldom}; {support.FEWEST} are the least that an interval can rest on."
        return _collect(held, done, "the log seldom shows what an agent would do", reason)
    for who, own in ((name, row), (f"always playing {arm}", leader)):
        if not own.trusted:
            reason = f"There is no interval for {who}: {own.reason}."
            return _collect(held, done, "the log does not show enough to compare policies", reason)
    if row.over_fixed.verdict == TOO_FEW:
        return _collect(held, done, "the log is too short to compare policies")
    fixed_is_better = leader.over_log is not None and leader.over_log.clear
    better = row.over_fixed.clear
    if row.over_log is not None:
        better = row.over_log.clear and (better or not fixed_is_better)
    if better:
        return _agent(row, name, arm)
    gained = row.over_fixed.text
    unproven = f"{name} does not clearly earn more than always playing {arm}: {gained} per round."
    if leader.over_log is not None and leader.over_log.clear:
        gained = leader.over_log.text
        more = f"Always playing {arm} earns {gained} per round compared with the log."
        return Recommendation("fixed arm", f"Always play {arm}.", (more, unproven))
    if moves != "no" and row.over_fixed.high > 0 and ahead is not None and ahead.over_fixed.clear:
        return _collect(held, done, "a gain is likely, but this log does not prove it", unproven)
    still = "nothing drifts that can be seen" if moves == "no" else "no clear gain was found"
    kind, advised = "fixed arm", f"Always play {arm}"
    if row.over_log is not None:
        kind, advised = "keep", "Keep the present way of choosing"
    return Recommendation(kind, f"{advised}: {still}.", (unproven,))


def _constant(held: Contents) -> Recommendation:
    """Every arm has always paid the same."""
    paid = {arm.name: arm.mean for arm in held.arms if arm.rewards}
    best = max(paid, key=lambda name: paid[name])
    if math.isclose(min(paid.values()), paid[best]):
        same = f"every arm has paid {short(paid[best])}, every time"
        return Recommendation("nothing", f"Nothing to decide: {same}.")
    reason = f"Every arm has always paid the same, and this one the most: {short(paid[best])}."
    return Recommendation("fixed arm", f"Always play {label(best)}.", (reason,))


def _not_replayed(
    held: Contents, moves: Verdict, ahead: Forecast | None, untested: str
) -> Recommendation:
    """No replay: the log cannot tell, or policies cannot be replayed."""
    reason = untested or (
        "The log does not say with which chance each arm was drawn, so it cannot tell what another "
        "policy would have earned."
    )
    if moves == "no":
        headline = "Keep a fixed choice: nothing drifts that can be seen."
        return Recommendation("keep", headline, (reason,))
    if ahead is None:
        return _collect(held, None, "this log cannot prove a gain", reason, untested=untested)
    gain = f"{ahead.over_fixed.text} per round by {title(ahead.policy)}"
    if ahead.over_fixed.clear:
        gain = f"A gain over a fixed arm is likely, but not proven: the model expects {gain}."
        return _collect(held, None, "this log cannot prove a gain", gain, reason, untested=untested)
    if moves == "cannot tell":
        why = "whether arms drift cannot be told yet"
        return _collect(held, None, why, reason, untested=untested)
    model = f"Even the model expects no clear gain over a fixed arm: {ahead.over_fixed.text}."
    return Recommendation("keep", "Keep a fixed choice.", (model, reason))


def _agent(row: Earned, name: str, arm: str) -> Recommendation:
    gains = {"the log": row.over_log, f"always playing {arm}": row.over_fixed}
    reasons = []
    for who, gain in gains.items():
        if gain is not None:
            doubt = "" if gain.clear else ", which is not clearly a gain"
            reasons.append(f"It earns {gain.text} per round compared with {who}{doubt}.")
    if row.over_log is not None:
        reasons.append(
            "In this test the log explored for it. Let it start on a small share of decisions."
        )
    return Recommendation("agent", f"Use an agent that plays {name}.", reasons, row.label)


def _collect(
    held: Contents, done: Replayed | None, why: str, *reasons: str, untested: str = ""
) -> Recommendation:
    """What to collect, so that the log can tell."""
    rows = [] if done is None else [done.row(done.best), done.row(LEADER)]
    drawn = (held.least_chance or 0.0) >= SHARE / len(held.arms)  # a fair chance in every round
    drawn = (drawn and held.evidence == "chances") or held.evidence == "full"
    drawn = drawn and not any(row.unsupported for row in rows)
    wanted = []
    if untested:
        wanted = ["Let an agent make a small, random share of the decisions, and compare."]
    elif not drawn:
        wanted = [
            f"Draw {percent(SHARE)} of the decisions at random from all arms, and write the chance "
            "of the arm that was played into a column `chance`."
        ]
    if rare := [label(arm.name) for arm in held.arms if arm.share < RARE]:
        wanted.append(f"Play these arms more often: {', '.join(rare[:5])}.")
    if held.evidence != "none":
        effective = max(rows[0].effective, 1.0) if rows else 1.0
        length = short(max(2.0, 1.2 * support.FEWEST / effective) * held.rounds, 1)
        wanted.append(f"Let the log grow to {length} rounds or more, and run `advise` again.")
    what = "more" if drawn else "other"
    return Recommendation("collect", f"Collect {what} data first: {why}.", (*reasons, *wanted))


def commands(
    kind: str,
    source: str | None,
    structure: str,
    policy: str,
    evidence: Evidence,
    several: bool = False,
    chances: str | None = None,
) -> tuple[str, ...]:
    """What to run next, ready to paste.

    Args:
        kind: of the recommendation.
        source: the log's path, and the options that say how it is read; None: a placeholder.
        structure: of the model.
        policy: that was recommended.
        evidence: what the log says about arms that were not played.
        several: whether it holds several sequences, which cannot be replayed.
        chances: what was assumed of them, which `advise` and `replay` take and `fit` does not need.

    Example:
        >>> for line in commands("agent", "'my log.csv'", "level(arm)", "idea", "full"):
        ...     print(line)
        driftbandit fit 'my log.csv' --structure 'level(arm)' --out model.json
        driftbandit advise model.json
        python -c 'import driftbandit as db; print(db.Agent(db.load_model("model.json"),
        policy="idea").ask())'
    """
    source = source or "LOG.csv"
    estimated = source if chances is None else f"{source} --chances {shlex.quote(chances)}"
    model = f"--structure {shlex.quote(structure)}"
    fitted = f"driftbandit fit {source} {model} --out model.json"
    if kind == "agent":
        agent = f'db.Agent(db.load_model("model.json"), policy="{policy}")'
        python = f"import driftbandit as db; print({agent}.ask())"
        alone = f"driftbandit replay {estimated} {model} --policies {shlex.quote(policy)} "
        alone += "--method rejection   # it explores by itself"
        tested = [alone] * (evidence == "chances")
        rest = "driftbandit advise model.json", f"python -c {shlex.quote(python)}"
        return (*tested, fitted, *rest)
    if kind == "collect" and evidence == "none" and not several:
        uniform = f"driftbandit advise {estimated} --chances uniform"
        return (f"{uniform}   # only if arms were drawn uniformly", fitted)
    return (fitted,)
