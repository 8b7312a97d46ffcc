"""`driftbandit fit`: from a log of decisions to a model file."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from driftbandit import errors
from driftbandit.cli import interrupt, options, progress
from driftbandit.cli.options import ArmColumn, RewardColumn, RoundColumn, RoundStep, SequenceColumn
from driftbandit.io import model_file

EXAMPLES = """
**The log** is a CSV or Parquet file. The column sequence is optional: the independent run that a
row belongs to. Leave a reward empty if it was not seen. Rounds may be skipped or hold several
plays, and may be dates or times. If the columns have other names, give them with the options
above; other columns are ignored.

    sequence,round,arm,reward
    monday,0,right,1.06
    monday,1,both,2.49
    monday,2,right,

**Features** of the arms (--arms), if they are known: how each arm reads the state.

    arm,speed,heat
    left,1.0,0.0
    right,0.0,1.0
    both,-0.7,-0.7

**Examples**

    driftbandit fit examples/plant_log.csv --arms examples/plant_arms.csv --out model.json
    driftbandit fit examples/plant_log.csv --states 2 --structure diagonal --plot fit.png
    driftbandit fit examples/plant_log.csv --json > fit.json
    driftbandit fit clicks.csv --round-column day --arm-column variant --reward-column clicks
"""


def command(
    log: Path = typer.Argument(..., help="Log of decisions: .csv, .csv.gz or .parquet."),
    arms: options.Features = None,
    states: int | None = typer.Option(
        None,
        help="Number of hidden states d, at most the number of arms; not with --arms.",
        show_default="number of features, or chosen",
    ),
    structure: str | None = typer.Option(
        None,
        help="Form of the transition matrix: free, diagonal (states do not affect each other) "
        "or scalar (all states forget equally fast).",
        show_default="chosen with the states; free with --arms or --states",
    ),
    stable: bool = typer.Option(
        True, help="Keep the spectral radius below 1, so that the state settles."
    ),
    offsets: bool = typer.Option(
        True, help="Give each arm a constant reward in addition to what drifts."
    ),
    starts: int = typer.Option(3, help="EM restarts; the most likely fit is kept."),
    iterations: int = typer.Option(200, help="EM iterations per restart, at most."),
    prior: float | None = typer.Option(
        None,
        help="Prior strength, in pseudo-rounds that pull a free transition toward zero. "
        "0 turns it off.",
        show_default="d²/5",
    ),
    round_column: RoundColumn = None,
    arm_column: ArmColumn = None,
    reward_column: RewardColumn = None,
    sequence_column: SequenceColumn = None,
    round_step: RoundStep = None,
    seed: options.Seed = 0,
    out: Path | None = typer.Option(
        None, help="Write the model to this .json file, for simulate and advise."
    ),
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Learn a model from a log of decisions.

    Expectation maximization (EM) estimates how the hidden state moves, how arms read it, and the
    noise of rewards. Without --arms, --states and --structure, cross-validation chooses the model
    that best predicts held-out rewards: no drift, each arm drifts on its own, or arms share states.
    Warnings say what the log cannot determine.
    """
    interrupt.keeps("Nothing was written. Run the same command again, or give fewer --iterations.")
    options.check_file("--out", out, ".json")
    options.check_file("--plot", plot, *options.PICTURES)
    from driftbandit import identify
    from driftbandit.identify.report import report
    from driftbandit.io.atomic import write_whole

    columns = options.columns(
        round=round_column, arm=arm_column, reward=reward_column, sequence=sequence_column
    )
    known = None if arms is None else identify.read_arms(arms, columns=columns)
    names = None if known is None else known.names
    read = identify.read_log(log, names, columns=columns, step=round_step)
    with progress.bars(transient=True) as bars:
        moved = progress.stages(bars, "fit")
        moved("fit", 0.0)
        found = identify.fit(
            read,
            known,
            states,
            structure=structure,  # type: ignore[arg-type]  # checked there
            stable=stable,
            offsets=offsets,
            starts=starts,
            iterations=iterations,
            prior=prior,
            seed=seed,
            progress=lambda share: moved("fit", share),
        )
    name = errors.printable(log.name)
    made = report(found, read, name)
    if out is not None:
        write_whole(out, model_file.to_bytes(found.system))
    options.show(made, as_json, log=name, seed=seed)
    if out is not None:
        options.saved("Model", out, as_json)
    options.save_plot(made, plot, as_json)
    if not as_json:
        _suggest_next(out)


def _suggest_next(out: Path | None) -> None:
    model = "model.json" if out is None else errors.printable(str(out))
    keep = [f"the same command with --out {model}, to keep the model"] * (out is None)
    for line in [*keep, f"driftbandit advise {model}", f"driftbandit simulate --model {model}"]:
        Console(highlight=False).print(Text(f"next: {line}", "dim"), soft_wrap=True)
