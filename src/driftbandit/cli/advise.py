"""`driftbandit advise`: what to play on a system, on one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.progress import Progress
from rich.text import Text

import driftbandit as db
from driftbandit import errors
from driftbandit.cli import interrupt, layout, options, progress

if TYPE_CHECKING:  # loads jinja2, which the help has no need of
    from driftbandit import report
    from driftbandit.advice import Advice

__all__ = ["EXAMPLES", "command"]

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

MOST_ARMS = 20
LARGEST = 4_000_000
"""Numbers of a random system, states × (states + arms): more take hours."""
TONES = {"good": "bold green", "bad": "red", "dim": "dim"}


def _playable() -> list[str]:
    """The policies that see the reward of the arm they play, and no other."""
    return [name for name in db.policies.available() if name not in ("kalman_oracle", "random")]


def command(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="Model file, JSON or TOML: transition, process_cov, reward_std, arms; names, what "
            "the arms are called, and, if the state does not start stationary, initial_cov."
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(help=f"A random system instead of a file: {', '.join(db.families.FAMILIES)}."),
    ] = None,
    states: Annotated[
        int | None, typer.Option(help="Hidden states d of a random system.", show_default="10")
    ] = None,
    arms: Annotated[
        int | None, typer.Option(help="Arms k of a random system.", show_default="10")
    ] = None,
    unit_arms: Annotated[
        bool, typer.Option("--unit-arms", help="Scale random arms to length one.")
    ] = False,
    policies: Annotated[
        str,
        typer.Option(
            help="Policies to choose from: comma-separated names from the list below, with "
            "parameters in parentheses, as in kalman_ucb(width=2); or all.",
            show_default="those that know the model, except the slow rollout",
        ),
    ] = "",
    runs: Annotated[
        int | None, typer.Option(help="Simulated runs.", show_default="by size, 32 to 1024")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds per run.", show_default="by size, up to 500")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same page.")] = 0,
    html: Annotated[
        Path | None, typer.Option(help="Also write the page, with pictures, to this .html file.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of the page.")
    ] = False,
) -> None:
    """Say which policy to play on a system, and why.

    One page: what each arm pays and teaches, the lower bound on regret, what the paper's metric φ
    predicts about IDEA and Kalman-UCB, and a short simulation, in which all policies meet the same
    states and the same noise. The page ends with a recommendation, or says that the choice does
    not matter, and with warnings: a state that never settles, arms that hide it, noise that does
    not reach it.
    """
    interrupt.keeps("Nothing was kept. Run the same command again, or give fewer --runs.")
    if html is not None:
        options.check_file("--html", html, ".html", ".htm")
        errors.require("--html", "jinja2", "matplotlib")
    name, system = _system(
        model, family, {"states": states, "arms": arms, "unit_arms": unit_arms or None}, seed
    )
    chosen = options.split_policies(policies) or None
    if policies.strip().lower() == "all":
        chosen = _playable()
    with progress.bars() as bars:
        bars.live.transient = True  # the page takes its place
        advice = db.advise(
            system,
            runs=runs,
            rounds=rounds,
            seed=seed,
            policies=chosen,
            progress=_stages(bars),
        )
    if as_json:
        document = {"driftbandit": db.__version__, "system_name": name} | advice.to_document()
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _show(Console(highlight=False), advice, name)
    if html is not None:
        from driftbandit.advice import page
        from driftbandit.io.atomic import write_whole

        write_whole(html, page.html(advice, name, seed).encode())
        saved = f"Page saved to [bold]{escape(errors.printable(str(html)))}[/]"
        Console(stderr=as_json).print(saved, soft_wrap=True)


def _system(
    path: Path | None, family: str | None, sizes: dict[str, Any], seed: int
) -> tuple[str, db.System]:
    """The system of a file, or a random one, and what to call it."""
    given = {key: value for key, value in sizes.items() if value is not None}
    if path is None and family is None:
        raise errors.InvalidInput("MODEL", "is missing", "give a model file, or --family")
    if path is not None:
        for key in ([] if family is None else ["family"]) + list(given):
            option = "--" + key.replace("_", "-")
            problem = f"was given beside {errors.printable(str(path))}"
            raise errors.InvalidInput(option, problem, "give one of the two")
        return errors.printable(path.name), db.load_model(path)
    d, k = (given.get(key, 10) for key in ("states", "arms"))
    if max(d, 1) * (max(d, 1) + max(k, 1)) > LARGEST:
        problem = f"{d} states and {k} arms make more than {LARGEST:,} numbers"
        raise errors.InvalidInput("--states, --arms", problem, "give smaller ones")
    unit = given.get("unit_arms", False)
    drawn = db.families.sample(str(family), 1, d, k, seed=seed, unit_arms=unit)
    system = db.System(*drawn[0])
    return f"{family}, seed {seed}", system


def _stages(bars: Progress) -> Callable[[str, float], None]:
    """What `advise` calls: one bar per stage, each from the moment it begins."""
    tasks: dict[str, Any] = {}

    def moved(stage: str, share: float) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=1.0, rate="")
        rate = "compiling" if stage == "simulation" and share == 0 else ""
        bars.update(tasks[stage], completed=share, rate=rate)

    return moved


# The page in a terminal.


def _show(console: Console, advice: Advice, name: str) -> None:
    from driftbandit.advice import page

    console.print(Text(f"Advice for {name}", "bold"), soft_wrap=True)
    for section in page.sections(advice, MOST_ARMS):
        console.print()
        if section.id != "system":
            console.print(Text(section.title, "bold cyan"))
        for block in _blocks(section.blocks, console.width):
            console.print(block)
    said = page.recommendation(advice)
    console.print()
    console.print(Panel(Group(*_said(said.blocks)), title=said.title, box=box.ROUNDED, padding=1))


def _blocks(blocks: Iterable[report.Block], width: int) -> Iterable[RenderableType]:
    from driftbandit import report

    for block in blocks:
        if isinstance(block, report.Table):
            rows = [layout.Row([_text(cell) for cell in row]) for row in block.rows]
            yield from layout.tables(block.caption, block.columns, rows, width, gap=2)
        elif isinstance(block, report.Points):
            for item in block.items:
                yield Text(item, "dim")
        elif isinstance(block, report.Paragraph):
            yield Text(block.text)


def _text(cell: report.Cell | str | float) -> Text:
    if isinstance(cell, str | float):
        return Text(str(cell))
    return Text(cell.text, TONES.get(cell.tone, ""))


def _said(blocks: Iterable[report.Block]) -> Iterable[RenderableType]:
    """The recommendation: headline, reasons, warnings."""
    from driftbandit import report

    for place, block in enumerate(blocks):
        if isinstance(block, report.Paragraph):
            yield Text(block.text.replace("`", ""), "bold green" if place == 0 else "")
        elif isinstance(block, report.Points):
            for item in block.items:
                yield Text(f"! {item}", "yellow")
