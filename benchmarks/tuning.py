"""Step sizes set while a model trains: a Kalman filter compared with schedules, PBT and PB2.

    python benchmarks/tuning.py             # 20 seeds: benchmarks/results/tuning.json and a picture
    python benchmarks/tuning.py --quick     # 4 seeds, prints only
    python benchmarks/tuning.py --choose    # the search for the settings of the methods

Three problems (`testbed.problems`), 128 epochs. All methods of a problem have the same starts and
the same gradient noise. Single runs are compared with single runs; populations of 8 members with
each other, at 1024 epochs each. The rates of the tuned constant and the tuned cosine, and all
settings, were found on other seeds than those that are reported (1000 and above). Differences
are paired by seed; intervals are 95% bootstrap intervals of the mean difference of log losses.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit.report import figures
from driftbandit.statistics import paired
from testbed import choosing
from testbed.bandits import Bandit, shared
from testbed.greedy import greedy
from testbed.play import EVERY, Method, Played, play
from testbed.population import MEMBERS, PB2, PBT, SuccessiveHalving
from testbed.problems import EPOCHS, Array, Problem, every
from testbed.schedules import RandomEachEpoch, Schedule, cosine, drawn

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results/tuning.json"
PICTURE = ROOT / "docs/pictures/tuning.png"
SEEDS = list(range(20))
TUNED_ON = list(range(1000, 1020))
SINGLE, POPULATION, ORACLE = "one run", "population of 8", "greedy oracle"
ORACLES = (1, 8, 32)  # epochs ahead
FILTER, SHARED = "filter (IDEA)", "shared filter, with copying"
Make = Callable[[Problem, list[int], dict[str, float]], Method]


def same(rate: float, seeds: list[int]) -> Array:
    return np.full((len(seeds), 1), rate)


def middle(problem: Problem) -> float:
    """The untuned choice: the geometric middle of the range."""
    return float(np.sqrt(problem.rates[0] * problem.rates[-1]))


METHODS: dict[str, dict[str, Make]] = {
    SINGLE: {
        FILTER: lambda p, s, t: Bandit(p.rates, s, choosing.FILTER),
        "filter, other problems' model": lambda p, s, t: Bandit(
            p.rates, s, choosing.from_others(p.name)
        ),
        "cosine, tuned peak": lambda p, s, t: Schedule(same(t["cosine"], s), cosine),
        "cosine, untuned peak": lambda p, s, t: Schedule(same(middle(p), s), cosine),
        "constant, tuned": lambda p, s, t: Schedule(same(t["constant"], s)),
        "constant, untuned": lambda p, s, t: Schedule(same(middle(p), s)),
        "UCB": lambda p, s, t: Bandit(p.rates, s, choosing.UCB),
        "sliding-window UCB": lambda p, s, t: Bandit(p.rates, s, choosing.WINDOW_UCB),
        "random each epoch": lambda p, s, t: RandomEachEpoch(p.rates, s),
    },
    POPULATION: {
        SHARED: lambda p, s, t: shared(p.rates, s, choosing.FILTER, choosing.PERIOD["filter"]),
        "shared filter, no copying": lambda p, s, t: shared(p.rates, s, choosing.FILTER),
        "shared filter, other problems' model": lambda p, s, t: shared(
            p.rates, s, choosing.from_others(p.name), choosing.PERIOD["filter"]
        ),
        "PBT": lambda p, s, t: PBT(p.rates, s, choosing.PERIOD["PBT"]),
        "PB2": lambda p, s, t: PB2(p.rates, s, choosing.PERIOD["PB2"], choosing.PB2_CLIP),
        "successive halving": lambda p, s, t: SuccessiveHalving(p.rates, s),
        "random search, constant": lambda p, s, t: Schedule(drawn(p.rates, s, MEMBERS)),
        "random search, cosine peak": lambda p, s, t: Schedule(drawn(p.rates, s, MEMBERS), cosine),
    },
}


def tuned(problem: Problem, seeds: list[int]) -> dict[str, float]:
    """The constant rate and the cosine peak of the grid with the lowest mean log loss."""
    found = {}
    for name, share in (("constant", lambda epoch: 1.0), ("cosine", cosine)):
        means = [
            play(problem, seeds, Schedule(same(rate, seeds), share)).final.mean()
            for rate in problem.rates
        ]
        found[name] = float(problem.rates[int(np.argmin(means))])
    return found


def cell(one: Played, reference: Played, seconds: float) -> dict[str, Any]:
    """What is stored of a method on a problem: the difference is in the log loss."""
    found = paired(one.final, reference.final)
    return {
        "log loss": round(float(one.final.mean()), 4),
        "difference": [
            round(x, 4) for x in (found.mean_difference, found.mean_low, found.mean_high)
        ],
        "verdict": "reference" if one is reference else found.mean_verdict,
        "epochs": one.spent,
        "seconds": round(seconds, 2),
        "final": np.round(one.final, 4).tolist(),
        "curve": np.round(one.curves.mean(axis=0), 4).tolist(),
        "rate changes after epoch 48": float((np.diff(one.rates[:, 48:]) != 0).sum(axis=1).mean()),
        "rate": np.exp(np.log(one.rates).mean(axis=0)).round(6).tolist(),
    }


def compared(problem: Problem, seeds: list[int], tuned_on: list[int]) -> dict[str, Any]:
    """Every method on one problem."""
    start = time.perf_counter()
    rates = tuned(problem, tuned_on)
    found: dict[str, Any] = {
        "grid": problem.rates.round(6).tolist(),
        "untuned rate": middle(problem),
        "tuned rates": rates,
        "seconds of tuning": round(time.perf_counter() - start, 1),
        "methods": {},
    }
    references: dict[str, Played] = {}  # the first method of each group

    def add(group: str, name: str, run: Callable[[], Played]) -> None:
        start = time.perf_counter()
        one = run()
        reference = references.setdefault(SINGLE if group == ORACLE else group, one)
        row = {"group": group} | cell(one, reference, time.perf_counter() - start)
        found["methods"][name] = row
        value, low, high = row["difference"]
        difference = f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"{problem.name:16} {name:36} {row['log loss']:7.3f}   {difference}", flush=True)

    for group, methods in METHODS.items():
        for name, make in methods.items():
            add(group, name, lambda make=make: play(problem, seeds, make(problem, seeds, rates)))
    for hold in ORACLES:
        name = f"greedy oracle, {hold} epoch{'s' if hold > 1 else ''} ahead"
        add(ORACLE, name, lambda hold=hold: greedy(problem, seeds, hold))
    return found


def drawing(problems: dict[str, Any]) -> figures.Figure:
    """Above: the mean loss of single runs and of populations; below: their step sizes."""
    shown = [FILTER, "cosine, tuned peak", "constant, tuned", "UCB", SHARED, "PBT", "PB2"]
    looks = figures.styles(shown)
    figure, axes = figures.grid(2 * len(problems), len(problems), 10, 3.1)
    for column, (name, found) in enumerate(problems.items()):
        above, below = axes[column], axes[column + len(problems)]
        for label in shown:
            one = found["methods"][label]
            look = looks[label] | {"ls": "--" if one["group"] == POPULATION else "-", "ms": 4}
            points = np.arange(len(one["curve"])) * EVERY
            above.plot(points, np.exp(one["curve"]), markevery=4, label=label, **look)
            below.plot(np.arange(1, EPOCHS + 1), one["rate"], markevery=32, **look)
        above.set_title(name, fontsize=10)
        above.set_yscale("log")
        below.set_yscale("log")
        # Runs that diverged for a while, and the end of the cosine, would hide the rest.
        above.set_ylim(top=3 * np.exp(found["methods"][FILTER]["curve"][0]))
        lowest = min(min(found["methods"][label]["curve"]) for label in shown)
        above.set_ylim(bottom=0.7 * np.exp(lowest))
        below.set_ylim(found["grid"][0] / 1.5, found["grid"][-1] * 1.5)
        below.set_xlabel("epoch", fontsize=9)
    axes[0].set_ylabel("loss (geometric mean of the seeds)", fontsize=9)
    axes[len(problems)].set_ylabel("step size (geometric mean)", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="4 seeds; nothing is stored")
    parser.add_argument("--choose", action="store_true", help="search for the settings")
    options = parser.parse_args()
    if options.choose:
        choosing.main()
        return
    start = time.perf_counter()
    few = 4 if options.quick else len(SEEDS)
    problems = {one.name: compared(one, SEEDS[:few], TUNED_ON[:few]) for one in every()}
    seconds = time.perf_counter() - start
    print(f"{seconds:.0f} s")
    if options.quick:
        return
    about = {
        "seeds": [SEEDS[0], SEEDS[-1]],
        "tuned on seeds": [TUNED_ON[0], TUNED_ON[-1]],
        "epochs": EPOCHS,
        "members": MEMBERS,
        "settings": choosing.described(),
        "versions": {
            "driftbandit": db.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "seconds": round(seconds, 1),
        "problems": problems,
    }
    RESULTS.write_text(json.dumps(about, indent=1) + "\n")
    figures.save(drawing(problems), PICTURE)


if __name__ == "__main__":
    main()
