"""Reproduce a table or figure: run its study, write its data and picture, add it to the report.

OUT/table2.json  OUT/table2.png  OUT/table2.svg     and so on; the leaderboard has a page, too
OUT/report.html                                     all that OUT holds
OUT/studies/…                                       chunks, so that nothing is played twice
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import driftbandit
from driftbandit import plots
from driftbandit.io.atomic import write_whole
from driftbandit.paper.target import Options, Summary, Target, storable
from driftbandit.report import Cell, Facts, Paragraph, Section, Table, page
from driftbandit.study import Outcome, run
from driftbandit.study.engines import Engine
from driftbandit.study.run import Progress
from driftbandit.study.store import logged_seconds

__all__ = ["Reproduced", "reproduce", "write_report"]

PAPER = (
    "J. Gornet, Y. Mo and B. Sinopoli, “A Control Theory inspired Exploration Method for a Linear "
    "Bandit driven by a Linear Gaussian Dynamical System”"
)


class Reproduced(NamedTuple):
    """One target, made."""

    target: Target
    document: Mapping[str, Any]
    section: Section
    files: tuple[Path, ...]
    outcome: Outcome


def reproduce(
    target: Target,
    options: Options,
    out: Path,
    engine: Engine | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Reproduced:
    """Make one table or figure; what ``out`` holds of its study already is not played again.

    Args:
        target: one of `paper.TARGETS`.
        options: size, seed, reading, precision, platform.
        out: folder for all files.
        engine: who plays; this process by default.
        resume: False plays everything again.
        progress: told how far each cell of the study is.
    """
    out = Path(out)
    specification = target.specification(options)
    outcome = run(specification, out / "studies", engine, resume=resume, progress=progress)
    kept = ("systems", "runs", "rounds", "seed", "measure", "dtype", "platform")
    document = storable(
        {
            "target": target.name,
            "settings": {name: getattr(specification, name) for name in kept}
            | {
                "families": options.families,
                "reading": str(options.reading),
                "study": specification.identity,
            },
            "versions": outcome.versions,
            **target.document(outcome),
        }
    )
    figure = target.figure(document)
    svg = plots.save(figure, Path("figure.svg"))
    content = {
        _data(out, target.name): (json.dumps(document, indent=1, allow_nan=False) + "\n").encode(),
        out / f"{target.name}.svg": svg,
        out / f"{target.name}.png": plots.save(figure, Path("figure.png")),
    }
    if target.page is not None:
        content[out / f"{target.name}.md"] = target.page(document).encode()
    for path, data in content.items():
        write_whole(path, data)
    section = target.section(document, svg.decode())
    return Reproduced(target, document, section, tuple(content), outcome)


def write_report(
    targets: Mapping[str, Target], out: Path, made: Mapping[str, Reproduced] | None = None
) -> Path:
    """Write ``report.html`` from everything that ``out`` holds.

    Args:
        targets: what may be there, in the report's order.
        out: the folder.
        made: what was made just now and need not be read and drawn again.
    """
    out = Path(out)
    sections: list[Section] = []
    facts: dict[str, str] = {}
    found: list[list[Cell | str]] = []
    present = {name: target for name, target in targets.items() if _data(out, name).exists()}
    for name, target in present.items():
        data = _data(out, name)
        try:
            if made and name in made:
                document, section = made[name].document, made[name].section
            else:
                document = json.loads(data.read_text())
                svg = plots.save(target.figure(document), Path("figure.svg")).decode()
                section = target.section(document, svg)
            facts |= _about(target, document, out)
            short = target.summary(document)
        except Exception:  # another version's, or damaged: the rest is worth having
            short = Summary("not read", f"`{data.name}` could not be read.", "bad")
            lost = f"`{data.name}` could not be read: reproduce {name} again, or remove it."
            section = Section(name, target.title, [Paragraph(lost)])
        sections.append(section)
        found.append([target.title, Cell(short.verdict, tone=short.tone), short.sentence])
    published = any(target.published for target in present.values())
    title = "Drifting bandits: the paper, reproduced" if published else "Drifting bandits"
    table = Table("What was found", ["item", "verdict", "in short"], found)
    introduction = Section("about", "Summary", [Paragraph(_introduction(published)), table])
    settings = Section("settings", "Settings", [Facts(facts)])
    text = page(title, PAPER, [introduction, *sections, settings])
    path = out / "report.html"
    write_whole(path, text.encode())
    return path


def _data(out: Path, name: str) -> Path:
    return out / f"{name}.json"


def _introduction(published: bool) -> str:
    made = f"driftbandit {driftbandit.__version__}"
    what = f"Policies compared by {made} on the random systems of the paper named above."
    if published:
        what = (
            "The paper's numbers and pictures, computed again from their definitions by "
            f"{made}, beside what was published. Where the two differ, it is said."
        )
    return f"{what} Every column of a table sorts at a click."


def _about(target: Target, document: Mapping[str, Any], out: Path) -> dict[str, str]:
    """Settings, versions and times of one target."""
    versions = ", ".join(
        f"{package} {' and '.join(found)}" for package, found in document["versions"].items()
    )
    played = _played(document["settings"], out)
    return {target.title: played, f"{target.title}, computed with": versions}


def _played(settings: Mapping[str, Any], out: Path) -> str:
    seconds = logged_seconds(out / "studies" / settings["study"])
    if settings["measure"] == "metric":
        return (
            f"{settings['systems']} systems per family ({', '.join(settings['families'])}), seed "
            f"{settings['seed']}, reading {settings['reading']}; {seconds['play']:.0f} s of "
            "computing, summed over workers"
        )
    return (
        f"{settings['systems']} systems × {settings['runs']} runs × {settings['rounds']} rounds "
        f"per family ({', '.join(settings['families'])}), seed {settings['seed']}, reading "
        f"{settings['reading']}, {settings['dtype']} on {settings['platform']}; "
        f"{seconds['prepare']:.0f} s preparing, {seconds['compile']:.0f} s compiling and "
        f"{seconds['play']:.0f} s playing, summed over workers"
    )
