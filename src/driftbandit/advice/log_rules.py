"""The rules by which facts about a log become a recommendation, and the commands to run next."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from driftbandit import statistics
from driftbandit.advice.finding import Number, Recommendation
from driftbandit.advice.log_facts import Evidence
from driftbandit.identify.findings import Verdict
from driftbandit.policies import title
from driftbandit.replays.support import FEWEST
from driftbandit.report.numbers import percent, short
from driftbandit.system import Name, label

SHARE = 0.1  # of the decisions to draw at random, if a log cannot tell
RARE = 0.02  # an arm with a smaller share of the plays is played rarely


class Known(NamedTuple):
    """The facts that decide."""

    n_arms: int
    moves: Verdict  # whether arms drift, or have a season
    evidence: Evidence
    policy: str  # the policy in question
    fixed: Name | None = None  # the best arm of the training part
    over_fixed: Number | None = None  # the policy, compared with that arm
    over_log: Number | None = None  # the policy, compared with what the log earned
    fixed_over_log: Number | None = None  # that arm, compared with what the log earned
    effective: float = 0.0  # rounds of the log that show what the policy earns
    forecast: Number | None = None  # what the model says of the policy, compared with a fixed arm
    untested: str = ""  # why nothing was replayed, if the evidence would allow it
    rare: tuple[Name, ...] = ()  # arms that are played rarely
    randomized: bool = False  # whether every arm has a fair chance in every round, or is shown
    rounds: int = 0  # of the log
    doubt: str = ""  # why the log cannot tell what the policy, or the fixed arm, earns
    constant: float | None = None  # what ``fixed`` pays, if every arm has always paid the same
    alike: bool = False  # whether that is the same for all of them


def recommend(facts: Known) -> Recommendation:
    """Apply the rules, the first that fits.

    An agent is recommended only if the interval of its gain is above zero: over the best arm of
    the training part, and over what the log earned.
    """
    if facts.n_arms == 1:
        return Recommendation("nothing", "Nothing to decide: the log has one arm.")
    if facts.constant is not None:
        same = f"every arm has paid {short(facts.constant)}, every time"
        if facts.alike:
            return Recommendation("nothing", f"Nothing to decide: {same}.")
        reason = (
            f"Every arm has always paid the same, and this one the most: {short(facts.constant)}."
        )
        return Recommendation("fixed arm", f"Always play {_arm(facts)}.", (reason,))
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
    arm = _arm(facts)
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


def _untested(facts: Known) -> Recommendation:
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


def _agent(facts: Known, name: str) -> Recommendation:
    assert facts.over_fixed is not None
    fixed = f"always playing {_arm(facts)}"
    reasons = [f"It earns {facts.over_fixed.text} per round compared with {fixed}."]
    if not facts.over_fixed.clear:
        reasons[0] = f"Compared with {fixed}, its gain is not clear: {facts.over_fixed.text}."
    if facts.over_log is not None:
        reasons.insert(0, f"It earns {facts.over_log.text} per round compared with the log.")
        reasons.append(
            "In this test the log explored for it. Let it start on a small share of decisions."
        )
    return Recommendation("agent", f"Use an agent that plays {name}.", reasons, facts.policy)


def _collect(facts: Known, why: str, *reasons: str) -> Recommendation:
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


def _arm(facts: Known) -> str:
    return "the best arm" if facts.fixed is None else label(facts.fixed)


def _clear(gain: Number | None) -> bool:
    return gain is not None and gain.clear


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
