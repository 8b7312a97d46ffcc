"""`driftbandit replay`: run policies on real data, show a table with intervals, save a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, options, progress
from driftbandit.io.arms_reader import read_arms
from driftbandit.policies import REGISTRY
from driftbandit.replays.datasets import is_path

EXAMPLES = (
    options.POLICIES
    + """
**Examples**

    driftbandit replay flights --plot flights.png
    driftbandit replay rewards.csv --policies "idea, ucb, oful"
    driftbandit replay clicks.csv --chance-column propensity --method rejection
    driftbandit replay clicks.parquet --arms features.csv --train 0.3
    driftbandit replay french --states 2 --json > french.json
    driftbandit replay holidays --structure 'level(arm) + season(365.25, arm, harmonics=4)'
"""
)

QUICK = ", ".join(name for name, policy in REGISTRY.items() if policy.quick)


@options.reads_log
def command(
    data: str = typer.Argument(
        ...,
        help="A CSV or Parquet file with the columns round, arm, reward; or one of four public "
        "data sets: french, flights, holidays, weather (pip install 'driftbandit\\[data]').",
    ),
    arms: options.Features = None,
    policies: str = typer.Option(
        "default",
        help="Comma-separated names from the list below, with parameters in parentheses, as in "
        "kalman_ucb(width=2); or all, which means every policy that can be replayed.",
        show_default=QUICK,
    ),
    train: float = typer.Option(
        0.5, help="Fraction of the rounds in the training part, which comes first."
    ),
    states: int | None = typer.Option(
        None, help="Number of hidden states of the model.", show_default="chosen from the data"
    ),
    structure: str | None = typer.Option(
        None,
        help="What rewards are made of, as 'level(arm) + season(7)', or auto; see driftbandit fit.",
        show_default="chosen from the data",
    ),
    baseline: str | None = typer.Option(
        None,
        help="The policy or reference strategy to compare with: ucb, random, best_arm, …",
        show_default="training_leader, the best arm of the training part; logging, if a log "
        "cannot tell what that arm earns",
    ),
    cold: bool = typer.Option(
        False, "--cold", help="Do not let policies play the training part first as a warm-up."
    ),
    runs: int = typer.Option(
        10,
        help="Number of runs of each policy; the results are averaged. Each run uses different "
        "random numbers and starts at a different round of the training part.",
    ),
    method: str | None = typer.Option(
        None,
        help="full, if the file has the rewards of all arms; for a log of one reward per "
        "decision: dr (doubly robust), ips (inverse propensity scores) or rejection.",
        show_default="full or dr, as the file requires",
    ),
    chances: str | None = typer.Option(
        None,
        help="What a log without chances may assume: uniform (every arm had the same chance) or "
        "estimated (as often as the arm was played).",
        show_default="the column chance",
    ),
    reading: options.Reading = options.AS_IT_IS,
    seed: options.Seed = 0,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Run policies on real data: how much would each have earned?

    The model is learned from the first rounds (the training part). The other rounds are the test
    part, in which rewards count.

    If rounds have several rows, these are the rewards of all arms that were available. A policy
    sees only the reward of the arm it chooses. Intervals come from a block bootstrap over rounds.

    If the file has a column chance, or one row per round, it is a log of decisions that were
    already made, and the rewards of other arms are estimated from the chances with which arms were
    drawn. With dr and ips, policies learn from all rewards of the log; with rejection, only from
    rounds in which they choose the logged arm.

    The table also shows reference strategies: the best arm of the training part, random play, and,
    if the file has the rewards of all arms, what people try first: last_value, epsilon_greedy and
    seasonal_mean. Differences are paired by round.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or name fewer --policies.")
    options.check_file("--plot", plot, *options.PICTURES)
    known = None if arms is None else read_arms(arms, columns=reading.columns)
    if not is_path(data):
        options.exclude(data, reading.options)
    log = reading.log(data, None if known is None else known.names) if is_path(data) else data
    with progress.bars() as bars:
        result = db.replay(
            log,
            _chosen(policies.strip()),
            features=known,
            train=train,
            n_states=states,
            warm=not cold,
            runs=runs,
            seed=seed,
            structure=structure,
            baseline=baseline,
            method=method,
            chances=chances,
            progress=progress.stages(bars, "fit"),
        )
    from driftbandit.replays.report import report

    made = report(result, errors.printable(result.title or Path(data).name))
    options.show(made, as_json)
    options.save_plot(made, plot, as_json)


def _chosen(policies: str) -> Any:
    """The ``policies`` argument of `db.replay`; None means its default policies."""
    if policies == "default":
        return None
    return policies if policies == "all" else options.split_policies(policies)
