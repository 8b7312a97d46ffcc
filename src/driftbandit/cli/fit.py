"""`driftbandit fit`: from a log of decisions to a model file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, progress
from driftbandit.cli.columns import (
    ArmColumn,
    RewardColumn,
    RoundColumn,
    RoundStep,
    SequenceColumn,
    named,
)
from driftbandit.cli.outputs import PICTURES, check_file
from driftbandit.io import model_file

if TYPE_CHECKING:  # loads JAX and pyarrow, which the help has no need of
    from driftbandit.identify import Fit, Log, OneStep, Share

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """
**A log**, CSV or Parquet. sequence is optional: which independent run a row is of. An empty
reward was not seen; rounds may be left out, or hold several plays, and may be dates or times.
If columns have other names, say so with the options above; what is not needed is ignored.

    sequence,round,arm,reward
    monday,0,right,1.06
    monday,1,both,2.49
    monday,2,right,

**Features**, if they are known: what each arm reads of the state.

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
    log: Annotated[Path, typer.Argument(help="Log of decisions: .csv, .csv.gz or .parquet.")],
    arms: Annotated[
        Path | None,
        typer.Option(
            help="Features of the arms, CSV or Parquet: a column arm, and one of numbers for each "
            "state. Without it, what arms read is estimated."
        ),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(
            help="Hidden states d, at most one for each arm; not beside --arms.",
            show_default="features, or chosen by cross-validation",
        ),
    ] = None,
    structure: Annotated[
        str | None,
        typer.Option(
            help="Of the transition: free, diagonal (states do not move each other) or scalar "
            "(all forget equally fast).",
            show_default="chosen with the states; free beside --arms or --states",
        ),
    ] = None,
    stable: Annotated[
        bool, typer.Option(help="Keep the spectral radius below 1: the state does not run away.")
    ] = True,
    offsets: Annotated[
        bool, typer.Option(help="Arms pay a constant of their own besides what they read.")
    ] = True,
    starts: Annotated[int, typer.Option(help="Climbs; the one that ends highest is kept.")] = 3,
    iterations: Annotated[int, typer.Option(help="EM iterations of each climb, at most.")] = 200,
    prior: Annotated[
        float | None,
        typer.Option(
            help="Pulls a free transition towards forgetting, as strongly as this many extra "
            "rounds; 0: off.",
            show_default="d²/5",
        ),
    ] = None,
    round_column: RoundColumn = None,
    arm_column: ArmColumn = None,
    reward_column: RewardColumn = None,
    sequence_column: SequenceColumn = None,
    round_step: RoundStep = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the model to this .json file, for simulate, advise.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Save a figure (png, svg or pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Learn a model from a log of decisions.

    What is found: how the hidden state moves and how much it is pushed around, what arms read of
    it, and the noise of rewards; by expectation maximization, which climbs the likelihood of the
    log. Without --arms, --states and --structure the model is chosen that best predicts rewards
    it was not learned from: no drift, each arm drifts on its own, or arms share states.
    What the log cannot tell is said.
    """
    interrupt.keeps("Nothing was written. Run the same command again, or give fewer --iterations.")
    if out is not None:
        check_file("--out", out, ".json")
    if plot is not None:
        check_file("--plot", plot, *PICTURES)
    from driftbandit import identify

    columns = named(
        round=round_column, arm=arm_column, reward=reward_column, sequence=sequence_column
    )
    known = None if arms is None else identify.read_arms(arms, columns=columns)
    read = identify.read_log(
        log, None if known is None else known.names, columns=columns, step=round_step
    )
    with progress.bars() as bars:
        bars.live.transient = True  # the tables take its place
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
            progress=_reporter(bars),
        )
    predicted = identify.one_step(found, read)
    name = errors.printable(log.name)
    saved: list[tuple[str, Path, bytes]] = []
    if out is not None:
        saved.append(("Model", out, model_file.to_bytes(found.system)))
    if plot is not None:
        saved.append(("Plot", plot, _picture(found, predicted, name, plot)))
    from driftbandit.io.atomic import write_whole

    for _, path, content in saved:
        write_whole(path, content)
    summary = _summary(found, read, predicted)
    if as_json:
        document = {"driftbandit": db.__version__, "log": name, "seed": seed} | summary
        document["model"] = model_file.to_document(found.system)
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _show(Console(highlight=False), found, summary, name)
    console = Console(stderr=as_json, highlight=False)
    for what, path, _ in saved:
        shown = escape(errors.printable(str(path)))
        console.print(f"{what} saved to [bold]{shown}[/]", soft_wrap=True)
    if not as_json:
        shown = "model.json" if out is None else errors.printable(str(out))
        lines = [f"driftbandit advise {shown}", f"driftbandit simulate --model {shown}"]
        if out is None:
            lines.insert(0, f"the same with --out {shown}, which keeps the model")
        for line in lines:
            console.print(Text(f"next: {line}", "dim"), soft_wrap=True)


def _reporter(bars: Progress) -> Callable[[Share], None]:
    """What `fit` calls: it moves the bar and shows iterations/s."""
    task = bars.add_task("fit", total=1.0, rate="compiling")

    def report(share: Share) -> None:
        elapsed = bars.tasks[task].elapsed or 0.0
        rate = f"{share.iterations / elapsed:.3g} iterations/s" if elapsed > 0.2 else ""
        bars.update(task, completed=share, rate=rate)

    return report


def _summary(found: Fit, log: Log, predicted: OneStep) -> dict[str, Any]:
    """What was found, in numbers that JSON knows."""
    radius = found.spectral_radius
    choice = found.selection
    return {
        "rewards": log.rewards_seen,
        "rows": log.rows,
        "sequences": len(log.sequences),
        "arms": len(log.names),
        "summary": found.summary(),
        "states": found.n_states,
        "spectral_radius": radius,
        "memory": _memory(radius),
        "reward_std": float(found.model.reward_std),
        "predictable_share": _finite(predicted.share),
        "log_likelihood_per_reward": _finite(found.log_likelihood / len(predicted.rewards)),
        "log_likelihood_without_state": _finite(predicted.log_likelihood_without_state),
        "iterations": len(found.log_likelihoods) - 1,
        "converged": found.converged,
        "selection": None
        if choice is None
        else {
            "chosen": choice.chosen.label,
            "states": choice.n_states,
            "close": [one.label for one in choice.close],
            "candidates": [
                {
                    "model": one.label,
                    "states": one.n_states,
                    "score": _finite(score),
                    "error": _finite(error),
                }
                for one, score, error in zip(
                    choice.candidates, choice.scores, choice.errors, strict=True
                )
            ],
        },
        "warnings": list(found.warnings),
    }


def _memory(radius: float) -> float | None:
    """Rounds until a push has faded to 1/e; None: never."""
    if radius >= 1:
        return None
    return -1 / math.log(radius) if radius > 0 else 0.0


def _finite(value: float) -> float | None:
    """JSON has no infinities and no NaN."""
    return value if math.isfinite(value) else None


# The terminal.


def _show(console: Console, found: Fit, summary: dict[str, Any], name: str) -> None:
    console.print(Text(f"What {name} tells", "bold"), soft_wrap=True)
    console.print()
    console.print(Text(found.summary()))
    console.print()
    console.print(_findings(found, summary))
    if summary["selection"] is not None:
        console.print()
        console.print(_candidates(summary["selection"]))
        console.print(Text(HOW_CHOSEN, "dim"))
    console.print()
    for warning in found.warnings:
        console.print(Text(f"! {warning}", "yellow"))
    if found.warnings:
        console.print()


HOW_CHOSEN = (
    "score: log-likelihood per reward, one step ahead, of rewards not learned from; distance: from "
    "the highest, ± its standard error. The simplest model within one error (or 0.001) is chosen."
)


def _findings(found: Fit, summary: dict[str, Any]) -> Table:
    from driftbandit.io import parsing

    d, radius, memory = (summary[key] for key in ("states", "spectral_radius", "memory"))
    share = summary["predictable_share"]
    with_state, without = (
        _number(summary[f"log_likelihood_{key}"]) for key in ("per_reward", "without_state")
    )
    extra = "; the model adds the offsets" if found.model.n_states > d else ""
    end = "at rest" if summary["converged"] else "still rising"
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    table.add_column(style="dim", overflow="fold")
    for row in (
        ("rewards", f"{summary['rewards']:,}", f"seen in {summary['rows']:,} plays"),
        ("sequences", f"{summary['sequences']:,}", "independent runs of the system"),
        ("arms", f"{summary['arms']:,}", parsing.some(found.names)),
        ("states", f"{d}", f"that drift{extra}"),
        ("spectral radius ρ", f"{radius:.4g}", "from 1 on the state never settles"),
        (
            "memory",
            "endless" if memory is None else f"{memory:.3g}",
            "rounds, −1/log ρ: then 37 % of a push is left",
        ),
        ("reward noise σ", f"{summary['reward_std']:.4g}", "standard deviation"),
        (
            "predictable",
            "-" if share is None else f"{100 * share:.0f} %",
            "of variance around arms' means, one step ahead",
        ),
        ("log-likelihood", with_state, f"per reward; {without} by arms' means alone"),
        ("EM", end, f"after {summary['iterations']} steps from the best start"),
    ):
        table.add_row(*map(Text, row))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _candidates(selection: dict[str, Any]) -> Table:
    table = Table(
        title=Text("Models, by cross-validation", "italic"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        min_width=40,
    )
    table.add_column("model")
    for column in ("score", "distance", "±"):
        table.add_column(column, justify="right")
    table.add_column()
    rows = selection["candidates"]
    best = max((row["score"] for row in rows if row["score"] is not None), default=0.0)
    for row in rows:
        chosen = row["model"] == selection["chosen"]
        parsing = ["-", "-", "-"]
        if row["score"] is not None:
            parsing = [f"{row['score']:.4f}", f"{row['score'] - best:.4f}", f"{row['error']:.4f}"]
        style = "bold green" if chosen else None
        mark = "chosen" if chosen else "close" if row["model"] in selection["close"] else ""
        table.add_row(row["model"], *parsing, mark, style=style)
    return table


# The picture.


def _picture(found: Fit, predicted: OneStep, name: str, path: Path) -> bytes:
    """The climb, the choice of the number of states if there was one, and the predictions."""
    import matplotlib as mpl

    from driftbandit import plots

    with mpl.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        panels = 3 if found.selection is None else 4
        figure, axes = plots.grid(panels, panels, 3.6 * panels, 3.4)
        blue, orange, *_ = plots.COLORS
        climb, seen, surprises = axes[0], axes[-2], axes[-1]
        climb.plot(found.log_likelihoods / len(predicted.rewards), color=blue)
        climb.set_title("EM's climb")
        climb.set_xlabel("step")
        climb.set_ylabel("log-likelihood and prior, per reward")
        if found.selection is not None:
            _draw_selection(axes[1], found, blue, orange)
        dots = {"ls": "", "marker": ".", "color": blue, "ms": 4, "rasterized": True}
        dots["alpha"] = max(0.05, min(0.6, 300 / len(predicted.rewards)))
        seen.plot(predicted.means, predicted.rewards, **dots)
        ends = [predicted.means.min(), predicted.means.max()]
        seen.plot(ends, ends, color=orange)
        share = (
            "" if math.isnan(predicted.share) else f": {100 * predicted.share:.0f} % of variance"
        )
        seen.set_title(f"predicted{share}")
        seen.set_xlabel("predicted one step ahead")
        seen.set_ylabel("reward")
        surprises.plot(predicted.surprises, **dots)
        for height in (-2, 2):
            surprises.axhline(height, color=orange, lw=1)
        beyond = float((np.abs(predicted.surprises) > 2).mean())
        surprises.set_title(f"surprises: {100 * beyond:.1f} % beyond ±2 (normal: 4.6 %)")
        surprises.set_xlabel("rewards in the order of the log")
        surprises.set_ylabel("(reward − predicted) / std")
        for axis in axes:
            axis.title.set_fontsize(9)
        figure.suptitle(f"{name}: {found.kind.label}", fontsize=11)
        return plots.save(figure, path)


def _draw_selection(axis: Any, found: Fit, color: str, mark: str) -> None:
    choice = found.selection
    assert choice is not None
    scores = np.where(np.isfinite(choice.scores), choice.scores, np.nan)
    places = np.arange(len(scores))
    axis.errorbar(places, scores, choice.errors, color=color, marker="o", ls="", capsize=3)
    place = choice.candidates.index(choice.chosen)
    axis.plot(place, scores[place], "o", ms=11, mfc="none", mec=mark, mew=2)
    axis.set_title("cross-validation")
    axis.set_ylabel("score of rewards not learned from")
    labels = [one.label for one in choice.candidates]
    axis.set_xticks(places, labels, rotation=30, ha="right", fontsize=7)
