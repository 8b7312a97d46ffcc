"""`driftbandit fit`: from a log of decisions to a model file."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from driftbandit import errors
from driftbandit.cli import interrupt, options, progress
from driftbandit.io import model_file
from driftbandit.io.times import UNITS

SEASONS = {UNITS["hour"]: (24, "daily"), UNITS["day"]: (7, "weekly")}  # by the length of a round

EXAMPLES = """
**The log** is a CSV or Parquet file. The optional column sequence names the independent sequence
that a row belongs to. Leave a reward empty if it was not observed. A round may be missing or have
several rows, and rounds may be dates or times. If your columns have other names, give them with the
options above. Columns whose names start with x_ are features of the row. Other columns are ignored.

    sequence,round,arm,reward
    monday,0,right,1.06
    monday,1,both,2.49
    monday,2,right,

**Components** (--structure), joined by +:

    level(arm)                each arm wanders by itself
    level(arm, memory=free)   and returns to zero
    level(shared)             all arms wander together
    trend(arm, damping=free)  a slope that fades
    season(7)                 repeats every 7 rounds
    season(24, arm)           a pattern for each arm
    regression(x_price)       weights of columns x_price
    factors(2)                two hidden states that drift together, with weights for each arm
    constant(arm), ar(2, shared), noise(arm, own)

**Features** of the arms (--arms), if they are known: the weight of the arm on each state.

    arm,speed,heat
    left,1.0,0.0
    right,0.0,1.0
    both,-0.7,-0.7

**Examples**

    driftbandit fit examples/plant_log.csv --arms examples/plant_arms.csv --out model.json
    driftbandit fit examples/plant_log.csv --states 2 --structure diagonal --plot fit.png
    driftbandit fit examples/plant_log.csv --json > fit.json
    driftbandit fit clicks.csv --round-column day --arm-column variant --reward-column clicks
    driftbandit fit clicks.parquet --every 1h --zone Europe/Berlin
    driftbandit fit examples/shop_log.csv --structure 'level(arm) + season(7)' --plot parts.png
    driftbandit fit examples/shop_log.csv --season 7 --out model.json
