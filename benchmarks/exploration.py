"""Regret at every memory: the default policy against all others, on systems of many kinds.

    python benchmarks/exploration.py                       # everything: about an hour on two cores
    python benchmarks/exploration.py --section common      # one part; see SECTIONS
    python benchmarks/exploration.py --quick --seed 5      # a tenth of the runs, other numbers
    python benchmarks/exploration.py --policy ar2          # adds it to stored results

Every policy plays the same states with the same noise. Stored per problem: mean regret per round,
and each policy's regret over that of `reach` with the standard error of the difference. Systems of
a problem count alike: the ratio is the geometric mean over systems. Results are merged into
benchmarks/results/exploration.json; policies that played the same runs before are kept.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftbandit as db
from driftbandit.policies import Policy
from driftbandit.simulation import Options
from exploration_rivals import AR2, CENTERED, PREDICTIVE, reads_own_state

STORE = Path(__file__).parent / "results" / "exploration.json"
DEFAULT = "reach"
KALMAN = ("idea", "kode", "kalman_ucb", "lookahead", "thompson", "information_directed")
PLAIN = ("ucb", "sliding_window_ucb", "discounted_ucb", "oful", "discounted_linucb")
SLOW = ("lookahead", "information_directed")  # left out where they would take hours
RIVALS = {one.name: one for one in (CENTERED, PREDICTIVE, AR2)}  # not in the registry
WORK = 3e8  # rounds × runs × systems × d² k of a problem


class Case(NamedTuple):
    """A problem: systems that are played for so many rounds, perhaps with other ones assumed."""

    name: str
    systems: list[db.System]
    rounds: int
    assumed: list[db.System] | None = None
    only: tuple[str, ...] = ()  # policies besides the default; empty: all that fit


def _autoregressive(
    decays: Any, noise: float, loadings: Any = None, variances: Any = 1.0
) -> db.System:
    """States that keep a share of themselves; each arm reads its own, or a mix of all."""
    decays = np.asarray(decays, float)
    variances = variances * np.ones(len(decays))
    arms = np.eye(len(decays)) if loadings is None else np.asarray(loadings, float)
    model = db.LGDS(np.diag(decays), np.diag((1 - decays**2) * variances), noise)
    return db.System(model, arms)


def _walks(step: float, noise: float, arms: int, start: float = 1.0) -> db.System:
    eye = np.eye(arms)
    return db.System(db.LGDS(eye, step**2 * eye, noise, initial_cov=start**2 * eye), eye)


def _long(decay: float, least: int = 1000, most: int = 8000) -> int:
    return int(np.clip(8 / (1 - decay), least, most))


def independent(rng: np.random.Generator) -> Iterator[Case]:
    for decay in (0.5, 0.9, 0.97, 0.99, 0.997, 0.999):
        for noise in (0.3, 1.0, 3.0, 6.0):
            for arms in (2, 5, 10, 30):
                system = _autoregressive([decay] * arms, noise)
                name = f"ρ {decay}, σ {noise:g}, k {arms}"
                yield Case(name, [system], _long(decay), only=("whittle", "idea", "kalman_ucb"))


def unequal(rng: np.random.Generator) -> Iterator[Case]:
    """Memories, noise and variances that differ within one system."""
    memories = np.geomspace(2, 1000, 10)
    decays = np.exp(-1 / memories)
    for noise in (0.3, 1.0, 3.0):
        yield Case(f"memories 2 to 1000, σ {noise:g}", [_autoregressive(decays, noise)], 5000)
    for decay in (0.9, 0.99):
        spread = np.geomspace(0.2, 5, 10)
        system = _autoregressive([decay] * 10, 1.0, variances=spread)
        yield Case(f"variances 0.2 to 5, ρ {decay}", [system], _long(decay))


def families(rng: np.random.Generator) -> Iterator[Case]:
    for radius in (0.9, 0.99, 0.999):
        for family in db.families.FAMILIES:
            seed = int(rng.integers(2**31))
            drawn = db.families.sample(family, systems=24, seed=seed, radius=radius)
            yield Case(f"{family}, ρ {radius}", [db.System(*pair) for pair in drawn], 1000)


def shared(rng: np.random.Generator) -> Iterator[Case]:
    """Three or four slow states that all arms read."""
    for states, arms, decay, noise in (
        (3, 10, 0.995, 2.0),
        (4, 10, 0.999, 1.0),
        (3, 30, 0.99, 1.0),
        (4, 100, 0.995, 2.0),
    ):
        systems = [
            _autoregressive([decay] * states, noise, rng.standard_normal((arms, states)))
            for _ in range(12)
        ]
        yield Case(f"{states} states, {arms} arms, ρ {decay}, σ {noise:g}", systems, 2000)


def common(rng: np.random.Generator) -> Iterator[Case]:
    """A factor that moves all arms alike, with a share of the variance, and one of each arm."""
    for share in (0.3, 0.6, 0.9):
        for own, factor in ((0.9, 0.9), (0.98, 0.98), (0.98, 0.999), (0.998, 0.9)):
            own_part = math.sqrt(1 - share) * np.eye(9)
            loadings = np.hstack([np.full((9, 1), math.sqrt(share)), own_part])
            system = _autoregressive([factor, *[own] * 9], 1.0, loadings)
            yield Case(f"share {share}, ρ {own}, factor's {factor}", [system], _long(own, 2000))


def static(rng: np.random.Generator) -> Iterator[Case]:
    for arms, rounds in ((5, 1000), (10, 1000), (10, 10_000), (5, 100_000)):
        for noise in (1.0, 3.0):
            yield Case(
                f"{arms} arms, σ {noise:g}, {rounds} rounds", [_walks(0, noise, arms)], rounds
            )


def walks(rng: np.random.Generator) -> Iterator[Case]:
    for step in (0.003, 0.01, 0.03, 0.1, 0.3):
        yield Case(f"step {step:g} σ", [_walks(step, 1.0, 10)], 3000)


def wrong(rng: np.random.Generator) -> Iterator[Case]:
    """The policies assume too much or too little drift or noise, or miss a part of the model."""
    for decay in (0.9, 0.99, 0.999):
        truth = _autoregressive([decay] * 8, 1.0)
        for factor in (4.0, 0.25):
            assumed = db.LGDS(
                truth.model.transition,
                factor * truth.model.process_cov,
                1.0,
                initial_cov=truth.model.start_cov(),
            )
            name = f"Q {'× 4' if factor > 1 else '÷ 4'}, ρ {decay}"
            yield Case(name, [truth], _long(decay), [db.System(assumed, truth.arms)])
            memory = 1 - (1 - decay) * factor
            if memory > 0:
                other = _autoregressive([memory] * 8, 1.0)
                name = f"drift {'× 4' if factor > 1 else '÷ 4'}, ρ {decay}"
                yield Case(name, [truth], _long(decay), [other])
            other = _autoregressive([decay] * 8, math.sqrt(factor))
            name = f"σ {'× 2' if factor > 1 else '÷ 2'}, ρ {decay}"
            yield Case(name, [truth], _long(decay), [other])
        half = math.sqrt(0.5)
        both = np.hstack([np.full((8, 1), half), half * np.eye(8)])
        truth = _autoregressive([decay] * 9, 1.0, both)
        missing = np.hstack([np.zeros((8, 1)), np.eye(8)])
        assumed = _autoregressive([decay] * 9, 1.0, missing, [1e-9, *[1.0] * 8])
        yield Case(f"no common factor, ρ {decay}", [truth], _long(decay), [assumed])
        turn = 2 * math.pi / 24
        season = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        transition = np.zeros((10, 10))
        transition[:8, :8], transition[8:, 8:] = decay * np.eye(8), season
        noises = np.diag([*[1 - decay**2] * 8, 0.0, 0.0])
        start = np.diag([*[1.0] * 8, 0.5, 0.5])
        model = db.LGDS(transition, noises, 1.0, initial_cov=start)
        seasons = rng.standard_normal((8, 2))
        truth = db.System(model, np.hstack([np.eye(8), seasons]))
        assumed = db.System(model, np.hstack([np.eye(8), 0 * seasons]))
        yield Case(f"no season, ρ {decay}", [truth], _long(decay), [assumed])


SECTIONS: dict[str, Callable[[np.random.Generator], Iterator[Case]]] = {
    one.__name__: one
    for one in (independent, unequal, families, shared, common, static, walks, wrong)
}


def players(case: Case, names: list[str]) -> list[str | Policy]:
    """The default policy, and its rivals that can play this case in minutes."""
    rivals = names or list(case.only or (*KALMAN, *PLAIN)) + list(RIVALS)
    k = len(case.systems[0].arms)
    left_out = {DEFAULT}
    if not names and (k > 30 or case.rounds > 10_000):
        left_out.update(SLOW)
    if not all(map(reads_own_state, case.assumed or case.systems)):
        left_out.add(AR2.name)
    return [DEFAULT, *(RIVALS.get(name, name) for name in rivals if name not in left_out)]


def merged(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """The new result, with the policies of an old one that played the same runs."""
    runs = ("rounds", "runs", "systems", "seed")
    if old is None or any(old[key] != new[key] for key in runs):
        return new
    base, again = (one["policies"][DEFAULT]["regret"] for one in (old, new))
    if not math.isclose(base, again, rel_tol=1e-9):
        return new
    return new | {"policies": old["policies"] | new["policies"]}


def played(case: Case, runs: int, seed: int, names: list[str]) -> dict[str, Any]:
    """Regret per round, and each policy's over the default's, with its standard error."""
    options = Options(checkpoints=1)
    given = {"rounds": case.rounds, "runs": runs, "seed": seed, "options": options}
    pairs = [(system.model, system.arms) for system in case.systems]
    assumed = case.assumed and [(system.model, system.arms) for system in case.assumed]
    policies = players(case, names)
    found = db.simulate(pairs, policies=policies, assumed=assumed, **given).regret
    regret = {
        name: values / case.rounds for name, values in found.items() if name != "kalman_oracle"
    }
    base = regret[DEFAULT]
    rows = {}
    for name, values in regret.items():
        ratio = values.mean(axis=1) / base.mean(axis=1)
        shares = values / values.mean(axis=1, keepdims=True) - base / base.mean(
            axis=1, keepdims=True
        )
        errors = shares.std(axis=1, ddof=1) / math.sqrt(runs)
        mean = float(np.exp(np.log(ratio).mean()))
        error = mean * float(np.sqrt((errors**2).sum())) / len(ratio)
        rows[name] = {"regret": float(values.mean()), "ratio": mean, "± s.e.": error}
    return {"rounds": case.rounds, "runs": runs, "systems": len(base), "seed": seed} | {
        "policies": rows
    }


def shown(name: str, result: dict[str, Any], seconds: float) -> str:
    """One line: the default's regret, and every other policy's over it."""
    rows = dict(result["policies"])
    base = rows.pop(DEFAULT)["regret"]
    ranked = sorted(rows.items(), key=lambda row: row[1]["ratio"])
    text = ", ".join(f"{n} {row['ratio']:.3f}±{row['± s.e.']:.3f}" for n, row in ranked)
    return f"{name:38} {base:9.4f}  {text}  ({seconds:.0f} s)"


def main() -> None:
    """Play, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--section", action="append", choices=SECTIONS)
    parser.add_argument("--case", default="", help="only problems with this in their name")
    parser.add_argument("--policy", action="append", default=[], help="only these, and the default")
    parser.add_argument("--runs", type=float, default=1.0, help="times the usual number of runs")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=STORE)
    given = parser.parse_args()
    scale = given.runs * (0.1 if given.quick else 1)
    stored = json.loads(given.json.read_text()) if given.json.exists() else {}
    for section in given.section or SECTIONS:
        for case in SECTIONS[section](np.random.default_rng([7, given.seed])):
            if given.case not in case.name:
                continue
            clock = time.perf_counter()
            k, d = case.systems[0].arms.shape
            runs = scale * WORK / (case.rounds * len(case.systems) * max(d * d * k, 300))
            runs = int(np.clip(runs, 4, 2000))
            result = played(case, runs, given.seed, given.policy)
            print(shown(f"{section}: {case.name}", result, time.perf_counter() - clock), flush=True)
            part = stored.setdefault(section, {})
            part[case.name] = merged(part.get(case.name), result)
            given.json.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
