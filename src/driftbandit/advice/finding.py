"""Advice is a list of findings and a recommendation; here both become reports and JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from driftbandit import errors, statistics
from driftbandit._version import __version__
from driftbandit.report import Block, Facts, Heading, Points, Report, Table, Text, Tone, storable
from driftbandit.report.figures import interval_rows, name_rows
from driftbandit.report.numbers import estimate

TIME_UP = "not asked: time was up"
MOST_ARMS = {True: 20, False: 200}  # in a table of a terminal, of a page
Tell = Callable[..., None]


class Number(NamedTuple):
    """A value with the ends of its 95% interval; NaN: there are none.

    Example:
        >>> Number(0.2, 0.1, 0.3, statistics.BETTER).text
        '+0.20 (0.10 to 0.30)'
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    verdict: str = ""  # of a difference, as in `statistics`
    name: str = ""
    unit: str = "reward per round"

    @property
    def clear(self) -> bool:
        """Whether this is a gain whose interval is above zero."""
        return self.verdict == statistics.BETTER

    @property
    def text(self) -> str:
        """A difference and its interval: +0.20 (0.10 to 0.30)."""
        if self.verdict == statistics.TOO_FEW and math.isnan(self.low):
            return statistics.TOO_FEW
        if self.low == self.high == 0:
            return "exactly 0"
        if math.isnan(self.low):
            return f"{self.value:+.3g} (no interval)"
        value, ends = estimate(self.value, self.low, self.high, signed=True)
        return f"{value} ({ends})"


@dataclasses.dataclass(frozen=True, eq=False)
class Finding:
    """One question and its answer.

    Args:
        question, verdict: as "Is there drift?" and "yes"; `TIME_UP` if nobody looked.
        numbers: that the verdict rests on, with units and intervals.
        follows: what follows from it, in sentences.
        facts: all that is known, by the name of its key in JSON.
        blocks: the answer in full, as parts of a report.
    """

    question: str
    verdict: str
    numbers: Sequence[Number] = ()
    follows: Sequence[str] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    blocks: Sequence[Block] = dataclasses.field(default=(), repr=False)


def stated(question: str, verdict: str, text: str, facts: Mapping[str, Any]) -> Finding:
    """A finding that is said in one paragraph.

    Example:
        >>> stated("Is it?", "cannot tell", "There are too few rewards.", {"since": None}).verdict
        'cannot tell'
    """
    return Finding(question, verdict, facts=facts, blocks=[Text(text)])


def points(items: Sequence[str], tone: Tone = "") -> list[Block]:
    """The items as a list, if there are any."""
    return [Points(items, tone)] if items else []


def draw_rows(
    axis: Any,
    title: str,
    rows: Sequence[tuple[str, Number]],
    colors: Sequence[str],
    line: float | None,
) -> None:
    """Draw values with their intervals, by name, and a dashed line that they are compared with."""
    interval_rows(axis, [(row.low, row.value, row.high) for _, row in rows], colors)
    name_rows(axis, [name for name, _ in rows])
    axis.set_title(title, fontsize=9)
    if line is not None:
        axis.axvline(line, color="black", ls="--", lw=1)


