"""What a log cannot tell, and when a model predicts nothing."""

from __future__ import annotations

import math

import numpy as np

from driftbandit.identify import em
from driftbandit.identify.selection import Candidate
from driftbandit.io.logs import Log
from driftbandit.model import factor

__all__ = ["said"]

HIDDEN = 1e-6
"""A direction that shows this much less in the rewards than the best one is not identified."""
NOTHING = "The model predicts rewards no better than each arm's mean."


def said(
    parameters: em.Parameters,
    data: em.Data,
    log: Log,
    converged: bool,
    kind: Candidate,
    guessed: bool,
    ahead: float,
    options: em.Options,
) -> list[str]:
    """Warnings, the plainest first.

    Args:
        parameters: what was learned.
        data: the log, rewards as they are.
        log: for the arms' names.
        converged: whether the climb came to rest.
        kind: of model.
        guessed: whether the log was too short to choose by it.
        ahead: log-density of the rewards given the rounds before theirs, in units of their spread
            around the arms' means.
        options: what was estimated.
    """
    found = list(log.notes)
    shared = kind.kind in em.STRUCTURES
    if guessed and not shared:
        found.append("Too few rewards to compare models: each arm is taken to drift by itself.")
    elif guessed:
        found.append("Too few rewards to choose the number of states: there is one.")
    if not data.rewards.any():
        found.append("All rewards are zero: what was found is the start's, not the log's.")
    elif not converged and shared:
        found.append("The likelihood was still rising: give more iterations.")
    elif kind.kind == "constant":
        found.append(f"{NOTHING} No drift shows in this log.")
    elif shared and options.offsets and not guessed:
        rewards = float(data.seen.sum())
        without = -0.5 * rewards * (math.log(2 * math.pi) + 1)
        if ahead - without < _freedom(parameters, options):
            found.append(f"{NOTHING} Fewer states or a simpler structure may.")
    played = np.bincount(data.arms[data.seen > 0], minlength=len(log.names)) > 0
    if not played.all():
        silent = [str(log.names[i]) for i in np.flatnonzero(~played)[:5]]
        found.append(f"No reward was seen of {(~played).sum()} arms: {', '.join(silent)}.")
    hidden = _hidden_directions(parameters, played) if shared else 0
    if hidden:
        found.append(
            f"The rewards hardly show {hidden} of {len(parameters.transition)} directions of the "
            "state: what was found of them is the start's, not the log's."
        )
    return found


def _freedom(parameters: em.Parameters, options: em.Options) -> int:
    """How many numbers were learned about what drifts: what they gain by luck (Akaike 1974)."""
    k, d = parameters.reads.shape
    moves = {"free": d * d + d * (d + 1) // 2, "diagonal": 2 * d, "scalar": 1 + d}
    return moves[options.structure] + (k * d if options.reads else 0)


def _hidden_directions(parameters: em.Parameters, played: np.ndarray) -> int:
    """How many directions of the state hardly show in the rewards of the played arms.

    The observability Gramian of d rounds in which all of them are seen, in units of the state's
    own spread.
    """
    d = len(parameters.transition)
    rows, blocks = parameters.reads[played], []
    for _ in range(d):
        blocks.append(rows)
        rows = rows @ parameters.transition
    root = factor(parameters.process_cov + parameters.initial_cov)
    values = np.linalg.svd(np.vstack(blocks) @ root, compute_uv=False)
    return int((values**2 < HIDDEN * values[0] ** 2).sum()) + max(0, d - len(values))
