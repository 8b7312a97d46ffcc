"""`driftbandit simulate`: play policies on random or given systems, show a table, save a plot."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

import driftbandit as db
from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.cli import interrupt, options, progress
from driftbandit.machine import cores
from driftbandit.result import ENGINES
from driftbandit.system import pair

EXAMPLES = (
    options.POLICIES
    + """
**Examples**

    driftbandit simulate --family cauchy --systems 50
    driftbandit simulate --family gaussian,cauchy --policies "idea, kode, kalman_ucb(width=2)"
    driftbandit simulate --family cauchy --systems 200 --compare idea
    driftbandit simulate --model examples/plant.json --plot plant.png
    driftbandit simulate --family gaussian --states 3 --sphere
    driftbandit simulate --family gaussian --json > result.json
"""
)
RUNS = 4  # runs of each random system: many systems tell more than many runs of one
BUDGET, FEWEST_RUNS, MOST_RUNS = 1.9e7, 32, 256
"""Steps of one policy on a given system, a fifth of a second on a core; limits of the runs."""
BEST = "best"  # stands for the policy with the lowest mean regret of each study
CHECKPOINTS = 40


def command(
    family: str | None = typer.Option(
        None,
        help=f"Random systems, comma-separated: {', '.join(db.families.FAMILIES)}; or all.",
        show_default="gaussian",
    ),
    model: Path | None = typer.Option(
        None, help="Model file (JSON or TOML) with one system and its arms, instead of a family."
    ),
    policies: str = typer.Option(
        "default",
        help="Comma-separated names from the list below, with parameters in parentheses, as in "
        "kalman_ucb(width=2). all: every policy but whittle, which plays only independent arms.",
        show_default="all",
    ),
    compare: str | None = typer.Option(
        None,
        metavar="POLICY",
        help="Also compare every other policy with this one, run by run: the difference in "
        "regret, its confidence interval, and how often the other policy wins. best: compare "
        "with the policy that has the lowest mean regret, except the Oracle.",
    ),
    systems: int | None = typer.Option(None, help="Random systems per family.", show_default="20"),
    runs: int | None = typer.Option(
        None,
        help="Independent runs per system.",
        show_default="4; with --model, 32 to 256, fewer for larger systems",
    ),
    rounds: int = typer.Option(1000, help="Rounds per run."),
    seed: options.Seed = 0,
    states: options.States = None,
    arms: options.Arms = None,
    unit_arms: options.UnitArms = False,
    sphere: bool = typer.Option(
        False, "--sphere", help="Every unit vector is an arm, instead of a list of arms."
    ),
    least_regret: bool = typer.Option(
        False,
        "--least-regret",
        help="With --model: also compute the least regret that any policy can have in the long "
        "run, if every arm reads a state of its own. Takes seconds per kind of arm.",
    ),
    device: options.Device = None,
    engine: options.Engine = "auto",
    float32: options.Float32 = False,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Run policies on drifting systems and compare their regret.

    Every policy sees the same states and the same noise, so policies can be compared run by run.
    Regret is dynamic: each round is compared with the arm that was best in that round. If the
    Kalman Oracle (which sees all rewards) is among the policies, the table also shows each policy's
    excess regret relative to the Oracle: 0.5 means 1.5 times the Oracle's regret.

    The regrets of two policies can overlap although one of them wins nearly every run. --compare
    measures the differences within runs. Its confidence intervals resample whole systems, because
    runs of the same system are similar. To narrow them, increase --systems rather than --runs.
    """
    chosen = _chosen(policies.strip(), sphere)
    for policy in chosen:
        db.policies.make(policy)
    errors.closest(engine, "engine", ENGINES)
    errors.whole_number(rounds, "rounds", low=1, high=2**32 - 1)
    errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    if runs is not None:
        errors.whole_number(runs, "runs", low=1, high=2**32 - 1)
    if compare is not None:
        compare = _baseline(compare, chosen)
    interrupt.keeps("Nothing was kept. Run the same command again, with fewer --runs or --rounds.")
    options.check_file("--plot", plot, *options.PICTURES)
    given = {"family": family, "systems": systems, "states": states, "arms": arms}
    given["unit_arms"] = unit_arms or None
    given = {key: value for key, value in given.items() if value is not None}
    if sphere:
        options.exclude("--sphere", given.keys() & {"arms", "unit_arms"})
    if least_regret and (sphere or model is None):
        found = "was given with --sphere" if sphere else "was given without --model"
        remedy = "give a model file whose arms each read a state of their own"
        raise errors.InvalidInput("--least-regret", found, remedy)
    studies: dict[str, Any]
    least = {}
    if model is None:
        runs = RUNS if runs is None else runs
        studies = _random(seed, given, runs, len(chosen))
    else:
        options.exclude("--model", given)
        system = db.load_model(model)
        if system.contexts:
            problem = f"has contexts ({', '.join(map(errors.printable, system.contexts))})"
            remedy = "simulate it in Python, with db.simulate(system, contexts=…)"
            raise errors.InvalidInput("--model", problem, remedy)
        studies = {errors.printable(model.name): [system]}
        if least_regret:
            least[errors.printable(model.name)] = db.theory.least_regret(system).value
        n_arms = system.model.n_states if sphere else len(system.arms)
        runs = default_runs(system.model.n_states, n_arms, rounds) if runs is None else runs
        _check_memory(1, system.model.n_states, n_arms, runs, len(chosen))
    if sphere:
        for name, study in studies.items():
            studies[name] = [(pair(system)[0], SPHERE.word) for system in study]
    from driftbandit.simulation import Options  # loads JAX

    results = {}
    with progress.bars() as bars:
        tasks = {name: bars.add_task(name, total=1.0, start=False, rate="") for name in studies}
        for name, study in studies.items():
            total = len(study) * runs * rounds * len(chosen)
            results[name] = db.simulate(
                study,
                policies=chosen,
                rounds=rounds,
                runs=runs,
                seed=seed,
                device=device,
                dtype=np.float32 if float32 else np.float64,
                engine=engine,
                options=Options(stream=name),
                progress=progress.reporter(bars, tasks[name], total, len(chosen) + 1),
            )
    from driftbandit.simulation.report import report

    baselines = {}
    if compare is not None:
        for name, result in results.items():
            baselines[name] = result.best() if compare == BEST else compare
    firsts = {name: study[0] for name, study in studies.items()}
    names = {name: one.names for name, one in firsts.items() if isinstance(one, db.System)}
    made = report(results, baselines, names, least)
    options.show(made, as_json)
    options.save_plot(made, plot, as_json)