"""


@options.reads_log
def command(
    log: Path = typer.Argument(..., help="Log of decisions: .csv, .csv.gz or .parquet."),
    arms: options.Features = None,
    states: int | None = typer.Option(
        None,
        help="Number of hidden states d, at most the number of arms. Not allowed with --arms.",
        show_default="number of features with --arms; otherwise the model is chosen from the log",
    ),
    structure: list[str] | None = typer.Option(
        None,
        metavar="TEXT",
        help="What rewards are made of, as 'level(arm) + season(7)'; see below. Or how hidden "
        "states move: free, diagonal (they do not affect each other) or scalar (all decay at the "
        "same rate). With --select it may be given several times.",
        show_default="what predicts later rewards best; free with --arms or --states",
    ),
    select: bool = typer.Option(
        False,
        "--select",
        help="Compare the structures given with --structure by how well they predict later "
        "rewards, and keep the best. Without --structure, --arms and --states, all are compared.",
    ),
    season: list[float] | None = typer.Option(
        None,
        metavar="PERIOD",
        help="Period of a season to try, in rounds. May be given several times.",
        show_default="at most two that show in the log, of all up to 200",
    ),
    groups: Path | None = typer.Option(
        None, help="CSV or Parquet file with the columns arm and group, for level(group)."
    ),
    offsets: bool = typer.Option(
        True, help="With --arms or --states: learn a mean reward of each arm beside the factors."
    ),
    starts: int = typer.Option(
        3, help="Number of searches from different points; the most likely end is kept."
    ),
    iterations: int = typer.Option(200, help="Most iterations of each search."),
    prior: float = typer.Option(
        1.0, help="Strength of the parameters' wide priors. 0: maximum likelihood alone."
    ),
    reading: options.Reading = options.AS_IT_IS,
    out: Path | None = typer.Option(
        None, help="Write the model to this .json file, for simulate and advise."
    ),
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Learn a model from a log of decisions.

    Without --arms, --states and --structure, the model that best predicts later rewards is chosen:
    constant arms, a level for each arm, a shared level, seasons, context features, or hidden states
    that arms share. The report says whether arms drift, as `driftbandit advise` does. Maximum
    likelihood estimates how fast levels drift, how strong seasons are, and the reward noise, each
    with a 95% interval. With --arms or --states, it estimates how hidden states move, and how much
    each arm weighs them. Warnings say what cannot be determined from the log.
    """
    interrupt.keeps("Nothing was written. Run the same command again, or give fewer --iterations.")
    options.check_file("--out", out, ".json")
    options.check_file("--plot", plot, *options.PICTURES)
    from driftbandit import identify
    from driftbandit.identify.structured.report import report
    from driftbandit.io.atomic import write_whole

    automatic = select or (arms is None and states is None and not structure)
    if season and not automatic:
        raise errors.InvalidInput("--season", "was given with a model", "write season(…) into it")
    known = None if arms is None else identify.read_arms(arms, columns=reading.columns)
    read = reading.log(log, None if known is None else known.names)
    grouped = None if groups is None else identify.read_groups(groups, columns=reading.columns)
    with progress.bars(transient=True) as bars:
        moved = progress.stages(bars, "fit")
        moved("fit", 0.0)
        found = identify.fit(
            read,
            known,
            states,
            structure=_structure(structure, select),
            groups=grouped,
            periods=season or None,
            offsets=offsets,
            starts=starts,
            iterations=iterations,
            prior=prior,
            progress=lambda share: moved("fit", share),
        )
    name = errors.printable(log.name)
    made = report(found, read, name)
    step = read.clock.step if read.clock is not None and states is not None else 0
    if step in SEASONS and not as_json and arms is None:
        made = _with_hint(made, read, *SEASONS[step])
    if out is not None:
        write_whole(out, model_file.to_bytes(found.system))
    options.show(made, as_json, log=name)
    if out is not None:
        options.saved("Model", out, as_json)
    options.save_plot(made, plot, as_json)
    if not as_json:
        _suggest_next(out, shlex.join(map(errors.printable, read.source)), step)


def _structure(given: list[str] | None, select: bool) -> Any:
    """What `fit` takes as the structure; None: it chooses one if nothing else is given."""
    if select:
        return given or "auto"
    if given and len(given) > 1:
        problem = f"was given {len(given)} times"
        raise errors.InvalidInput("--structure", problem, "add --select, or give one")
    return given[0] if given else None


def _with_hint(made: Any, log: Any, period: int, name: str) -> Any:
    """The report, which begins with a warning if the log has a season, as this model has none."""
    from driftbandit.identify.structured.periods import shown_periods
    from driftbandit.report import Points

    if period not in shown_periods(log):
        return made
    hint = (
        f"The log has a {name} pattern, which repeats every {period} rounds, and this kind of "
        "model has no seasons: states that stand in for it are not real, and the noise comes out "
        "too small. Leave --states out to fit a model with a season (last line below)."
    )
    return dataclasses.replace(made, blocks=[Points([hint], "bad"), *made.blocks])


def _suggest_next(out: Path | None, log: str, step: int) -> None:
    """The commands to run next; ``step``: the length of a round, if a season is worth a try."""
    model = "model.json" if out is None else shlex.quote(errors.printable(str(out)))
    keep = [f"the same command with --out {model}, to keep the model"] * (out is None)
    lines = [*keep, f"driftbandit advise {model}", f"driftbandit simulate --model {model}"]
    if step in SEASONS:  # models without components have none
        period, name = SEASONS[step]
        lines.append(f"driftbandit fit {log} --season {period}   # a {name} pattern?")
    for line in lines:
        Console(highlight=False).print(Text(f"next: {line}", "dim"), soft_wrap=True)
