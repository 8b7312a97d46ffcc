"""The paper's Table II, copied by hand, and finished studies with given regrets."""

import numpy as np

from driftbandit import paper
from driftbandit.paper.readings import PLAIN, Cell
from driftbandit.studies import Outcome, Specification

SIZE = paper.Size(systems=4, runs=2, rounds=20)
SMALL = ["--systems", "4", "--runs", "2", "--rounds", "20"]
"""One size for all: what is compiled once serves the library and the command."""
FAMILIES = ("gaussian", "exponential")
SEED = 1
# Copied by hand from the paper's Table II: median and IQR of Gaussian, Cauchy, Uniform, Bernoulli,
# Exponential.
TABLE = {
    "idea": [(1.37, 0.86), (1.82, 8.25), (0.84, 0.43), (0.11, 0.08), (0.08, 0.07)],
    "kode": [(1.41, 0.88), (1.84, 8.33), (0.88, 0.45), (0.11, 0.09), (0.08, 0.07)],
    "kalman_ucb": [(1.52, 0.95), (2.40, 12.44), (0.90, 0.45), (0.44, 0.22), (0.57, 0.26)],
    "oful": [(3.94, 2.99), (7.78, 25.95), (1.79, 1.16), (2.66, 1.40), (3.30, 1.70)],
    "random": [(3.95, 2.99), (7.86, 25.82), (1.82, 1.14), (2.90, 1.51), (3.34, 1.73)],
    "rexp3": [(3.95, 2.98), (7.85, 25.87), (1.82, 1.14), (2.87, 1.51), (3.32, 1.73)],
    "ucb": [(3.84, 3.10), (7.73, 25.47), (1.72, 1.18), (2.71, 1.46), (3.16, 1.70)],
}
COLUMNS = ["gaussian", "cauchy", "uniform", "bernoulli", "exponential"]
CHANGES = {
    ("transition", "kode"): 0.09,
    ("transition", "idea"): 0.18,
    ("transition", "kalman_ucb"): 0.23,
    ("arms", "kode"): 0.47,
    ("arms", "idea"): 0.48,
    ("arms", "kalman_ucb"): 0.40,
}
"""By hand from the paper's text: growth of the median at ν = 10."""


def excess(result, policy):
    """(R − R_oracle)/R_oracle run by run."""
    oracle = result.regret["kalman_oracle"]
    return (result.regret[policy] - oracle) / oracle


def outcome(regret, reading=PLAIN):
    """A finished study in which every family has these regrets, systems × runs by policy."""
    shape = np.shape(next(iter(regret.values())))
    cells = tuple(Cell(family, reading=reading) for family in COLUMNS)
    study = Specification(cells, tuple(regret), shape[0], shape[1], 5)
    columns = {policy: np.ravel(values).astype(float) for policy, values in regret.items()}
    seconds = {"prepare": 0.0, "compile": 0.0, "play": 0.0}
    return Outcome(study, dict.fromkeys(COLUMNS, columns), seconds, {})
