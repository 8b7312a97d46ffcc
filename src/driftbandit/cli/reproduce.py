"""`driftbandit reproduce`: the paper's table and figures and the leaderboard, with a report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.text import Text

from driftbandit import errors, families
from driftbandit.cli import interrupt, memory, progress
from driftbandit.cli.simulate import split_policies

if TYPE_CHECKING:  # loads pyarrow, matplotlib and jinja2, which the help has no need of
    from driftbandit import paper
    from driftbandit.studies import Engine, Specification

__all__ = ["EXAMPLES", "command"]

EXAMPLES = """
**Examples**

    driftbandit reproduce table2 --quick
    driftbandit reproduce all --out paper
    driftbandit reproduce table2 --reading closest --families gaussian,uniform
    driftbandit reproduce figure3 --engine ray --address auto
    driftbandit reproduce leaderboard --quick --out leaderboard
"""

ALL = "all"
RESUMING = "Resuming: {:.0f} % of this study is stored already. --no-resume plays all of it again."


def command(
    target: Annotated[
        str,
        typer.Argument(
            help="table2, figure1, figure2, figure3, all of these (all), or the leaderboard, "
            "which is not the paper's."
        ),
    ],
    systems: Annotated[
        int | None,
        typer.Option(
            help="Random systems per family.", show_default="the paper's 1000; leaderboard: 200"
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Runs per system.", show_default="the paper's 10; leaderboard: 5"),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds per run.", show_default="the paper's 1000")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small size for a first look.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for data, pictures and report.")] = Path(
        "reproduced"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    reading: Annotated[
        str,
        typer.Option(
            help="How to read what the paper leaves open: plain, closest, unit, or changes as in "
            "'arms=unit, noise=one'; docs/paper.md lists them."
        ),
    ] = "plain",
    family: Annotated[
        str, typer.Option("--families", help="Comma-separated families, or all.")
    ] = ALL,
    resume: Annotated[
        bool,
        typer.Option(help="Resume: keep the parts of this study that the folder holds already."),
    ] = True,
    engine: Annotated[
        str, typer.Option(help="Who plays: local (this process) or ray (a cluster).")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a running Ray cluster, or auto.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Chunks at once, local engine.", show_default="one per core")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or gpu; default: what JAX prefers.")
    ] = None,
    congruent: Annotated[
        bool, typer.Option("--congruent", help="Figure 3: T⁻¹QT⁻ᵀ, not the projected T⁻¹QT.")
    ] = False,
    settings: Annotated[
        str,
        typer.Option(
            help="Leaderboard: comma-separated settings such as base, k100, noise10; "
            "docs/leaderboard.md lists them.",
            show_default="all; with --quick those of at most 100 arms",
        ),
    ] = "",
    policies: Annotated[
        str,
        typer.Option(
            help="Leaderboard: comma-separated policies to hold against IDEA.", show_default="all"
        ),
    ] = "",
    float32: Annotated[bool, typer.Option("--float32", help="Single precision.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the data as JSON.")] = False,
) -> None:
    """Reproduce the paper: its Table II and its three figures. Or play the leaderboard.

    The leaderboard holds every policy against IDEA, on the paper's systems and on changed ones;
    it writes a page of Markdown, too.

    Each writes its numbers (JSON), a picture (PNG and SVG) and a section of one report.html that
    needs nothing else to be read.

    You can stop this command at any time, with Ctrl-C too, and run it again to resume: finished
    parts are stored in the folder as they come. A finished study answers in seconds.
    """
    shown = errors.printable(str(out))
    interrupt.keeps(f"Finished parts are kept in {shown}. Run the same command again to resume.")
    from driftbandit import leaderboard, paper
    from driftbandit.paper import readings
    from driftbandit.report import Table, terminal

    targets = {**paper.TARGETS, leaderboard.TARGET.name: leaderboard.TARGET}
    chosen = (
        list(paper.TARGETS)
        if target == ALL
        else [errors.closest(target, "target", [*targets, ALL])]
    )
    for option, text in {"--settings": settings, "--policies": policies}.items():
        if text and target != leaderboard.TARGET.name:
            raise errors.InvalidInput(option, f"was given with {target}", "leave it out")
    played = _names(settings, "--settings", [setting.name for setting in leaderboard.SETTINGS])
    given = {"systems": systems, "runs": runs, "rounds": rounds}
    options = {
        name: paper.Options(
            _size(targets[name], quick, given),
            seed,
            families=_families(family),
            dtype="float32" if float32 else "float64",
            platform=_platform(device, engine),
            settings=played or (leaderboard.QUICK if quick else ()),
            policies=tuple(split_policies(policies)) if policies else (),
            reading=readings.named(reading),
            congruent=congruent,
        )
        for name in chosen
    }
    player = _engine(engine, address, workers)
    specifications = {name: targets[name].specification(options[name]) for name in chosen}
    for specification in specifications.values():
        _check_memory(specification)
    console = Console(stderr=as_json)
    made = {}
    for name, specification in specifications.items():
        begin = time.perf_counter()
        with progress.bars() as bars:
            try:
                made[name] = paper.reproduce(
                    targets[name],
                    options[name],
                    out,
                    player,
                    resume=resume,
                    progress=_family_bars(bars, specification),
                )
            except ValueError:
                bars.live.transient = True  # leave the message alone on the screen
                raise
        if not as_json:
            tables = [block for block in made[name].blocks if isinstance(block, Table)]
            terminal.show(tables, console)
            _say(console, made[name], time.perf_counter() - begin)
    page = paper.write_report(targets, out, made)
    if as_json:
        print(json.dumps({name: part.document for name, part in made.items()}, indent=1))
    console.print(f"Report: [bold]{escape(str(page))}[/]", soft_wrap=True)


def _check_memory(specification: Specification) -> None:
    """Chunks are small, whatever the study; what grows with it is what is read back of them."""
    systems, runs = specification.systems, specification.runs
    columns = sum(len(specification.players(cell)) + 2 for cell in specification.cells)
    size = 3 * 8.0 * systems * runs * columns
    asked = f"{systems:,} systems and {runs:,} runs in {len(specification.cells)} cells"
    memory.check("--systems, --runs", asked, size)


def _size(target: paper.Target, quick: bool, given: dict[str, int | None]) -> paper.Size:
    wanted = {key: value for key, value in given.items() if value is not None}
    for key, value in wanted.items():
        errors.whole_number(value, f"--{key}", low=1)
    return (target.quick if quick else target.full)._replace(**wanted)


def _families(text: str) -> tuple[str, ...]:
    if text == ALL:
        return tuple(families.FAMILIES)
    return _names(text, "--families", list(families.FAMILIES)) or _families(ALL)


def _names(text: str, option: str, valid: list[str]) -> tuple[str, ...]:
    """Which of ``valid`` a comma-separated text names, in their order."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = {errors.closest(name, option, valid) for name in names}
    if text and not found:
        raise errors.InvalidInput(option, f"{text!r} names none", "name one, or all")
    return tuple(name for name in valid if name in found)


