"""The recommendation: numbers in, sentences out, by rules that stand here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from driftbandit.advice.parts import (
    Arm,
    Difference,
    Floor,
    Metric,
    Recommendation,
    Simulation,
    System,
    title,
)
from driftbandit.policies import TITLES
from driftbandit.system import Name, label

__all__ = ["margin", "number", "percent", "plus_minus", "recommend"]

MATTERS = 0.05
"""A difference of at most this share of the regret does not matter."""
NOTHING = 1e-6
"""Below this share of the regret, the floor is as good as zero."""


def recommend(
    system: System,
    arms: Sequence[Arm],
    floor: Floor,
    metric: Metric,
    simulation: Simulation | None,
) -> Recommendation:
    """What to play, why, and what to beware of.

    The simulation decides, since it plays the game itself. A policy is clearly better if the 95 %
    interval of its mean difference excludes zero; where none is, any will do. The metric is asked
    about IDEA and Kalman-UCB alone: KODE's bonus is zero and so is its ‖μ‖, and its φ is never
    above the others'.
    """
    warnings = tuple(_warnings(system, arms, simulation))
    if simulation is None:
        why = "there is one arm alone" if len(arms) == 1 else "all arms are the same"
        headline = f"Nothing to decide: {why}, and no policy loses anything."
        return Recommendation(None, headline, (), None, warnings)
    headline, *reasons = _ranking(simulation)
    reasons.append(_above_floor(floor, simulation))
    agreement, sentence = _agreement(metric, simulation)
    choice = simulation.best.policy
    return Recommendation(choice, headline, (*reasons, sentence), agreement, warnings)


def _ranking(simulation: Simulation) -> list[str]:
    """The headline, and how clear it is."""
    best, runs = simulation.best, simulation.runs
    *rivals, random = simulation.differences
    worse = [row for row in rivals if row.verdict == "worse"]
    level = [row for row in rivals if row.verdict != "worse"]
    name = title(best.policy)
    lowest = f"{name} came out lowest."
    if all(row.regret == 0 for row in simulation.policies):
        return [f"Any policy will do, {name} among them: none lost anything."]
    if random.verdict == "too few to tell":
        return [f"Too few runs to tell. {lowest}", f"{runs} decide nothing: give more runs."]
    if random.verdict != "worse":
        return [
            f"It hardly matters: no policy clearly beats random choice. {lowest}",
            f"It loses {number(best.regret)} per round, and random choice differs from that by at "
            f"most {number(_most(random))}: past rewards hardly say what pays next.",
        ]
    if not worse:
        names = _list([title(row.policy) for row in simulation.policies[:-1]])
        wide = max(_most(row) for row in level) > MATTERS * best.regret
        headline = f"{runs} runs cannot tell {names} apart" if wide else f"Any of {names} will do"
        return [f"{headline}. {lowest}", _apart(simulation, level)]
    if not level:
        return [
            f"Play {name}.",
            f"It loses {number(best.regret)} per round. {_losing(worse, best.regret)}: the 95 % "
            "intervals of the differences exclude zero.",
        ]
    either = _list([name, *(title(row.policy) for row in level)], "or")
    return [
        f"Play {either}. {lowest}",
        _apart(simulation, level),
        f"{_losing(worse, best.regret)}: that is clear.",
    ]


def _above_floor(floor: Floor, simulation: Simulation) -> str:
    """How far the best policy is above the lower bound on regret, and over which rounds that is."""
    best, random = simulation.policies[0], simulation.policies[-1]
    guess = f"Random choice loses {number(random.regret)}."
    if floor.value is None or floor.error is None:
        return f"The lower bound on regret is not known: {floor.reason}. {guess}"
    if max(floor.value, floor.error) <= NOTHING * best.regret:
        return f"The lower bound on regret is close to zero. {guess}"
    if floor.value <= floor.error:
        return f"The lower bound on regret is not known to any digit. {guess}"
    size = f"{number(floor.value)} per round {floor.when}"
    least = f"The lower bound on regret is {size}"
    if not best.low <= best.high:  # too few runs for an interval
        return f"{least}. {guess}"
    if best.high < floor.value - floor.error:
        return f"{least}; that {title(best.policy)} lost less in these runs is luck. {guess}"
    if best.low <= floor.value + floor.error:
        told = f"as far as {simulation.runs} runs can tell"
        return f"{least}; {title(best.policy)} is there, {told}. {guess}"
    return (
        f"{title(best.policy)} loses {number(best.regret / floor.value)} times the lower "
        f"bound on regret, which is {size}. {guess}"
    )


def _agreement(metric: Metric, simulation: Simulation) -> tuple[str | None, str]:
    """Whether metric and simulation agree about IDEA and Kalman-UCB, and that in words."""
    if metric.printed is None:
        return None, f"The metric φ predicts nothing here: {metric.reason}."
    if metric.winner is None:
        return None, "The metric φ is the same for IDEA and Kalman-UCB: it predicts nothing here."
    other = TITLES["kalman_ucb" if metric.winner == "idea" else "idea"]
    favors = f"φ favors {TITLES[metric.winner]} over {other} by {percent(margin(metric.printed))}"
    if metric.squared_winner != metric.winner:
        favors += " (as printed; its squared form does not)"
    if simulation.rivals is None:
        return None, f"The metric {favors}; the simulation did not play both."
    verdict = simulation.rivals.verdict  # Kalman-UCB's, against IDEA
    if verdict not in ("better", "worse"):
        return "cannot tell", f"The metric {favors}; the simulation cannot tell these two apart."
    if metric.winner == ("idea" if verdict == "worse" else "kalman_ucb"):
        return "agree", f"The metric {favors}, and the simulation agrees."
    return "disagree", (
        f"Metric and simulation disagree: {favors}, but played out {other} loses less. Trust the "
        "simulation, which plays the game itself."
    )


def margin(intervals: Mapping[str, tuple[float, float]]) -> float:
    """By what share the lower of IDEA's and Kalman-UCB's upper ends is below the other.

    Example:
        >>> margin({"idea": (0.1, 0.9), "kode": (0.1, 0.2), "kalman_ucb": (0.1, 1.0)})
        0.1
    """
    low, high = sorted((intervals["idea"][1], intervals["kalman_ucb"][1]))
    return round(1 - low / high, 12) if high > 0 else 0.0


def _warnings(system: System, arms: Sequence[Arm], simulation: Simulation | None) -> Iterator[str]:
    if not system.stable:
        rounds = f" The numbers are of the first {simulation.rounds} rounds." if simulation else ""
        radius = f"{system.spectral_radius:.6g}"
        yield f"The state never settles: ρ(Γ) = {radius} is not below 1.{rounds}"
    unseen = [arm.name for arm in arms if not arm.detectable]
    if unseen:
        yield (
            f"Not every mode that lasts shows in the rewards of {_arms(unseen)}: while nothing "
            "else is played, the error grows."
        )
    lost = [arm.name for arm in arms if arm.detectable and arm.error_trace is None]
    if lost:
        yield f"The steady error of {_arms(lost)} was not found."
    if not system.noise_reaches_all:
        yield "The noise does not reach every direction of the state, as the paper assumes (P3)."
    if system.reward_std == 0:
        yield "Rewards have no noise (σ = 0): one play tells all about ⟨a, z⟩. Is that meant?"
    if simulation is None:
        return
    copies = [arm.name for arm in arms if arm.same_as is not None]
    if copies:
        firsts = list(dict.fromkeys(arm.same_as for arm in arms if arm.same_as is not None))
        yield f"Repeated: {_arms(copies)}, of {_arms(firsts)}. Leave repeats out."
    never = [arm.name for arm in arms if arm.best_share == 0]
    if never:
        yield f"Never the best in the draws: {_arms(never)}. Good only for what they teach."


def _arms(names: Sequence[Name]) -> str:
    """Arm 3; arms 0, 1 and 2; arms 0, 1, 2, 3 and 96 more."""
    shown = [label(name) for name in names]
    if len(shown) > 6:
        shown = [*shown[:4], f"{len(shown) - 4} more"]
    return ("arms " if len(names) > 1 else "arm ") + _list(shown)


def _list(words: Sequence[str], last: str = "and") -> str:
    """One; one and two; one, two and three."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _most(row: Difference) -> float:
    return max(abs(row.low), abs(row.high))


