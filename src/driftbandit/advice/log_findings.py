"""What a log shows, as findings: sentences, tables and figures for people who decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftbandit import statistics
from driftbandit.advice import log_play
from driftbandit.advice.finding import Finding, Number
from driftbandit.advice.log_facts import Contents, Predictability, Season, Speed
from driftbandit.advice.log_play import Earned, Forecast, Replayed
from driftbandit.identify.findings import DRIFT, UNKNOWN, Answer
from driftbandit.identify.structured.comparison import Comparison, drifts, repeats
from driftbandit.identify.structured.components import components
from driftbandit.identify.structured.fitting import Fit
from driftbandit.io import model_file
from driftbandit.io.logs import Log, split_notes
from driftbandit.policies import PREFERRED, title
from driftbandit.replays.result import LEADER, LOGGING
from driftbandit.report import Block, Cell, Figure, Points, Table, Text, Tone, verdict_cell
from driftbandit.report.figures import COLORS, GRAY, grid, interval_rows, name_rows
from driftbandit.report.numbers import NONE, estimate, listed, percent, plus_minus, short
from driftbandit.system import Name, label

CONTENTS, DRIFTS, PREDICTABLE, POLICIES, FIXED = (
    "What the log holds",
    "Is there drift?",
    "Is it predictable?",
    "What would policies have earned?",
    "What do you lose by a fixed choice?",
)
QUESTIONS: dict[str, dict[str, Any]] = {
    CONTENTS: {"contents": None},
    DRIFTS: {"drift": UNKNOWN, "season": UNKNOWN, "speed": None, "seasons": (), "structure": None},
    PREDICTABLE: {"predictability": None},
    POLICIES: {"replayed": None},
    FIXED: {"forecast": None},
}
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
ALWAYS_SAME = "Every arm has always paid the same"
MOST_ROUNDS = 2000  # that a figure shows, the last ones


class Drift(NamedTuple):
    """What models with and without drift and seasons say."""

    drift: Answer
    season: Answer
    speed: Speed | None
    seasons: tuple[Season, ...]
    comparison: Comparison
    fit: Fit

    @property
    def structure(self) -> str:
        """The one that was chosen."""
        return str(self.fit.structure)


def untold(question: str, why: str, verdict: str = "cannot tell") -> Finding:
    """The finding that there is no answer."""
    return Finding(question, verdict, facts=QUESTIONS[question], blocks=lambda _: [Text(why)])


def on_contents(held: Contents) -> Finding:
    """How much the log holds, and how arms were chosen."""
    several = f" of {held.sequences} sequences" if held.sequences > 1 else ""
    arms = f"{len(held.arms)} arms" if len(held.arms) > 1 else "one arm"
    who = EVIDENCE[held.evidence]
    if held.evidence == "chances" and held.least_chance is None:
        who = ASSUMED
    who = SEVERAL if held.sequences > 1 else who
    size = f"{held.rewards:,} rewards of {arms} in {held.rows:,} rows, which span {held.span:,} "
    follows = [who] if len(held.arms) > 1 else []

    def blocks(most: int) -> Iterator[Block]:
        yield Text(f"{size}rounds{several}.")
        order = sorted(held.arms, key=lambda arm: -arm.rewards)
        rows: list[list[Cell | str]] = [
            [_name(arm.name), f"{arm.rewards:,}", Cell(percent(arm.share), arm.share), mean]
            for arm in order[:most]
            for mean in [NONE if math.isnan(arm.mean) else short(arm.mean)]
        ]
        yield Table("Arms", ["arm", "rewards", "share", "mean reward"], rows)
        notes, warnings = split_notes(held.notes)
        if len(order) > most:
            notes.append(f"{len(order) - most} arms that were played less are left out.")
        if held.least_chance is not None and len(order) > 1:
            notes.append(
                f"The smallest chance of an arm that was played is {held.least_chance:.3g}."
            )
        if held.features:
            notes.append(f"Context features: {', '.join(held.features)}.")
        yield from [Points(notes, "dim")] if notes else []
        yield from [Points(warnings, "bad")] if warnings else []

    return Finding(CONTENTS, held.evidence, (), follows, {"contents": held}, blocks)


def on_drift(known: Drift, held: Contents, log: Log) -> Finding:
    """Whether arms drift or have a season, how fast, and by which models."""
    drift, speed = known.drift, known.speed
    numbers = []
    if drift.gain is not None and drift.error is not None:
        ends = drift.gain - 1.96 * drift.error, drift.gain + 1.96 * drift.error
        name, unit = "gain of models with drift", "log-likelihood per reward"
        numbers = [Number(drift.gain, *ends, name=name, unit=unit)]
    if speed is not None and not held.constant:
        name, unit = "change of an arm's mean", f"reward in {speed.rounds} rounds"
        numbers.append(Number(speed.change, speed.low, speed.high, name=name, unit=unit))
        numbers.append(Number(speed.noise, name="noise of one reward", unit="reward"))
    follows = []
    if speed is not None and speed.shared is not None and drift.verdict == "yes":
        low, high = percent(speed.shared_low or 0.0), percent(speed.shared_high or 0.0)
        part = f"{percent(speed.shared)} of the movement is common to all arms ({low} to {high})"
        part = "All of the movement is common to all arms" if speed.shared == 1 else part
        follows = [f"{part}. What is common does not change which arm is best."]
    tried = zip(known.comparison.structures, known.comparison.scores, strict=True)

    def blocks(most: int) -> Iterator[Block]:
        if held.constant:
            yield Text(f"{DRIFT[drift.verdict]} {ALWAYS_SAME}.")
            return
        pace = "" if speed is None else _pace(speed, drift.verdict)
        yield Text(f"{DRIFT[drift.verdict]} {pace}".strip())
        yield Text(f"{SEASON[known.season.verdict]} {_seasons(known, held)}".strip())
        scored = f"{known.comparison.scored:,} later rewards"
        columns = ["model", "score", "difference"]
        yield Table(f"Models by how well they predict {scored}", columns, _scores(known))
        yield Points(
            [
                "score: log-likelihood per reward, one step ahead, by parameters learned from "
                "earlier rewards; difference: from the chosen model, ± its standard error.",
                f"chosen: {known.structure}, the simplest within one standard error of the "
                "highest score.",
            ],
            "dim",
        )
        yield Figure(
            "Rewards (dots), and what the model says each arm paid on average (lines), "
            "without the season.",
            "Rewards and the mean of each arm over time",
            lambda: _means(known.fit, log),
            "means",
        )

    facts = {name: getattr(known, name) for name in QUESTIONS[DRIFTS]}
    facts["structures"] = [{"structure": str(each), "score": score} for each, score in tried]
    facts["model"] = model_file.to_document(known.fit.system)
    return Finding(DRIFTS, drift.verdict, numbers, follows, facts, blocks)


def _pace(speed: Speed, verdict: str) -> str:
    when = "a week" if speed.rounds == 7 else f"{speed.rounds} rounds"
    noise = f"the noise of one reward is {short(speed.noise, 2)}"
    if verdict == "no":
        most = f"an arm's mean moves by at most {short(speed.high, 2)} in {when}"
        return f"If it does, {most}; {noise}."
    value, ends = estimate(speed.change, speed.low, speed.high)
    start = "An arm's mean typically" if verdict == "yes" else "If there is drift, an arm's mean"
    return f"{start} moves by {value} in {when} ({ends}); {noise}."


def _seasons(known: Drift, held: Contents) -> str:
    said = []
    for one in known.seasons:
        size = f"from its lowest to its highest point it moves by {short(one.swing, 2)}"
        said.append(f"The pattern repeats every {one.period:g} rounds; {size}.")
        if len(held.arms) > 1:
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


def _scores(known: Drift) -> list[list[Cell | str | float]]:
    """The chosen model, and the best of those that have or lack something."""
    compared = known.comparison
    texts = list(map(str, compared.structures))
    best = texts.index(known.structure)
    wanted: dict[str, str | None] = {"chosen": known.structure}
    for what, has, said in (
        ("drift", drifts, known.drift),
        ("a season", repeats, known.season),
    ):  # what the chosen model has, the other lacks
        lacks = has(compared.structures[best])
        name = f"best without {what}" if lacks else f"best with {what}"
        wanted[name] = said.best_without if lacks else said.best_with
    wanted["constant means"] = "constant(arm)"
    rows: list[list[Cell | str | float]] = []
    for name, structure in wanted.items():
        if structure not in texts or (name != "chosen" and structure == known.structure):
            continue
        place = texts.index(structure)
        apart = NONE if place == best else plus_minus(*compared.difference(place, best))
        score = Cell(f"{compared.scores[place]:.3f}", compared.scores[place])
        rows.append([Cell(name, tone="best" if place == best else ""), score, apart])
    return rows


def on_predictability(known: Predictability, span: int) -> Finding:
    """How much of later rewards is predicted, and for how long."""
    facts = {"predictability": known}
    if math.isnan(known.share):
        said = Text("Rewards of an arm are all the same: there is nothing to predict.")
        return Finding(PREDICTABLE, "nothing to predict", facts=facts, blocks=lambda _: [said])
    ends = f"{percent(known.low)} to {percent(known.high)}"
    name, unit = "variance around the arms' means that is predicted", "share"
    numbers = [Number(known.share, known.low, known.high, name=name, unit=unit)]
    verdict = "yes" if known.low > 0 else "hardly" if known.share > 0 else "no"
    ahead = "of the variance around the arms' means is predicted one step ahead"
    said = Text(f"{verdict.capitalize()}: {percent(known.share)} {ahead} ({ends}).")
    if verdict == "no":
        none = "later rewards are predicted no better than by each arm's mean"
        said = Text(f"No: {none} ({percent(known.share)} of the variance, {ends}).")
    follows = []
    if known.half_life is not None and verdict == "yes":
        numbers.append(Number(known.half_life, name="half-life", unit="rounds without rewards"))
        fades = f"Half of that is gone after {known.half_life:,.0f} rounds without new rewards."
        lasts = f"More than half of that is left after {span:,} rounds, the length of the log, "
        lasts += "without new rewards."
        follows = [fades if known.half_life <= span else lasts]
    on = f"On {known.rewards:,} rewards after those that the model was learned from."
    shown: list[Block] = [said, Points([on], "dim")]
    return Finding(PREDICTABLE, verdict, numbers, follows, facts, lambda _: shown)


def on_policies(done: Replayed, structure: str) -> Finding:
    """What policies would have earned in the test part, as far as the log can tell."""
    best, unit = done.row(done.best), "rounds" if done.method == "full" else "rewards"
    facts = {"replayed": done}
    if not _compared(best):
        why = best.reason or f"{done.test_rounds} {unit} after the first {done.train_rounds}"
        return Finding(
            POLICIES,
            statistics.TOO_FEW,
            facts=facts,
            blocks=lambda _: [Text(f"Too few {unit} to compare policies: {why}.")],
        )
    rivals = [title(row.label) for row in map(done.row, done.equal) if row.label != done.best]
    follows = []
    if rivals:
        preferred = f", and {title(done.best)} is preferred" * (done.best == PREFERRED)
        follows = [
            f"{listed(rivals)} cannot be told apart from {title(done.best)}: the difference is "
            f"within the uncertainty, so they count as equal{preferred}."
        ]
    gains = {"the log": best.over_log, f"always {label(done.fixed)}": best.over_fixed}
    against = [f"{gain.text} compared with {who}" for who, gain in gains.items() if gain]

    def blocks(most: int) -> Iterator[Block]:
        how = "would have earned" if done.method == "full" else "would have earned about"
        earned = f"{title(done.best)} {how} {short(best.mean)} per round, {' and '.join(against)}."
        yield Text(earned, "best")
        columns = ["policy", "mean", "more than the log", "more than fixed"]
        kept = [0, 1, 2, 3] if best.over_log is not None else [0, 1, 3]
        rows = [_row(row, done) for row in log_play.shown_rows(done)]
        first = f"the first {done.train_rounds:,} {unit}"
        caption = f"Reward per round, by the {done.test_rounds:,} {unit} after {first}"
        yield Table(caption, [columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
        yield Points(list(_readings(done, structure, unit)), "dim")
        yield Figure(
            "Reward per round compared with always playing the best arm of the training part, "
            "with intervals.",
            "Gain of each policy over a fixed arm",
            lambda: _gains(done),
            "gains",
        )

    numbers = [
        Number(row.mean, row.low, row.high, name=row.label) for row in done.rows if row.trusted
    ]
    return Finding(POLICIES, f"best: {done.best}", numbers, follows, facts, blocks)


def _compared(row: Earned) -> bool:
    """Whether the log shows enough of a policy for any interval of its gain."""
    gains = [gain for gain in (row.over_log, row.over_fixed) if gain is not None]
    return row.trusted and any(gain.verdict != statistics.TOO_FEW for gain in gains)


def _readings(done: Replayed, structure: str, unit: str) -> Iterator[str]:
    first = f"the first {done.train_rounds:,} {unit}"
    yield (
        f"fixed: always {label(done.fixed)}, the best arm of {first}. ▲ more, ▼ less, ≈ cannot be "
        f"told apart, ? too few {unit}."
    )
    yield (
        f"The intervals are {100 * done.confidence:.4g}% intervals: wider than 95%, because the "
        "best of several policies may look good by luck."
    )
    why = (
        " This model is not the best one of part 2, which was chosen with the whole log: policies "
        "in a test must not know its rewards in advance."
    )
    other = why if done.structure != structure else ""
    yield f"The policies use {done.structure}, learned from {first}.{other}"
    gains = [gain for row in log_play.shown_rows(done) for gain in (row.over_log, row.over_fixed)]
    if any(gain is not None and gain.low == gain.high == 0 for gain in gains):
        yield "exactly 0: both choose the same arm in every round."
    if done.method != "full":
        yield (
            "Estimated without bias from the log's chances. Policies learn from all rewards of the "
            "log: how they explore by themselves is not tested."
        )


def _row(row: Earned, done: Replayed) -> list[Cell]:
    value = estimate(row.mean, row.low, row.high)[0] if row.trusted else NONE
    tone: Tone = "dim" if row.kind == "reference" else ""
    tone = "best" if row.label == done.best else tone
    cells = [Cell(_label(row, done), tone=tone), Cell(value, row.mean)]
    for gain in (row.over_log, row.over_fixed):
        if gain is None:
            cells.append(Cell(NONE))
            continue
        mark = verdict_cell(gain.verdict, symbol=True)
        cells.append(Cell(f"{mark.text} {gain.text}", gain.value, tone=mark.tone))
    return cells


def _label(row: Earned, done: Replayed) -> str:
    if row.kind == "policy":
        return title(row.label)
    if row.label == LEADER:
        return f"fixed: {label(done.fixed)}"
    if row.arm is not None:
        return f"{label(row.arm)}, in hindsight"
    return "the log itself" if row.label == LOGGING else "random"


def on_fixed(done: Replayed | None, ahead: Forecast | None) -> Finding:
    """What a fixed arm loses to the best policy: in the log, and in the model's next rounds."""
    said, verdict, numbers = [], "cannot tell", []
    best = None if done is None else done.row(done.best)
    if done is not None and best is not None and best.over_fixed is not None:
        gain, fixed = best.over_fixed, f"always playing {label(done.fixed)}"
        if gain.verdict == statistics.TOO_FEW or not best.trusted:
            verdict = statistics.TOO_FEW
            loss = f"The log does not show enough to compare {title(done.best)} with {fixed}."
        elif gain.clear:
            verdict = "a loss"
            loss = f"In the test part, {fixed} lost {_loss(gain)} to {title(done.best)}."
        else:
            verdict = "no clear loss"
            loss = f"No clear loss: compared with {fixed}, {title(done.best)} earned {gain.text} "
            loss += "per round. That is not clearly more than zero."
        said.append(Text(loss))
        numbers.append(gain._replace(name=f"{done.best} minus {fixed}"))
        hindsight = [row for row in log_play.shown_rows(done) if row.arm is not None]
        hindsight = [row for row in hindsight if row.label != LEADER]
        if hindsight and verdict != statistics.TOO_FEW:
            said.append(
                Text(
                    f"The best arm in hindsight, {label(hindsight[0].arm or 0)}, earned "
                    f"{short(hindsight[0].mean)} per round. Nobody knew it in advance."
                )
            )
    elif ahead is None:
        said.append(Text("Neither the log nor the model can tell."))
    else:
        loss = f"The log cannot tell. The model expects a loss of {_loss(ahead.over_fixed)}."
        said.append(Text(f"{loss} {MODEL_SAYS}", "best"))
    if ahead is None:
        follows = "The model makes no forecast: it needs the context features of later rounds."
    else:
        against = f"always playing {label(ahead.fixed)}, the best arm from now on"
        follows = (
            f"Forecast: in the next {ahead.rounds:,} rounds, {title(ahead.policy)} earns "
            f"{ahead.over_fixed.text} per round compared with {against}, and "
            f"{ahead.over_random.text} compared with random choice. {MODEL_SAYS}"
        )
        numbers.append(ahead.over_fixed._replace(name=f"forecast: {ahead.policy} minus {against}"))
    return Finding(FIXED, verdict, numbers, [follows], {"forecast": ahead}, lambda _: said)


