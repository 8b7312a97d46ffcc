"""The rules by which facts about a log become a recommendation, and the commands to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from driftbandit import statistics
from driftbandit.advice.log_facts import Evidence
from driftbandit.advice.log_play import Gain
from driftbandit.identify.findings import Verdict
from driftbandit.policies import title
from driftbandit.replays.support import FEWEST
from driftbandit.report.numbers import percent, short
from driftbandit.system import Name, label

Kind = Literal["agent", "fixed arm", "keep", "collect", "nothing"]
SHARE = 0.1  # of the decisions to draw at random, if a log cannot tell
RARE = 0.02  # an arm with a smaller share of the plays is played rarely


class Findings(NamedTuple):
    """The facts that decide."""

    n_arms: int
    moves: Verdict  # whether arms drift, or have a season
    evidence: Evidence
    policy: str  # the policy in question
    fixed: Name | None = None  # the best arm of the training part
    over_fixed: Gain | None = None  # the policy, compared with that arm
    over_log: Gain | None = None  # the policy, compared with what the log earned
    fixed_over_log: Gain | None = None  # that arm, compared with what the log earned
    effective: float = 0.0  # rounds of the log that show what the policy earns
    forecast: Gain | None = None  # what the model says of the policy, compared with a fixed arm
    untested: str = ""  # why nothing was replayed, if the evidence would allow it
    rare: tuple[Name, ...] = ()  # arms that are played rarely
    randomized: bool = False  # whether every arm has a fair chance in every round, or is shown
    rounds: int = 0  # of the log
    doubt: str = ""  # why the log cannot tell what the policy, or the fixed arm, earns


class Recommendation(NamedTuple):
    """What to do, and why."""

    kind: Kind
    headline: str
    reasons: tuple[str, ...]


def recommend(facts: Findings) -> Recommendation:
    """Apply the rules, the first that fits.

    An agent is recommended only if the interval of its gain is above zero: over the best arm of
    the training part, and over what the log earned.
    """
    if facts.n_arms == 1:
        return Recommendation("nothing", "Nothing to decide: the log has one arm.", ())
    if facts.over_fixed is None:
        return _untested(facts)
    over_fixed, name = facts.over_fixed, title(facts.policy)
    logged = facts.over_log is not None
    if facts.evidence == "chances" and facts.effective < FEWEST:
        seldom = f"It plays what {name} names in about {facts.effective:.0f} effective rounds"
        reason = f"{seldom}; {FEWEST} are the least that an interval can rest on."
        return _collect(facts, "the log seldom shows what an agent would do", reason)
    if facts.doubt:
        reason = f"There is no interval for {facts.doubt}."
        return _collect(facts, "the log does not show enough to compare policies", reason)
    if over_fixed.verdict == statistics.TOO_FEW:
        return _collect(facts, "the log is too short to compare policies")
    better = over_fixed.clear
    if facts.over_log is not None:
        better = facts.over_log.clear and (better or not _clear(facts.fixed_over_log))
    if better:
        return _agent(facts, name)
    arm = label(facts.fixed) if facts.fixed is not None else "the best arm"
    unproven = (
        f"{name} does not clearly earn more than always playing {arm}: {over_fixed.text} per round."
    )
    if _clear(facts.fixed_over_log):
        assert facts.fixed_over_log is not None
        gained = facts.fixed_over_log.text
        more = f"Always playing {arm} earns {gained} per round compared with the log."
        return Recommendation("fixed arm", f"Always play {arm}.", (more, unproven))
    if facts.moves != "no" and over_fixed.high > 0 and _clear(facts.forecast):
        return _collect(facts, "a gain is likely, but this log does not prove it", unproven)
    still = "nothing drifts that can be seen" if facts.moves == "no" else "no clear gain was found"
    if logged:
        return Recommendation("keep", f"Keep the present way of choosing: {still}.", (unproven,))
    return Recommendation("fixed arm", f"Always play {arm}: {still}.", (unproven,))


def _untested(facts: Findings) -> Recommendation:
    """No replay: the log cannot tell, or policies cannot be replayed."""
    reason = facts.untested or (
        "The log does not say with which chance each arm was drawn, so it cannot tell what another "
        "policy would have earned."
    )
    if facts.moves == "no":
        headline = "Keep a fixed choice: nothing drifts that can be seen."
        return Recommendation("keep", headline, (reason,))
    if facts.forecast is None or _clear(facts.forecast):
        expects = "."
        if facts.forecast is not None:
            expects = (
                f": the model expects {facts.forecast.text} per round by {title(facts.policy)}."
            )
            expects = f"A gain over a fixed arm is likely, but not proven{expects}"
        reasons = (expects,) if facts.forecast is not None else ()
        return _collect(facts, "this log cannot prove a gain", *reasons, reason)
    if facts.moves == "cannot tell":
        return _collect(facts, "whether arms drift cannot be told yet", reason)
    model = f"Even the model expects no clear gain over a fixed arm: {facts.forecast.text}."
    return Recommendation("keep", "Keep a fixed choice.", (model, reason))


def _agent(facts: Findings, name: str) -> Recommendation:
    assert facts.over_fixed is not None
    fixed = f"always playing {label(facts.fixed)}" if facts.fixed is not None else "a fixed arm"
    reasons = [f"It earns {facts.over_fixed.text} per round compared with {fixed}."]
    if not facts.over_fixed.clear:
        reasons[0] = f"Compared with {fixed}, its gain is not clear: {facts.over_fixed.text}."
    if facts.over_log is not None:
        reasons.insert(0, f"It earns {facts.over_log.text} per round compared with the log.")
        reasons.append(
            "In this test the log explored for it. Let it start on a small share of decisions."
        )
    return Recommendation("agent", f"Use an agent that plays {name}.", tuple(reasons))


def _collect(facts: Findings, why: str, *reasons: str) -> Recommendation:
    wanted = []
    if not facts.randomized and not facts.untested:
        wanted.append(
            f"Draw {percent(SHARE)} of the decisions at random from all arms, and write the chance "
            "of the arm that was played into a column `chance`."
        )
    if facts.rare:
        names = ", ".join(label(name) for name in facts.rare[:5])
        wanted.append(f"Play these arms more often: {names}.")
    if facts.untested:
        wanted.append("Let an agent make a small, random share of the decisions, and compare.")
    if facts.evidence != "none" or not wanted:
        times = max(2.0, 1.2 * FEWEST / max(facts.effective, 1.0))
        length = short(times * facts.rounds, 1)
        wanted.append(f"Let the log grow to {length} rounds or more, and run `advise` again.")
    what = "more" if facts.randomized else "other"
    return Recommendation("collect", f"Collect {what} data first: {why}.", (*reasons, *wanted))


def _clear(gain: Gain | None) -> bool:
    return gain is not None and gain.clear


def commands(
    kind: Kind,
    log: str | None,
    flags: Sequence[str],
    structure: str,
    policy: str,
    evidence: Evidence,
    several: bool = False,
    chances: str | None = None,
) -> tuple[str, ...]:
    """What to run next, ready to paste.

    Args:
        kind: of the recommendation.
        log: the log's path, if it was read from a file.
        flags: options of the command line that say how the log is read.
        structure: of the model.
        policy: that was recommended.
        evidence: what the log says about arms that were not played.
        several: whether it holds several sequences, which cannot be replayed.
        chances: what was assumed of them, which `advise` and `replay` take and `fit` does not need.

    Example:
        >>> for line in commands("agent", "my log.csv", [], "level(arm)", "idea", "full"):
        ...     print(line)
        driftbandit fit 'my log.csv' --structure 'level(arm)' --out model.json
        driftbandit advise model.json
        python -c 'import driftbandit as db; print(db.Agent(db.load_model("model.json"),
        policy="idea").ask())'
    """
    source = shlex.join([log or "LOG.csv", *flags])
    estimated = source if chances is None else f"{source} --chances {shlex.quote(chances)}"
    fitted = f"driftbandit fit {source} --structure {shlex.quote(structure)} --out model.json"
    if kind == "agent":
        agent = f'db.Agent(db.load_model("model.json"), policy="{policy}")'
        python = f"import driftbandit as db; print({agent}.ask())"
        alone = f"driftbandit replay {estimated} --structure {shlex.quote(structure)} --policies "
        alone += f"{shlex.quote(policy)} --method rejection   # it explores by itself"
        tested = [alone] * (evidence == "chances")
        return (
            *tested,
            fitted,
            "driftbandit advise model.json",
            f"python -c {shlex.quote(python)}",
        )
    if kind == "collect" and evidence == "none" and not several:
        uniform = f"driftbandit advise {estimated} --chances uniform"
        return (f"{uniform}   # only if arms were drawn uniformly", fitted)
    return (fitted,)
