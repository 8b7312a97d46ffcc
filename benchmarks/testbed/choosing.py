"""The settings of the methods, and the search that found them on seeds that are not reported.

One criterion for all: the log of the final loss, averaged over the seeds and the three problems.
The filter has one model for all problems. 160 draws were tried on 12 seeds, the best 8 of them
again on 20 other seeds; the best of these was rounded. The criterion is noisy: rounding alone, with
the population, moved it by 0.17.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from testbed.bandits import Bandit, Settings, shared
from testbed.play import Method, play
from testbed.population import PB2, PBT
from testbed.problems import Problem, every

DRAWS, SHORTLIST = 160, 8
FIRST, SECOND = list(range(1000, 1012)), list(range(1020, 1040))
RESULTS = Path(__file__).parent.parent / "results" / "tuning_choices.json"


def counting(policy: str, scale: float, hold: int, clip: float = 1.0) -> Settings:
    """Settings for a policy without a filter; it reads only R = ``scale`` from the model."""
    half = float(scale / np.sqrt(2))
    return Settings(policy, hold, shared=0.0, own=half, noise=half, clip=clip)


FILTER = Settings("idea", hold=8, shared=1.4, own=0.14, length=2, memory=50, noise=0.2, clip=0.3)
UCB = counting("ucb", 0.1, 4, clip=3.0)
# A window of 8 is shorter than the list of arms, 32 intervals of 4 epochs are the whole run: of the
# windows between, this was the best.
WINDOW_UCB = counting("sliding_window_ucb(window=32)", 0.3, 1)
PERIOD = {"filter": 16, "PBT": 8, "PB2": 8}
PB2_CLIP = 0.3


def from_others(name: str) -> Settings:
    """The best of the draws on the other problems: nothing of this problem is known."""
    others = [place for place, problem in enumerate(every()) if problem.name != name]
    rows = json.loads(RESULTS.read_text())["filter"]
    best = min(rows, key=lambda row: sum(row["losses"][place] for place in others))
    return Settings(**best["choice"])


def described() -> dict[str, Any]:
    """The settings, for the stored results."""
    settings = {"filter": FILTER, "UCB": UCB, "sliding-window UCB": WINDOW_UCB}
    settings |= {f"filter, for {one.name}": from_others(one.name) for one in every()}
    named: dict[str, Any] = {name: dataclasses.asdict(one) for name, one in settings.items()}
    return named | {"epochs between copies": PERIOD, "PB2: largest fall": PB2_CLIP}


def drawn(count: int) -> list[Settings]:
    """Settings of the filter to try."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(count):
        own = 10 ** rng.uniform(-1.7, 0)
        found.append(
            Settings(
                hold=int(rng.choice([1, 2, 4, 8])),
                shared=float(own * rng.choice([0.3, 1, 3, 10])),
                own=float(own),
                length=float(rng.choice([2, 3, 4, 6])),
                memory=float(10 ** rng.uniform(0.7, 2.3)),
                noise=float(own * 10 ** rng.uniform(-1, 1)),
                clip=float(rng.choice([0.3, 1, 3])),
            )
        )
    return found


def ranked(
    label: str,
    tried: list[Any],
    make: Callable[[Problem, list[int], Any], Method],
    seeds: list[int],
) -> list[dict[str, Any]]:
    """Every choice with its mean log loss on each problem, best first."""
    rows = []
    for one in tried:
        means = [play(p, seeds, make(p, seeds, one)).final.mean() for p in every()]
        said = dataclasses.asdict(one) if isinstance(one, Settings) else one
        losses = [round(float(mean), 3) for mean in means]
        rows.append({"choice": said, "mean": round(float(np.mean(means)), 3), "losses": losses})
    rows.sort(key=lambda row: row["mean"])
    for row in rows[:5]:
        print(label, row["mean"], row["losses"], row["choice"], flush=True)
    return rows


def single(problem: Problem, seeds: list[int], settings: Settings) -> Method:
    return Bandit(problem.rates, seeds, settings)


def single_runs() -> dict[str, Any]:
    """The search for the filter's model and for the two UCB policies."""
    scales, holds = (0.03, 0.1, 0.3, 1.0), (1, 4)
    plain = [counting("ucb", *one) for one in itertools.product(scales, holds, (0.3, 1.0, 3.0))]
    windows = itertools.product((8, 16, 32), scales, holds)
    forgetting = [counting(f"sliding_window_ucb(window={w})", *rest) for w, *rest in windows]
    first = ranked("filter, draws", drawn(DRAWS), single, FIRST)
    best = [Settings(**row["choice"]) for row in first[:SHORTLIST]]
    return {
        "filter": first,
        "filter, shortlist": ranked("filter, shortlist", best, single, SECOND),
        "UCB": ranked("UCB", plain, single, FIRST),
        "sliding-window UCB": ranked("sliding-window UCB", forgetting, single, FIRST),
    }


def populations() -> dict[str, Any]:
    """How many epochs pass between copies; for the filter also between its decisions."""
    periods = [2, 4, 8, 16]
    pairs = [[hold, period] for hold in (2, 4, 8) for period in (8, 16)]
    clipped = [[period, clip] for period in (4, 8, 16) for clip in (None, 1.0, 0.3)]

    def filtered(problem: Problem, seeds: list[int], pair: list[int]) -> Method:
        hold, period = pair
        return shared(problem.rates, seeds, dataclasses.replace(FILTER, hold=hold), period)

    return {
        "shared filter: hold, period": ranked("shared filter", pairs, filtered, FIRST),
        "PBT: period": ranked("PBT", periods, lambda p, s, n: PBT(p.rates, s, n), FIRST),
        "PB2: period, clip": ranked("PB2", clipped, lambda p, s, n: PB2(p.rates, s, *n), FIRST),
    }


def main() -> None:
    RESULTS.write_text(json.dumps(single_runs() | populations(), indent=1) + "\n")