class Recommendation(NamedTuple):
    """What to do, why, and what to run next."""

    kind: str  # "policy" of a system; "agent", "fixed arm", "keep", "collect"; "nothing"; or open
    headline: str
    reasons: Sequence[str] = ()
    choice: str | None = None  # the policy's name
    agreement: str | None = None  # of metric and simulation: "agree", "disagree", "cannot tell"
    warnings: Sequence[str] = ()
    commands: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What was found out about a system or a log, and what to do; ``print`` shows the latter.

    ``system`` is the system, or the model that a log led to; ``fit``, ``log`` and ``replay`` are
    None unless there was a log, and time for them.
    """

    findings: Sequence[Finding]
    recommendation: Recommendation
    system: Any = None
    fit: Any = None
    log: Any = None
    replay: Any = None

    def __getitem__(self, key: str) -> Any:
        """A fact by the name of its key in JSON, as in ``advice["drift"].verdict``."""
        facts = self._facts()
        return facts[errors.closest(key, "fact", list(facts))]

    def __str__(self) -> str:
        said = self.recommendation
        return "\n".join([said.headline, *said.reasons, *(f"Note: {w}" for w in said.warnings)])

    def __repr__(self) -> str:
        return f"Advice({self.recommendation.kind!r}, {len(self.findings)} findings)"

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON: None for infinite numbers and NaN."""
        names = ("question", "verdict", "numbers", "follows")
        findings = [{name: getattr(each, name) for name in names} for each in self.findings]
        document = {"findings": findings, "recommendation": self.recommendation} | self._facts()
        return dict(storable(_plain(document)))

    def report(self, name: str, *, terminal: bool = False) -> Report:
        """The findings and the recommendation, about the system or log ``name``.

        In a terminal the recommendation comes last, where it stays on the screen, and the caller
        prints the commands; on a page it comes first, below the headline.
        """
        advised, title = self.recommendation, f"Advice on {name}"
        said: list[Block] = [Heading("Recommendation")]
        if terminal or not advised.reasons:
            said.append(Text(advised.headline, "best"))
        said += [*points(advised.reasons), *points(advised.warnings, "bad")]
        blocks: list[Block] = []
        for place, finding in enumerate(self.findings, 1):
            blocks.append(Heading(f"{place}. {finding.question}"))
            for block in finding.blocks:
                blocks += _shortened(block, MOST_ARMS[terminal])
            blocks += map(Text, finding.follows)
        data = {"name": name} | self.to_dict()
        if terminal:
            return Report(title, "", [*blocks, *said], data)
        if advised.commands:
            said += [Heading("Next"), Points([f"`{line}`" for line in advised.commands])]
        settings: list[Block] = [
            Heading("Settings"),
            Facts({"name": name, "driftbandit": __version__}),
        ]
        return Report(title, advised.headline, [*said, *blocks, *settings], data)

    def _facts(self) -> dict[str, Any]:
        return {key: fact for each in self.findings for key, fact in each.facts.items()}


def _shortened(block: Block, most: int) -> list[Block]:
    """Of a long table of arms, the first rows."""
    if not isinstance(block, Table) or block.columns[0] != "arm" or len(block.rows) <= most:
        return [block]
    left = f"{len(block.rows) - most:,} more arms are left out."
    return [dataclasses.replace(block, rows=block.rows[:most]), Text(left)]


def _plain(value: Any) -> Any:
    """Named tuples as dictionaries, at any depth."""
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


class TimeUp(Exception):
    """Raised within the work on a question when the time is over."""


class Request(NamedTuple):
    """How to look for advice, of a system or of a log; see `advise`."""

    runs: int | None = None
    rounds: int | None = None
    seed: int = 0
    policies: Any = None
    budget: float | None = None
    progress: Tell | None = None
    ready: Tell | None = None


def asked(
    questions: Mapping[str, Mapping[str, Any]],
    answers: Callable[[Tell], Iterable[Finding]],
    request: Request,
) -> list[Finding]:
    """One finding for each question; those that there is no time for are not asked.

    Args:
        questions: and the facts that are stated if one is not asked.
        answers: called with a function that it tells of its progress; its findings are in the
            order of the questions.
        request: with the budget, and who is told of progress and of findings.

    Example:
        >>> def answers(tell):
        ...     yield Finding("Is it?", "yes")
        ...     tell("work", 0.5)
        >>> both = asked({"Is it?": {}, "Since when?": {}}, answers, Request(budget=0))
        >>> [each.verdict for each in both]
        ['yes', 'not asked: time was up']
    """
    budget, progress = math.inf, request.progress
    if request.budget is not None:
        budget = errors.number(request.budget, "budget", low=0)
    begin = time.monotonic()

    def tell(stage: str, share: float, *more: Any) -> None:
        spent = time.monotonic() - begin
        if progress is not None:
            progress(stage, share, *more)
            if budget < math.inf:
                progress("time", min(spent / max(budget, 1e-9), 1.0))
        if spent >= budget:
            raise TimeUp

    findings: list[Finding] = []
    with contextlib.suppress(TimeUp):
        for finding in answers(tell):
            findings.append(finding)
            if request.ready is not None:
                request.ready(finding)
    return completed(questions, findings)


def completed(
    questions: Mapping[str, Mapping[str, Any]], findings: Sequence[Finding], why: str = TIME_UP
) -> list[Finding]:
    """The findings, and one for each later question, which says why nobody asked it."""
    text = Text(f"{why.capitalize()}.", "dim")
    left = list(questions.items())[len(findings) :]
    return [*findings, *(Finding(each, why, facts=facts, blocks=[text]) for each, facts in left)]
