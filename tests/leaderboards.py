"""Leaderboards of regrets that are drawn, not played."""

import dataclasses

import numpy as np

from driftbandit import leaderboard, paper, report, studies
from driftbandit.leaderboard.problems import Cell
from driftbandit.result import ORACLE
from driftbandit.studies import Outcome

SIZE = paper.Size(systems=7, runs=2, rounds=20)
KEYS = (
    ("equal_arms", "10"),
    ("equal_arms", "100"),
    ("gaussian", "10"),
    ("gaussian", "100"),
    ("no_season", "100"),
)
FAMILIES = ("equal_arms", "gaussian", "no_season")


def page(document):
    """The text of leaderboard.md."""
    pictures = {"leaderboard": "leaderboard.png"}
    return report.markdown.text(leaderboard.TARGET.page(document), pictures)


def options(**changes):
    changes = {"families": tuple(leaderboard.PROBLEMS)} | changes
    return dataclasses.replace(paper.Options(SIZE), **changes)


def outcome(regret):
    """A finished leaderboard of these regrets: {(family, memory): {policy: systems × runs}}."""
    policies = tuple(dict.fromkeys(p for found in regret.values() for p in found))
    policies = tuple(policy for policy in policies if policy != "least_regret")
    cells = tuple(
        Cell(
            family,
            n_states=2,
            n_arms=2,
            absent=tuple(policy for policy in policies if policy not in found),
            memory=memory,
        )
        for (family, memory), found in regret.items()
    )
    # One round, which every cell plays, so that all have the same number of runs.
    shape = np.shape(next(iter(next(iter(regret.values())).values())))
    specification = studies.Specification(cells, policies, *shape, rounds=1)
    columns = {
        cell.label: {policy: np.ravel(values).astype(float) for policy, values in found.items()}
        for cell, found in zip(cells, regret.values(), strict=True)
    }
    return Outcome(specification, columns, {"prepare": 0.0, "compile": 0.0, "play": 0.0}, {})


def drawn(systems=7, runs=2, seed=0, keys=KEYS, **factors):
    """Regrets around each policy's factor."""
    rng = np.random.default_rng(seed)
    factors = {"reach": 1.0, "idea": 1.1, "random": 4.0, ORACLE: 0.5} | factors
    found = {}
    for key in keys:
        size = np.exp(rng.normal(size=(systems, 1)))
        found[key] = {
            policy: factor * size * np.exp(0.3 * rng.normal(size=(systems, runs)))
            for policy, factor in factors.items()
        }
    return found


def whole(document, systems=7):
    """As `paper.reproduce` completes it."""
    about = {"systems": systems, "runs": 2, "rounds": 1, "seed": 0, "measure": "regret"}
    about |= {"dtype": "float64", "platform": "cpu", "families": list(FAMILIES)}
    about |= {"reading": "plain", "study": "0" * 16}
    return report.storable(
        {"target": "leaderboard", "settings": about, "versions": {"numpy": ["2"]}, **document}
    )
