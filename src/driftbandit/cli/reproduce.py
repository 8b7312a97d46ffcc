"""`driftbandit reproduce`: the paper's table and figures and the leaderboard, with a report."""

from __future__ import annotations

import gc
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.text import Text

from driftbandit import errors, families
from driftbandit.cli import interrupt, options, progress

if TYPE_CHECKING:  # loads pyarrow, matplotlib and jinja2, which the help does not need
    from driftbandit import paper
    from driftbandit.studies import Engine, Specification

EXAMPLES = """
**Examples**

    driftbandit reproduce table2 --quick
    driftbandit reproduce all --out paper
    driftbandit reproduce table2 --reading closest --families gaussian,uniform
    driftbandit reproduce figure3 --engine ray --address auto
    driftbandit reproduce leaderboard --quick --out leaderboard
"""

ALL = "all"
RESUMING = "Resuming: {:.0f}% of this study is already stored. --no-resume plays it all again."


def command(
    target: str = typer.Argument(
        ...,
        help="From the paper: table2, figure1, figure2, figure3, or all of these. Not in the "
        "paper: leaderboard.",
    ),
    systems: int | None = typer.Option(
        None,
        help="Random systems per family.",
        show_default="1000, as in the paper; leaderboard: 24",
    ),
    runs: int | None = typer.Option(
        None,
        help="Runs per system; leaderboard: of the longest length.",
        show_default="10, as in the paper; leaderboard: 4",
    ),
    rounds: int | None = typer.Option(
        None,
        help="Rounds per run; leaderboard: of a system with a memory of 1000 rounds.",
        show_default="1000, as in the paper; leaderboard: 8000",
    ),
    quick: bool = typer.Option(False, "--quick", help="Use small sizes, for a first look."),
    out: Path = typer.Option(Path("reproduced"), help="Folder for data, pictures and report."),
    seed: options.Seed = 0,
    reading: str = typer.Option(
        "plain",
        help="How to interpret what the paper leaves open: plain, closest, unit, or individual "
        "choices such as 'arms=unit, noise=one', which the page on the paper lists.",
    ),
    family: str = typer.Option(
        ALL,
        "--families",
        help="Comma-separated families of systems, or all; the leaderboard has more than the "
        "paper, such as mixed_memories.",
    ),
    resume: bool = typer.Option(True, help="Reuse the finished parts of this study in the folder."),
    engine: str = typer.Option(
        "local", help="Where to compute: local (this machine) or ray (a cluster)."
    ),
    address: str | None = typer.Option(None, help="Address of a running Ray cluster, or auto."),
    workers: int | None = typer.Option(
        None, help="Parallel workers of the local engine.", show_default="one per core"
    ),
    device: options.Device = None,
    congruent: bool = typer.Option(
        False, "--congruent", help="Figure 3: use T⁻¹QT⁻ᵀ instead of the projected T⁻¹QT."
    ),
    memories: str = typer.Option(
        "",
        help="Leaderboard: comma-separated memories in rounds: 2, 10, 100, 1000, forever, mixed.",
        show_default="all",
    ),
    policies: str = typer.Option(
        "",
        help="Leaderboard: comma-separated policies to compare with the default one.",
        show_default="all",
    ),
    float32: options.Float32 = False,
    as_json: options.Json = False,
) -> None:
    """Reproduce the paper's Table II and its three figures, or run the leaderboard.

    The leaderboard compares every policy with the best one, on many kinds of systems, by how long
    they remember. It also writes a Markdown page.

    Each target writes its numbers (JSON), a picture (PNG and SVG) and a section of report.html, a
    single file that opens in any browser.

    You can stop this command at any time, for example with Ctrl-C, and run it again to resume.
    Each part is stored in the folder as soon as it is finished. If you run a finished study again,
    its results appear within seconds.
    """
    shown = errors.printable(str(out))
    interrupt.keeps(f"Finished parts are kept in {shown}. Run the same command again to resume.")
    from driftbandit import leaderboard, paper
    from driftbandit.paper import readings
    from driftbandit.report import Table, terminal

    targets = {**paper.TARGETS, leaderboard.TARGET.name: leaderboard.TARGET}
    chosen = list(paper.TARGETS)
    if target != ALL:
        chosen = [errors.closest(target, "target", [*targets, ALL])]
    ranked = target == leaderboard.TARGET.name
    unread = {"--reading": reading != "plain"} if ranked else {"--memories": memories}
    for option, value in (unread | ({} if ranked else {"--policies": policies})).items():
        if value:
            raise errors.InvalidInput(option, f"was given with {target}", "leave it out")
    drawn = leaderboard.PROBLEMS if ranked else families.FAMILIES
    given = {"systems": systems, "runs": runs, "rounds": rounds}
    shared: dict[str, Any] = {
        "seed": seed,
        "families": _ordered(family, "--families", list(drawn)),
        "dtype": "float32" if float32 else "float64",
        "platform": _platform(device, engine),
        "memories": _ordered(memories, "--memories", [*leaderboard.MEMORIES]) if memories else (),
        "policies": tuple(options.split_policies(policies)),
        "reading": readings.named(reading),
        "congruent": congruent,
    }
    sizes = {name: _size(targets[name], quick, given) for name in chosen}
    asked = {name: paper.Options(size, **shared) for name, size in sizes.items()}
    player = _engine(engine, address, workers)
    specifications = {name: targets[name].specification(asked[name]) for name in chosen}
    for specification in specifications.values():
        _check_memory(specification)
    console = Console(stderr=as_json)
    gc.freeze()  # the libraries' objects stay: looking through them for garbage takes 0.1 s a time
    made = {}
    for name, specification in specifications.items():
        begin = time.perf_counter()
        with progress.bars() as bars:
            moved = _family_bars(bars, specification)
            work = (targets[name], asked[name], out, player)
            made[name] = paper.reproduce(*work, resume=resume, progress=moved)
        if not as_json:
            tables = [block for block in made[name].blocks if isinstance(block, Table)]
            terminal.show(tables, console)
            _print_times(console, made[name], time.perf_counter() - begin)
    page = paper.write_report(targets, out, made)
    if as_json:
        print(json.dumps({name: part.document for name, part in made.items()}, indent=1))
    console.print(f"Report: [bold]{escape(str(page))}[/]", soft_wrap=True)


