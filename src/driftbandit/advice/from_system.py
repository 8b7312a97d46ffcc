"""Advice on a system: findings about its arms and policies, and what to play."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.advice import facts
from driftbandit.advice.facts import Arm, LowerBound, Metric, Simulation, SystemFacts
from driftbandit.advice.finding import Advice, Finding, Number, Recommendation, Tell, asked
from driftbandit.model import shown_radius
from driftbandit.policies import PREFERRED, TITLES, title
from driftbandit.report import Block, Cell, Figure, Points, Table, Text, verdict_cell
from driftbandit.report.figures import grid, interval_rows, log_ticks, name_rows
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


def advise_system(
    system: System,
    *,
    runs: int | None,
    rounds: int | None,
    seed: int,
    policies: Iterable[str] | None,
    budget: float | None,
    progress: Tell | None,
    ready: Tell | None,
) -> Advice:
    """Advice on a system; see `advise`."""
    model, arms = system.model, system.arms
    model.start_cov()  # an error if there is none
    usual = facts.sizes(model.n_states, len(arms), model.spectral_radius)
    n_runs = errors.whole_number(usual[0] if runs is None else runs, "runs", low=1, high=LARGEST)
    rounds = usual[1] if rounds is None else rounds
    n_rounds = errors.whole_number(rounds, "rounds", low=1, high=LARGEST)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    players = facts.players(policies, len(arms))
    size = facts.system_facts(model, arms)
    known: dict[str, Any] = {}

    def answers(tell: Tell) -> Iterator[Finding]:
        tell("arms", 0)
        known["arms"] = facts.arm_facts(model, arms, system.names, n_rounds)
        yield on_arms(size, known["arms"])
        tell("arms", 1)
        tell("lower bound", 0)
        known["bound"] = facts.lower_bound(model, arms, n_rounds)
        yield on_bound(known["bound"])
        tell("lower bound", 1)
        tell("metric", 0)
        known["metric"] = facts.metric(model, arms)
        yield on_metric(known["metric"], size.constants > 0)
        tell("metric", 1)
        tell("simulation", 0)
        played = None
        if not (arms == arms[0]).all():  # else there is nothing to decide

            def told(share: float) -> None:
                tell("simulation", share)

            played = facts.play(model, arms, players, n_runs, n_rounds, seed, told)
        known["simulation"] = played
        yield on_simulation(played, known["bound"])
        tell("simulation", 1)

    findings = asked(QUESTIONS, answers, budget, progress, ready)
    said = Recommendation("open", "No recommendation: time was up before the simulation.")
    if len(known) == len(QUESTIONS):
        said = recommend(size, **known)
    return Advice(findings, said, system)


def recommend(
    system: SystemFacts,
    arms: Sequence[Arm],
    bound: LowerBound,
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
    headline, *reasons = _ranking(simulation)
    random = f"Random choice loses {short(simulation.policies[-1].value)}."
    reasons.append(f"{_above_bound(bound, simulation)} {random}")
    agreement, sentence = _agreement(metric, simulation)
    reasons += [sentence] if sentence else []
    choice = preferred(simulation).name
    use = f'db.Agent(system, policy="{choice}")'
    return Recommendation("policy", headline, reasons, choice, agreement, warnings, (use,))


def preferred(simulation: Simulation) -> Number:
    """`PREFERRED` if its difference from the lowest may be luck; else the lowest."""
    equal = {row.name for row in simulation.differences if row.verdict != WORSE}
    named = {row.name: row for row in simulation.policies}
    return named[PREFERRED] if PREFERRED in equal else simulation.best


def _ranking(simulation: Simulation) -> list[str]:
    """The headline, and how clear it is."""
    best, runs = simulation.best, simulation.runs
    *rivals, random = simulation.differences
    worse = [row for row in rivals if row.verdict == WORSE]
    level = [row for row in rivals if row.verdict != WORSE]
    name, lowest = title(preferred(simulation).name), f"{title(best.name)} came out lowest."
    if all(row.value == 0 for row in simulation.policies):
        return [f"Any policy will do, {name} among them: none has any regret."]
    if random.verdict == TOO_FEW:
        return [f"Too few runs to tell. {lowest}", f"Give more than {runs} runs."]
    if random.verdict != WORSE:
        return [
            f"It hardly matters: no policy clearly beats random choice. {lowest}",
            f"It loses {short(best.value)} per round, and random choice differs from that by at "
            f"most {short(_most(random))}: past rewards say little about the next ones.",
        ]
    if not rivals:
        return [f"Play {name}.", f"It loses {short(best.value)} per round. No other was compared."]
    if not worse:
        names = listed([title(row.name) for row in simulation.policies[:-1]])
        wide = max(_most(row) for row in level) > MATTERS * best.value
        headline = f"{runs} runs cannot tell {names} apart" if wide else f"Any of {names} will do"
        return [f"{headline}. Play {name}.", _apart(simulation, level)]
    losing = listed([f"{title(row.name)} loses {_more(row.value, best.value)}" for row in worse])
    if not level:
        clear = f"{losing}: the 95% intervals of the differences exclude zero."
        return [f"Play {name}.", f"It loses {short(best.value)} per round. {clear}"]
    others = [title(one) for one in (best.name, *(row.name for row in level))]
    others.remove(name)
    good = f"{listed(others)} {'are' if len(others) > 1 else 'is'} as good"
    return [f"Play {name}. {good}.", _apart(simulation, level), f"{losing}: this is clear."]


def _above_bound(bound: LowerBound, simulation: Simulation) -> str:
    """How far the best policy is above the lower bound on regret, and over which rounds that is."""
    best = preferred(simulation)
    name, start = title(best.name), "The lower bound on regret is"
    if bound.value is None or bound.error is None:
        return f"{start} not known: {bound.reason}."
    if max(bound.value, bound.error) <= NOTHING * best.value:
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
    times = best.value / bound.value
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
    system: SystemFacts, arms: Sequence[Arm], simulation: Simulation | None
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


def _most(row: Number) -> float:
    return max(abs(row.low), abs(row.high))


def _apart(simulation: Simulation, level: Sequence[Number]) -> str:
    """By how much policies that cannot be told apart may still differ."""
    best, most = simulation.best, max(_most(row) for row in level)
    name = title(best.name)
    rest = listed([title(row.name) for row in level])
    if most == 0:
        return f"{name} loses {short(best.value)} per round, and {rest} exactly the same."
    differs = "differs" if len(level) == 1 else "differ"
    size = percent(most / best.value) if best.value > 0 else short(most)
    chosen = preferred(simulation)
    tie = f" Of equal policies, {title(chosen.name)} is preferred." * (chosen is not best)
    return (
        f"{simulation.runs} runs do not tell them apart: {name} came out lowest and loses "
        f"{short(best.value)} per round, and {rest} {differs} from that by at most {size} (95% "
        f"interval).{tie}"
    )


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

    def blocks(most: int) -> Iterator[Block]:
        yield Text(_system_line(system))
        columns = [name for name in ARM_COLUMNS if offsets or name != "mean"]
        rows = [_arm_row(arm, moving) for arm in _most_telling(arms, most)]
        table = [[row["arm"], *(row[column] for column in columns)] for row in rows]
        yield Table("What each arm pays and shows of the state", ["arm", *columns], table)
        if left := len(arms) - len(rows):
            yield Text(f"{left:,} more arms are left out: those above are the best most often.")
        readings = [f"{name.removesuffix(', %')}: {ARM_COLUMNS[name]}" for name in columns]
        if offsets:
            readings.append("detectable, tr P_a, removed, condition: of what moves, no constants.")
        yield Points(readings, "dim")

    verdict = "all detectable" if all(arm.detectable for arm in arms) else "not all detectable"
    return Finding(ARMS, verdict, facts={"system": system, "arms": arms}, blocks=blocks)


def _system_line(system: SystemFacts) -> str:
    kind = "stable" if system.stable else "never settles"
    settled = system.starts_stationary
    start = "its stationary distribution" if settled else "the model's initial mean and covariance"
    noise = "" if system.noise_reaches_all else "; some states never change by chance"
    known = f" ({_counted(system.constants, 'known constant')})" if system.constants else ""
    rest = f" without {'them' if system.constants > 1 else 'it'}" if system.constants else ""
    return (
        f"{_counted(system.n_states, 'state')}{known}, {_counted(system.n_arms, 'arm')}, reward "
        f"noise σ = {system.reward_std:.4g}; {kind}, "
        f"ρ(Γ) = {shown_radius(system.spectral_radius)}{rest}; starts from {start}{noise}."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


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


def on_bound(bound: LowerBound) -> Finding:
    """The lower bound on regret."""
    said, numbers = f"Not known: {bound.reason}.", []
    if bound.value is not None and bound.error is not None:
        size = plus_minus(bound.value, bound.error)
        said = f"No policy loses less than {size} per round on average {bound.when}"
        if bound.full_information:
            said += ": with full information, the optimal filter loses that much"
        said += ". Regret is measured against the best arm of each round."
        ends = bound.value - bound.error, bound.value + bound.error
        numbers = [Number(bound.value, *ends, name="least regret", unit="regret per round")]
    known = {"lower_bound": bound}
    verdict = "known" if numbers else "not known"
    return Finding(BOUND, verdict, numbers, facts=known, blocks=lambda _: [Text(said)])


def on_metric(metric: Metric, offsets: bool) -> Finding:
    """The intervals of φ, and whom they favor."""
    known = {"metric": metric}
    if metric.printed is None or metric.squared is None:
        said = Text(f"Not computed: {metric.reason}.")
        return Finding(METRIC, "not computed", facts=known, blocks=lambda _: [said])
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

    def blocks(most: int) -> Iterator[Block]:
        rows = []
        for policy in facts.BONUSES:
            row = [Cell(TITLES[policy])]
            for form, winner in forms.values():
                low, high = form[policy]
                row += [
                    _cell(low),
                    Cell(short(high), high, tone="good" if policy == winner else ""),
                ]
            rows.append(row)
        columns = ["policy", "least φ", "greatest φ", "squared: least", "greatest"]
        yield Table("Interval of φ, as printed in the paper and squared", columns, rows)
        yield Figure(
            "Intervals of φ. The policy with the smaller upper end is predicted to win.",
            "Intervals of the metric for IDEA, KODE and Kalman-UCB, as printed and squared",
            lambda: _metric_figure(forms),
        )
        readings = [
            "φ: how far a policy's view of the arms is from that with full information.",
            "squared: with ‖μ‖² in place of the printed ‖μ‖, a squared 2-Wasserstein distance.",
        ]
        if offsets:
            readings.append("Offsets cancel in φ: an arm counts even if it is too low to win.")
        yield Points(readings, "dim")

    verdict = "predicts nothing" if metric.winner is None else f"favors {metric.winner}"
    return Finding(METRIC, verdict, (), [follows], known, blocks)


def on_simulation(simulation: Simulation | None, lower: LowerBound) -> Finding:
    """Regret of each policy, and the differences."""
    known = {"simulation": simulation}
    if simulation is None:
        said = Text("Not played: there is nothing to decide.")
        return Finding(SIMULATION, "nothing to decide", facts=known, blocks=lambda _: [said])
    best, bound = simulation.best, lower.value
    differences = {row.name: row for row in simulation.differences}
    unit = best.value / 100 if best.value > 0 else 1.0

    def blocks(most: int) -> Iterator[Block]:
        rows = []
        for row in simulation.policies:
            policy = Cell(title(row.name), tone="dim" if row.name == facts.RANDOM else "")
            regret = Cell(plus_minus(row.value, (row.high - row.low) / 2), row.value)
            more, verdict = Cell(NONE), Cell("lowest", tone="best")
            if row is not best:
                gap = differences[row.name]
                more, verdict = Cell(_gap(gap, unit), gap.value), verdict_cell(gap.verdict)
            rows.append([policy, regret, _cell(row.value / bound if bound else None)])
            rows[-1] += [more, verdict]
        unit_text = "more, %" if best.value > 0 else "more"
        sizes = f"{simulation.runs} runs × {simulation.rounds} rounds, seed {simulation.seed}"
        columns = ["policy", "regret", "× bound", unit_text, "verdict"]
        yield Table(f"Regret per round: {sizes}", columns, rows)
        yield Figure(
            "Mean regret per round and 95% intervals. Left: the dashed line is the lower bound. "
            "Right: difference to the lowest, run by run; an interval that reaches zero means that "
            "the two cannot be told apart.",
            "Regret per round of each policy, and the paired differences to the lowest",
            lambda: _simulation_figure(simulation, bound),
        )
        readings = [
            "regret: the mean per round and its 95% interval.",
            "× bound: in multiples of the lower bound on regret.",
            "more: than the lowest, run by run on the same states and noise; 95% interval.",
            f"verdict: worse if that interval is above zero, {NO_DIFFERENCE} if it contains zero.",
        ]
        yield Points(readings, "dim")

    return Finding(SIMULATION, f"lowest: {best.name}", simulation.policies, (), known, blocks)


def _gap(gap: Number, unit: float) -> str:
    low, high = (short(end / unit, 2) for end in (gap.low, gap.high))
    ends = f" ({low} to {high})" if gap.low <= gap.high else ""  # of one run there are none
    return f"{short(gap.value / unit, 2)}{ends}"


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
    names = [row.name for row in simulation.policies]
    styles = policy_styles(names)
    drawing, (left, right) = grid(2, 2, 6.6, 1.0 + 0.22 * len(names))
    colors = [styles[name]["color"] for name in names]
    left.barh(range(len(names)), [row.value for row in simulation.policies], 0.6, color=colors)
    for place, row in enumerate(simulation.policies):
        left.plot([row.low, row.high], [place, place], "|-", color="black", lw=1.2, ms=6)
    if bound is not None:
        left.axvline(bound, color="black", ls="--", lw=1)
    left.set_title("regret per round", fontsize=9)
    name_rows(left, [title(name) for name in names])
    gaps = simulation.differences[:-1]
    rows = [(gap.low, gap.value, gap.high) for gap in gaps]
    interval_rows(right, rows, [styles[gap.name]["color"] for gap in gaps])
    right.axvline(0, color="black", ls="--", lw=1)
    right.set_title(f"more than {title(simulation.best.name)}, per round", fontsize=9)
    name_rows(right, [title(gap.name) for gap in gaps])
    for axis in (left, right):
        axis.locator_params(axis="x", nbins=5)
    return drawing
