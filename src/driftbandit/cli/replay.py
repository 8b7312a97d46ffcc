"""`driftbandit replay`: run policies on real data, show a table with intervals, save a plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, options, progress
from driftbandit.cli.options import (
    ArmColumn,
    ChanceColumn,
    RewardColumn,
    RoundColumn,
    SequenceColumn,
)
from driftbandit.policies import REGISTRY

EXAMPLES = (
    options.POLICIES
    + """
**Examples**

    driftbandit replay flights --plot flights.png
    driftbandit replay clicks.csv --policies "idea, ucb, oful"
    driftbandit replay clicks.parquet --arms features.csv --train 0.3
    driftbandit replay french --states 2 --json > french.json
"""
)

QUICK = ", ".join(name for name, policy in REGISTRY.items() if policy.quick)


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
    baseline: str | None = typer.Option(
        None,
        help="The policy or reference strategy to compare with: ucb, random, best_arm, …",
        show_default="the best policy without a Kalman filter",
    ),
    cold: bool = typer.Option(
        False, "--cold", help="Do not let policies play the training part first as a warm-up."
    ),
    runs: int = typer.Option(
        10,
        help="Number of runs of each policy; the results are averaged. Each run uses different "
        "random numbers and starts at a different round of the training part.",
    ),
    round_column: RoundColumn = None,
    arm_column: ArmColumn = None,
    reward_column: RewardColumn = None,
    sequence_column: SequenceColumn = None,
    chance_column: ChanceColumn = None,
    every: options.Every = None,
    zone: options.Zone = None,
    seed: options.Seed = 0,
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Run policies on real data: how much would each have earned?

    The model is learned from the first rounds (the training part). The other rounds are the test
    part, in which rewards count. A policy sees only the reward of the arm it chooses.

    If rounds have several rows, these are the rewards of all arms that were available, and every
    choice counts. If each round has one row, the file is a log of choices that were already made.
    Then a choice counts only if it is the logged arm. This estimate is unbiased only if the logged
    arms were chosen uniformly at random.

    The table also shows reference strategies: the best arm in hindsight, the best arm of the
    training part, random play, the best arm of every round, and a filter that sees all rewards.
    Confidence intervals come from a block bootstrap over rounds; differences are paired by round.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or name fewer --policies.")
    options.check_file("--plot", plot, *options.PICTURES)
    columns = options.columns(
        round=round_column,
        arm=arm_column,
        reward=reward_column,
        sequence=sequence_column,
        chance=chance_column,
    )
    with progress.bars() as bars:
        result = db.replay(
            data,
            _chosen(policies.strip()),
            features=arms,
            train=train,
            n_states=states,
            warm=not cold,
            runs=runs,
            seed=seed,
            baseline=baseline,
            columns=columns,
            every=every,
            zone=zone,
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