def _loss(gain: Number) -> str:
    """Per round, and per 1000 rounds."""
    value, ends = estimate(gain.value, gain.low, gain.high)
    low, high = (short(1000 * end, 2) for end in (gain.low, gain.high))
    thousand = f"{short(1000 * gain.value, 2)} in 1,000 rounds ({low} to {high})"
    return f"{value} per round ({ends}), {thousand}"


def _name(name: Name) -> Cell:
    return Cell(label(name), name if isinstance(name, int) else None)


# The figures


def _means(found: Fit, log: Log) -> Any:
    """Rewards, and each arm's mean over time without seasons; of the last sequence."""
    figure, [axis] = grid(1, 1, 8.0, 3.4)
    one = log.sequences[-1]
    paths = [path for path in components(found) if not path.component.startswith("season(")]
    paths = [path for path in paths if not path.component.startswith("regression(")]
    shown = one.rounds > one.rounds[-1] - MOST_ROUNDS
    plays = np.bincount(one.arms, minlength=len(log.names))
    for place, arm in enumerate(np.argsort(-plays, kind="stable")[: len(COLORS)]):
        color, name = COLORS[place], log.names[arm]
        mine = shown & (one.arms == arm)
        dots = {"ls": "", "marker": ".", "ms": 3, "alpha": 0.35, "rasterized": True}
        axis.plot(one.rounds[mine], one.rewards[mine], color=color, **dots)
        own = [path for path in paths if path.label in ("", str(name))]
        if not own:
            continue
        last = own[0].sequences == own[0].sequences[-1]
        last &= own[0].rounds > one.rounds[-1] - MOST_ROUNDS
        total = np.sum([path.mean for path in own], axis=0)
        axis.plot(own[0].rounds[last], total[last], color=color, lw=1.8, label=_text(label(name)))
    axis.set(xlabel="round", ylabel="reward")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _gains(done: Replayed) -> Any:
    """Each policy's gain over the fixed arm, with its interval, if the log can tell."""
    gains = [(row, row.over_fixed) for row in log_play.shown_rows(done)]
    rows = [row for row, gain in gains if gain and gain.verdict != statistics.TOO_FEW]
    figure, [axis] = grid(1, 1, 7.0, 0.9 + 0.28 * len(rows))
    ends = [(row.over_fixed.low, row.over_fixed.value, row.over_fixed.high) for row in rows]  # type: ignore[union-attr]
    colors = [COLORS[0] if row.kind == "policy" else GRAY for row in rows]
    interval_rows(axis, ends, colors)
    axis.axvline(0, color="black", ls="--", lw=1)
    name_rows(axis, [_text(_label(row, done)) for row in rows])
    axis.set_xlabel(f"reward per round, minus that of always {_text(label(done.fixed))}")
    return figure


def _text(name: str) -> str:
    """Without the marks of a formula."""
    return name.replace("$", r"\$")
