"""What each component contributed over time, given the whole log (fixed-interval smoother)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from driftbandit.identify.structured import likelihood
from driftbandit.identify.structured.fitting import Fit
from driftbandit.identify.structured.moves import moves_of, places_of

MOST_NUMBERS = 5 * 10**7  # plays × states² that are kept; of longer logs the end is shown


class Path(NamedTuple):
    """A component's contribution to the rewards of an arm, a group or all arms, round by round.

    Of a regression: the weight of a feature.
    """

    component: str
    label: str  # of the arm, the group or the feature; "" if all arms share it
    rounds: np.ndarray  # n
    sequences: np.ndarray  # the number of the sequence, n
    mean: np.ndarray  # n
    std: np.ndarray  # n


def components(found: Fit) -> list[Path]:
    """The paths of all components, in the order of the structure.

    Args:
        found: as `fit` returned it.

    Returns:
        One `Path` for each arm, group or feature of a component, or for all arms together.

    Example:
        >>> from driftbandit.identify import as_log
        >>> from driftbandit.identify.structured.fitting import fit_structure
        >>> log = as_log({"round": range(20), "arm": [0, 1] * 10, "reward": [1.0, 2.0] * 10})
        >>> paths = components(fit_structure(log, "constant(arm) + level(shared)", starts=1))
        >>> [(path.component, path.label, len(path.mean)) for path in paths]
        [('constant(arm)', '0', 20), ('constant(arm)', '1', 20), ('level(shared)', '', 20)]
    """
    layout, data = found.layout, found.problem.described
    labels, reads = _reads(found)
    most = max(2, MOST_NUMBERS // layout.n_states**2)
    rows = data.rows._replace(apart=None)  # all paths are shown in all rounds
    places, mask = places_of(layout, apart=False)
    padded = np.pad(reads, ((0, 0), (0, len(places.there) - layout.n_states)))
    with jax.enable_x64(True):
        moves, _ = moves_of(layout, found.theta, data.units, rows, apart=False)
        last = min(most, len(data.rows.seen))
        means, variances = likelihood.smoothed(moves, mask, rows, padded, last)
    first = max(len(data.rows.seen) - most, 0)
    shown = np.arange(first, data.n_rows)
    later = np.append(data.rounds[1:] != data.rounds[:-1], True)
    later |= np.append(data.sequences[1:] != data.sequences[:-1], True)
    shown = shown[later[shown]]  # the last play of each round
    rounds, sequences = data.rounds[shown], data.sequences[shown]
    held = reads @ layout.means_of(data.centers)
    means = np.asarray(means)[shown - first] + held
    stds = np.sqrt(np.maximum(np.asarray(variances)[shown - first], 0.0))
    return [
        Path(*label, rounds, sequences, means[:, i], stds[:, i]) for i, label in enumerate(labels)
    ]


def _reads(found: Fit) -> tuple[list[tuple[str, str]], np.ndarray]:
    """What is shown: a component and a label each, and how it reads the state, c × d."""
    layout = found.layout
    reads = layout.matrices(found.theta, found.problem.described.units).reads
    labels, rows = [], []
    for copy, states in zip(layout.copies, layout.copy_states, strict=True):
        component = layout.structure.components[copy.component]
        features = sorted({layout.state_features[i] or "" for i in states})
        for feature in features if component.features else [""]:
            own = [i for i in states if (layout.state_features[i] or "") == feature]
            row = np.zeros(layout.n_states)
            row[own] = reads[copy.arms[0], own]
            if component.loadings is not None:  # the factor itself, not one arm's share of it
                row[own] = np.abs(reads[:, own]).max(axis=0) > 0
            labels.append((str(component), f"{copy.label} {feature}".strip()))
            rows.append(row)
    return labels, np.array(rows)
