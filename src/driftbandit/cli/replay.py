"""`driftbandit replay`: policies on real data, with a table, intervals and a plot."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, layout, progress
from driftbandit.cli.columns import (
    ArmColumn,
    RewardColumn,
    RoundColumn,
    RoundStep,
    SequenceColumn,
    named,
)
from driftbandit.cli.outputs import PICTURES, check_file
from driftbandit.cli.simulate import split_policies
from driftbandit.system import label

if TYPE_CHECKING:  # loads JAX
    from driftbandit.replays import Replay, Row

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """
**Examples**

    driftbandit replay flights --plot flights.png
    driftbandit replay clicks.csv --policies "idea, ucb, oful"
    driftbandit replay clicks.parquet --arms features.csv --train 0.3
    driftbandit replay french --states 2 --json > french.json
"""
SIGNS = {
    "better": ("▲", "green"),
    "worse": ("▼", "red"),
    "no difference seen": ("≈", ""),
    "too few to tell": ("?", ""),
}
WHAT = {
    "best_arm": "{} in hindsight",
    "training_leader": "{}, the best arm of the training part",
    "full_information": "the highest prediction of a filter that is told all rewards",
    "per_round_best": "the best arm of every round",
    "random": "any arm with equal chance",
    "logging": "what the log chose",
}
"""The yardsticks in words; {} is the arm."""


def command(
    data: Annotated[
        str,
        typer.Argument(
            help="A CSV or Parquet file with the columns round, arm, reward; or one of two public "
            "data sets, french and flights (pip install 'driftbandit\\[data]').",
        ),
    ],
    arms: Annotated[
        Path | None,
        typer.Option(
            help="File with a column arm and one column per feature; without it, what the arms "
            "have in common is learned."
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            help="Comma-separated names, parameters in parentheses, as in kalman_ucb(width=2). "
            "all: every policy that can be replayed.",
            show_default="the nine quick ones",
        ),
    ] = "default",
    train: Annotated[
        float, typer.Option(help="Share of the rounds, the first ones, to learn the model from.")
    ] = 0.5,
    states: Annotated[
        int | None, typer.Option(help="Hidden states of the model.", show_default="by the data")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Whom to compare with: a policy, random, best_arm, training_leader, …",
            show_default="the best policy without a Kalman filter",
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Start policies in the test part, without a warm-up.")
    ] = False,
    runs: Annotated[
        int,
        typer.Option(
            help="Runs of each policy, averaged: each draws its own random numbers and starts in "
            "another round of the training part."
        ),
    ] = 10,
    round_column: RoundColumn = None,
    arm_column: ArmColumn = None,
    reward_column: RewardColumn = None,
    sequence_column: SequenceColumn = None,
    round_step: RoundStep = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Save a figure (png, svg or pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Play policies on real data: how much would each have earned?

    The model is learned from the first part of the rounds; the rest is the test. Policies see the
    reward of the arm they choose and no other.

    A round with several rows shows what every arm on offer paid, so every choice is paid. Where
    each round has one row, the file is a log of what somebody else chose: a choice then counts
    only in the rounds in which it is the logged one, which is fair only if the log chose
    uniformly at random.

    Beside the policies stand yardsticks: the best arm in hindsight, the best arm of the training
    part, random play, the best arm of every round, and a filter that is told all rewards. Intervals
    draw blocks of rounds; differences are paired, round by round.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or name fewer --policies.")
    if plot is not None:
        check_file("--plot", plot, *PICTURES)
    chosen = _chosen(policies.strip())
    columns = named(
        round=round_column, arm=arm_column, reward=reward_column, sequence=sequence_column
    )
    with progress.bars() as bars:
        try:
            result = db.replay(
                data,
                chosen,
                features=arms,
                train=train,
                n_states=states,
                warm=not cold,
                runs=runs,
                seed=seed,
                baseline=baseline,
                columns=columns,
                step=round_step,
                progress=_stages(bars),
            )
        except ValueError:
            bars.live.transient = True  # leave the message alone on the screen
            raise
    name = errors.printable(result.title or Path(data).name)
    if as_json:
        document = {"driftbandit": db.__version__} | result.to_document()
        print(json.dumps(document | {"data": name}, indent=2, allow_nan=False))
    else:
        _show(Console(highlight=False), result, name)
    if plot is not None:
        from driftbandit.replays import pictures

        pictures.save(result, plot)
        saved = f"Plot saved to [bold]{escape(errors.printable(str(plot)))}[/]"
        Console(stderr=as_json).print(saved, soft_wrap=True)


def _chosen(policies: str) -> Any:
    """What the option names; None: those that `replay` plays by default."""
    if policies == "default":
        return None
    return policies if policies == "all" else split_policies(policies)


def _stages(bars: Progress) -> Callable[[str, float, int], None]:
    """What `replay` calls: a bar for learning and one for playing."""
    tasks: dict[str, Any] = {}
    titles = {"fit": "learn", "play": "play"}

    def moved(stage: str, share: float, rounds: int) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(titles[stage], total=1.0, rate="")
        elapsed = bars.tasks[tasks[stage]].elapsed or 0.0
        rate = "compiling" if stage == "fit" and share == 0 else ""
        iterations = getattr(share, "iterations", 0)
        if elapsed > 0.2 and stage == "play":
            rate = f"{share * rounds / elapsed:,.0f} rounds/s"
        elif elapsed > 0.2 and iterations:
            rate = f"{iterations / elapsed:,.1f} steps/s"
        bars.update(tasks[stage], completed=share, rate=rate)

    return moved


def _show(console: Console, result: Replay, name: str) -> None:
    for table in _tables(result, name, console.width):
        console.print(table)
    console.print()
    for line in _words(result):
        console.print(Text(line, "dim"))
    for note in result.notes:
        console.print(Text(f"! {note}", "yellow"))


def _tables(result: Replay, name: str, width: int) -> Iterator[Text | Table]:
    unit = f", {result.unit}" if result.unit else ""
    title = f"{name}: reward per round{unit}, over {len(result.rounds)} test rounds"
    headings = ["", "", "mean", "95 %", f"− {result.baseline}", "95 % of −"]
    rows = []
    for row in result.rows():
        style = "dim italic" if row.kind == "yardstick" else ""
        matched = [f"{row.counted:,.0f}"] * result.logged
        verdict = Text(*SIGNS.get(row.verdict, ("", "")))
        rows.append(layout.Row([Text(row.label), verdict, *_cells(row), *matched], style))
    headings += ["matched"] * result.logged
    yield from layout.tables(title, headings, rows, width)


def _cells(row: Row) -> tuple[str, str, str, str]:
    form = _form(row.low, row.high)
    means = _number(row.mean, form), _ends(row.low, row.high, form)
    if not row.verdict:
        return *means, "", ""
    form = _form(row.difference_low, row.difference_high)
    ends = _ends(row.difference_low, row.difference_high, form)
    return *means, _number(row.difference, "+" + form), ends


def _form(low: float, high: float) -> str:
    """Two digits of an interval's width."""
    width = high - low
    if not 0 < width < math.inf or not 1e-4 < max(abs(low), abs(high)) < 1e7:
        return ".3g"
    return f",.{min(max(1 - math.floor(math.log10(width)), 0), 6)}f"


