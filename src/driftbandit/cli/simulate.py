"""`driftbandit simulate`: play policies on random or given systems, show a table, save a plot."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

import driftbandit as db
from driftbandit import errors
from driftbandit.actions import SPHERE
from driftbandit.cli import interrupt, memory, progress, tables
from driftbandit.cli.outputs import PICTURES, check_file
from driftbandit.io.parsing import some
from driftbandit.result import ORACLE, Result, median_and_iqr
from driftbandit.system import pair

__all__ = ["EXAMPLES", "POLICIES", "command"]

POLICIES = f"""
**Policies**: {", ".join(db.policies.available())}.
"""
EXAMPLES = (
    POLICIES
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

RUNS = 4
"""Of each random system: many systems tell more than many runs of one."""
BUDGET, FEWEST_RUNS, MOST_RUNS = 1.9e7, 32, 256
"""Steps of one policy on a given system: a fifth of a second on a core; and limits to the runs."""
BEST = "best"
"""Stands for the policy with the lowest mean regret of each study."""


def command(
    family: Annotated[
        str | None,
        typer.Option(
            help=f"Random systems, comma-separated: {', '.join(db.families.FAMILIES)}; or all.",
            show_default="gaussian",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model file (JSON or TOML) with one system and its arms, instead of a family."
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            help="Comma-separated names from the list below, with parameters in parentheses, as in "
            "kalman_ucb(width=2). all: every policy.",
            show_default="every policy except rollout, the slowest by far",
        ),
    ] = "default",
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="Also compare every policy with this one, run by run: how much more regret it "
            "has, how certain that is, and how often it wins. best: the policy with the lowest "
            "mean regret, except the Oracle.",
        ),
    ] = None,
    systems: Annotated[
        int | None, typer.Option(help="Random systems per family.", show_default="20")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Independent runs per system.",
            show_default="4; with --model 32 to 256, fewer the larger the system",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds per run.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    states: Annotated[
        int | None, typer.Option(help="Hidden states d of random systems.", show_default="10")
    ] = None,
    arms: Annotated[
        int | None, typer.Option(help="Arms k of random systems.", show_default="10")
    ] = None,
    unit_arms: Annotated[
        bool, typer.Option("--unit-arms", help="Scale random arms to length one.")
    ] = False,
    sphere: Annotated[
        bool, typer.Option("--sphere", help="Play any unit vector, instead of a list of arms.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(help="cpu or gpu; default: what JAX prefers.")
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Single precision.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Save a figure (png, svg or pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Play policies on drifting systems and compare their regret.

    Every policy meets the same states and the same noise, so differences are paired. Regret is
    dynamic: each round is compared with the arm that was best in that very round. Where the
    Kalman Oracle (which sees all rewards) is among the policies, regret is also given as the
    excess over the Oracle's: 0.5 means one and a half times its regret.

    Means of two policies can overlap although one wins nearly every run. --compare looks at the
    differences within runs, and draws whole systems for its intervals, since runs of one system
    are alike: for sharper ones, raise --systems rather than --runs.
    """
    chosen = _chosen(policies.strip(), sphere)
    for policy in chosen:
        db.policies.make(policy)
    errors.whole_number(rounds, "rounds", low=1, high=2**32 - 1)
    errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    if runs is not None:
        errors.whole_number(runs, "runs", low=1, high=2**32 - 1)
    if compare is not None:
        compare = _baseline(compare, chosen)
    interrupt.keeps(
        "Nothing was kept. Run the same command again, or give fewer --runs or --rounds."
    )
    if plot is not None:
        check_file("--plot", plot, *PICTURES)
    given = {"family": family, "systems": systems, "states": states, "arms": arms}
    given = {key: value for key, value in given.items() if value is not None}
    if unit_arms:
        given["unit_arms"] = True
    for key in ("arms", "unit_arms"):
        if sphere and key in given:
            name = "--" + key.replace("_", "-")
            raise errors.InvalidInput(name, "was given beside --sphere", "give one of the two")
    if model is None:
        _check_memory(given, runs or RUNS, len(chosen))
    studies = _given(model, given) if model is not None else _random(seed, given)
    if sphere:
        for name, study in studies.items():
            studies[name] = [(pair(system)[0], SPHERE.word) for system in study]

    called = {  # what a model file calls its arms
        name: study[0].names for name, study in studies.items() if isinstance(study[0], db.System)
    }
    if runs is None:
        runs = RUNS if model is None else _runs_of_one(studies, rounds)
    if model is not None:
        [[given_system]] = studies.values()
        system, rows = pair(given_system)
        k = system.n_states if isinstance(rows, str) else len(rows)
        _check_memory({"systems": 1, "states": system.n_states, "arms": k}, runs, len(chosen))
    options: dict[str, Any] = {
        "policies": chosen,
        "rounds": rounds,
        "runs": runs,
        "seed": seed,
        "device": device,
        "dtype": np.float32 if float32 else np.float64,
    }
    from driftbandit.simulation import Options  # loads JAX

    results: dict[str, Result] = {}
    with progress.bars() as bars:
        tasks = {name: bars.add_task(name, total=1.0, start=False, rate="") for name in studies}
        try:
            for name, study in studies.items():
                total = len(study) * runs * rounds * len(chosen)
                report = progress.reporter(bars, tasks[name], total, len(chosen) + 1)
                results[name] = db.simulate(
                    study, **options, options=Options(stream=name), progress=report
                )
        except ValueError:
            bars.live.transient = True  # leave the message alone on the screen
            raise

    baselines = {}
    if compare is not None:
        for name, result in results.items():
            baselines[name] = result.best() if compare == BEST else compare
    if as_json:
        document = _document(results, options, baselines)
        for name, names in called.items():
            document["studies"][name]["arms"] = list(names)
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        console = Console()
        for part in tables.comparison(results, console.width):
            console.print(part)
        console.print()
        for line in tables.leaders(results):
            console.print(Text(line))
        for name, baseline in baselines.items():
            console.print()
            for table in tables.against(name, results[name], baseline, console.width):
                console.print(table)
        if baselines:
            console.print(tables.explanation(results), style="dim", highlight=False)
            console.print()
        console.print(tables.footer(results), style="dim", highlight=False)
        for names in called.values():
            if names != tuple(range(len(names))):
                console.print(Text(f"arms: {some(names)}", "dim"))
    if plot is not None:
        from driftbandit import plots

        plots.comparison(results, plot)
        saved = f"Plot saved to [bold]{escape(errors.printable(str(plot)))}[/]"
        Console(stderr=as_json).print(saved, soft_wrap=True)