def _apart(simulation: Simulation, level: Sequence[Difference]) -> str:
    """By how much policies that cannot be told apart may still differ."""
    best, most = simulation.best, max(_most(row) for row in level)
    loss = f"{title(best.policy)} loses {number(best.regret)} per round"
    rest = _list([title(row.policy) for row in level])
    if most == 0:
        return f"{loss}, and {rest} exactly the same in all {simulation.runs} runs."
    differs = "differs" if len(level) == 1 else "differ"
    size = percent(most / best.regret) if best.regret > 0 else number(most)
    return (
        f"{simulation.runs} runs do not tell them apart: {loss}, and {rest} {differs} from that by "
        f"at most {size} (95 % interval)."
    )


def _losing(worse: Sequence[Difference], best: float) -> str:
    return _list([f"{title(row.policy)} loses {_more(row.mean, best)}" for row in worse])


def _more(extra: float, best: float) -> str:
    if best <= 0:
        return f"{number(extra)} more"
    if extra < best:
        return f"{percent(extra / best)} more"
    return f"{number(1 + extra / best, 2)} times as much"


def percent(share: float) -> str:
    """A share to two digits.

    Example:
        >>> percent(0.0312), percent(0.25), percent(12.5)
        ('3.1 %', '25 %', '1,250 %')
    """
    return f"{number(100 * share, 2)} %"


def number(value: float, digits: int = 3) -> str:
    """A number to so many digits, without an exponent where it can be.

    Example:
        >>> number(0.012345), number(1234.5), number(0), number(1.5e9), number(-2.0)
        ('0.0123', '1,234', '0', '1.50e+09', '-2.00')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded value
    if not -4 <= size < 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - size)}f}"


def plus_minus(value: float, error: float) -> str:
    """A number as precisely as it is known: the error to two digits.

    Example:
        >>> plus_minus(0.16502, 0.00158), plus_minus(6566.0, 70.2), plus_minus(2.0, float("nan"))
        ('0.1650 ± 0.0016', '6,566 ± 70', '2.00')
    """
    if not 0 < error < math.inf:
        return number(value)
    if not 1e-4 <= abs(value) < 1e7 or error < 1e-7:
        return f"{number(value, 4)} ± {number(error, 2)}"
    decimals = max(0, 1 - int(f"{error:.1e}".partition("e")[2]))
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"
