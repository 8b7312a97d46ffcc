"""What the leaderboard plays: the paper's systems, and the same with one thing changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from driftbandit import errors, policies
from driftbandit.result import ORACLE
from driftbandit.studies import Cell, Options, Specification

__all__ = ["BASE", "CEILING", "QUICK", "SETTINGS", "SITS_OUT", "Absence", "Setting"]

BASE = "idea"
"""The paper's best policy: all others are held against it."""
CEILING = "random"
"""Knows nothing; what a policy is worth lies below it."""


class Setting(NamedTuple):
    """One way to change the paper's systems, or what the learners know of them."""

    name: str
    heading: str
    """Of a column."""
    meaning: str
    changes: Mapping[str, Any]
    """Fields of a study's `Cell`."""


def _wrong(target: str, symbol: str) -> Setting:
    return Setting(
        f"wrong_{target}",
        f"{symbol} wrong",
        f"learners see {symbol} through T = I + νΞ, ‖Ξ‖ = ν = 1 (P24); the Oracle knows the truth",
        {"perturbed": target, "strength": 1.0},
    )


SETTINGS = (
    Setting("base", "base", "the paper's: d = k = 10, ρ(Γ) = 0.9, σ as drawn, the true model", {}),
    Setting("rho0.99", "ρ 0.99", "ρ(Γ) = 0.99: a state that remembers longer", {"radius": 0.99}),
    Setting("k100", "k 100", "100 arms", {"n_arms": 100}),
    Setting("k1000", "k 1000", "1000 arms", {"n_arms": 1000}),
    Setting("d2", "d 2", "2 states", {"n_states": 2}),
    Setting("d30", "d 30", "30 states", {"n_states": 30}),
    Setting("noise0.1", "σ × 0.1", "a tenth of the noise", {"noise_scale": 0.1}),
    Setting("noise10", "σ × 10", "ten times the noise", {"noise_scale": 10.0}),
    _wrong("transition", "Γ"),
    _wrong("arms", "arms"),
    _wrong("process_cov", "Q"),
)
"""In the order of tables."""

QUICK = tuple(setting.name for setting in SETTINGS if setting.changes.get("n_arms", 0) <= 100)
"""Those of a first look."""


class Absence(NamedTuple):
    """Where a policy does not play, and why."""

    settings: tuple[str, ...]
    reason: str


SITS_OUT: dict[str, Absence] = {
    "lookahead": Absence(
        ("k1000",), "it weighs every pair of arms, 0.2 s a round on two cores, two days a family"
    ),
    "information_directed": Absence(
        ("k1000",), "it weighs every pair of arms, 0.1 s a round on two cores, a day a family"
    ),
    "rollout": Absence(
        ("k1000",), "its imagined rounds take 13 ms a round on two cores, four hours a family"
    ),
}
"""By policy, at the full size; all others play everything."""


def specification(options: Options) -> Specification:
    """One study of all settings: families × settings, every registered policy.

    ``options.settings`` and ``options.policies`` take some alone; `BASE`, `CEILING` and the Kalman
    Oracle always play.
    """
    names = [setting.name for setting in SETTINGS]
    for name in options.settings:
        errors.closest(name, "settings", names)
    chosen = [s for s in SETTINGS if not options.settings or s.name in options.settings]
    wanted = options.policies or policies.available()
    players = tuple(dict.fromkeys([BASE, *wanted, CEILING, ORACLE]))
    cells = tuple(
        options.cell(family, absent=absent(players, setting), **setting.changes)
        for family in options.families
        for setting in chosen
    )
    return options.specification(players, cells)


def absent(players: tuple[str, ...], setting: Setting) -> tuple[str, ...]:
    """Who of ``players`` sits a setting out; a policy does with all its parameters."""
    return tuple(
        player
        for player in players
        if setting.name in SITS_OUT.get(policies.make(player).name, Absence((), "")).settings
    )


def setting_of(cell: Cell) -> Setting:
    """The setting that a cell of the leaderboard's study belongs to."""
    changeable = {name for setting in SETTINGS for name in setting.changes}
    fields = [field for field in dataclasses.fields(cell) if field.name in changeable]
    changes = {f.name: v for f in fields if (v := getattr(cell, f.name)) != f.default}
    for setting in SETTINGS:
        if changes == setting.changes:
            return setting
    raise errors.InvalidInput("cell", f"{cell.label} is of no setting", "play the leaderboard's")
