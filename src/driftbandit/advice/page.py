"""Advice as sections of text, tables and pictures: one source for the terminal and for HTML.

In every section paragraphs are what was found, and points say how to read it; in the
recommendation points are what to beware of.
"""

from __future__ import annotations

from collections.abc import Sequence

import driftbandit
from driftbandit.advice.parts import (
    POLICIES,
    Advice,
    Arm,
    Difference,
    Floor,
    Metric,
    System,
    title,
)
from driftbandit.advice.words import margin, number, percent, plus_minus
from driftbandit.model import shown_radius
from driftbandit.policies import TITLES
from driftbandit.report import Cell, Facts, Figure, Paragraph, Picture, Points, Section, Table, page
from driftbandit.system import label

__all__ = ["html", "recommendation", "sections"]

NONE = "–"
VERDICTS = {
    "worse": "worse",
    "better": "better",
    "no difference seen": "level",
    "too few to tell": "too few",
}
MOST_ON_PAPER = 200
"""Arms that an HTML page shows."""


def sections(advice: Advice, max_arms: int) -> list[Section]:
    """System, arms, floor, metric and simulation; at most so many arms, the most telling ones."""
    return [
        Section("system", "The system", [Paragraph(_line(advice.system))]),
        _arms(advice, max_arms),
        Section("floor", "Lower bound on regret", [Paragraph(_floor(advice.floor))]),
        _metric(advice),
        _simulation(advice),
    ]


def recommendation(advice: Advice) -> Section:
    """What to play, why, and what to beware of."""
    said = advice.recommendation
    blocks: list[Paragraph | Points] = [Paragraph(said.headline)]
    blocks += [Paragraph(reason) for reason in said.reasons]
    if said.choice is not None:
        blocks.append(Paragraph(f'Use it: `db.Agent(system, policy="{said.choice}")`'))
    if said.warnings:
        blocks.append(Points(said.warnings))
    return Section("recommendation", "Recommendation", blocks)


def html(advice: Advice, name: str, seed: int) -> str:
    """The text of a self-contained page.

    Args:
        advice: what to show.
        name: of the system, for the title.
        seed: of the simulation, and of the system where it is random.
    """
    from driftbandit.advice import pictures  # loads matplotlib

    parts = {section.id: section for section in sections(advice, MOST_ON_PAPER)}
    if advice.metric.printed is not None:
        drawn = Picture(
            "Intervals of φ. The smaller upper end is predicted to win.",
            "Intervals of the metric for IDEA, KODE and Kalman-UCB, as printed and squared",
            pictures.intervals(advice.metric),
        )
        parts["metric"] = _with(parts["metric"], drawn)
    if advice.simulation is not None:
        drawn = Picture(
            "Mean regret per round and 95 % intervals. Left: dashed, the lower bound. Right: "
            "run by run against the lowest; what reaches zero is not told apart from it.",
            "Regret per round of each policy, and the paired differences to the lowest",
            pictures.regrets(advice.simulation, advice.floor),
        )
        parts["simulation"] = _with(parts["simulation"], drawn)
    settings = {"system": name, "driftbandit": driftbandit.__version__, "seed": str(seed)}
    if advice.simulation is not None:
        size = f"{advice.simulation.runs} runs × {advice.simulation.rounds} rounds per policy"
        settings["simulation"] = size
    said = recommendation(advice)
    why = said.blocks[1:] or said.blocks  # the headline stands above
    return page(
        f"Advice for {name}",
        advice.recommendation.headline,
        [
            Section(said.id, said.title, why),
            *parts.values(),
            Section("settings", "Settings", [Facts(settings)]),
        ],
    )


def _with(section: Section, picture: Figure) -> Section:
    """The picture after the table."""
    first, *rest = section.blocks
    return Section(section.id, section.title, [first, picture, *rest])