def _given(path: Path, other: dict[str, Any]) -> dict[str, Any]:
    """The study of a model file."""
    for key in other:
        name = "--" + key.replace("_", "-")
        raise errors.InvalidInput(name, "was given beside --model", "give one of the two")
    return {errors.printable(path.name): [db.load_model(path)]}


def _check_memory(given: dict[str, Any], runs: int, policies: int) -> None:
    families = given.get("family", "gaussian")
    count = len(chosen_families(families, "--family"))
    systems, states, arms = (
        given.get(key, default) for key, default in (("systems", 20), ("states", 10), ("arms", 10))
    )
    size = memory.needed(
        systems=systems * count, n_states=states, n_arms=arms, runs=runs, policies=policies
    )
    asked = (
        f"{systems * count:,} systems of {states:,} states and {arms:,} arms, {runs:,} runs each,"
    )
    memory.check("--systems, --states, --arms, --runs", asked, size)


def _random(seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """One study per family."""
    names = chosen_families(options.pop("family", "gaussian"), "--family")
    options = {"systems": 20} | counted(options)
    return {name: db.families.sample(name, seed=seed, **options) for name in names}


def counted(options: dict[str, Any]) -> dict[str, Any]:
    """Options as `families.sample` calls them: --states is n_states."""
    names = {"states": "n_states", "arms": "n_arms"}
    return {names.get(key, key): value for key, value in options.items()}


def _runs_of_one(studies: dict[str, Any], rounds: int) -> int:
    [[given]] = studies.values()
    system, arms = pair(given)
    return default_runs(system, arms, rounds)


def default_runs(system: db.LGDS, arms: Any, rounds: int) -> int:
    """Runs of one given system: as many as tell policies apart, in seconds rather than minutes.

    A round takes about as long as d (d + k/3) + 15 steps.

    Example:
        >>> default_runs(*db.families.sample("gaussian")[0], rounds=1000)
        128
    """
    states = system.n_states
    count = states if isinstance(arms, str) else len(arms)
    steps = (states * (states + count / 3) + 15) * max(rounds, 1)
    return int(min(max(BUDGET / steps, FEWEST_RUNS), MOST_RUNS))


def chosen_families(text: str, option: str) -> list[str]:
    """The families that a comma-separated text names, in capitals or not; or all.

    Example:
        >>> chosen_families("Cauchy, gaussian", "--family")
        ['cauchy', 'gaussian']
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return list(db.families.FAMILIES)
    if not names:
        raise errors.InvalidInput(option, f"{text!r} names none", "name one, or all")
    for place, name in enumerate(names):
        errors.closest(name, option, db.families.FAMILIES)
        if name in names[:place]:
            raise errors.InvalidInput(option, f"names {name} twice", "name it once")
    return names


def split_policies(text: str) -> list[str]:
    """Split at commas outside parentheses.

    Example:
        >>> split_policies("idea, oful(delta=0.1, ridge=2)")
        ['idea', 'oful(delta=0.1, ridge=2)']
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    return [part for part in parts if part]


def _baseline(text: str, chosen: Sequence[str]) -> str:
    """The label of the policy to compare with, or best."""
    labels = list(db.policies.chosen(chosen))
    if len(labels) == 1:
        raise errors.InvalidInput(
            "--compare", f"has nothing to compare {labels[0]} with", "name more in --policies"
        )
    label = dict(zip(chosen, labels, strict=True)).get(text, text)
    with contextlib.suppress(errors.InvalidInput):  # a title, as Kalman-UCB
        made = db.policies.make(text)
        label = made.label if made.label in labels else made.name if "(" not in text else label
    valid = [*labels, BEST]
    if label in db.policies.available() and label not in valid:
        raise errors.InvalidInput(
            "--compare", f"{label} is not among --policies", f"valid: {', '.join(valid)}"
        )
    return errors.closest(label, "--compare", valid)


def _chosen(policies: str, sphere: bool) -> Sequence[str]:
    if policies not in ("default", "all"):
        return split_policies(policies)
    if sphere:
        return db.policies.default(SPHERE)
    return db.policies.default() if policies == "default" else db.policies.available()


def _document(
    results: dict[str, Result], options: dict[str, Any], baselines: dict[str, str]
) -> dict[str, Any]:
    studies: dict[str, Any] = {}
    for name, result in results.items():
        rows = result.summary()
        if ORACLE in result.regret:
            for policy, values in result.normalized(ORACLE).items():
                middle, spread = median_and_iqr(values)
                rows[policy] |= {"normalized_median": middle, "normalized_iqr": spread}
        studies[name] = {
            "policies": {policy: _finite(row) for policy, row in rows.items()},
            "runs_in_all": int(next(iter(result.regret.values())).size),
            "seconds": {
                "prepare": result.timing.prepare,
                "compile": result.timing.compile,
                "play": result.timing.play,
            },
        }
        if name in baselines:
            studies[name]["comparison"] = _comparison(result, baselines[name])
    return {
        "driftbandit": db.__version__,
        "rounds": options["rounds"],
        "runs": options["runs"],
        "seed": options["seed"],
        "studies": studies,
    }


def _comparison(result: Result, baseline: str) -> dict[str, Any]:
    rows = result.compare(baseline, seed=result.seed)
    return {
        "baseline": baseline,
        "unit": "regret of kalman_oracle" if result.in_oracle_units else "regret",
        "policies": {
            policy: _finite(row._asdict()) | {"verdict": row.verdict}
            for policy, row in rows.items()
        },
    }


def _finite(row: dict[str, float]) -> dict[str, float | None]:
    """JSON has no infinities and no NaN."""
    return {key: value if math.isfinite(value) else None for key, value in row.items()}
