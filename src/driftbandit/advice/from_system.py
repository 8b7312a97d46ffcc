"""Advice on a system: findings about its arms and policies, and what to play."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.advice import facts, finding
from driftbandit.advice.facts import Arm, LowerBound, Metric, Simulation, SystemFacts
from driftbandit.advice.finding import Advice, Finding, Number, Recommendation, Request, Tell, asked
from driftbandit.model import shown_radius
from driftbandit.policies import PREFERRED, TITLES, title
from driftbandit.report import Block, Cell, Figure, Points, Table, Text, verdict_cell
from driftbandit.report.figures import grid
from driftbandit.report.numbers import NONE, listed, percent, plus_minus, short
from driftbandit.result import policy_styles
from driftbandit.statistics import BETTER, NO_DIFFERENCE, TOO_FEW, WORSE
from driftbandit.system import Name, System, label

STAGES = ("arms", "lower bound", "metric", "simulation")
QUESTIONS: dict[str, dict[str, Any]] = {
    "What each arm pays and shows": {"arms": ()},
    "Lower bound on regret": {"lower_bound": None},
    "IDEA or Kalman-UCB: the paper's metric φ": {"metric": None},
    "What a short simulation shows": {"simulation": None},
}
ARMS, BOUND, METRIC, SIMULATION = QUESTIONS
LARGEST = 10**7
GROWS = 1 + 1e-9  # spectral radius above which a state grows; random walks and seasons have 1
MATTERS = 0.05  # a difference of at most this share of the regret does not matter
NOTHING = 1e-6  # below this share of the regret, the lower bound is as good as zero
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
SIMULATION_READINGS = (
    "regret: the mean per round and its 95% interval.",
    "× bound: in multiples of the lower bound on regret.",
    "more: than the lowest, run by run on the same states and noise; 95% interval.",
    f"verdict: worse if that interval is above zero, {NO_DIFFERENCE} if it contains zero.",
)


def advise_system(system: System, request: Request) -> Advice:
    """Advice on a system; see `advise`."""
    model, arms = system.model, system.arms
    model.start_cov()  # an error if there is none
    runs, rounds = facts.sizes(model.n_states, len(arms), model.spectral_radius)
    runs = runs if request.runs is None else request.runs
    rounds = rounds if request.rounds is None else request.rounds
    settings: dict[str, Any] = {
        "runs": errors.whole_number(runs, "runs", low=1, high=LARGEST),
        "rounds": errors.whole_number(rounds, "rounds", low=1, high=LARGEST),
        "seed": errors.whole_number(request.seed, "seed", low=0, high=2**63 - 1),
    }
    players = facts.players(request.policies, len(arms))
    size = facts.system_facts(model, arms)
    known: dict[str, Any] = {}

    def answers(tell: Tell) -> Iterator[Finding]:
        how = settings | {"progress": functools.partial(tell, "simulation")}
        steps: tuple[Callable[[], Finding], ...] = (
            lambda: on_arms(size, facts.arm_facts(model, arms, system.names, settings["rounds"])),
            lambda: on_bound(facts.lower_bound(model, arms, settings["rounds"])),
            lambda: on_metric(facts.metric(model, arms), size.constants > 0),
            lambda: on_simulation(facts.play(model, arms, players, how), known["lower_bound"]),
        )
        for stage, step in zip(STAGES, steps, strict=True):
            tell(stage, 0)
            answer = step()
            known.update(answer.facts)
            yield answer
            tell(stage, 1)

    findings = asked(QUESTIONS, answers, request)
    advised = Recommendation("open", "No recommendation: time was up before the simulation.")
    if "simulation" in known:
        advised = recommend(**known)
    return Advice(findings, advised, system)


def recommend(
    system: SystemFacts,
    arms: Sequence[Arm],
    lower_bound: LowerBound,
    metric: Metric,
    simulation: Simulation | None,
) -> Recommendation:
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
        return Recommendation("nothing", headline, warnings=warnings)
    chosen = preferred(simulation)
    headline, *reasons = _ranking(simulation, chosen)
    random = f"Random choice loses {short(simulation.policies[-1].value)}."
    reasons.append(f"{_above_bound(lower_bound, chosen, simulation.runs)} {random}")
    agreement, sentence = _agreement(metric, simulation.rivals)
    reasons += [sentence] if sentence else []
    use = f'db.Agent(system, policy="{chosen.name}")'
    return Recommendation("policy", headline, reasons, chosen.name, agreement, warnings, (use,))


def preferred(simulation: Simulation) -> Number:
    """`PREFERRED` if its difference from the lowest may be luck; else the lowest."""
    equal = {row.name for row in simulation.differences if row.verdict != WORSE}
    named = {row.name: row for row in simulation.policies}
    return named[PREFERRED] if PREFERRED in equal else simulation.best


def _ranking(simulation: Simulation, chosen: Number) -> list[str]:
    """The headline, and how clear it is."""
    best, runs = simulation.best, simulation.runs
    *rivals, random = simulation.differences
    worse = [row for row in rivals if row.verdict == WORSE]
    level = [row for row in rivals if row.verdict != WORSE]
    name, loses = title(chosen.name), f"loses {short(best.value)} per round"
    lowest = f"{title(best.name)} came out lowest."
    if all(row.value == 0 for row in simulation.policies):
        return [f"Any policy will do, {name} among them: none has any regret."]
    if random.verdict == TOO_FEW:
        return [f"Too few runs to tell. {lowest}", f"Give more than {runs} runs."]
    if random.verdict != WORSE:
        return [
            f"It hardly matters: no policy clearly beats random choice. {lowest}",
            f"It {loses}, and random choice differs from that by at "
            f"most {short(_most(random))}: past rewards say little about the next ones.",
        ]
    losing = listed([f"{title(row.name)} loses {_more(row.value, best.value)}" for row in worse])
    if not level:
        clear = f"{losing}: the 95% intervals of the differences exclude zero."
        return [f"Play {name}.", f"It {loses}. {clear if worse else 'No other was compared.'}"]
    equal = [title(row.name) for row in (best, *level)]
    most, rest = max(map(_most, level)), listed(equal[1:])
    size = percent(most / best.value) if best.value > 0 else short(most)
    apart = (
        f"{runs} runs do not tell them apart: {equal[0]} came out lowest and {loses}, and {rest} "
        f"{'differ' if level[1:] else 'differs'} from that by at most {size} (95% interval)."
    )
    if most == 0:
        apart = f"{equal[0]} {loses}, and {rest} exactly the same."
    elif chosen is not best:
        apart += f" Of equal policies, {name} is preferred."
    if worse:
        equal.remove(name)
        good = f"{listed(equal)} {'are' if equal[1:] else 'is'} as good"
        return [f"Play {name}. {good}.", apart, f"{losing}: this is clear."]
    wide, all_of = most > MATTERS * best.value, listed(equal)
    headline = f"{runs} runs cannot tell {all_of} apart" if wide else f"Any of {all_of} will do"
    return [f"{headline}. Play {name}.", apart]


def _above_bound(bound: LowerBound, chosen: Number, runs: int) -> str:
    """How far a policy is above the lower bound on regret, and over which rounds that is."""
    name, start = title(chosen.name), "The lower bound on regret is"
    if bound.value is None or bound.error is None:
        return f"{start} not known: {bound.reason}."
    if max(bound.value, bound.error) <= NOTHING * chosen.value:
        return f"{start} close to zero."
    if bound.value <= bound.error:
        return f"{start} smaller than the error of its computation."
    size = f"{short(bound.value)} per round {bound.when}"
    if not chosen.low <= chosen.high:  # too few runs for an interval
        return f"{start} {size}."
    if chosen.high < bound.value - bound.error:
        return f"{start} {size}; {name} lost less in these runs by chance."
    if chosen.low <= bound.value + bound.error:
        return f"{start} {size}; {name} attains it, as far as {runs} runs show."
    times = chosen.value / bound.value
    if times >= 2:
        return f"{name} loses {short(times)} times the lower bound on regret, which is {size}."
    above = f"{name} is at most {percent(times - 1)} above the least possible regret"
    return f"{above}, which is at least {size}."


def _agreement(metric: Metric, rivals: Number | None) -> tuple[str | None, str]:
    """Whether metric and simulation agree about IDEA and Kalman-UCB, and a sentence on it."""
    if metric.printed is None:
        return None, ""  # the metric's own section says why
    if metric.winner is None:
        return None, "The metric φ is the same for IDEA and Kalman-UCB: it predicts nothing here."
    other = TITLES["kalman_ucb" if metric.winner == "idea" else "idea"]
    favors = f"φ favors {TITLES[metric.winner]} over {other} by {_margin(metric.printed)}"
    if metric.squared_winner != metric.winner:
        favors += " (as printed; its squared form does not)"
    if rivals is None:
        return None, f"The metric {favors}; the simulation did not play both."
    if rivals.verdict not in (BETTER, WORSE):
        return "cannot tell", f"The metric {favors}; the simulation cannot tell these two apart."
    if metric.winner == ("idea" if rivals.verdict == WORSE else "kalman_ucb"):
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
    system: SystemFacts, arms: Sequence[Arm], simulation: Simulation | None
) -> Iterator[str]:
    if system.spectral_radius > GROWS:
        rounds = f" All numbers are of the first {simulation.rounds} rounds." if simulation else ""
        size = f"ρ(Γ) = {system.spectral_radius:.6g}"
        yield f"The state grows without limit ({size}). Is this intended?{rounds}"
        if unseen := _arms(arm.name for arm in arms if not arm.detectable):
            hides = f"Rewards of {unseen} do not show all of what grows"
            yield f"{hides}: play other arms often enough, or uncertainty grows without limit."
    if lost := _arms(arm.name for arm in arms if arm.detectable and arm.error_trace is None):
        yield f"The steady-state error of {lost} was not found."
    if system.reward_std == 0:
        yield "Rewards have no noise (σ = 0): one play shows ⟨a, z⟩ exactly. Is this intended?"
    if simulation is None:
        return
    if copies := {arm.name: arm.same_as for arm in arms if arm.same_as is not None}:
        firsts = dict.fromkeys(copies.values())
        yield f"Duplicates: {_arms(copies)}, of {_arms(firsts)}. Leave them out."
    if never := _arms(arm.name for arm in arms if arm.best_share == 0):
        yield f"Never the best arm in the draws: {never}. Useful only for what they show."


def _arms(names: Iterable[Name]) -> str:
    """Arm 3; arms 0, 1 and 2; arms 0, 1, 2, 3 and 96 more; empty if there are none."""
    shown = [label(name) for name in names]
    start = "arms" if len(shown) > 1 else "arm"
    if len(shown) > 6:
        shown = [*shown[:4], f"{len(shown) - 4} more"]
    return f"{start} {listed(shown)}" if shown else ""


def _most(row: Number) -> float:
    return max(abs(row.low), abs(row.high))


def _more(extra: float, best: float) -> str:
    if best <= 0:
        return f"{short(extra)} more"
    if extra < best:
        return f"{percent(extra / best)} more"
    return f"{short(1 + extra / best, 2)} times as much"


# The findings


def on_arms(system: SystemFacts, arms: Sequence[Arm]) -> Finding:
    """What each arm pays and shows."""
    offsets, moving = system.constants > 0, system.n_states - system.constants
    columns = [name for name in ARM_COLUMNS if offsets or name != "mean"]
    cells = [_arm_cells(arm, moving) for arm in _most_telling(arms)]
    rows = [[row[name] for name in ("arm", *columns)] for row in cells]
    readings = [f"{name.removesuffix(', %')}: {ARM_COLUMNS[name]}" for name in columns]
    if offsets:
        readings.append("detectable, tr P_a, removed, condition: of what moves, no constants.")
    blocks: list[Block] = [
        Text(_system_line(system)),
        Table("What each arm pays and shows of the state", ["arm", *columns], rows),
        Points(readings, "dim"),
    ]
    verdict = "all detectable" if all(arm.detectable for arm in arms) else "not all detectable"
    return Finding(ARMS, verdict, facts={"system": system, "arms": arms}, blocks=blocks)


def _system_line(system: SystemFacts) -> str:
    def counted(number: int, what: str) -> str:
        return f"{number} {what}" if number == 1 else f"{number} {what}s"

    states, radius = counted(system.n_states, "state"), shown_radius(system.spectral_radius)
    if system.constants:
        states += f" ({counted(system.constants, 'known constant')})"
        radius += " without them" if system.constants > 1 else " without it"
    kind = "stable" if system.stable else "never settles"
    start = "its stationary distribution"
    if not system.starts_stationary:
        start = "the model's initial mean and covariance"
    noise = "" if system.noise_reaches_all else "; some states never change by chance"
    return (
        f"{states}, {counted(system.n_arms, 'arm')}, reward noise σ = {system.reward_std:.4g}; "
        f"{kind}, ρ(Γ) = {radius}; starts from {start}{noise}."
    )


def _arm_cells(arm: Arm, moving: int) -> dict[str, Cell]:
    """Its row; ``moving``: how many states are not constants."""
    twin = "" if arm.same_as is None else f" = {label(arm.same_as)}"
    condition = _number(arm.gramian_condition, 2)
    if arm.gramian_condition is None:
        condition = Cell(f"rank {arm.gramian_rank} of {moving}", math.inf)
    return {
        "arm": Cell(f"{label(arm.name)}{twin}", arm.name if isinstance(arm.name, int) else None),
        "best, %": _share(arm.best_share),
        "mean": _number(arm.mean_reward),
        "reward s.d.": _number(arm.reward_spread),
        "detectable": Cell("yes" if arm.detectable else "no"),
        "tr P_a": _number(arm.error_trace) if arm.detectable else Cell("grows", math.inf),
        "removed, %": _share(arm.removed_share),
        "condition": condition,
    }


def _number(value: float | None, digits: int = 3) -> Cell:
    return Cell(short(value, digits), value)


def _share(value: float | None) -> Cell:
    return Cell(NONE) if value is None else Cell(f"{100 * value:.1f}", value)


def _most_telling(arms: Sequence[Arm]) -> Sequence[Arm]:
    """A few arms in order; many with those first that are best most often, then show most."""

    def rank(arm: Arm) -> tuple[float, float]:
        return -(arm.best_share or 0.0), math.inf if arm.error_trace is None else arm.error_trace

    return arms if len(arms) <= min(finding.MOST_ARMS.values()) else sorted(arms, key=rank)


def on_bound(bound: LowerBound) -> Finding:
    """The lower bound on regret."""
    known = {"lower_bound": bound}
    if bound.value is None or bound.error is None:
        return finding.stated(BOUND, "not known", f"Not known: {bound.reason}.", known)
    size = plus_minus(bound.value, bound.error)
    full = ": with full information, the optimal filter loses that much"
    text = (
        f"No policy loses less than {size} per round on average {bound.when}"
        f"{full if bound.full_information else ''}. Regret is measured against the best arm of "
        "each round."
    )
    ends = bound.value - bound.error, bound.value + bound.error
    number = Number(bound.value, *ends, name="least regret", unit="regret per round")
    return Finding(BOUND, "known", [number], facts=known, blocks=[Text(text)])


def on_metric(metric: Metric, offsets: bool) -> Finding:
    """The intervals of φ, and whom they favor."""
    known = {"metric": metric}
    if metric.printed is None or metric.squared is None:
        return finding.stated(METRIC, "not computed", f"Not computed: {metric.reason}.", known)
    forms = {
        "as printed": (metric.printed, metric.winner),
        "squared": (metric.squared, metric.squared_winner),
    }
    ahead = [
        f"{form}, " + ("neither" if winner is None else f"{TITLES[winner]} by {_margin(ends)}")
        for form, (ends, winner) in forms.items()
    ]
    follows = (
        f"Of IDEA and Kalman-UCB, the one with the smaller upper end is predicted to win: "
        f"{'; '.join(ahead)}. The metric cannot rank KODE: its bonus is zero, which makes ‖μ‖ "
        "zero, so its φ is never above the others'."
    )
    rows = []
    for policy in facts.BONUSES:
        row = [Cell(TITLES[policy])]
        for ends, winner in forms.values():
            low, high = ends[policy]
            row += [_number(low), Cell(short(high), high, tone="good" if policy == winner else "")]
        rows.append(row)
    columns = ["policy", "least φ", "greatest φ", "squared: least", "greatest"]
    readings = [
        "φ: how far a policy's view of the arms is from that with full information.",
        "squared: with ‖μ‖² in place of the printed ‖μ‖, a squared 2-Wasserstein distance.",
    ]
    if offsets:
        readings.append("Offsets cancel in φ: an arm counts even if it is too low to win.")
    blocks: list[Block] = [
        Table("Interval of φ, as printed in the paper and squared", columns, rows),
        Figure(
            "Intervals of φ. The policy with the smaller upper end is predicted to win.",
            "Intervals of the metric for IDEA, KODE and Kalman-UCB, as printed and squared",
            lambda: _metric_figure({form: ends for form, (ends, _) in forms.items()}),
        ),
        Points(readings, "dim"),
    ]
    verdict = "predicts nothing" if metric.winner is None else f"favors {metric.winner}"
    return Finding(METRIC, verdict, (), [follows], known, blocks)


def on_simulation(simulation: Simulation | None, lower: LowerBound) -> Finding:
    """Regret of each policy, and the differences."""
    known = {"simulation": simulation}
    if simulation is None:
        text = "Not played: there is nothing to decide."
        return finding.stated(SIMULATION, "nothing to decide", text, known)
    best, bound = simulation.best, lower.value
    unit = best.value / 100 if best.value > 0 else 1.0
    rows = []
    for row, gap in zip(simulation.policies, (None, *simulation.differences), strict=True):
        policy = Cell(title(row.name), tone="dim" if row.name == facts.RANDOM else "")
        regret = Cell(plus_minus(row.value, (row.high - row.low) / 2), row.value)
        more, verdict = Cell(NONE), Cell("lowest", tone="best")
        if gap is not None:
            more, verdict = Cell(_gap(gap, unit), gap.value), verdict_cell(gap.verdict)
        rows.append([policy, regret, _number(row.value / bound if bound else None), more, verdict])
    sizes = f"{simulation.runs} runs × {simulation.rounds} rounds, seed {simulation.seed}"
    more_name = "more, %" if best.value > 0 else "more"
    columns = ["policy", "regret", "× bound", more_name, "verdict"]
    blocks: list[Block] = [
        Table(f"Regret per round: {sizes}", columns, rows),
        Figure(
            "Mean regret per round and 95% intervals. Left: the dashed line is the lower bound. "
            "Right: difference to the lowest, run by run; an interval that reaches zero means that "
            "the two cannot be told apart.",
            "Regret per round of each policy, and the paired differences to the lowest",
            lambda: _simulation_figure(simulation, bound),
        ),
        Points(SIMULATION_READINGS, "dim"),
    ]
    lowest = f"lowest: {best.name}"
    return Finding(SIMULATION, lowest, simulation.policies, facts=known, blocks=blocks)


def _gap(gap: Number, unit: float) -> str:
    low, high = (short(end / unit, 2) for end in (gap.low, gap.high))
    ends = f" ({low} to {high})" if gap.low <= gap.high else ""  # of one run there are none
    return f"{short(gap.value / unit, 2)}{ends}"


def _metric_figure(forms: Mapping[str, Mapping[str, tuple[float, float]]]) -> Any:
    drawing, axes = grid(2, 2, 6.6, 1.6)
    styles = policy_styles(facts.BONUSES)
    colors = [styles[policy]["color"] for policy in facts.BONUSES]
    for axis, (form, intervals) in zip(axes, forms.items(), strict=True):
        rows = [(TITLES[name], Number(math.nan, *ends)) for name, ends in intervals.items()]
        finding.draw_rows(axis, f"φ, {form}", rows, colors, 0.0)
    return drawing


def _simulation_figure(simulation: Simulation, bound: float | None) -> Any:
    styles = policy_styles(row.name for row in simulation.policies)
    drawing, axes = grid(2, 2, 6.6, 1.0 + 0.22 * len(styles))
    more = f"more than {title(simulation.best.name)}, per round"
    panels = {"regret per round": simulation.policies, more: simulation.differences[:-1]}
    for axis, (what, numbers), line in zip(axes, panels.items(), (bound, 0.0), strict=True):
        rows = [(title(row.name), row) for row in numbers]
        finding.draw_rows(axis, what, rows, [styles[row.name]["color"] for row in numbers], line)
        axis.locator_params(axis="x", nbins=5)
    return drawing
