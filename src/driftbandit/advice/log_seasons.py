"""Seasons of a model: how large they are, and whether arms share them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit.identify.findings import Answer, answer
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.components import components
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.structure import Component
from driftbandit.structure import Structure as Candidate


class Season(NamedTuple):
    """A pattern that repeats."""

    period: float
    swing: float  # from its lowest to its highest point, mean over arms
    differs: bool  # whether the model has a pattern for each arm
    own: Answer | None = None  # whether models with a pattern for each arm predict better


def seasons(found: StructuredFit, comparison: Comparison | None = None) -> tuple[Season, ...]:
    """The seasons of a model, as they were in the last four cycles of the log.

    Args:
        found: the model.
        comparison: that it comes from; says whether arms share each season.
    """
    parts = [one for one in found.structure.components if one.kind == "season"]
    paths = components(found)
    result = []
    for period in dict.fromkeys(_period(one) for one in parts):
        texts = {str(one) for one in parts if _period(one) == period}
        differs = any(one.scope == "arm" for one in parts if _period(one) == period)
        swings = []
        for name in found.names:
            mine = [p for p in paths if p.component in texts and p.label in ("", str(name))]
            rounds, total = mine[0].rounds, np.sum([path.mean for path in mine], axis=0)
            last = rounds > rounds[-1] - 4 * period
            phases = np.floor(rounds[last] % period)
            points = [float(total[last][phases == one].mean()) for one in np.unique(phases)]
            swings.append(max(points) - min(points))
        own = None if comparison is None else own_pattern(comparison, period)
        result.append(Season(period, float(np.mean(swings)), differs, own))
    return tuple(result)


def own_pattern(comparison: Comparison, period: float) -> Answer:
    """Whether a pattern for each arm predicts better than one that all arms share.

    Of the structures with a season of that period, the best with one for each arm is compared with
    the best whose season is shared; both kinds were tried with the same number of waves.
    """
    having = [i for i, one in enumerate(comparison.structures) if _scopes(one, period)]
    return answer(comparison.part(having), lambda one: _scopes(one, period) != {"shared"})


def _scopes(structure: Candidate, period: float) -> set[str]:
    """Who has a season of that period."""
    parts = [one for one in structure.components if one.kind == "season"]
    return {one.scope for one in parts if _period(one) == period}


def _period(component: Component) -> float:
    return float(component.period)  # type: ignore[attr-defined]