def _line(system: System) -> str:
    kind = "stable" if system.stable else "never settles"
    start = "the stationary law" if system.starts_stationary else "a law of its own"
    noise = "" if system.noise_reaches_all else "; the noise does not reach every state"
    known, rest = "", ""
    if system.constants:
        several = system.constants > 1
        known = f" ({system.constants} known constant{'s' * several})"
        rest = f" without {'them' if several else 'it'}"
    return (
        f"{system.n_states} state{'s' * (system.n_states > 1)}{known}, {system.n_arms} "
        f"arm{'s' * (system.n_arms > 1)}, reward noise σ = {system.reward_std:.4g}; {kind}, "
        f"ρ(Γ) = {shown_radius(system.spectral_radius)}{rest}; starts from {start}{noise}."
    )


def _arms(advice: Advice, most: int) -> Section:
    shown = _telling(advice.arms, most)
    spread = "s.d." if advice.system.constants else "reward s.d."
    columns = ["arm", "best, %", spread, "detectable", "tr P_a", "removed, %", "cond O"]
    rows = [_arm(arm, advice.system.n_states - advice.system.constants) for arm in shown]
    if advice.system.constants:
        columns.insert(2, "mean")
        for arm, row in zip(shown, rows, strict=True):
            row.insert(2, _cell(arm.mean_reward))
    blocks: list[Table | Paragraph | Points] = [
        Table("What each arm pays and teaches", columns, rows)
    ]
    left = len(advice.arms) - len(shown)
    if left:
        blocks.append(
            Paragraph(f"{left:,} more arms are left out: those above are the best most often.")
        )
    readings = [
        "best: how often it is the best arm, from 16,384 draws of the state.",
        f"{spread}: √(aᵀZa), how much its mean reward moves over time.",
        "detectable: every mode that does not die out by itself shows in its rewards.",
        "tr P_a: the error left in the state if it is played forever.",
        "removed: 1 − tr P_a / tr Z, what that takes off the state's own variance.",
        "cond O: of d rounds' observability Gramian; large: some of the state hides.",
    ]
    if advice.system.constants:
        readings.insert(1, "mean: ⟨a, E z⟩, what it pays on average once the state has settled.")
        readings.append("detectable, tr P_a, removed, cond O: of what moves, constants left out.")
    blocks.append(Points(readings))
    return Section("arms", "The arms", blocks)


def _telling(arms: Sequence[Arm], most: int) -> list[Arm]:
    """All arms in order, or the ``most`` that are best most often, then teach most."""
    if len(arms) <= most:
        return list(arms)

    def rank(arm: Arm) -> tuple[float, float]:
        trace = float("inf") if arm.error_trace is None else arm.error_trace
        return -(arm.best_share or 0.0), trace

    return sorted(arms, key=rank)[:most]


def _arm(arm: Arm, n_states: int) -> list[Cell]:
    trace = _cell(arm.error_trace)
    if not arm.detectable:
        trace = Cell("grows", float("inf"), tone="bad")
    condition = _cell(arm.gramian_condition, 2)
    if arm.gramian_condition is None:
        condition = Cell(f"rank {arm.gramian_rank} of {n_states}", float("inf"))
    twin = "" if arm.same_as is None else f" = {label(arm.same_as)}"
    return [
        Cell(f"{label(arm.name)}{twin}", arm.name if isinstance(arm.name, int) else None),
        _share(arm.best_share),
        _cell(arm.reward_spread),
        Cell("yes") if arm.detectable else Cell("no", tone="bad"),
        trace,
        _share(arm.removed_share),
        condition,
    ]


def _cell(value: float | None, digits: int = 3) -> Cell:
    return Cell(NONE) if value is None else Cell(number(value, digits), value)


def _share(value: float | None) -> Cell:
    return Cell(NONE) if value is None else Cell(f"{100 * value:.1f}", value)


def _floor(floor: Floor) -> str:
    if floor.value is None or floor.error is None:
        return f"Not known: {floor.reason}."
    return (
        f"No policy loses less than {plus_minus(floor.value, floor.error)} per round, in the mean "
        f"{floor.when}: that is what a player loses who sees the rewards of all arms and filters "
        "them as well as can be. Regret is against the arm that is best in each round."
    )


