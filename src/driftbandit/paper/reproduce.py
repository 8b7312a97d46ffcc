"""Reproduce a table or figure: run its study, write its data and picture, add it to the report.

OUT/table2.json  OUT/table2.png  OUT/table2.svg     and so on
OUT/report.html                                     all that OUT holds
OUT/studies/…                                       chunks, so that nothing is played twice
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import driftbandit
from driftbandit import errors, plots
from driftbandit.paper.target import Options, Target
from driftbandit.report import Facts, Paragraph, Section, page
from driftbandit.study import Outcome, run
from driftbandit.study.engines import Engine
from driftbandit.study.run import Progress
from driftbandit.study.store import logged_seconds, write_whole

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
    settings: dict[str, Any] = options.size._asdict()
    settings |= dataclasses.asdict(options)
    settings |= {"reading": str(options.reading), "study": specification.identity}
    del settings["size"]
    document = {
        "target": target.name,
        "settings": settings,
        "versions": outcome.versions,
        **target.document(outcome),
    }
    figure = target.figure(document)
    svg = plots.save(figure, Path("figure.svg"))
    content = {
        out / f"{target.name}.json": (json.dumps(document, indent=1) + "\n").encode(),
        out / f"{target.name}.svg": svg,
        out / f"{target.name}.png": plots.save(figure, Path("figure.png")),
    }
    for path, data in content.items():
        write_whole(path, data)
    section = target.section(document, svg.decode())
    return Reproduced(target, document, section, tuple(content), outcome)


def write_report(targets: Mapping[str, Target], out: Path) -> Path:
    """Write ``report.html`` from everything that ``out`` holds."""
    out = Path(out)
    sections, facts = [], {}
    for name, target in targets.items():
        data, picture = out / f"{name}.json", out / f"{name}.svg"
        if not (data.exists() and picture.exists()):
            continue
        document = _read(data)
        sections.append(target.section(document, picture.read_text()))
        facts[target.title] = _played(document["settings"], out)
        facts[f"{target.title}, computed with"] = ", ".join(
            f"{package} {' and '.join(found)}" for package, found in document["versions"].items()
        )
    introduction = Section(
        "about",
        "What this is",
        [
            Paragraph(
                "The paper's numbers and pictures, computed again from their definitions by "
                f"driftbandit {driftbandit.__version__}, beside what was published. Where the two "
                "differ, it is said. Every column of a table sorts at a click."
            )
        ],
    )
    settings = Section("settings", "Settings", [Facts(facts)])
    text = page(
        "Drifting bandits: the paper, reproduced", PAPER, [introduction, *sections, settings]
    )
    path = out / "report.html"
    write_whole(path, text.encode())
    return path


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except ValueError as error:
        raise errors.InvalidInput(
            "out", f"{path.name} is not JSON ({error})", "reproduce it again, or remove it"
        ) from None


def _played(settings: Mapping[str, Any], out: Path) -> str:
    seconds = logged_seconds(out / "studies" / settings["study"])
    return (
        f"{settings['systems']} systems × {settings['runs']} runs × {settings['rounds']} rounds "
        f"per family ({', '.join(settings['families'])}), seed {settings['seed']}, reading "
        f"{settings['reading']}, {settings['dtype']} on {settings['platform']}; "
        f"{seconds['prepare']:.0f} s preparing, {seconds['compile']:.0f} s compiling and "
        f"{seconds['play']:.0f} s playing, summed over workers"
    )