def _check_memory(specification: Specification) -> None:
    """Refuse a study whose results do not fit; chunks are small."""
    systems, runs = specification.systems, specification.runs
    columns = (
        (len(specification.players(cell)) + 2) * specification.runs_and_rounds(cell)[0]
        for cell in specification.cells
    )
    size = 3 * 8.0 * systems * sum(columns)
    asked = f"{systems:,} systems and {runs:,} runs in {len(specification.cells)} cells"
    options.check_memory("--systems, --runs", asked, size)


def _size(target: paper.Target, quick: bool, given: dict[str, int | None]) -> paper.Size:
    wanted = {key: value for key, value in given.items() if value is not None}
    for key, value in wanted.items():
        errors.whole_number(value, f"--{key}", low=1)
    return (target.quick if quick else target.full)._replace(**wanted)


def _ordered(text: str, option: str, valid: list[str]) -> tuple[str, ...]:
    """The names in a comma-separated text, in the order of ``valid``."""
    names = options.several(text, option, valid)
    return tuple(name for name in valid if name in names)


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
        raise errors.InvalidInput("--address", "was given without --engine ray", "add that too")
    return studies.local(workers)


def _family_bars(
    bars: Progress, specification: Specification
) -> Callable[[str, float, float], None]:
    """A callback for `paper.reproduce`: one bar per family, over all of its cells."""
    family = {cell.label: cell.family for cell in specification.cells}
    members: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in family.values()}
    tasks = {name: bars.add_task(name, total=1.0, start=False, rate="") for name in members}
    plays = dict.fromkeys(members, 0)  # rounds of all policies
    for cell in specification.cells:
        runs, rounds = specification.runs_and_rounds(cell)
        each = len(specification.players(cell)) * specification.systems
        plays[cell.family] += each * runs * rounds
    cells = Counter(family.values())
    compiled = progress.compiling(bars)
    stored: dict[str, float] = {}

    def moved(label: str, share: float, before: float) -> None:
        if label in stored:
            compiled()
        else:  # the first call for this cell: nothing is played yet
            stored[label] = before
            there = sum(stored.values()) / len(family)
            if there == 1:
                compiled()
            elif there > 0 and len(stored) == len(family):
                bars.console.print(Text(RESUMING.format(100 * there), "dim"))
        name = family[label]
        members[name][label] = (share, before)
        done, old = (sum(part) / cells[name] for part in zip(*members[name].values(), strict=True))
        task = bars.tasks[tasks[name]]
        if done > old and not task.started:
            bars.start_task(task.id)
        rate = "stored" if done == old == 1 else ""
        if specification.measure == "regret" and done > old:
            rate = progress.speed((done - old) * plays[name], task.elapsed)
        bars.update(task.id, completed=done, rate=rate)

    return moved


def _print_times(console: Console, made: paper.Reproduced, seconds: float) -> None:
    spent = made.outcome.seconds
    names = ", ".join(escape(str(path)) for path in made.files)
    text = (
        f"{made.target.title}: {seconds:.1f} s here; in all {spent['prepare']:.1f} s preparing, "
        f"{spent['compile']:.1f} s compiling, {spent['play']:.1f} s playing, summed over workers.\n"
        f"Saved {names}"
    )
    console.print(text, style="dim", highlight=False, soft_wrap=True)