def _metric(advice: Advice) -> Section:
    metric, title = advice.metric, "What the metric φ predicts"
    if metric.printed is None or metric.squared is None:
        return Section("metric", title, [Paragraph(f"No intervals: {metric.reason}.")])
    rows: list[list[Cell]] = []
    for policy in POLICIES:
        rows.append([Cell(TITLES[policy])])
        for form, winner in (
            (metric.printed, metric.winner),
            (metric.squared, metric.squared_winner),
        ):
            low, high = form[policy]
            favored = policy == winner
            rows[-1] += [_cell(low), Cell(number(high), high, tone="good" if favored else "")]
    columns = ["policy", "least φ", "greatest φ", "squared: least", "greatest"]
    readings = [
        "φ: how far a policy's view of the arms is from that of one who sees all.",
        "squared: with ‖μ‖² for the printed ‖μ‖, a squared 2-Wasserstein distance.",
    ]
    if advice.system.constants:
        readings.append("Offsets cancel in φ: arms that they keep from being best count in full.")
    return Section(
        "metric",
        title,
        [
            Table("Interval of φ, as printed in the paper and squared", columns, rows),
            Paragraph(_prediction(metric)),
            Points(readings),
        ],
    )


def _prediction(metric: Metric) -> str:
    forms = {
        "as printed": (metric.winner, metric.printed or {}),
        "squared": (metric.squared_winner, metric.squared or {}),
    }
    said = [
        f"{form}, neither"
        if winner is None
        else f"{form}, {TITLES[winner]} by {percent(margin(of))}"
        for form, (winner, of) in forms.items()
    ]
    return (
        f"Of IDEA and Kalman-UCB the smaller upper end is predicted to win: {'; '.join(said)}. The "
        "metric cannot rank KODE: a bonus of zero makes ‖μ‖ zero, so its φ is never above the "
        "others'."
    )


def _simulation(advice: Advice) -> Section:
    simulation, heading = advice.simulation, "What a short simulation shows"
    if simulation is None:
        return Section("simulation", heading, [Paragraph("Not played: nothing to decide.")])
    best, floor = simulation.best, advice.floor.value
    differences = {row.policy: row for row in simulation.differences}
    unit = best.regret / 100 if best.regret > 0 else 1.0
    rows = []
    for row in simulation.policies:
        more, verdict = Cell(NONE), Cell("lowest", tone="good")
        if row is not best:
            gap = differences[row.policy]
            more = Cell(_gap(gap, unit), gap.mean)
            verdict = Cell(VERDICTS[gap.verdict], tone="bad" if gap.verdict == "worse" else "")
        rows.append(
            [
                Cell(title(row.policy), tone="dim" if row.policy == "random" else ""),
                Cell(plus_minus(row.regret, (row.high - row.low) / 2), row.regret),
                _cell(row.regret / floor if floor else None),
                more,
                verdict,
            ]
        )
    caption = f"Regret per round: {simulation.runs} runs × {simulation.rounds} rounds"
    columns = ["policy", "regret", "× bound", "more, %" if best.regret > 0 else "more", "verdict"]
    readings = [
        "regret: the mean per round and its 95 % interval.",
        "× bound: in multiples of the lower bound on regret.",
        "more: than the lowest, run by run on the same states and noise; 95 % interval.",
        "verdict: worse where that interval is above zero, level where it holds zero.",
    ]
    return Section("simulation", heading, [Table(caption, columns, rows), Points(readings)])


def _gap(gap: Difference, unit: float) -> str:
    low, high = (number(end / unit, 2) for end in (gap.low, gap.high))
    ends = f" ({low} to {high})" if gap.low <= gap.high else ""  # of one run there are none
    return f"{number(gap.mean / unit, 2)}{ends}"
