"""Climbing the likelihood by EM, with jumps along the path where they pay.

EM creeps where the noise is small beside the state. After two of its steps, θ → θ₁ → θ₂, the
path is extended (SQUAREM, Varadhan and Roland 2008): with r = θ₁ − θ and v = θ₂ − θ₁ − r,

    θ′ = θ + 2 s r + s² v,   s = ‖r‖ / ‖v‖,

in coordinates without bounds: factors of the covariances and the logarithm of σ². A jump counts
only if it is likelier than θ₂; so the likelihood never falls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftbandit.identify import em

__all__ = ["climb"]

LONGEST = 1e4
"""Most of EM's steps that a jump stands for."""


def climb(
    parameters: em.Parameters,
    data: em.Data,
    options: em.Options,
    iterations: int,
    tolerance: float,
    moved: Callable[[float], None],
) -> tuple[em.Parameters, list[float], bool]:
    """Climb until a jump and the two steps before it gain less than the tolerance per reward.

    Args:
        parameters: the start.
        data: S sequences.
        options: what to estimate.
        iterations: how often the data is smoothed, at most.
        tolerance: least gain of the log-likelihood per reward.
        moved: called with the share of the iterations done.

    Returns:
        The parameters, what was climbed on the way (`em.objective`), and whether it came to rest.
    """
    least = tolerance * float(data.seen.sum())
    sums = em.e_step(parameters, data)
    likelihoods = [em.objective(parameters, sums, options)]
    done = 1
    while done + 2 <= iterations:
        begin = likelihoods[-1]
        first, sums_first, height = _step(parameters, sums, data, options, begin)
        second, sums, higher = _step(first, sums_first, data, options, height)
        likelihoods += [height, higher]
        done += 2
        jump = _jump(parameters, first, second, options, em.least_var(sums))
        parameters = second
        if jump is not None and done < iterations:
            sums_jump = em.e_step(jump, data)
            done += 1
            if (higher := em.objective(jump, sums_jump, options)) > likelihoods[-1]:
                parameters, sums = jump, sums_jump
                likelihoods.append(higher)
        moved(min(done / iterations, 1.0))
        if likelihoods[-1] - begin <= least:
            return parameters, likelihoods, True
    return parameters, likelihoods, False


def _step(
    parameters: em.Parameters, sums: em.Sums, data: em.Data, options: em.Options, height: float
) -> tuple[em.Parameters, em.Sums, float]:
    """One step of EM, its sums and its height; the surer one where unseen rounds led it astray."""
    for whole in (False, True):
        after = em.m_step(parameters, sums, options)
        found = em.e_step(after, data)
        higher = em.objective(after, found, options)
        if data.waits is None or higher >= height:
            break
        if not whole:
            sums = em.e_step(parameters, data, whole=True)
    return after, found, higher


def _jump(
    start: em.Parameters,
    first: em.Parameters,
    second: em.Parameters,
    options: em.Options,
    least: float,
) -> em.Parameters | None:
    """Where the path leads; None where it stands still, or leads out of what is allowed."""
    flat, shapes = [], [part.shape for part in start]
    for parameters in (start, first, second):
        flat.append(np.concatenate([np.ravel(part) for part in _free(parameters)]))
    r = flat[1] - flat[0]
    v = flat[2] - flat[1] - r
    bend, length = float(np.linalg.norm(v)), float(np.linalg.norm(r))
    if not 0 < bend < np.inf or length <= bend:
        return None
    s = min(length / bend, LONGEST)
    there = flat[0] + 2 * s * r + s**2 * v
    parts, place = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(there[place : place + size].reshape(shape))
        place += size
    found = _bound(em.Parameters(*parts))
    found = found._replace(reward_var=np.maximum(found.reward_var, least))
    if not all(np.isfinite(part).all() for part in found):
        return None
    if options.stable and np.abs(np.linalg.eigvals(found.transition)).max() >= 1:
        return None
    return found


def _free(parameters: em.Parameters) -> em.Parameters:
    """Coordinates without bounds."""
    return parameters._replace(
        process_cov=_root(parameters.process_cov),
        initial_cov=_root(parameters.initial_cov),
        reward_var=np.log(parameters.reward_var),
    )


def _bound(free: em.Parameters) -> em.Parameters:
    """Back from there."""
    with np.errstate(over="ignore"):
        return free._replace(
            process_cov=free.process_cov @ free.process_cov.T,
            initial_cov=free.initial_cov @ free.initial_cov.T,
            reward_var=np.exp(free.reward_var),
        )


def _root(cov: np.ndarray) -> np.ndarray:
    """The symmetric root, which moves smoothly with its square."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
