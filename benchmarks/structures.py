"""Fitted likelihoods of components against statsmodels' UnobservedComponents.

    python benchmarks/structures.py --json benchmarks/results/structures.json

Both maximize the likelihood of the same structure with the same distribution at the start, without
a prior, on series that come with statsmodels. statsmodels gets four optimizers, each from its own
starting point and from two others, and its best result counts. A positive difference means that
`fit` found a higher likelihood.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import statsmodels.api as sm
from statsmodels.tsa.statespace.structural import UnobservedComponents

import driftbandit as db

METHODS = ("lbfgs", "bfgs", "nm", "powell")
FACTORS = (1.0, 0.1, 10.0)  # of the variances that statsmodels starts from
WIDE, SLOPE = 3.0, 0.3  # standard deviations at the start, in units of the series' spread


class Case(NamedTuple):
    """A series and its structure in both languages."""

    values: Callable[[], np.ndarray]
    text: str  # with {start} for the standard deviation of a level, {one} for a spread of one
    options: dict[str, Any]
    starts: list[float]  # standard deviations of statsmodels' states at the start, in spreads


def _macro(name: str) -> Callable[[], np.ndarray]:
    return lambda: np.asarray(sm.datasets.macrodata.load_pandas().data[name], float)


def _growth(name: str) -> Callable[[], np.ndarray]:
    return lambda: 100 * np.diff(np.log(_macro(name)()))


def _nile() -> np.ndarray:
    return np.asarray(sm.datasets.nile.load_pandas().data["volume"], float)


def _co2() -> np.ndarray:
    weekly = sm.datasets.co2.load_pandas().data["co2"]
    return np.asarray(weekly.resample("MS").mean(), float)  # a few months are missing


def _sunspots() -> np.ndarray:
    return np.asarray(sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"], float)


def _elnino() -> np.ndarray:
    return np.asarray(sm.datasets.elnino.load_pandas().data.iloc[:, 1:], float).ravel()


def _inflation() -> np.ndarray:
    return np.asarray(sm.datasets.interest_inflation.load_pandas().data["Dp"], float)


def _copper() -> np.ndarray:
    return np.asarray(sm.datasets.copper.load_pandas().data["WORLDCONSUMPTION"], float)


def _season(period: int, harmonics: int) -> dict[str, Any]:
    return {"freq_seasonal": [{"period": period, "harmonics": harmonics}]}


LEVEL, CONSTANT = {"level": "llevel"}, {"level": True, "irregular": True}
TREND, SMOOTH = {"level": "lltrend"}, {"level": "strend"}
CASES = {
    "Nile, level": Case(_nile, "level(arm, start={start})", LEVEL, [WIDE]),
    "Nile, trend": Case(_nile, "trend(arm, start={start})", TREND, [WIDE, SLOPE]),
    "CO2, smooth trend and season": Case(
        _co2,
        "trend(arm, smooth, start={start}) + season(12, start={one})",
        {**SMOOTH, **_season(12, 6)},
        [WIDE, SLOPE] + [1.0] * 12,
    ),
    "sunspots, ar(3)": Case(
        _sunspots,
        "constant(arm, start={start}) + ar(3, start={one})",
        {**CONSTANT, "autoregressive": 3},
        [WIDE, 1.0, 1.0, 1.0],
    ),
    "El Niño, level and season": Case(
        _elnino,
        "level(arm, start={start}) + season(12, harmonics=2, start={one})",
        {**LEVEL, **_season(12, 2)},
        [WIDE] + [1.0] * 4,
    ),
    "German inflation, level and season": Case(
        _inflation,
        "level(arm, start={start}) + season(4, start={one})",
        {**LEVEL, **_season(4, 2)},
        [WIDE] + [1.0] * 4,
    ),
    "copper, trend": Case(_copper, "trend(arm, start={start})", TREND, [WIDE, SLOPE]),
    "US inflation, level": Case(_macro("infl"), "level(arm, start={start})", LEVEL, [WIDE]),
    "US unemployment, ar(2)": Case(
        _macro("unemp"),
        "constant(arm, start={start}) + ar(2, start={one})",
        {**CONSTANT, "autoregressive": 2},
        [WIDE, 1.0, 1.0],
    ),
    "US bill rate, level and ar(1)": Case(
        _macro("tbilrate"),
        "level(arm, start={start}) + ar(1, start={one})",
        {**LEVEL, "autoregressive": 1},
        [WIDE, 1.0],
    ),
    "US output growth, memory": Case(
        _growth("realgdp"),
        "constant(arm, start={start}) + level(arm, memory=free, start={one})",
        {**CONSTANT, "autoregressive": 1},
        [WIDE, 1.0],
    ),
    "US consumption growth, level": Case(
        _growth("realcons"), "level(arm, start={start})", LEVEL, [WIDE]
    ),
}


def ours(case: Case, values: np.ndarray, starts: int = 5) -> float:
    """The highest log-likelihood that `fit` finds."""
    spread = float(np.nanstd(values))
    text = case.text.format(start=repr(WIDE * spread), one=repr(spread))
    log = {"round": np.arange(len(values)), "arm": ["series"] * len(values), "reward": values}
    return float(db.fit(log, structure=text, prior=0.0, starts=starts).log_likelihood)


def theirs(case: Case, values: np.ndarray) -> float:
    """The highest log-likelihood that statsmodels finds."""
    spread, best = float(np.nanstd(values)), -np.inf
    model = UnobservedComponents(values - np.nanmean(values), **case.options)
    model.ssm.loglikelihood_burn = 0
    start = scipy.linalg.block_diag(*np.square(np.array(case.starts) * spread))
    model.ssm.initialize_known(np.zeros(len(start)), start)
    variances = np.array([name.startswith("sigma2") for name in model.param_names])
    for method, factor in itertools.product(METHODS, FACTORS):
        begin = np.where(variances, factor, 1.0) * np.array(model.start_params)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # about searches that do not converge
            found = model.fit(begin, method=method, disp=False, maxiter=500, cov_type="none")
        best = max(best, float(found.llf))
    return best


def measure(name: str) -> dict[str, float]:
    """Both likelihoods, their difference and the seconds that each search took."""
    case = CASES[name]
    values = case.values()
    begin = time.perf_counter()
    mine = ours(case, values)
    middle = time.perf_counter()
    other = theirs(case, values)
    return {
        "rounds": len(values),
        "driftbandit": mine,
        "statsmodels": other,
        "difference": mine - other,
        "seconds": middle - begin,
        "statsmodels' seconds": time.perf_counter() - middle,
    }


def main() -> None:
    """Print one line for each series; write all figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for name in CASES:
        found[name] = measure(name)
        both = "{driftbandit:12.4f} {statsmodels:12.4f} {difference:+10.6f}".format(**found[name])
        print(f"{name:36} {both}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
