"""Leaderboards of regrets that are drawn, not played."""

import dataclasses

import numpy as np

from driftbandit import leaderboard, paper, report, studies
from driftbandit.leaderboard import ranking
from driftbandit.paper.readings import Cell
from driftbandit.result import ORACLE
from driftbandit.studies import Outcome

NAMES = [setting.name for setting in ranking.SETTINGS]
BY_NAME = {setting.name: setting for setting in ranking.SETTINGS}
SIZE = paper.Size(systems=7, runs=2, rounds=20)
PLAYED = ("base", "noise10", "wrong_arms")
"""Of one shape: what is compiled once serves all."""


def page(document):
    """The text of leaderboard.md."""
    pictures = {"leaderboard": "leaderboard.png"}
    return report.markdown.text(leaderboard.TARGET.page(document), pictures)


def options(**changes):
    return dataclasses.replace(paper.Options(SIZE), **changes)


def outcome(regret, names=PLAYED, families=("gaussian", "cauchy"), absent=()):
    """A finished leaderboard of these regrets: {(family, setting): {policy: systems × runs}}."""
    first = next(iter(regret.values()))
    shape = np.shape(first["idea"])
    cells = tuple(
        Cell(family, absent=absent if name == names[-1] else (), **BY_NAME[name].changes)
        for family in families
        for name in names
    )
    specification = studies.Specification(cells, tuple(first), shape[0], shape[1], 5)
    columns = {
        cell.label: {
            policy: np.ravel(values).astype(float)
            for policy, values in regret[cell.family, ranking.setting_of(cell).name].items()
        }
        for cell in cells
    }
    return Outcome(specification, columns, {"prepare": 0.0, "compile": 0.0, "play": 0.0}, {})


def drawn(systems=7, runs=2, seed=0, names=PLAYED, families=("gaussian", "cauchy"), **factors):
    """Regrets around each policy's factor."""
    rng = np.random.default_rng(seed)
    factors = {"idea": 1.0, "kode": 1.1, "random": 4.0, ORACLE: 0.5} | factors
    found = {}
    for key in [(family, name) for family in families for name in names]:
        size = np.exp(rng.normal(size=(systems, 1)))
        found[key] = {
            policy: factor * size * np.exp(0.3 * rng.normal(size=(systems, runs)))
            for policy, factor in factors.items()
        }
    return found


def whole(document, systems=7):
    """As `paper.reproduce` completes it."""
    about = {"systems": systems, "runs": 2, "rounds": 20, "seed": 0, "measure": "regret"}
    about |= {"dtype": "float64", "platform": "cpu", "families": ["gaussian", "cauchy"]}
    about |= {"reading": "plain", "study": "0" * 16}
    return report.storable(
        {"target": "leaderboard", "settings": about, "versions": {"numpy": ["2"]}, **document}
    )