def _number(value: float, form: str) -> str:
    return "-" if math.isnan(value) else f"{value:{form}}"


def _ends(low: float, high: float, form: str) -> str:
    return "-" if math.isnan(low) else f"{low:{form}} to {high:{form}}"


def _words(result: Replay) -> list[str]:
    """How to read the table."""
    told = result.predictability
    how = "as bandits first" if result.warm else "by nobody: all start fresh"
    share = f"One round ahead, a filter that sees every reward explains {_percent(told.rewards)} "
    share += "of the rewards' variance in the test part"
    if told.differences is not None:
        share += f", and {_percent(told.differences)} of what arms differ by in a round"
    said = [
        f"{_model(result.fit.n_states)}, learned from {result.train_rounds} rounds, which "
        f"were played {how}. {share}.",
        f"−: mean reward minus that of {result.baseline}, and its interval. ▲ better, ▼ worse, ≈ "
        "no difference seen, ? too few rounds. Intervals: bootstrap of blocks of rounds.",
        f"Yardsticks, slanted: {_yardsticks(result)}.",
    ]
    if result.logged:
        said.append("matched: rounds in which the choice was the logged arm, which alone count.")
    return said


def _model(n_states: int) -> str:
    if not n_states:
        return "A model without drift"
    return f"Model of {n_states} states" if n_states > 1 else "Model of 1 state"


def _yardsticks(result: Replay) -> str:
    arms = {n: "" if r.arm is None else label(r.arm) for n, r in result.yardsticks.items()}
    return ", ".join(f"{name} is {WHAT[name].format(arms[name])}" for name in result.yardsticks)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
