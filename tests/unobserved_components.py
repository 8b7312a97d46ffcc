"""The same sums of components in statsmodels: their likelihood and their smoothed components."""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from statsmodels.tsa.statespace.mlemodel import MLEModel
from statsmodels.tsa.statespace.structural import UnobservedComponents

from known_structures import log_of

SLOPE = 0.3**2  # variance of a slope at the start, in a structure without units
N = 40


class Case(NamedTuple):
    """A structure with parameters, and statsmodels' name for it."""

    text: str
    values: dict[str, float]
    options: dict[str, Any]
    parameters: dict[str, float]
    starts: list[Any]
    """Covariances of each component's states at the start."""


def ar_start(weights, variance):
    p = len(weights)
    transition = np.eye(p, k=-1)
    transition[0] = weights
    return scipy.linalg.solve_discrete_lyapunov(transition, np.diag([variance] + [0.0] * (p - 1)))


def season(period, harmonics=None, stochastic=True):
    one = [{"period": period, "harmonics": harmonics or int(period / 2)}]
    return {"freq_seasonal": one, "stochastic_freq_seasonal": [stochastic]}


NOISE = {"noise": 0.7}
IRREGULAR = {"sigma2.irregular": 0.49}
LLEVEL = {"level": "llevel"}
CONSTANT = {"irregular": True, "level": True}
CASES = {
    "local level": Case(
        "level(arm, start=2)",
        {"level(arm, start=2).drift": 0.4, **NOISE},
        LLEVEL,
        {"sigma2.level": 0.16, **IRREGULAR},
        [[[4.0]]],
    ),
    "random walk": Case(
        "level(arm, start=2)",
        {"level(arm, start=2).drift": 0.4, "noise": 1e-9},
        {"level": "rwalk"},
        {"sigma2.level": 0.16},
        [[[4.0]]],
    ),
    "local linear trend": Case(
        "trend(arm, start=2)",
        {"trend(arm, start=2).drift": 0.4, "trend(arm, start=2).slope_drift": 0.1, **NOISE},
        {"level": "lltrend"},
        {"sigma2.level": 0.16, "sigma2.trend": 0.01, **IRREGULAR},
        [np.diag([4.0, SLOPE])],
    ),
    "smooth trend": Case(
        "trend(arm, start=2, smooth)",
        {"trend(arm, start=2, smooth).slope_drift": 0.1, **NOISE},
        {"level": "strend"},
        {"sigma2.trend": 0.01, **IRREGULAR},
        [np.diag([4.0, SLOPE])],
    ),
    "constant": Case(
        "constant(arm)",
        {"constant(arm).size": 2.0, **NOISE},
        CONSTANT,
        IRREGULAR,
        [[[4.0]]],
    ),
    "week": Case(
        "level(arm, start=2) + season(7)",
        {"level(arm, start=2).drift": 0.4, "season(7).change": 0.2, "season(7).size": 0.9, **NOISE},
        {**LLEVEL, **season(7)},
        {"sigma2.level": 0.16, "sigma2.freq_seasonal_7(3)": 0.04, **IRREGULAR},
        [[[4.0]], 0.81 * np.eye(6)],
    ),
    "even period": Case(  # its last wave is one number; statsmodels carries a second, unread one
        "level(arm, start=2) + season(4, start=0.9)",
        {"level(arm, start=2).drift": 0.4, "season(4, start=0.9).change": 0.2, **NOISE},
        {**LLEVEL, **season(4)},
        {"sigma2.level": 0.16, "sigma2.freq_seasonal_4(2)": 0.04, **IRREGULAR},
        [[[4.0]], 0.81 * np.eye(4)],
    ),
    "seasons that never change": Case(
        "constant(arm, start=2) + season(12, harmonics=2, unchanging) + season(5)",
        {
            "season(12, harmonics=2, unchanging).size": 0.9,
            "season(5).size": 0.8,
            "season(5).change": 0.2,
            **NOISE,
        },
        {
            **CONSTANT,
            "freq_seasonal": [{"period": 12, "harmonics": 2}, {"period": 5, "harmonics": 2}],
            "stochastic_freq_seasonal": [False, True],
        },
        {"sigma2.freq_seasonal_5(2)": 0.04, **IRREGULAR},
        [[[4.0]], 0.81 * np.eye(4), 0.64 * np.eye(4)],
    ),
    "level with memory": Case(
        "constant(arm, start=2) + level(arm, memory=5)",
        {"level(arm, memory=5).drift": 0.4, **NOISE},
        {**CONSTANT, "autoregressive": 1},
        {"sigma2.ar": 0.16, "ar.L1": np.exp(-0.2), **IRREGULAR},
        [[[4.0]], [[0.16 / (1 - np.exp(-0.4))]]],
    ),
    "ar(1)": Case(
        "ar(1, arm)",
        {"ar(1).drift": 0.4, "ar(1).partial1": -0.6, **NOISE},
        {"irregular": True, "autoregressive": 1},
        {"sigma2.ar": 0.16, "ar.L1": -0.6, **IRREGULAR},
        [ar_start([-0.6], 0.16)],
    ),
    "ar(2)": Case(
        "ar(2, arm)",
        {"ar(2).drift": 0.4, "ar(2).partial1": 0.5, "ar(2).partial2": -0.2, **NOISE},
        {"irregular": True, "autoregressive": 2},
        {"sigma2.ar": 0.16, "ar.L1": 0.6, "ar.L2": -0.2, **IRREGULAR},
        [ar_start([0.6, -0.2], 0.16)],
    ),
    "ar(3) with a given start": Case(
        "ar(3, start=0.5)",
        {
            "ar(3, start=0.5).drift": 0.4,
            "ar(3, start=0.5).partial1": 0.5,
            "ar(3, start=0.5).partial2": -0.2,
            "ar(3, start=0.5).partial3": 0.3,
            **NOISE,
        },
        {"irregular": True, "autoregressive": 3},
        {"sigma2.ar": 0.16, "ar.L1": 0.66, "ar.L2": -0.38, "ar.L3": 0.3, **IRREGULAR},
        [0.25 * np.eye(3)],
    ),
    "regression": Case(
        "level(arm, start=2) + regression(x_a, x_b)",
        {
            "level(arm, start=2).drift": 0.4,
            "regression(x_a, x_b).size": 1.5,
            **NOISE,
        },
        {**LLEVEL, "exog": 2, "mle_regression": False},
        {"sigma2.level": 0.16, **IRREGULAR},
        [[[4.0]], 2.25 * np.eye(2)],
    ),
    "everything": Case(
        "trend(arm, start=2) + season(7, harmonics=2) + ar(2) + regression(x_a, start=1.5)",
        {
            "trend(arm, start=2).drift": 0.4,
            "trend(arm, start=2).slope_drift": 0.1,
            "season(7, harmonics=2).change": 0.2,
            "season(7, harmonics=2).size": 0.9,
            "ar(2).drift": 0.4,
            "ar(2).partial1": 0.5,
            "ar(2).partial2": -0.2,
            **NOISE,
        },
        {
            "level": "lltrend",
            **season(7, 2),
            "autoregressive": 2,
            "exog": 1,
            "mle_regression": False,
        },
        {
            "sigma2.level": 0.16,
            "sigma2.trend": 0.01,
            "sigma2.freq_seasonal_7(2)": 0.04,
            "sigma2.ar": 0.16,
            "ar.L1": 0.6,
            "ar.L2": -0.2,
            **IRREGULAR,
        },
        [np.diag([4.0, SLOPE]), 0.81 * np.eye(4), ar_start([0.6, -0.2], 0.16), [[2.25]]],
    ),
}