def _chosen(policies: str, sphere: bool) -> Sequence[str]:
    if policies not in ("default", "all"):
        return options.split_policies(policies)
    if sphere:
        return db.policies.default(SPHERE)
    return db.policies.available()


def _baseline(text: str, chosen: Sequence[str]) -> str:
    """The label of the policy to compare with, or best."""
    labels = list(db.policies.chosen(chosen))
    if len(labels) == 1:
        problem = f"has nothing to compare {labels[0]} with"
        raise errors.InvalidInput("--compare", problem, "name more in --policies")
    label = dict(zip(chosen, labels, strict=True)).get(text, text)
    with contextlib.suppress(errors.InvalidInput):  # a title, as Kalman-UCB
        policy, bare = db.policies.make(text), "(" not in text
        label = db.policies.label_among(labels, policy, any_parameters=bare)
    valid = [*labels, BEST]
    if label in db.policies.available() and label not in valid:
        remedy = f"valid: {', '.join(valid)}"
        raise errors.InvalidInput("--compare", f"{label} is not among --policies", remedy)
    return errors.closest(label, "--compare", valid)


def _random(seed: int, given: dict[str, Any], runs: int, policies: int) -> dict[str, Any]:
    """One study per family."""
    names = options.several(given.get("family", "gaussian"), "--family", db.families.FAMILIES)
    n_states, n_arms = (given.get(key, 10) for key in ("states", "arms"))
    systems = given.get("systems", 20)
    _check_memory(systems * len(names), n_states, n_arms, runs, policies)
    unit = given.get("unit_arms", False)
    return {
        name: db.families.sample(name, systems, n_states, n_arms, seed=seed, unit_arms=unit)
        for name in names
    }


def _check_memory(systems: int, n_states: int, n_arms: int, runs: int, policies: int) -> None:
    """Refuse a study that does not fit: its systems, its results and its running programs."""
    d, k = float(n_states), float(n_arms)
    # A system is Γ, Q and the arms: once as drawn, once stacked with its factors for the engine,
    # and once for every policy that computes constants of that size.
    system = 6 * d * d + 4 * k * d
    kept = systems * (2 * system + policies * (d * d + k * d))
    results = float(systems) * runs * policies * CHECKPOINTS
    lanes, block = 64, 256e6 / 8  # as in `simulation.jobs` on a CPU
    own = min(lanes * 3 * (d * d + k), block / 8) + 2 * 3 * d * d  # at least two lanes
    own_and_shared = min(lanes * system, block) + 2 * system + policies * own
    playing = 3 * cores() * own_and_shared  # compiled programs make copies
    asked = f"{systems:,} systems of {n_states:,} states and {n_arms:,} arms, {runs:,} runs each,"
    size = 8 * (kept + results + playing)
    options.check_memory("--systems, --states, --arms, --runs", asked, size)


def default_runs(n_states: int, n_arms: int, rounds: int) -> int:
    """Runs of one given system: enough to rank policies, in seconds rather than minutes.

    A round takes about as long as d (d + k/3) + 15 steps.

    Example:
        >>> default_runs(10, 10, rounds=1000)
        128
    """
    steps = (n_states * (n_states + n_arms / 3) + 15) * max(rounds, 1)
    return int(min(max(BUDGET / steps, FEWEST_RUNS), MOST_RUNS))
