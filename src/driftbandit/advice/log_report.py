"""Advice from a log in sentences, tables and figures: one page for people who decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from driftbandit import statistics
from driftbandit._version import __version__
from driftbandit.advice import log_figures, log_play
from driftbandit.advice.from_log import LogAdvice
from driftbandit.advice.log_facts import Speed
from driftbandit.advice.log_play import Earned, Gain, Replayed
from driftbandit.advice.log_seasons import Season
from driftbandit.identify.findings import DRIFT
from driftbandit.identify.structured.comparison import drifts, repeats
from driftbandit.io.logs import split_notes
from driftbandit.policies import PREFERRED, title
from driftbandit.replays.result import LEADER, LOGGING
from driftbandit.report import (
    Block,
    Cell,
    Facts,
    Figure,
    Heading,
    Points,
    Report,
    Table,
    Text,
    Tone,
    verdict_cell,
)
from driftbandit.report.numbers import NONE, estimate, listed, percent, plus_minus, short
from driftbandit.system import Name, label

MOST_ARMS = 12  # that a table shows, the most played
EVIDENCE = {
    "full": "It shows the rewards of several arms in every round, so any choice can be replayed.",
    "chances": "It says with which chance each arm was played, so other choices can be estimated.",
    "none": "It does not say how arms were chosen, so it cannot tell what other choices earn.",
}
ASSUMED = (
    "It does not say with which chance each arm was played. With the chances that you gave, other "
    "choices can be estimated."
)
SEVERAL = "Several sequences cannot be replayed, so it cannot tell what other choices earn."
SEASON = {
    "yes": "There is a season.",
    "no": "No season was found.",
    "cannot tell": "A season is possible, but not certain.",
}
MODEL_SAYS = "This is what the model says, not what the log proves."


def report(advice: LogAdvice, name: str, *, terminal: bool = False) -> Report:
    """The page about the log ``name``; in a terminal the commands are printed by the caller."""
    said = advice.recommendation
    blocks: list[Block] = [
        Heading("1. What the log holds", "contents"),
        *_contents(advice),
        Heading("2. Is there drift?", "drift"),
        *_drift(advice),
        Heading("3. Is it predictable?", "predictable"),
        *_predictable(advice),
        Heading("4. What would policies have earned?", "policies"),
        *_policies(advice),
        Heading("5. What do you lose by a fixed choice?", "fixed"),
        *_fixed(advice),
        Heading("6. Recommendation", "recommendation"),
        Text(said.headline, "best"),
    ]
    if said.reasons:
        blocks.append(Points(said.reasons))
    if advice.warnings:
        blocks.append(Points(advice.warnings, "bad"))
    data = {"log": name} | advice.to_document()
    if terminal:
        return Report(f"Advice from {name}", "", blocks, data)
    blocks += [Heading("Next"), Points([f"`{line}`" for line in advice.commands])]
    blocks += [Heading("Settings"), Facts({"log": name, "driftbandit": __version__})]
    return Report(f"Advice from {name}", said.headline, blocks, data)


def ready_report(ready: Any, name: str) -> Report:
    """The sections whose findings are ready: `_drift` needs ``fit``, and so on."""
    sections = (
        ("contents", Heading("1. What the log holds", "contents"), _contents),
        ("fit", Heading("2. Is there drift?", "drift"), _drift),
        ("predictability", Heading("3. Is it predictable?", "predictable"), _predictable),
        ("replayed", Heading("4. What would policies have earned?", "policies"), _policies),
    )
    shown = (
        [title, *section(ready)] for field, title, section in sections if hasattr(ready, field)
    )
    return Report(f"Unfinished advice from {name}", "", [block for part in shown for block in part])


def _contents(advice: LogAdvice) -> Iterator[Block]:
    held = advice.contents
    several = f" of {held.sequences} sequences" if held.sequences > 1 else ""
    arms = f"{len(held.arms)} arms" if len(held.arms) > 1 else "one arm"
    who = EVIDENCE[held.evidence] if len(held.arms) > 1 else ""
    if who and held.evidence == "chances" and held.least_chance is None:
        who = ASSUMED
    who = SEVERAL if held.sequences > 1 and who else who
    yield Text(
        f"{held.rewards:,} rewards of {arms} in {held.rows:,} rows, which span {held.span:,} rounds"
        f"{several}. {who}".strip()
    )
    order = sorted(held.arms, key=lambda arm: -arm.rewards)
    rows: list[list[Cell | str | float]] = [
        [
            _name(arm.name),
            f"{arm.rewards:,}",
            Cell(percent(arm.share), arm.share),
            _number(arm.mean),
        ]
        for arm in order[:MOST_ARMS]
    ]
    yield Table("Arms", ["arm", "rewards", "share", "mean reward"], rows)
    notes, warnings = split_notes(held.notes)
    if len(order) > MOST_ARMS:
        notes.append(f"{len(order) - MOST_ARMS} arms that were played less are left out.")
    if held.least_chance is not None:
        notes.append(f"The smallest chance of an arm that was played is {held.least_chance:.3g}.")
    if held.features:
        notes.append(f"Context features: {', '.join(held.features)}.")
    if notes:
        yield Points(notes, "dim")
    if warnings:
        yield Points(warnings, "bad")


def _drift(advice: LogAdvice) -> Iterator[Block]:
    speed, drift = advice.speed, advice.drift
    yield Text(f"{DRIFT[drift.verdict]} {_pace(speed, drift.verdict)}")
    yield Text(f"{SEASON[advice.season.verdict]} {_seasons(advice)}".strip())
    if speed.shared is not None and drift.verdict == "yes":
        low, high = percent(speed.shared_low or 0.0), percent(speed.shared_high or 0.0)
        part = f"{percent(speed.shared)} of the movement is common to all arms ({low} to {high})"
        part = "All of the movement is common to all arms" if speed.shared == 1 else part
        yield Text(f"{part}. What is common does not change which arm is best.")
    scored = f"{advice.comparison.scored:,} later rewards"
    columns = ["model", "score", "difference"]
    yield Table(f"Models by how well they predict {scored}", columns, _scores(advice))
    yield Points(
        [
            "score: log-likelihood per reward, one step ahead, by parameters learned from earlier "
            "rewards; difference: from the chosen model, ± its standard error.",
            f"chosen: {advice.structure}, the simplest within one standard error of the highest "
            "score.",
        ],
        "dim",
    )
    yield Figure(
        "Rewards (dots), and what the model says each arm paid on average (lines), "
        "without the season.",
        "Rewards and the mean of each arm over time",
        lambda: log_figures.means(advice.fit, advice.log),
        "means",
    )


def _pace(speed: Speed, verdict: str) -> str:
    when = "a week" if speed.rounds == 7 else f"{speed.rounds} rounds"
    noise = f"the noise of one reward is {short(speed.noise, 2)}"
    if verdict == "no":
        most = f"an arm's mean moves by at most {short(speed.high, 2)} in {when}"
        return f"If it does, {most}; {noise}."
    value, ends = estimate(speed.change, speed.low, speed.high)
    start = "An arm's mean typically" if verdict == "yes" else "If there is drift, an arm's mean"
    return f"{start} moves by {value} in {when} ({ends}); {noise}."


def _seasons(advice: LogAdvice) -> str:
    said = []
    for one in advice.seasons:
        size = f"from its lowest to its highest point it moves by {short(one.swing, 2)}"
        said.append(f"The pattern repeats every {one.period:g} rounds; {size}.")
        if len(advice.contents.arms) > 1:
            said.append(_shared(one))
    return " ".join(said)


def _shared(season: Season) -> str:
    """Whether arms share the pattern, and how certain that is."""
    own = season.own
    if own is None or own.gain is None or own.error is None:
        return "The model has one for each arm." if season.differs else "All arms share it."
    gain = f"{plus_minus(own.gain, own.error)} per reward"
    if own.verdict == "yes":
        return f"Arms have patterns of their own: these raise the score by {gain}."
    if own.verdict == "no" and season.differs:
        return f"The model has one for each arm, which hardly matters: the score gains {gain}."
    if own.verdict == "no":
        return f"All arms share it: one for each arm changes the score by only {gain}."
    has = "has one for each arm" if season.differs else "lets them share it"
    return (
        "Whether arms share it cannot be told: one for each arm changes the score by "
        f"{gain}. The model {has}."
    )


def _scores(advice: LogAdvice) -> list[list[Cell | str | float]]:
    """The chosen model, and the best of those that have or lack something."""
    found, drift, season = advice.comparison, advice.drift, advice.season
    texts = list(map(str, found.structures))
    best = texts.index(advice.structure)
    wanted: dict[str, str | None] = {"chosen": advice.structure}
    for what, has, said in (
        ("drift", drifts, drift),
        ("a season", repeats, season),
    ):  # what the chosen model has, the other lacks
        lacks = has(found.structures[best])
        name = f"best without {what}" if lacks else f"best with {what}"
        wanted[name] = said.best_without if lacks else said.best_with
    wanted["constant means"] = "constant(arm)"
    rows: list[list[Cell | str | float]] = []
    for name, structure in wanted.items():
        if structure is None or (name != "chosen" and structure == advice.structure):
            continue
        place = texts.index(structure)
        apart = NONE if place == best else plus_minus(*found.difference(place, best))
        score = Cell(f"{found.scores[place]:.3f}", found.scores[place])
        rows.append([Cell(name, tone="best" if place == best else ""), score, apart])
    return rows


def _predictable(advice: LogAdvice) -> Iterator[Block]:
    known = advice.predictability
    if math.isnan(known.share):
        yield Text("Rewards of an arm are all the same: there is nothing to predict.")
        return
    ends = f"{percent(known.low)} to {percent(known.high)}"
    ahead = "of the variance around the arms' means is predicted one step ahead"
    if known.share <= 0:
        none = "later rewards are predicted no better than by each arm's mean"
        yield Text(f"No: {none} ({percent(known.share)} of the variance, {ends}).")
    else:
        start = "Yes" if known.low > 0 else "Hardly"
        yield Text(f"{start}: {percent(known.share)} {ahead} ({ends}).")
    if known.half_life is not None and known.low > 0:
        fades = f"Half of that is gone after {known.half_life:,.0f} rounds without new rewards."
        lasts = f"More than half of that is left after {advice.contents.span:,} rounds, the length "
        lasts += "of the log, without new rewards."
        yield Text(fades if known.half_life <= advice.contents.span else lasts)
    yield Points(
        [f"On {known.rewards:,} rewards after those that the model was learned from."], "dim"
    )


def _policies(advice: LogAdvice) -> Iterator[Block]:
    done = advice.replayed
    if len(advice.contents.arms) == 1:
        yield Text("There is only one arm.")
        return
    if done is None:
        yield Text(advice.untested or "This log cannot tell: it has no column `chance`.")
        yield from _forecast(advice)
        return
    best = done.row(done.best)
    how = "would have earned" if done.method == "full" else "would have earned about"
    if best.trusted:
        earned = f"{title(done.best)} {how} {short(best.mean)} per round{_compared(best, done)}."
        yield Text(earned, "best")
    else:
        yield Text("The log does not show enough of any policy to tell what it would have earned.")
    if rivals := [title(name) for name in done.equal if name != done.best]:
        preferred = f", and {title(done.best)} is preferred" * (done.best == PREFERRED)
        yield Text(
            f"{listed(rivals)} cannot be told apart from it: the difference is within the "
            f"uncertainty, so they count as equal{preferred}."
        )
    with_log = best.over_log is not None
    columns = ["policy", "mean", "more than the log", "more than fixed"]
    rows = [_row(row, done) for row in log_play.shown_rows(done)]
    kept = [0, 1, 2, 3] if with_log else [0, 1, 3]
    unit = "rounds" if done.method == "full" else "rewards"
    first = f"the first {done.train_rounds:,} {unit}"
    caption = f"Reward per round, by the {done.test_rounds:,} {unit} after {first}"
    yield Table(caption, [columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
    notes = [
        f"fixed: always {label(done.fixed)}, the best arm of {first}. ▲ more, ▼ less, ≈ cannot be "
        f"told apart, ? too few {unit}.",
        f"The intervals are {100 * done.confidence:.4g}% intervals: wider than 95%, because the "
        "best of several policies may look good by luck.",
        f"The policies use {done.structure}, learned from {first}.{_why_other(advice, done)}",
    ]
    if any(_same(row, done) for row in log_play.shown_rows(done)):
        notes.append("exactly 0: both choose the same arm in every round.")
    if done.method != "full":
        notes.append(
            "Estimated without bias from the log's chances. Policies learn from all rewards of the "
            "log: how they explore by themselves is not tested."
        )
    yield Points(notes, "dim")
    yield Figure(
        "Reward per round compared with always playing the best arm of the training part, "
        "with intervals.",
        "Gain of each policy over a fixed arm",
        lambda: log_figures.gains(done),
        "gains",
    )


def _why_other(advice: LogAdvice, done: Replayed) -> str:
    """Why this is not the model of part 2."""
    if done.structure == advice.structure:
        return ""
    return (
        " This model is not the best one of part 2, which was chosen with the whole log: policies "
        "in a test must not know its rewards in advance."
    )


def _same(row: Earned, done: Replayed) -> bool:
    gains = (row.over_log, row.over_fixed)
    return any(gain is not None and gain.low == gain.high == 0 for gain in gains)


def _compared(best: Earned, done: Replayed) -> str:
    parts = []
    if best.over_log is not None:
        parts.append(f"{best.over_log.text} compared with the log")
    if best.over_fixed is not None:
        parts.append(f"{best.over_fixed.text} compared with always {label(done.fixed)}")
    return ", " + " and ".join(parts) if parts else ""


def _row(row: Earned, done: Replayed) -> list[Cell]:
    value, _ = estimate(row.mean, row.low, row.high)
    tone: Tone = "dim" if row.kind == "reference" else ""
    tone = "best" if row.label == done.best and row.trusted else tone
    cells = [Cell(_label(row, done), tone=tone), Cell(value, row.mean)]
    for gain in (row.over_log, row.over_fixed):
        if gain is None:
            cells.append(Cell(NONE))
            continue
        mark = verdict_cell(gain.verdict, symbol=True)
        text = f"{mark.text} {gain.text}"
        cells.append(Cell(text, gain.mean, tone=mark.tone))
    return cells


def _label(row: Earned, done: Replayed) -> str:
    if row.kind == "policy":
        return title(row.label)
    if row.label == LEADER:
        return f"fixed: {label(done.fixed)}"
    if row.arm is not None:
        return f"{label(row.arm)}, in hindsight"
    return "the log itself" if row.label == LOGGING else "random"


def _fixed(advice: LogAdvice) -> Iterator[Block]:
    done = advice.replayed
    if len(advice.contents.arms) == 1:
        yield Text("There is only one arm.")
        return
    if done is not None:
        gain = done.row(done.best).over_fixed
        assert gain is not None
        fixed = f"always playing {label(done.fixed)}"
        if gain.verdict == statistics.TOO_FEW:
            loss = f"The log does not show enough to compare {title(done.best)} with {fixed}."
        elif gain.clear:
            loss = f"In the test part, {fixed} lost {_loss(gain)} to {title(done.best)}."
        else:
            loss = f"No clear loss: compared with {fixed}, {title(done.best)} earned {gain.text} "
            loss += "per round. That is not clearly more than zero."
        yield Text(loss)
        hindsight = next((row for row in log_play.shown_rows(done) if _known_later(row)), None)
        if hindsight is not None:
            yield Text(
                f"The best arm in hindsight, {label(hindsight.arm or 0)}, earned "
                f"{short(hindsight.mean)} per round. Nobody knew it in advance."
            )
        yield from _forecast(advice)
    elif advice.forecast is None:
        yield Text("Neither the log nor the model can tell.")
    else:
        gain = advice.forecast.over_fixed
        yield Text(
            f"The log cannot tell. The model expects a loss of {_loss(gain)}. {MODEL_SAYS}", "best"
        )


def _known_later(row: Earned) -> bool:
    return row.arm is not None and row.label != LEADER


def _forecast(advice: LogAdvice) -> Iterator[Block]:
    ahead = advice.forecast
    if ahead is None:
        yield Text("The model makes no forecast: it needs the context features of later rounds.")
        return
    against = f"always playing {label(ahead.fixed)}, the best arm from now on"
    yield Text(
        f"Forecast: in the next {ahead.rounds:,} rounds, {title(ahead.policy)} earns "
        f"{ahead.over_fixed.text} per round compared with {against}, and "
        f"{ahead.over_random.text} compared with random choice. {MODEL_SAYS}"
    )


def _loss(gain: Gain) -> str:
    """Per round, and per 1000 rounds."""
    value, ends = estimate(gain.mean, gain.low, gain.high)
    low, high = (short(1000 * end, 2) for end in (gain.low, gain.high))
    thousand = f"{short(1000 * gain.mean, 2)} in 1,000 rounds ({low} to {high})"
    return f"{value} per round ({ends}), {thousand}"


def _name(name: Name) -> Cell:
    return Cell(label(name), name if isinstance(name, int) else None)


def _number(value: float) -> str:
    return NONE if math.isnan(value) else short(value)