def _platform(device: str | None, engine: str) -> str:
    if device is not None:
        device = errors.closest(device, "--device", ("cpu", "gpu"))
    if engine == "ray":  # a cluster's nodes are not this machine
        return device or "cpu"
    from driftbandit.simulation.checks import checked_device  # loads JAX

    return "cpu" if checked_device(device).platform == "cpu" else "gpu"


def _engine(name: str, address: str | None, workers: int | None) -> Engine:
    from driftbandit import studies

    if errors.closest(name, "--engine", studies.ENGINES) == "ray":
        if workers is not None:
            raise errors.InvalidInput("--workers", "was given with --engine ray", "leave it out")
        return studies.on_ray(address)
    if address is not None:
        raise errors.InvalidInput("--address", "was given without a cluster", "add --engine ray")
    return studies.local(workers)


def _family_bars(
    bars: Progress, specification: Specification
) -> Callable[[str, float, float], None]:
    """One bar per family, over all of its cells."""
    family = {cell.label: cell.family for cell in specification.cells}
    members: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in family.values()}
    tasks = {name: bars.add_task(name, total=1.0, start=False, rate="") for name in members}
    cells = len(family) // len(members)
    plays = sum(len(specification.players(cell)) for cell in specification.cells) / len(members)
    rounds = plays * specification.systems * specification.runs * specification.rounds
    compiled: Callable[[], None] | None = progress.compiling(bars)
    stored: dict[str, float] | None = {}

    def moved(label: str, share: float, before: float) -> None:
        nonlocal compiled, stored
        name = family[label]
        if stored is not None:  # the first call for each cell: nothing is played yet
            stored[label] = before
            if len(stored) == len(family):
                there = sum(stored.values()) / len(stored)
                if 0 < there < 1:
                    bars.console.print(Text(RESUMING.format(100 * there), "dim"))
                if there == 1 and compiled is not None:
                    compiled()
                stored = None
        elif compiled is not None:
            compiled()
            compiled = None
        members[name][label] = (share, before)
        done = sum(now for now, _ in members[name].values()) / cells
        news = done - sum(then for _, then in members[name].values()) / cells
        task = bars.tasks[tasks[name]]
        if news > 0 and not task.started:
            bars.start_task(task.id)
        elapsed = task.elapsed or 0.0
        rate = "stored" if news == 0 and done == 1 else ""
        if specification.measure == "regret" and news > 0 and elapsed > 0.2:
            rate = f"{news * rounds / elapsed / 1e6:.2f} M rounds/s"
        bars.update(task.id, completed=done, rate=rate)

    return moved


def _say(console: Console, made: paper.Reproduced, seconds: float) -> None:
    spent = made.outcome.seconds
    names = ", ".join(escape(str(path)) for path in made.files)
    console.print(
        f"{made.target.title}: {seconds:.1f} s here; in all {spent['prepare']:.1f} s preparing, "
        f"{spent['compile']:.1f} s compiling, {spent['play']:.1f} s playing, summed over workers.\n"
        f"Saved {names}",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
