"""`driftbandit advise`: which policy to play on a system, or what a log says, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, options, progress
from driftbandit.policies import PREFERRED

if TYPE_CHECKING:
    from driftbandit.report import Report

EXAMPLES = (
    options.POLICIES
    + """
**Examples**

    driftbandit advise examples/plant.toml
    driftbandit advise examples/plant.json --html plant.html
    driftbandit advise --family cauchy --states 4 --arms 6 --seed 7
    driftbandit advise examples/plant.json --policies "lookahead, idea, oful" --runs 4000
    driftbandit advise examples/plant.json --json > advice.json
    driftbandit advise examples/shop_log.csv --html advice.html
    driftbandit advise clicks.parquet --every 1h --zone Europe/Berlin --season 24
"""
)
LOGS = (".csv", ".csv.gz", ".parquet")
LARGEST = 4_000_000  # numbers of a random system, states × (states + arms): more take hours


@options.reads_log
def command(
    model: Path | None = typer.Argument(
        None,
        help="Model file (JSON or TOML) with transition, process_cov, reward_std and arms. "
        "Optional: names (of the arms), and initial_cov if the state does not start from its "
        "stationary distribution. Or a log of decisions: .csv, .csv.gz or .parquet.",
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
        show_default="the policies that use the model; for a log "
        f"{PREFERRED}, kalman_ucb, ucb, discounted_ucb",
    ),
    runs: int | None = typer.Option(
        None,
        help="Simulated runs.",
        show_default="32 to 1024, fewer for larger systems; 200 for a log",
    ),
    rounds: int | None = typer.Option(
        None,
        help="Rounds per run.",
        show_default="up to 500, fewer for larger or unstable systems; those of a log's test part",
    ),
    season: list[float] | None = typer.Option(
        None,
        help="Of a log: period of a season to look for, in rounds. May be given several times.",
        show_default="at most two that show in the log, of all up to 200",
    ),
    chances: str | None = typer.Option(
        None,
        help="Of a log without chances: uniform (every arm had the same chance) or estimated (as "
        "often as the arm was played).",
        show_default="the column chance",
    ),
    reading: options.Reading = options.AS_IT_IS,
    budget: float | None = typer.Option(
        None, help="Seconds. Questions that there is no time for are not asked."
    ),
    seed: options.Seed = 0,
    html: Path | None = typer.Option(
        None, help="Also write a page with figures to this .html file."
    ),
    as_json: options.Json = False,
) -> None:
    """Recommend a policy for a system, or say what a log shows; and say why.

    Of a system: the report shows the reward of each arm, what the arm reveals about the state, the
    lower bound on regret, and whether the paper's metric φ favors IDEA or Kalman-UCB. A short
    simulation compares the policies on the same states and the same noise. The report ends with a
    recommendation, or says that the choice does not matter. It warns if the state grows without
    limit, if arms are equal, or if an arm is never the best.

    Of a log: is there drift, is it predictable, what would policies have earned, and what do you
    lose by a fixed choice? The page ends with a recommendation and the commands to run next.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or give fewer --runs.")
    options.check_file("--html", html, ".html", ".htm")
    system_only = {"family": family, "states": states, "arms": arms, "unit_arms": unit_arms or None}
    log_only = {"season": season or None, "chances": chances} | reading.options
    from driftbandit.advice import finding

    subject: Any
    findings: list[finding.Finding] = []
    asks: dict[str, Any] = {"runs": runs, "rounds": rounds, "seed": seed, "budget": budget}
    if model is not None and model.name.lower().endswith(LOGS):
        options.exclude(errors.printable(str(model)), _given(system_only))
        from driftbandit.advice.log_findings import QUESTIONS

        name, questions = errors.printable(model.name), QUESTIONS
        subject = reading.log(model)
        asks |= {"seasons": season or None, "chances": chances}
    else:
        drawn = _given(system_only)
        drawn.pop("family", None)
        if log_only := _given(log_only):
            name = "a system" if model is None else errors.printable(str(model))
            options.exclude(f"{name}, which is not a log", log_only)
        name, subject = _system(model, family, drawn, seed)
        from driftbandit.advice import from_system

        questions = from_system.QUESTIONS

    def ready(answered: finding.Finding) -> None:
        findings.append(answered)
        interrupt.keeps("What is ready is shown above. Run the same command again for the rest.")

    def show_ready() -> None:
        if findings:
            asked = finding.completed(questions, findings, "not asked: interrupted")
            unfinished = finding.Recommendation("open", "No recommendation: interrupted.")
            options.show(finding.Advice(asked, unfinished).report(name, terminal=True), False)

    if not as_json:  # half a document would be taken for a whole one
        interrupt.at_exit(show_ready)
        asks["ready"] = ready
    with progress.bars(transient=True) as bars:  # the report takes their place
        moved = progress.stages(bars, "simulation")
        advice = db.advise(subject, policies=_chosen(policies), progress=moved, **asks)
    options.show(advice.report(name, terminal=True), as_json)
    if not as_json:
        for line in advice.recommendation.commands:
            Console(highlight=False).print(Text(f"next: {line}", "dim"), soft_wrap=True)
    _save(html, lambda: advice.report(name), as_json)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _save(html: Path | None, made: Callable[[], Report], as_json: bool) -> None:
    """Write the page, if one was asked for."""
    if html is not None:
        from driftbandit.io.atomic import write_whole
        from driftbandit.report.html import page

        write_whole(html, page(made()).encode())
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
