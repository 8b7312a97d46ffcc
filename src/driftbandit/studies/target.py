"""A target is a table, figure or ranking: a study, the numbers drawn from it, and report blocks.

`reproduce` writes its files, and stores the study so that nothing is computed twice:

    OUT/table2.json  OUT/table2.png  OUT/table2.svg     and a Markdown page if the target has one
    OUT/studies/…
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit import errors
from driftbandit.families import FAMILIES
from driftbandit.io.atomic import write_whole
from driftbandit.report import Block, Figure, Report, Tone, figures, markdown, storable
from driftbandit.studies.engines import Engine, Outcome, Progress, run
from driftbandit.studies.specification import Cell, Specification

Document = Mapping[str, Any]
"""All numbers of a target, in a form that JSON can hold."""


class Size(NamedTuple):
    """The size of a study: systems per family, runs per system, rounds per run.

    Example:
        >>> size = Size(systems=1000, runs=10, rounds=1000)
        >>> size.systems * size.runs * size.rounds  # decisions of every policy in a family
        10000000
    """

    systems: int
    runs: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Options:
    """What a target is computed for; a subclass may draw other systems.

    Args:
        size, seed: of the study.
        families: the cells, one for each family.
        dtype, platform: as in `Specification`.
        memories, policies: if the target lets you choose; empty: all of them.

    Example:
        >>> size = Size(systems=120, runs=2, rounds=100)
        >>> options = Options(size, families=("gaussian", "cauchy"))
        >>> study = options.specification(("idea", "random"))
        >>> study.systems, [cell.label for cell in study.cells], study.chunk
        (120, ['gaussian', 'cauchy'], 50)
        >>> more = options.specification(("idea",), [options.cell("gaussian", n_arms=50)])
        >>> more.cells[0].label, options.described()
        ('gaussian.k-50', {'families': ('gaussian', 'cauchy')})
    """

    size: Size
    seed: int = 0
    families: tuple[str, ...] = dataclasses.field(default_factory=lambda: tuple(FAMILIES))
    dtype: str = "float64"
    platform: str = "cpu"
    memories: tuple[str, ...] = ()  # if the target lets you choose; empty: all of them
    policies: tuple[str, ...] = ()

    def cell(self, family: str, **changes: Any) -> Cell:
        """A cell of the study; ``changes`` are further arguments of `Cell`."""
        return Cell(family, **changes)

    def described(self) -> dict[str, Any]:
        """The settings that the target's data file records besides the specification's."""
        return {"families": self.families}

    def specification(self, policies: tuple[str, ...], cells: Sequence[Cell] = ()) -> Specification:
        """A study of this size; by default one cell per family."""
        cells = tuple(cells) or tuple(map(self.cell, self.families))
        kind: dict[str, Any] = {"dtype": self.dtype, "platform": self.platform}
        # A GPU is fastest with a whole family at once; cores share a family.
        kind["chunk"] = self.size.systems if self.platform == "gpu" else 50
        return Specification(cells, policies, *self.size, self.seed, **kind)


class Summary(NamedTuple):
    """What a target found, for the top of the report; a verdict is "reproduced: 35 of 35".

    Example:
        >>> found = Summary.counted(35, 35, "medians are as published")
        >>> found.verdict, found.sentence, found.tone
        ('reproduced: 35 of 35', '35 of 35 medians are as published.', 'good')
    """

    verdict: str
    sentence: str
    tone: Tone = ""

    @classmethod
    def counted(cls, met: int, of: int, what: str) -> Summary:
        """How many of the published numbers or pictures were reproduced.

        Example:
            >>> Summary.counted(0, 6, "growth rates").verdict
            'did not reproduce: 0 of 6'
        """
        if of == 0:
            return cls("not published", "The paper has nothing to compare this with.")
        word = "reproduced" if met == of else "partly reproduced" if met else "did not reproduce"
        tone: Tone = "good" if met == of else "bad"
        return cls(f"{word}: {met} of {of}", f"{met} of {of} {what}.", tone)


class Target(NamedTuple):
    """A table, figure or ranking.

    Example:
        >>> from driftbandit.paper import TARGETS, Options
        >>> target = TARGETS["figure1"]
        >>> target.title, target.full, target.published
        ('Figure 1', Size(systems=1000, runs=10, rounds=1000), True)
        >>> study = target.specification(Options(target.quick, families=("gaussian",)))
        >>> study.systems, study.policies[:3]
        (100, ('idea', 'kode', 'kalman_ucb'))

        Its page is made of the numbers of its document:

        >>> numbers = {"idea": [1.0, 2.0], "kalman_ucb": [1.1, 2.2], "systems_won": 1.0}
        >>> numbers |= {"median_difference": -0.1, "low": -0.2, "high": 0.0, "win_rate": 0.9}
        >>> document = {"families": {"gaussian": numbers}}
        >>> [type(block).__name__ for block in target.drawn(document)]
        ['Heading', 'Text', 'Points', 'Figure', 'Table']
        >>> target.summary(document).verdict
        'reproduced: 1 of 1'
    """

    name: str
    title: str
    full: Size
    quick: Size  # for a first look
    specification: Callable[[Any], Specification]  # from `Options`
    document: Callable[[Outcome], dict[str, Any]]
    blocks: Callable[[Document], list[Block]]
    """From the document: a heading with the target's name as id, one figure, and more."""
    summary: Callable[[Document], Summary]
    page: Callable[[Document], Report] | None = None
    """From the document: a page of Markdown."""
    published: bool = True  # whether it is in the paper

    def drawn(self, document: Document) -> list[Block]:
        """The blocks; every figure is drawn once, however many files show it."""
        return [
            dataclasses.replace(block, draw=functools.cache(block.draw))
            if isinstance(block, Figure)
            else block
            for block in self.blocks(document)
        ]


