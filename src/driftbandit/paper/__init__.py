"""The paper's table and figures, one file each (P20–P24), and the report on all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandit._version import __version__
from driftbandit.io.atomic import write_whole
from driftbandit.paper import figure1, figure2, figure3, table2
from driftbandit.paper.readings import Options
from driftbandit.report import Block, Cell, Facts, Figure, Heading, Report, Table, Text, html
from driftbandit.studies import Reproduced, Size, Summary, Target, reproduce
from driftbandit.studies.store import logged_seconds
from driftbandit.studies.target import data_file

__all__ = ["TARGETS", "Options", "Reproduced", "Size", "Target", "reproduce", "write_report"]

PAPER_SIZE = Size(1000, 10, 1000)
TARGETS: dict[str, Target] = {
    name: Target(name, title, full, quick, m.specification, m.document, m.blocks, m.summary)
    for name, title, m, full, quick in (
        ("table2", "Table II", table2, PAPER_SIZE, Size(100, 4, 1000)),
        ("figure1", "Figure 1", figure1, PAPER_SIZE, Size(100, 4, 1000)),
        ("figure2", "Figure 2", figure2, Size(1000, 1, 1), Size(40, 1, 1)),
        ("figure3", "Figure 3", figure3, PAPER_SIZE, Size(40, 2, 500)),
    )
}
"""What `driftbandit reproduce` can compute, in the paper's order."""

PAPER = (
    "J. Gornet, Y. Mo and B. Sinopoli, “A Control Theory inspired Exploration Method for a Linear "
    "Bandit driven by a Linear Gaussian Dynamical System”"
)


def write_report(
    targets: Mapping[str, Target], out: Path, made: Mapping[str, Reproduced] | None = None
) -> Path:
    """Write ``report.html`` from the targets that the folder ``out`` holds.

    Args:
        targets: by name, such as `TARGETS`.
        out: the folder that `reproduce` wrote to.
        made: what was just made, by name; it is not read and drawn again.

    Returns:
        The path of the report.

    Example:
        >>> import tempfile
        >>> options = Options(Size(systems=2, runs=1, rounds=1), families=("gaussian",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = reproduce(TARGETS["figure2"], options, folder)
        ...     page = write_report(TARGETS, folder, {"figure2": made}).read_text()
        >>> "Figure 2" in page, "Figure 3" in page  # only what was made
        (True, False)
    """
    blocks: list[Block] = []
    facts: dict[str, str] = {}
    rows: list[list[Cell | str]] = []
    present = [target for name, target in targets.items() if data_file(out, name).exists()]
    for target in present:
        file = data_file(out, target.name)
        try:
            if made and target.name in made:
                document, section = made[target.name].document, made[target.name].blocks
            else:
                document = json.loads(file.read_text())
                section = target.drawn(document)
                for block in section:
                    if isinstance(block, Figure):
                        block.draw()  # here, where an error costs only this section
            facts |= _settings(target, document, Path(out))
            found = target.summary(document)
        except Exception:  # damaged, or written by another version: show the rest
            problem = f"`{file.name}` could not be read"
            found = Summary("not read", f"{problem}.", "bad")
            remedy = f"{problem}: reproduce {target.name} again, or remove it."
            section = [Heading(target.title, target.name), Text(remedy)]
        blocks += section
        rows.append([target.title, Cell(found.verdict, tone=found.tone), found.sentence])
    title = "Drifting bandits"
    about = "Policies compared on the random systems of the paper named above"
    if any(target.published for target in present):
        title += ": the paper, reproduced"
        about = "The paper's numbers and figures, computed and compared with the published ones"
    text = f"{about}, by driftbandit {__version__}. Click a column heading to sort by it."
    summary = Table("Findings", ["item", "verdict", "in short"], rows)
    blocks = [Heading("Summary", "about"), Text(text), summary, *blocks]
    blocks += [Heading("Settings", "settings"), Facts(facts)]
    report = Report(title, PAPER, blocks)
    path = Path(out) / "report.html"
    write_whole(path, html.page(report).encode())
    return path


def _settings(target: Target, document: Mapping[str, Any], out: Path) -> dict[str, str]:
    """Settings, times and versions of one target."""
    settings = document["settings"]
    seconds = logged_seconds(out / "studies" / settings["study"])
    size, device = f"{settings['systems']} systems", ""
    times = f"{seconds['play']:.0f} s computing"
    if settings["measure"] == "regret":
        size += f" × {settings['runs']} runs × {settings['rounds']} rounds"
        device = f", {settings['dtype']} on {settings['platform']}"
        times = (
            f"{seconds['prepare']:.0f} s preparing, {seconds['compile']:.0f} s compiling and "
            f"{seconds['play']:.0f} s playing"
        )
    versions = (f"{name} {' and '.join(found)}" for name, found in document["versions"].items())
    return {
        target.title: f"{size} per family ({', '.join(settings['families'])}), seed "
        f"{settings['seed']}, reading {settings['reading']}{device}; {times}, summed over workers",
        f"{target.title}, computed with": ", ".join(versions),
    }
