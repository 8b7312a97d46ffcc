"""`driftbandit advise`: which policy to play on a system, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, options, progress

EXAMPLES = (
    options.POLICIES
    + """
**Examples**

    driftbandit advise examples/plant.toml
    driftbandit advise examples/plant.json --html plant.html
    driftbandit advise --family cauchy --states 4 --arms 6 --seed 7
    driftbandit advise examples/plant.json --policies "lookahead, idea, oful" --runs 4000
    driftbandit advise examples/plant.json --json > advice.json
"""
)
LARGEST = 4_000_000  # numbers of a random system, states × (states + arms): more take hours


def command(
    model: Path | None = typer.Argument(
        None,
        help="Model file, JSON or TOML: transition, process_cov, reward_std, arms; optional: "
        "names of the arms, and initial_cov if the state does not start stationary.",
    ),
    family: str | None = typer.Option(
        None, help=f"A random system instead of a file: {', '.join(db.families.FAMILIES)}."
    ),
    states: options.States = None,
    arms: options.Arms = None,
    unit_arms: options.UnitArms = False,
    policies: str = typer.Option(
        "",
        help="Policies to choose from: comma-separated names from the list below, with "
        "parameters in parentheses, as in kalman_ucb(width=2); or all.",
        show_default="those that know the model, except the slow rollout",
    ),
    runs: int | None = typer.Option(
        None, help="Simulated runs.", show_default="by size, 32 to 1024"
    ),
    rounds: int | None = typer.Option(
        None, help="Rounds per run.", show_default="by size, up to 500"
    ),
    seed: options.Seed = 0,
    html: Path | None = typer.Option(
        None, help="Also write a page with figures to this .html file."
    ),
    as_json: options.Json = False,
) -> None:
    """Say which policy to play on a system, and why.

    The report says what each arm pays and shows of the state, the lower bound on regret, what the
    paper's metric φ predicts about IDEA and Kalman-UCB, and what a short simulation finds, in
    which all policies see the same states and the same noise. It ends with a recommendation, or
    says that the choice does not matter, and with warnings: a state that never settles, arms that
    hide part of it, noise that does not reach it.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or give fewer --runs.")
    options.check_file("--html", html, ".html", ".htm")
    given = {"states": states, "arms": arms, "unit_arms": unit_arms or None}
    given = {key: value for key, value in given.items() if value is not None}
    name, system = _system(model, family, given, seed)
    with progress.bars(transient=True) as bars:  # the report takes their place
        moved = progress.stages(bars, "simulation")
        size: dict[str, Any] = {"runs": runs, "rounds": rounds, "seed": seed}
        advice = db.advise(system, policies=_chosen(policies), progress=moved, **size)
    from driftbandit.advice.report import report

    options.show(report(advice, name, terminal=True), as_json)
    if html is not None:
        from driftbandit.io.atomic import write_whole
        from driftbandit.report.html import page

        write_whole(html, page(report(advice, name)).encode())
        options.saved("Page", html, as_json)


def _chosen(policies: str) -> list[str] | None:
    """The argument of `advise`; None: its default policies."""
    if policies.strip().lower() != "all":
        return options.split_policies(policies) or None
    made = [db.policies.make(name) for name in db.policies.available()]
    return [policy.name for policy in made if not policy.full_information]


def _system(
    path: Path | None, family: str | None, given: dict[str, Any], seed: int
) -> tuple[str, db.System]:
    """The system of a file, or a random one, and its name."""
    if path is not None:
        others = [*given] if family is None else ["family", *given]
        options.exclude(errors.printable(str(path)), others)
        return errors.printable(path.name), db.load_model(path)
    if family is None:
        raise errors.InvalidInput("MODEL", "is missing", "give a model file, or --family")
    d, k = (given.get(key, 10) for key in ("states", "arms"))
    if max(d, 1) * (max(d, 1) + max(k, 1)) > LARGEST:
        problem = f"{d} states and {k} arms make more than {LARGEST:,} numbers"
        raise errors.InvalidInput("--states, --arms", problem, "give smaller ones")
    unit = given.get("unit_arms", False)
    drawn = db.families.sample(family, n_states=d, n_arms=k, seed=seed, unit_arms=unit)
    return f"{family}, seed {seed}", db.System(*drawn[0])