def series(features=0, seed=0):
    """Rewards of N rounds, NaN where none was seen, features, and the same as a log of one arm.

    Some rounds are missing in the log; in others a row has no reward.
    """
    rng = np.random.default_rng(seed)
    rewards = np.cumsum(rng.standard_normal(N)) + np.sin(np.arange(N))
    rewards[[3, 4, 5, 11, 20, 21]] = np.nan
    x = rng.standard_normal((N, features))
    rows = np.setdiff1d(np.arange(N), [4, 5, 20])
    given = x[rows] if features else None
    names = ("x_a", "x_b")[:features]
    log = log_of(rows, 0 * rows, rewards[rows], given, feature_names=names)
    return rewards, x, log


class Smoothed(NamedTuple):
    log_likelihood: float
    means: np.ndarray  # of every component, c × n; of a regression: of every weight
    stds: np.ndarray


def by_statsmodels(case, rewards, x):
    options = dict(case.options)
    if "exog" in options:
        options["exog"] = x
    model = UnobservedComponents(rewards, **options)
    model.ssm.loglikelihood_burn = 0
    start = scipy.linalg.block_diag(*case.starts)
    model.ssm.initialize_known(np.zeros(len(start)), start)
    parameters = np.array([case.parameters[name] for name in model.param_names])
    found = model.smooth(parameters, transformed=True)
    states, covs = found.smoothed_state, found.smoothed_state_cov
    reads, first = [], 0
    design = np.array(model.ssm["design"])[0]
    design = design[:, -1] if design.ndim == 2 else design
    for number, block in enumerate(case.starts):
        size = len(block)
        weights = "exog" in case.options and number == len(case.starts) - 1
        shown = np.eye(size) if weights else design[first : first + size][None]
        for row in shown:
            reads.append(np.zeros(len(start)))
            reads[-1][first : first + size] = row
        first += size
    reads = np.array(reads)
    variances = np.einsum("cd,det,ce->ct", reads, covs, reads)
    return Smoothed(found.llf, reads @ states, np.sqrt(np.maximum(variances, 0)))


class DampedTrend(MLEModel):
    """level ← level + slope + ξ, slope ← φ slope + ζ, written out for statsmodels."""

    def __init__(self, rewards, damping, drift, slope_drift, noise, start):
        super().__init__(rewards, k_states=2, k_posdef=2, loglikelihood_burn=0)
        self["design"] = np.array([[1.0, 0.0]])
        self["transition"] = np.array([[1.0, 1.0], [0.0, damping]])
        self["selection"] = np.eye(2)
        self["state_cov"] = np.diag([drift**2, slope_drift**2])
        self["obs_cov"] = np.array([[noise**2]])
        self.ssm.initialize_known(np.zeros(2), np.diag(np.square(start)))