class Reproduced(NamedTuple):
    """A target that was computed and written.

    Example:
        >>> import tempfile
        >>> from driftbandit.paper import TARGETS, Options
        >>> options = Options(Size(systems=2, runs=1, rounds=1), families=("gaussian",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = reproduce(TARGETS["figure2"], options, folder)
        >>> made.target.title, made.document["settings"]["systems"], len(made.blocks) > 2
        ('Figure 2', 2, True)
        >>> [file.suffix for file in made.files], list(made.outcome.columns)
        (['.json', '.svg', '.png'], ['gaussian'])
    """

    target: Target
    document: Document
    blocks: list[Block]
    files: tuple[Path, ...]
    outcome: Outcome


def data_file(out: Path, name: str) -> Path:
    """The file with the numbers of a target."""
    return Path(out) / f"{name}.json"


def reproduce(
    target: Target,
    options: Options,
    out: Path,
    engine: Engine | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Reproduced:
    """Compute a target and write its files; chunks that ``out`` holds are not computed again.

    Args:
        target, options: such as one of `paper.TARGETS`, and its size, seed, families, precision.
        out: folder for all files.
        engine, resume, progress: as in `run`.

    Returns:
        The target's numbers, the blocks of its report, and the files that were written.

    Example:
        >>> import tempfile
        >>> from driftbandit.paper import TARGETS, Options
        >>> options = Options(Size(systems=2, runs=1, rounds=1), families=("gaussian",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = reproduce(TARGETS["figure2"], options, folder)
        ...     document = json.loads(Path(folder, "figure2.json").read_text())
        >>> document == made.document, document["settings"]["reading"]
        (True, 'plain')
    """
    errors.require("reproduce", "matplotlib", "jinja2")  # before hours of work
    out, name = Path(out), target.name
    specification = target.specification(options)
    outcome = run(specification, out / "studies", engine, resume=resume, progress=progress)
    kept = ("systems", "runs", "rounds", "seed", "measure", "dtype", "platform")
    settings = {key: getattr(specification, key) for key in kept} | options.described()
    settings["study"] = specification.identity
    header = {"target": name, "settings": settings, "versions": outcome.versions}
    document = storable(header | target.document(outcome))
    blocks = target.drawn(document)
    [figure] = [block for block in blocks if isinstance(block, Figure)]
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    content = {
        data_file(out, name): text.encode(),
        out / f"{name}.svg": figure.svg.encode(),
        out / f"{name}.png": figures.content(figure.draw(), "png"),
    }
    if target.page is not None:
        page = markdown.text(target.page(document), {name: f"{name}.png"})
        content[out / f"{name}.md"] = page.encode()
    for path, data in content.items():
        write_whole(path, data)
    return Reproduced(target, document, blocks, tuple(content), outcome)
