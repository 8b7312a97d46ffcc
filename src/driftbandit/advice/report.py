"""Advice in sentences, tables and figures: the rules of the recommendation, and the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driftbandit._version import __version__
from driftbandit.advice import facts
from driftbandit.advice.facts import (
    Advice,
    Arm,
    Difference,
    LowerBound,
    Metric,
    PolicyRegret,
    Simulation,
)
from driftbandit.model import shown_radius
from driftbandit.policies import PREFERRED, TITLES, title
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
    verdict_cell,
)
from driftbandit.report.figures import grid, interval_rows, log_ticks, name_rows
from driftbandit.report.numbers import NONE, listed, percent, plus_minus, short
from driftbandit.result import policy_styles
from driftbandit.statistics import BETTER, NO_DIFFERENCE, TOO_FEW, WORSE
from driftbandit.system import Name, label

GROWS = 1 + 1e-9  # spectral radius above which a state grows; random walks and seasons have 1
MATTERS = 0.05  # a difference of at most this share of the regret does not matter
NOTHING = 1e-6  # below this share of the regret, the lower bound is as good as zero
MOST_ARMS = {"terminal": 20, "page": 200}  # arms that a report shows
ARM_COLUMNS = {
    "best, %": "how often it is the best arm, from 16,384 draws of the state.",
    "mean": "⟨a, E z⟩, its mean reward once the state has settled.",
    "reward s.d.": "√(aᵀZa), how much its mean reward moves over time.",
    "detectable": "its rewards show everything that lasts; no: other arms have to be played, too.",
    "tr P_a": "the error left in the state if it is played forever; grows: without limit.",
    "removed, %": "1 − tr P_a / tr Z, how much of the state's variance that removes.",
    "condition": "of the observability Gramian: how much better its rewards show the clearest "
    "direction of the state than the faintest; rank r of d: only r of d directions show.",
}


def recommend(
    system: facts.SystemFacts,
    arms: Sequence[Arm],
    bound: LowerBound,
    metric: Metric,
    simulation: Simulation | None,
) -> facts.Recommendation:
    """What to play, why, and what to beware of.

    The simulation decides, since it measures regret itself. A policy is clearly better if the 95%
    interval of its mean difference excludes zero; if none is, any will do. Of policies that are
    equal in this sense, `PREFERRED` is chosen, as in advice from a log. The metric is used only
    for IDEA and Kalman-UCB: KODE's bonus is zero, so its ‖μ‖ is too and its φ never above theirs.
    """
    warnings = tuple(_warnings(system, arms, simulation))
    if simulation is None:
        why = "there is only one arm" if len(arms) == 1 else "all arms are the same"
        headline = f"Nothing to decide: {why}, so every policy has zero regret."
        return facts.Recommendation(None, headline, (), None, warnings)
    headline, *reasons = _ranking(simulation)
    random = f"Random choice loses {short(simulation.policies[-1].regret)}."
    reasons.append(f"{_above_bound(bound, simulation)} {random}")
    agreement, sentence = _agreement(metric, simulation)
    reasons += [sentence] if sentence else []
    choice = preferred(simulation).policy
    return facts.Recommendation(choice, headline, tuple(reasons), agreement, warnings)


def preferred(simulation: Simulation) -> PolicyRegret:
    """`PREFERRED` if its difference from the lowest may be luck; else the lowest."""
    equal = {row.policy for row in simulation.differences if row.verdict != WORSE}
    named = {row.policy: row for row in simulation.policies}
    return named[PREFERRED] if PREFERRED in equal else simulation.best


def _ranking(simulation: Simulation) -> list[str]:
    """The headline, and how clear it is."""
    best, runs = simulation.best, simulation.runs
    *rivals, random = simulation.differences
    worse = [row for row in rivals if row.verdict == WORSE]
    level = [row for row in rivals if row.verdict != WORSE]
    name, lowest = title(preferred(simulation).policy), f"{title(best.policy)} came out lowest."
    if all(row.regret == 0 for row in simulation.policies):
        return [f"Any policy will do, {name} among them: none has any regret."]
    if random.verdict == TOO_FEW:
        return [f"Too few runs to tell. {lowest}", f"Give more than {runs} runs."]
    if random.verdict != WORSE:
        return [
            f"It hardly matters: no policy clearly beats random choice. {lowest}",
            f"It loses {short(best.regret)} per round, and random choice differs from that by at "
            f"most {short(_most(random))}: past rewards say little about the next ones.",
        ]
    if not rivals:
        return [f"Play {name}.", f"It loses {short(best.regret)} per round. No other was compared."]
    if not worse:
        names = listed([title(row.policy) for row in simulation.policies[:-1]])
        wide = max(_most(row) for row in level) > MATTERS * best.regret
        headline = f"{runs} runs cannot tell {names} apart" if wide else f"Any of {names} will do"
        return [f"{headline}. Play {name}.", _apart(simulation, level)]
    losing = listed([f"{title(row.policy)} loses {_more(row.mean, best.regret)}" for row in worse])
    if not level:
        clear = f"{losing}: the 95% intervals of the differences exclude zero."
        return [f"Play {name}.", f"It loses {short(best.regret)} per round. {clear}"]
    others = [title(one) for one in (best.policy, *(row.policy for row in level))]
    others.remove(name)
    good = f"{listed(others)} {'are' if len(others) > 1 else 'is'} as good"
    return [f"Play {name}. {good}.", _apart(simulation, level), f"{losing}: this is clear."]


def _above_bound(bound: LowerBound, simulation: Simulation) -> str:
    """How far the best policy is above the lower bound on regret, and over which rounds that is."""
    best = preferred(simulation)
    name, start = title(best.policy), "The lower bound on regret is"
    if bound.value is None or bound.error is None:
        return f"{start} not known: {bound.reason}."
    if max(bound.value, bound.error) <= NOTHING * best.regret:
        return f"{start} close to zero."
    if bound.value <= bound.error:
        return f"{start} smaller than the error of its computation."
    size = f"{short(bound.value)} per round {bound.when}"
    if not best.low <= best.high:  # too few runs for an interval
        return f"{start} {size}."
    if best.high < bound.value - bound.error:
        return f"{start} {size}; {name} lost less in these runs by chance."
    if best.low <= bound.value + bound.error:
        return f"{start} {size}; {name} attains it, as far as {simulation.runs} runs show."
    times = best.regret / bound.value
    if times >= 2:
        return f"{name} loses {short(times)} times the lower bound on regret, which is {size}."
    return (
        f"{name} is at most {percent(times - 1)} above the least possible regret, which is at "
        f"least {size}."
    )


def _agreement(metric: Metric, simulation: Simulation) -> tuple[str | None, str]:
    """Whether metric and simulation agree about IDEA and Kalman-UCB, and a sentence on it."""
    if metric.printed is None:
        return None, ""  # the metric's own section says why
    if metric.winner is None:
        return None, "The metric φ is the same for IDEA and Kalman-UCB: it predicts nothing here."
    other = TITLES["kalman_ucb" if metric.winner == "idea" else "idea"]
    favors = f"φ favors {TITLES[metric.winner]} over {other} by {_margin(metric.printed)}"
    if metric.squared_winner != metric.winner:
        favors += " (as printed; its squared form does not)"
    if simulation.rivals is None:
        return None, f"The metric {favors}; the simulation did not play both."
    verdict = simulation.rivals.verdict  # Kalman-UCB's, against IDEA
    if verdict not in (BETTER, WORSE):
        return "cannot tell", f"The metric {favors}; the simulation cannot tell these two apart."
    if metric.winner == ("idea" if verdict == WORSE else "kalman_ucb"):
        return "agree", f"The metric {favors}, and the simulation agrees."
    return "disagree", (
        f"Metric and simulation disagree: {favors}, but in the simulation {other} loses less. "
        "Trust the simulation: it measures regret itself."
    )


def _margin(intervals: Mapping[str, tuple[float, float]]) -> str:
    """By how much the lower of IDEA's and Kalman-UCB's upper ends is below the other."""
    low, high = sorted((intervals["idea"][1], intervals["kalman_ucb"][1]))
    return percent(round(1 - low / high, 12) if high > 0 else 0.0)


def _warnings(
    system: facts.SystemFacts, arms: Sequence[Arm], simulation: Simulation | None
) -> Iterator[str]:
    if system.spectral_radius > GROWS:
        rounds = f" All numbers are of the first {simulation.rounds} rounds." if simulation else ""
        size = f"ρ(Γ) = {system.spectral_radius:.6g}"
        yield f"The state grows without limit ({size}). Is this intended?{rounds}"
        if unseen := [arm.name for arm in arms if not arm.detectable]:
            hides = f"Rewards of {_arms(unseen)} do not show all of what grows"
            yield f"{hides}: play other arms often enough, or uncertainty grows without limit."
    lost = [arm.name for arm in arms if arm.detectable and arm.error_trace is None]
    if lost:
        yield f"The steady-state error of {_arms(lost)} was not found."
    if system.reward_std == 0:
        yield "Rewards have no noise (σ = 0): one play shows ⟨a, z⟩ exactly. Is this intended?"
    if simulation is None:
        return
    copies = [arm.name for arm in arms if arm.same_as is not None]
    if copies:
        firsts = list(dict.fromkeys(arm.same_as for arm in arms if arm.same_as is not None))
        yield f"Duplicates: {_arms(copies)}, of {_arms(firsts)}. Leave them out."
    never = [arm.name for arm in arms if arm.best_share == 0]
    if never:
        yield f"Never the best arm in the draws: {_arms(never)}. Useful only for what they show."


def _arms(names: Sequence[Name]) -> str:
    """Arm 3; arms 0, 1 and 2; arms 0, 1, 2, 3 and 96 more."""
    shown = [label(name) for name in names]
    if len(shown) > 6:
        shown = [*shown[:4], f"{len(shown) - 4} more"]
    return ("arms " if len(names) > 1 else "arm ") + listed(shown)


def _most(row: Difference) -> float:
    return max(abs(row.low), abs(row.high))


def _apart(simulation: Simulation, level: Sequence[Difference]) -> str:
    """By how much policies that cannot be told apart may still differ."""
    best, most = simulation.best, max(_most(row) for row in level)
    name = title(best.policy)
    rest = listed([title(row.policy) for row in level])
    if most == 0:
        return f"{name} loses {short(best.regret)} per round, and {rest} exactly the same."
    differs = "differs" if len(level) == 1 else "differ"
    size = percent(most / best.regret) if best.regret > 0 else short(most)
    chosen = preferred(simulation)
    tie = f" Of equal policies, {title(chosen.policy)} is preferred." * (chosen is not best)
    return (
        f"{simulation.runs} runs do not tell them apart: {name} came out lowest and loses "
        f"{short(best.regret)} per round, and {rest} {differs} from that by at most {size} (95% "
        f"interval).{tie}"
    )


def _more(extra: float, best: float) -> str:
    if best <= 0:
        return f"{short(extra)} more"
    if extra < best:
        return f"{percent(extra / best)} more"
    return f"{short(1 + extra / best, 2)} times as much"


# The report


def report(advice: Advice, name: str, *, terminal: bool = False) -> Report:
    """Facts, figures and the recommendation about the system ``name``.

    In a terminal the recommendation comes last, where it stays on the screen; on a page it comes
    first, below the headline.
    """
    given = advice.recommendation
    said: list[Block] = [Heading("Recommendation")]
    if terminal or not given.reasons:
        said.append(Text(given.headline, "best"))
    said += [Text(reason) for reason in given.reasons]
    if given.choice is not None:
        said.append(Text(f'Use it: `db.Agent(system, policy="{given.choice}")`'))
    if given.warnings:
        said.append(Points(given.warnings, "bad"))
    found: list[Block] = [
        *([] if terminal else [Heading("The system", "system")]),
        Text(_system_line(advice.system)),
        *_arm_blocks(advice, MOST_ARMS["terminal" if terminal else "page"]),
        Heading("Lower bound on regret", "lower-bound"),
        Text(_bound_line(advice.lower_bound)),
        Heading("IDEA or Kalman-UCB: the paper's metric φ", "metric"),
        *_metric_blocks(advice),
        Heading("What a short simulation shows", "simulation"),
        *_simulation_blocks(advice),
    ]
    data = {"system_name": name} | advice.to_document()
    if terminal:
        return Report(f"Advice for {name}", "", [*found, *said], data)
    settings = {"system": name, "driftbandit": __version__}
    if (played := advice.simulation) is not None:
        settings["simulation"] = f"{played.runs} runs × {played.rounds} rounds per policy"
        settings["seed"] = str(played.seed)
    blocks = [*said, *found, Heading("Settings"), Facts(settings)]
    return Report(f"Advice for {name}", given.headline, blocks, data)


def _system_line(system: facts.SystemFacts) -> str:
    kind = "stable" if system.stable else "never settles"
    settled = system.starts_stationary
    start = "its stationary distribution" if settled else "the model's initial mean and covariance"
    noise = "" if system.noise_reaches_all else "; some states never change by chance"
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


def _arm_blocks(advice: Advice, most: int) -> Iterator[Block]:
    offsets, moving = advice.system.constants > 0, advice.system.n_states - advice.system.constants
    columns = [name for name in ARM_COLUMNS if offsets or name != "mean"]
    shown = _most_telling(advice.arms, most)
    rows = [_arm_row(arm, moving) for arm in shown]
    table = [[row["arm"], *(row[column] for column in columns)] for row in rows]
    yield Heading("The arms", "arms")
    yield Table("What each arm pays and shows of the state", ["arm", *columns], table)
    left = len(advice.arms) - len(shown)
    if left:
        yield Text(f"{left:,} more arms are left out: those above are the best most often.")
    readings = [f"{name.removesuffix(', %')}: {ARM_COLUMNS[name]}" for name in columns]
    if offsets:
        readings.append("detectable, tr P_a, removed, condition: of what moves, without constants.")
    yield Points(readings, "dim")


def _arm_row(arm: Arm, moving: int) -> dict[str, Cell]:
    condition = Cell(f"rank {arm.gramian_rank} of {moving}", math.inf)
    if arm.gramian_condition is not None:
        condition = _cell(arm.gramian_condition, 2)
    twin = "" if arm.same_as is None else f" = {label(arm.same_as)}"
    return {
        "arm": Cell(f"{label(arm.name)}{twin}", arm.name if isinstance(arm.name, int) else None),
        "best, %": _share(arm.best_share),
        "mean": _cell(arm.mean_reward),
        "reward s.d.": _cell(arm.reward_spread),
        "detectable": Cell("yes" if arm.detectable else "no"),
        "tr P_a": _cell(arm.error_trace) if arm.detectable else Cell("grows", math.inf),
        "removed, %": _share(arm.removed_share),
        "condition": condition,
    }


def _most_telling(arms: Sequence[Arm], most: int) -> list[Arm]:
    """All arms in order, or the ``most`` that are best most often, then show most."""

    def rank(arm: Arm) -> tuple[float, float]:
        return -(arm.best_share or 0.0), math.inf if arm.error_trace is None else arm.error_trace

    return list(arms) if len(arms) <= most else sorted(arms, key=rank)[:most]


def _cell(value: float | None, digits: int = 3) -> Cell:
    return Cell(short(value, digits), value)


def _share(value: float | None) -> Cell:
    return Cell(NONE) if value is None else Cell(f"{100 * value:.1f}", value)


def _bound_line(bound: LowerBound) -> str:
    if bound.value is None or bound.error is None:
        return f"Not known: {bound.reason}."
    said = f"No policy loses less than {plus_minus(bound.value, bound.error)} per round on average "
    said += f"{bound.when}"
    if bound.full_information:
        said += ": with full information, the optimal filter loses that much"
    return f"{said}. Regret is measured against the best arm of each round."


def _metric_blocks(advice: Advice) -> Iterator[Block]:
    metric = advice.metric
    if metric.printed is None or metric.squared is None:
        yield Text(f"Not computed: {metric.reason}.")
        return
    forms = {
        "as printed": (metric.printed, metric.winner),
        "squared": (metric.squared, metric.squared_winner),
    }
    rows = []
    for policy in facts.BONUSES:
        row = [Cell(TITLES[policy])]
        for form, winner in forms.values():
            low, high = form[policy]
            row += [_cell(low), Cell(short(high), high, tone="good" if policy == winner else "")]
        rows.append(row)
    columns = ["policy", "least φ", "greatest φ", "squared: least", "greatest"]
    yield Table("Interval of φ, as printed in the paper and squared", columns, rows)
    yield Figure(
        "Intervals of φ. The policy with the smaller upper end is predicted to win.",
        "Intervals of the metric for IDEA, KODE and Kalman-UCB, as printed and squared",
        lambda: _metric_figure(forms),
    )
    said = [
        f"{form}, " + ("neither" if winner is None else f"{TITLES[winner]} by {_margin(ends)}")
        for form, (ends, winner) in forms.items()
    ]
    yield Text(
        f"Of IDEA and Kalman-UCB, the one with the smaller upper end is predicted to win: "
        f"{'; '.join(said)}. The metric cannot rank KODE: its bonus is zero, which makes ‖μ‖ zero, "
        "so its φ is never above the others'."
    )
    readings = [
        "φ: how far a policy's view of the arms is from that with full information.",
        "squared: with ‖μ‖² in place of the printed ‖μ‖, a squared 2-Wasserstein distance.",
    ]
    if advice.system.constants:
        readings.append("Offsets cancel in φ: an arm counts even if its offset is too low to win.")
    yield Points(readings, "dim")


def _simulation_blocks(advice: Advice) -> Iterator[Block]:
    simulation = advice.simulation
    if simulation is None:
        yield Text("Not played: there is nothing to decide.")
        return
    best, bound = simulation.best, advice.lower_bound.value
    differences = {row.policy: row for row in simulation.differences}
    unit = best.regret / 100 if best.regret > 0 else 1.0
    rows = []
    for row in simulation.policies:
        policy = Cell(title(row.policy), tone="dim" if row.policy == facts.RANDOM else "")
        regret = Cell(plus_minus(row.regret, (row.high - row.low) / 2), row.regret)
        more, verdict = Cell(NONE), Cell("lowest", tone="best")
        if row is not best:
            gap = differences[row.policy]
            more, verdict = Cell(_gap(gap, unit), gap.mean), verdict_cell(gap.verdict)
        rows.append([policy, regret, _cell(row.regret / bound if bound else None), more, verdict])
    columns = ["policy", "regret", "× bound", "more, %" if best.regret > 0 else "more", "verdict"]
    caption = f"Regret per round: {simulation.runs} runs × {simulation.rounds} rounds"
    yield Table(caption, columns, rows)
    yield Figure(
        "Mean regret per round and 95% intervals. Left: the dashed line is the lower bound. "
        "Right: difference to the lowest, run by run; an interval that reaches zero means that "
        "the two cannot be told apart.",
        "Regret per round of each policy, and the paired differences to the lowest",
        lambda: _simulation_figure(simulation, bound),
    )
    level = NO_DIFFERENCE
    readings = [
        "regret: the mean per round and its 95% interval.",
        "× bound: in multiples of the lower bound on regret.",
        "more: than the lowest, run by run on the same states and noise; 95% interval.",
        f"verdict: worse if that interval is above zero, {level} if it contains zero.",
    ]
    yield Points(readings, "dim")


def _gap(gap: Difference, unit: float) -> str:
    low, high = (short(end / unit, 2) for end in (gap.low, gap.high))
    ends = f" ({low} to {high})" if gap.low <= gap.high else ""  # of one run there are none
    return f"{short(gap.mean / unit, 2)}{ends}"


def _metric_figure(forms: Mapping[str, tuple[Mapping[str, tuple[float, float]], Any]]) -> Any:
    drawing, axes = grid(2, 2, 6.6, 1.6)
    styles = policy_styles(facts.BONUSES)
    for axis, (form, (intervals, _)) in zip(axes, forms.items(), strict=True):
        rows = [(low, float("nan"), high) for low, high in intervals.values()]
        interval_rows(axis, rows, [styles[policy]["color"] for policy in facts.BONUSES])
        low = min(low for low, _, _ in rows)
        high = max(high for _, _, high in rows)
        if low > 0 and high > 20 * low:
            axis.set_xscale("log")
            log_ticks(axis.xaxis, low, high)
        else:
            axis.set_xlim(left=0)
        axis.set_title(f"φ, {form}", fontsize=9)
        name_rows(axis, [TITLES[policy] for policy in facts.BONUSES])
    return drawing


def _simulation_figure(simulation: Simulation, bound: float | None) -> Any:
    names = [row.policy for row in simulation.policies]
    styles = policy_styles(names)
    drawing, (left, right) = grid(2, 2, 6.6, 1.0 + 0.22 * len(names))
    colors = [styles[name]["color"] for name in names]
    left.barh(range(len(names)), [row.regret for row in simulation.policies], 0.6, color=colors)
    for place, row in enumerate(simulation.policies):
        left.plot([row.low, row.high], [place, place], "|-", color="black", lw=1.2, ms=6)
    if bound is not None:
        left.axvline(bound, color="black", ls="--", lw=1)
    left.set_title("regret per round", fontsize=9)
    name_rows(left, [title(name) for name in names])
    gaps = simulation.differences[:-1]
    rows = [(gap.low, gap.mean, gap.high) for gap in gaps]
    interval_rows(right, rows, [styles[gap.policy]["color"] for gap in gaps])
    right.axvline(0, color="black", ls="--", lw=1)
    right.set_title(f"more than {title(simulation.best.policy)}, per round", fontsize=9)
    name_rows(right, [title(gap.policy) for gap in gaps])
    for axis in (left, right):
        axis.locator_params(axis="x", nbins=5)
    return drawing
