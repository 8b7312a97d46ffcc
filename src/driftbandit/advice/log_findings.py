"""What a log shows, as findings: sentences, tables and figures for people who decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit.advice import log_facts
from driftbandit.advice.finding import Finding, Number, draw_rows, points, stated
from driftbandit.advice.log_facts import Contents, Drift, Earned, Forecast, Replayed, Season, Speed
from driftbandit.identify import Fit, Log, components
from driftbandit.identify.findings import UNKNOWN, sentence
from driftbandit.identify.structured.comparison import drifts, repeats
from driftbandit.io import model_file
from driftbandit.io.logs import split_notes
from driftbandit.policies import PREFERRED, title
from driftbandit.replays.result import LEADER, LOGGING
from driftbandit.report import Block, Cell, Figure, Points, Table, Text, Tone, verdict_cell
from driftbandit.report.figures import COLORS, GRAY, grid
from driftbandit.report.numbers import NONE, estimate, listed, percent, plus_minus, short
from driftbandit.statistics import TOO_FEW
from driftbandit.system import label

NO_MODEL: dict[str, Any] = {"speed": None, "seasons": (), "structure": None}
QUESTIONS: dict[str, dict[str, Any]] = {
    "What the log holds": {"contents": None},
    "Is there drift?": {"drift": UNKNOWN, "season": UNKNOWN} | NO_MODEL,
    "Is it predictable?": {"predictability": None},
    "What would policies have earned?": {"replayed": None},
    "What do you lose by a fixed choice?": {"forecast": None},
}
CONTENTS, DRIFTS, PREDICTABLE, POLICIES, FIXED = QUESTIONS
EVIDENCE = {
    "full": "It shows the rewards of several arms in every round, so any choice can be replayed.",
    "chances": "It says with which chance each arm was played, so other choices can be estimated.",
    "assumed": "It does not say with which chance each arm was played. With the chances that you "
    "gave, other choices can be estimated.",
    "none": "It does not say how arms were chosen, so it cannot tell what other choices earn.",
    "several": "Several sequences cannot be replayed, so it cannot tell what other choices earn.",
}
SEASON = {
    "yes": "There is a season.",
    "no": "No season was found.",
    "cannot tell": "A season is possible, but not certain.",
}
HOW_SCORED = (
    "score: log-likelihood per reward, one step ahead, by parameters learned from earlier rewards; "
    "difference: from the chosen model, ± its standard error."
)
MODEL_SAYS = "This is what the model says, not what the log proves."
ALWAYS_SAME = "Every arm has always paid the same"
MOST_ROUNDS = 2000  # that a figure shows, the last ones
NO_MEANS = ("season(", "regression(")  # components that a figure of means leaves out


def untold(questions: Iterable[str], verdict: str, why: str) -> Iterator[Finding]:
    """That there is no answer to these questions."""
    for question in questions:
        yield stated(question, verdict, why, QUESTIONS[question])


def on_contents(held: Contents) -> Finding:
    """How much the log holds, and how arms were chosen."""
    several = f" of {held.sequences} sequences" if held.sequences > 1 else ""
    arms = f"{len(held.arms)} arms" if len(held.arms) > 1 else "one arm"
    size = f"{held.rewards:,} rewards of {arms} in {held.rows:,} rows"
    assumed = held.evidence == "chances" and held.least_chance is None
    evidence = EVIDENCE["several" if several else "assumed" if assumed else held.evidence]
    rows: list[list[Cell | str]] = []
    for arm in sorted(held.arms, key=lambda arm: -arm.rewards):
        name = Cell(label(arm.name), arm.name if isinstance(arm.name, int) else None)
        mean = short(arm.mean) if arm.rewards else NONE
        rows.append([name, f"{arm.rewards:,}", Cell(percent(arm.share), arm.share), mean])
    notes, warnings = split_notes(held.notes)
    if held.least_chance is not None and len(held.arms) > 1:
        least = f"{held.least_chance:.3g}"
        notes.append(f"The smallest chance of an arm that was played is {least}.")
    if held.features:
        notes.append(f"Context features: {', '.join(held.features)}.")
    blocks: list[Block] = [
        Text(f"{size}, which span {held.span:,} rounds{several}."),
        Table("Arms", ["arm", "rewards", "share", "mean reward"], rows),
        *points(notes, "dim"),
        *points(warnings, "bad"),
    ]
    follows = [evidence] if len(held.arms) > 1 else []
    return Finding(CONTENTS, held.evidence, (), follows, {"contents": held}, blocks)


def on_drift(known: Drift, held: Contents, log: Log) -> Finding:
    """Whether arms drift or have a season, how fast, and by which models."""
    drift, speed = known.drift, known.speed
    numbers, follows = [], []
    if drift.gain is not None and drift.error is not None:
        ends = drift.gain - 1.96 * drift.error, drift.gain + 1.96 * drift.error
        name, unit = "gain of models with drift", "log-likelihood per reward"
        numbers = [Number(drift.gain, *ends, name=name, unit=unit)]
    if speed is not None and not held.constant:
        name, unit = "change of an arm's mean", f"reward in {speed.rounds} rounds"
        numbers.append(Number(speed.change, speed.low, speed.high, name=name, unit=unit))
        numbers.append(Number(speed.noise, name="noise of one reward", unit="reward"))
    if speed is not None and speed.shared is not None and drift.verdict == "yes":
        low, high = percent(speed.shared_low or 0.0), percent(speed.shared_high or 0.0)
        part = f"{percent(speed.shared)} of the movement is common to all arms ({low} to {high})"
        part = "All of the movement is common to all arms" if speed.shared == 1 else part
        follows = [f"{part}. What is common does not change which arm is best."]
    compared = known.comparison
    tried = zip(compared.structures, compared.scores, strict=True)
    facts = {name: getattr(known, name) for name in QUESTIONS[DRIFTS]}
    facts["structures"] = [{"structure": str(each), "score": score} for each, score in tried]
    facts["model"] = model_file.to_document(known.fit.system)
    simplest = "the simplest within one standard error of the highest score"
    pace = [] if speed is None else [_pace(speed, drift.verdict)]
    blocks: list[Block] = [
        Text(" ".join([sentence(drift), *pace])),
        Text(" ".join([SEASON[known.season.verdict], *_seasons(known.seasons, held)])),
        Table(
            f"Models by how well they predict {compared.scored:,} later rewards",
            ["model", "score", "difference"],
            _scores(known),
        ),
        Points([HOW_SCORED, f"chosen: {known.structure}, {simplest}."], "dim"),
        Figure(
            "Rewards (dots), and what the model says each arm paid on average (lines), "
            "without the season.",
            "Rewards and the mean of each arm over time",
            lambda: _means(known.fit, log),
            "means",
        ),
    ]
    if held.constant:
        blocks = [Text(f"{sentence(drift)} {ALWAYS_SAME}.")]
    return Finding(DRIFTS, drift.verdict, numbers, follows, facts, blocks)


def _pace(speed: Speed, verdict: str) -> str:
    when = "a week" if speed.rounds == 7 else f"{speed.rounds} rounds"
    value, ends = estimate(speed.change, speed.low, speed.high)
    moves = {
        "yes": f"An arm's mean typically moves by {value} in {when} ({ends})",
        "no": f"If it does, an arm's mean moves by at most {short(speed.high, 2)} in {when}",
    }
    unsure = f"If there is drift, an arm's mean moves by {value} in {when} ({ends})"
    return f"{moves.get(verdict, unsure)}; the noise of one reward is {short(speed.noise, 2)}."


def _seasons(seasons: Sequence[Season], held: Contents) -> Iterator[str]:
    for each in seasons:
        size = f"from its lowest to its highest point it moves by {short(each.swing, 2)}"
        yield f"The pattern repeats every {each.period:g} rounds; {size}."
        if len(held.arms) > 1:
            yield _shared(each)


def _shared(season: Season) -> str:
    """Whether arms share the pattern, and how certain that is."""
    own = season.own
    if own.gain is None or own.error is None:
        return "The model has one for each arm." if season.differs else "All arms share it."
    gain = f"{plus_minus(own.gain, own.error)} per reward"
    if own.verdict == "yes":
        return f"Arms have patterns of their own: these raise the score by {gain}."
    sure = own.verdict == "no"
    start = "Arms need not have one each" if sure else "Whether arms share it cannot be told"
    has = "has one for each arm" if season.differs else "lets them share it"
    return f"{start}: one for each arm changes the score by {gain}. The model {has}."


def _scores(known: Drift) -> list[list[Cell | str]]:
    """The chosen model, and the best of those that have or lack something."""
    compared, best = known.comparison, known.comparison.chosen_place
    shown: dict[str, str | None] = {"chosen": known.structure}
    for what, has, said in (("drift", drifts, known.drift), ("a season", repeats, known.season)):
        if has(compared.chosen):
            shown[f"best without {what}"] = said.best_without
        else:
            shown[f"best with {what}"] = said.best_with
    shown["constant means"] = "constant(arm)"
    places = {str(structure): place for place, structure in enumerate(compared.structures)}
    rows: list[list[Cell | str]] = []
    for name, structure in shown.items():
        place = places.get(structure or "", best)
        if place == best and name != "chosen":
            continue  # nobody tried one, or it is the chosen one
        apart = NONE if place == best else plus_minus(*compared.difference(place, best))
        score = Cell(f"{compared.scores[place]:.3f}", compared.scores[place])
        rows.append([Cell(name, tone="best" if place == best else ""), score, apart])
    return rows


def on_predictability(known: log_facts.Predictability, span: int) -> Finding:
    """How much of later rewards is predicted, and for how long."""
    facts = {"predictability": known}
    if math.isnan(known.share):
        text = "Rewards of an arm are all the same: there is nothing to predict."
        return stated(PREDICTABLE, "nothing to predict", text, facts)
    share, ends = percent(known.share), f"{percent(known.low)} to {percent(known.high)}"
    name, unit = "variance around the arms' means that is predicted", "share"
    numbers = [Number(known.share, known.low, known.high, name=name, unit=unit)]
    verdict = "yes" if known.low > 0 else "hardly" if known.share > 0 else "no"
    ahead = "of the variance around the arms' means is predicted one step ahead"
    text = f"{verdict.capitalize()}: {share} {ahead} ({ends})."
    if verdict == "no":
        none = "later rewards are predicted no better than by each arm's mean"
        text = f"No: {none} ({share} of the variance, {ends})."
    follows = []
    if known.half_life is not None and verdict == "yes":
        numbers.append(Number(known.half_life, name="half-life", unit="rounds without rewards"))
        fades = f"Half of that is gone after {known.half_life:,.0f} rounds without new rewards."
        lasts = f"More than half of that is left after {span:,} rounds, the length of the log, "
        lasts += "without new rewards."
        follows = [fades if known.half_life <= span else lasts]
    on = f"On {known.rewards:,} rewards after those that the model was learned from."
    blocks: list[Block] = [Text(text), Points([on], "dim")]
    return Finding(PREDICTABLE, verdict, numbers, follows, facts, blocks)


def on_policies(done: Replayed, structure: str) -> Finding:
    """What policies would have earned in the test part, as far as the log can tell."""
    best, unit = done.row(done.best), "rounds" if done.method == "full" else "rewards"
    first, facts = f"the first {done.train_rounds:,} {unit}", {"replayed": done}
    gains = {"the log": best.over_log, f"always {label(done.fixed)}": best.over_fixed}
    known = {who: gain for who, gain in gains.items() if gain is not None}
    if not best.trusted or {gain.verdict for gain in known.values()} == {TOO_FEW}:
        why = best.reason or f"{done.test_rounds} {unit} after the first {done.train_rounds}"
        return stated(POLICIES, TOO_FEW, f"Too few {unit} to compare policies: {why}.", facts)
    name, follows = title(done.best), []
    if rivals := [title(policy) for policy in done.equal if policy != done.best]:
        equal = f"{listed(rivals)} cannot be told apart from {name}: the difference is within the "
        equal += "uncertainty, so they count as equal"
        follows = [f"{equal}, and {name} is preferred." if done.best == PREFERRED else f"{equal}."]
    about = "" if done.method == "full" else " about"
    against = " and ".join(f"{gain.text} compared with {who}" for who, gain in known.items())
    earned = f"{name} would have earned{about} {short(best.mean)} per round, {against}."
    columns = ["policy", "mean", "more than the log", "more than fixed"]
    rows = [_row(row, done) for row in log_facts.shown_rows(done)]
    if best.over_log is None:
        columns, rows = columns[:2] + columns[3:], [row[:2] + row[3:] for row in rows]
    caption = f"Reward per round, by the {done.test_rounds:,} {unit} after {first}"
    blocks: list[Block] = [
        Text(earned, "best"),
        Table(caption, columns, rows),
        Points(list(_readings(done, structure, unit)), "dim"),
        Figure(
            "Reward per round compared with always playing the best arm of the training part, "
            "with intervals.",
            "Gain of each policy over a fixed arm",
            lambda: _gains(done),
            "gains",
        ),
    ]
    trusted = [row for row in done.rows if row.trusted]
    numbers = [Number(row.mean, row.low, row.high, name=row.label) for row in trusted]
    return Finding(POLICIES, f"best: {done.best}", numbers, follows, facts, blocks)


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
    uses = f"The policies use {done.structure}, learned from {first}."
    if done.structure != structure:
        uses += (
            " This model is not the best one of part 2, which was chosen with the whole log: "
            "policies in a test must not know its rewards in advance."
        )
    yield uses
    gains = [gain for row in log_facts.shown_rows(done) for gain in (row.over_log, row.over_fixed)]
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
    over_log, over_fixed = _gain(row.over_log), _gain(row.over_fixed)
    return [Cell(_label(row, done), tone=tone), Cell(value, row.mean), over_log, over_fixed]


def _gain(gain: Number | None) -> Cell:
    if gain is None:
        return Cell(NONE)
    mark = verdict_cell(gain.verdict, symbol=True)
    return Cell(f"{mark.text} {gain.text}", gain.value, tone=mark.tone)


def _label(row: Earned, done: Replayed) -> str:
    if row.kind == "policy":
        return title(row.label)
    arm = "" if row.arm is None else label(row.arm)
    named = {LEADER: f"fixed: {arm}", LOGGING: "the log itself", log_facts.RANDOM: "random"}
    return named.get(row.label, f"{arm}, in hindsight")


def on_fixed(done: Replayed | None, ahead: Forecast | None) -> Finding:
    """What a fixed arm loses to the best policy: in the log, and in the model's next rounds."""
    verdict, texts, numbers = "cannot tell", ["Neither the log nor the model can tell."], []
    if done is not None:
        best, fixed = done.row(done.best), f"always playing {label(done.fixed)}"
        gain, name = best.over_fixed, title(done.best)
        assert gain is not None
        numbers = [gain._replace(name=f"{done.best} minus {fixed}")]
        if gain.verdict == TOO_FEW or not best.trusted:
            verdict = TOO_FEW
            texts = [f"The log does not show enough to compare {name} with {fixed}."]
        elif gain.clear:
            verdict = "a loss"
            texts = [f"In the test part, {fixed} lost {_loss(gain)} to {name}."]
        else:
            verdict = "no clear loss"
            earned = f"compared with {fixed}, {name} earned {gain.text} per round"
            texts = [f"No clear loss: {earned}. That is not clearly more than zero."]
        known = [] if verdict == TOO_FEW else log_facts.shown_rows(done)
        for row in known:
            if row.arm is not None and row.label != LEADER:
                paid = f"{label(row.arm)}, earned {short(row.mean)} per round"
                texts.append(f"The best arm in hindsight, {paid}. Nobody knew it in advance.")
    elif ahead is not None:
        loss = f"The model expects a loss of {_loss(ahead.over_fixed)}."
        texts = [f"The log cannot tell. {loss} {MODEL_SAYS}"]
    follows = "The model makes no forecast: it needs the context features of later rounds."
    if ahead is not None:
        against = f"always playing {label(ahead.fixed)}, the best arm from now on"
        numbers.append(ahead.over_fixed._replace(name=f"forecast: {ahead.policy} minus {against}"))
        follows = (
            f"Forecast: in the next {ahead.rounds:,} rounds, {title(ahead.policy)} earns "
            f"{ahead.over_fixed.text} per round compared with {against}, and "
            f"{ahead.over_random.text} compared with random choice. {MODEL_SAYS}"
        )
    tone: Tone = "" if done or ahead is None else "best"
    blocks = [Text(text, tone) for text in texts]
    return Finding(FIXED, verdict, numbers, [follows], {"forecast": ahead}, blocks)


