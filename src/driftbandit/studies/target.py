"""What a table or figure is made of, and the names it uses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from matplotlib.figure import Figure

from driftbandit.families import FAMILIES
from driftbandit.report import Section
from driftbandit.study import Cell, Outcome, Specification
from driftbandit.study.readings import PLAIN, Reading

__all__ = ["Options", "Size", "Summary", "Target", "storable"]


class Size(NamedTuple):
    """How much is played."""

    systems: int
    """Per family."""
    runs: int
    """Per system."""
    rounds: int


@dataclasses.dataclass(frozen=True)
class Options:
    """What a reproduction depends on besides the paper."""

    size: Size
    seed: int = 0
    reading: Reading = PLAIN
    families: tuple[str, ...] = tuple(FAMILIES)
    dtype: str = "float64"
    platform: str = "cpu"
    congruent: bool = False
    """Figure 3: T⁻¹QT⁻ᵀ in place of the projected T⁻¹QT."""
    settings: tuple[str, ...] = ()
    """Leaderboard: which settings; none named: all."""
    policies: tuple[str, ...] = ()
    """Leaderboard: which policies; none named: all that are registered."""

    def specification(
        self, policies: tuple[str, ...], cells: tuple[Cell, ...] = ()
    ) -> Specification:
        """A study of this size; by default one cell per family."""
        systems, runs, rounds = self.size
        return Specification(
            cells or tuple(Cell(family, self.reading) for family in self.families),
            policies,
            systems,
            runs,
            rounds,
            self.seed,
            dtype=self.dtype,
            platform=self.platform,
            # A GPU wants all of a family at once, cores want to share it.
            chunk=systems if self.platform == "gpu" else 50,
        )

    def metric(self, policies: tuple[str, ...]) -> Specification:
        """A study of the metric φ: one cell per family, nothing played, float64 on the CPU."""
        cells = tuple(Cell(family, self.reading) for family in self.families)
        return Specification(
            cells, policies, self.size.systems, runs=1, rounds=1, seed=self.seed, measure="metric"
        )


def storable(value: Any) -> Any:
    """The same, with None for numbers that JSON does not have: infinite ones and NaN.

    Example:
        >>> storable({"low": float("nan"), "runs": [1, 2.5]})
        {'low': None, 'runs': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {key: storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Summary(NamedTuple):
    """What a target found, for the top of the report."""

    verdict: str
    """A few words: "26 of 35 as published"."""
    sentence: str
    tone: Literal["", "good", "bad"] = ""

    @classmethod
    def counted(cls, met: int, of: int, what: str) -> Summary:
        """So many of the published numbers or pictures came out as they were published.

        Example:
            >>> Summary.counted(0, 6, "growth rates").verdict
            'did not reproduce: 0 of 6'
        """
        word = "reproduced" if met == of else "partly reproduced" if met else "did not reproduce"
        sentence = f"{met} of {of} {what}."
        return cls(f"{word}: {met} of {of}", sentence, "good" if met == of else "bad")


class Target(NamedTuple):
    """One table or figure: a study, the numbers drawn from it, a picture and a report section."""

    name: str
    title: str
    full: Size
    """The paper's size."""
    quick: Size
    """A size for a first look."""
    specification: Callable[[Options], Specification]
    document: Callable[[Outcome], dict[str, Any]]
    """Numbers that the picture and the section are made of, as JSON can hold them."""
    figure: Callable[[Mapping[str, Any]], Figure]
    section: Callable[[Mapping[str, Any], str], Section]
    """From the document and the picture's SVG."""
    summary: Callable[[Mapping[str, Any]], Summary]
    page: Callable[[Mapping[str, Any]], str] | None = None
    """A page of Markdown, where there is one."""
    published: bool = True
    """Whether the paper has it too."""