def _loss(gain: Number) -> str:
    """Per round, and per 1000 rounds."""
    value, ends = estimate(gain.value, gain.low, gain.high)
    more, low, high = (short(1000 * each, 2) for each in (gain.value, gain.low, gain.high))
    return f"{value} per round ({ends}), {more} in 1,000 rounds ({low} to {high})"


# The figures


def _means(fit: Fit, log: Log) -> Any:
    """Rewards, and each arm's mean over time without seasons; of the last sequence."""
    figure, [axis] = grid(1, 1, 8.0, 3.4)
    part = log.sequences[-1]
    before = part.rounds[-1] - MOST_ROUNDS
    plays = np.bincount(part.arms, minlength=len(log.names))
    paths = [path for path in components(fit) if not path.component.startswith(NO_MEANS)]
    for color, arm in zip(COLORS, np.argsort(-plays, kind="stable"), strict=False):
        name = log.names[arm]
        mine = (part.rounds > before) & (part.arms == arm)
        dots = {"ls": "", "marker": ".", "ms": 3, "alpha": 0.35, "rasterized": True}
        axis.plot(part.rounds[mine], part.rewards[mine], color=color, **dots)
        if own := [path for path in paths if path.label in ("", str(name))]:
            rounds, sequences = own[0].rounds, own[0].sequences
            last = (sequences == sequences[-1]) & (rounds > before)
            mean = np.sum([path.mean for path in own], axis=0)
            axis.plot(rounds[last], mean[last], color=color, lw=1.8, label=_text(label(name)))
    axis.set(xlabel="round", ylabel="reward")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _gains(done: Replayed) -> Any:
    """Each policy's gain over the fixed arm, with its interval, if the log can tell."""
    gains = [(row, row.over_fixed) for row in log_facts.shown_rows(done)]
    known = [(row, gain) for row, gain in gains if gain and gain.verdict != TOO_FEW]
    figure, [axis] = grid(1, 1, 7.0, 0.9 + 0.28 * len(known))
    rows = [(_text(_label(row, done)), gain) for row, gain in known]
    colors = [COLORS[0] if row.kind == "policy" else GRAY for row, _ in known]
    minus = f"reward per round, minus that of always {_text(label(done.fixed))}"
    draw_rows(axis, minus, rows, colors, 0.0)
    return figure


def _text(name: str) -> str:
    """Without the marks of a formula."""
    return name.replace("$", r"\$")
