"""Choice of the model: the one that best predicts rewards it was not learned from.

    score = mean of log p(x | the rounds before; learned without x)

This is five-fold cross-validation: over sequences if there are enough, else over rewards dealt at
random, so that each model is learned from most of the log and most rewards are scored. The scored
rewards are predicted from the rewards of earlier rounds only: a decision is made before its round
shows anything, and noise that all arms of one round share is not drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from driftbandit.identify import assembly
from driftbandit.identify.data import LARGEST_GRID, Data, Parameters
from driftbandit.identify.restarts import Progress, Task, best_run
from driftbandit.identify.smoothing import log_densities

SIZES = (1, 2, 3, 5, 8, 13, 20)  # of shared states; and one state per arm
FOLDS = 5
SLACK = 1e-3  # gain per reward that is not worth a state: stopping EM early makes such differences
LEAST_SIZES = 3  # this many numbers of shared states are always tried
LEAST = 10  # fewest rewards to learn from, and fewest to score, in every split
MOST_ITERATIONS, LEAST_TOLERANCE = 60, 1e-4  # of EM here: many runs, which are only compared


class Candidate(NamedTuple):
    """A number of states that arms share."""

    kind: str  # one of `em.STRUCTURES`
    n_states: int  # number of states that drift

    @property
    def label(self) -> str:
        """A short name.

        Example:
            >>> Candidate("diagonal", 8).label, Candidate("free", 1).label
            ('8 shared states, diagonal', 'one shared factor')
        """
        structure = "" if self.kind == "free" else f", {self.kind}"
        shared = "one shared factor" if self.n_states == 1 else f"{self.n_states} shared states"
        return shared + structure

    @property
    def sentence(self) -> str:
        """What the model says about the arms.

        Example:
            >>> Candidate("free", 8).sentence
            'The arms share 8 states that drift together.'
        """
        if self.n_states == 1:
            return "All arms share one drifting factor (1 state)."
        if self.kind == "free":
            return f"The arms share {self.n_states} states that drift together."
        return f"The arms read {self.n_states} states that drift independently."


class Selection(NamedTuple):
    """The chosen model, and the scores of all candidates.

    `fit` returns it as ``selection`` if it chose the model.

    Example:
        >>> tried = [Candidate("free", 1), Candidate("free", 2), Candidate("free", 3)]
        >>> log_densities = [[-2.0, -2.2], [-1.0, -1.3], [-0.9, -1.36]]  # of two held-out rewards
        >>> found = chosen(tried, np.array(log_densities))
        >>> found.chosen.label, found.n_states, [one.label for one in found.close]
        ('2 shared states', 2, ['3 shared states'])
        >>> [round(score, 3) for score in found.scores], [round(one, 3) for one in found.errors]
        ([-2.1, -1.15, -1.13], [0.13, 0.08, 0.0])
    """

    chosen: Candidate
    candidates: tuple[Candidate, ...]  # all that were tried, simple models first
    scores: tuple[float, ...]  # of each: log-likelihood per held-out reward, one step ahead
    errors: tuple[float, ...]  # standard error of each score's difference from the highest one

    @property
    def n_states(self) -> int:
        """How many states drift in the chosen model."""
        return self.chosen.n_states

    @property
    def close(self) -> tuple[Candidate, ...]:
        """Other models whose score is within one standard error of the highest, or 0.001."""
        near = _near(np.array(self.scores), np.array(self.errors))
        found = (one for one, close in zip(self.candidates, near, strict=True) if close)
        return tuple(one for one in found if one != self.chosen)


class Split(NamedTuple):
    """The log, and the part of it to learn from, in the same shape; the rest is scored."""

    whole: Data
    learned: Data

    @property
    def scored(self) -> float:
        """How many rewards are scored."""
        return float(self.whole.seen.sum() - self.learned.seen.sum())


def candidates(n_arms: int, structure: str) -> tuple[Candidate, ...]:
    """The numbers of states to try, small ones first.

    Example:
        >>> [[one.n_states for one in candidates(k, "free")] for k in (1, 6, 100)]
        [[1], [1, 2, 3, 5, 6], [1, 2, 3, 5, 8, 13, 20]]
    """
    sizes = {d for d in SIZES if d <= n_arms} | ({n_arms} if n_arms <= SIZES[-1] else set())
    return tuple(Candidate(structure, d) for d in sorted(sizes))


def splits(data: Data) -> list[Split]:
    """Folds of sequences or, if these are few or one dominates, of rewards; [] if too short."""
    counts = data.seen.sum(axis=(1, 2))
    dealt = len(counts) >= FOLDS and FOLDS * counts.max() <= 2 * counts.sum()
    found = list(_folds(data, counts) if dealt else _rewards(data))
    enough = all(min(one.learned.seen.sum(), one.scored) >= LEAST for one in found)
    return found if enough else []


def _folds(data: Data, counts: np.ndarray) -> Iterator[Split]:
    """Sequences dealt into parts of similar size, the longest first."""
    parts, sizes = np.zeros(len(counts), int), np.zeros(FOLDS)
    for sequence in np.argsort(-counts, kind="stable"):
        parts[sequence] = sizes.argmin()
        sizes[parts[sequence]] += counts[sequence]
    for part in range(FOLDS):
        kept = parts != part
        learned = data._replace(seen=data.seen * kept[:, None, None], lengths=data.lengths * kept)
        yield Split(data, learned)


def _rewards(data: Data) -> Iterator[Split]:
    """Rewards dealt at random, the same way every time, into parts of similar size."""
    # The first fifth of each sequence is learned from and never scored: there arms are new, which
    # would favor models that treat offsets, learned from later rewards, as known.
    so_far = data.seen.sum(axis=2).cumsum(axis=1)
    late = so_far > np.ceil(so_far[:, -1:] / FOLDS)
    scored = (data.seen > 0) & late[:, :, None]
    parts = np.full(scored.shape, -1)
    parts[scored] = np.random.default_rng(0).permutation(np.arange(scored.sum()) % FOLDS)
    for part in range(FOLDS):
        yield Split(data, data._replace(seen=data.seen * (parts != part)))


def select(
    parts: list[Split],
    tried: Iterable[Candidate],
    predict: Callable[[Split, Candidate], np.ndarray],
) -> Selection:
    """Score the candidates and choose one.

    Larger numbers of shared states are skipped once a model is clearly worse than the best, and
    twice its gain over the size before would not make up for it. ``predict`` gives log-densities of
    all rewards of a split, S × n × m, by a model learned from its learned part.
    """
    masks = [(part.whole.seen > 0) & ~(part.learned.seen > 0) for part in parts]
    done: list[Candidate] = []
    gains: list[np.ndarray] = []
    for candidate in tried:
        if _lost(done, gains):
            continue
        logs = [predict(part, candidate)[mask] for part, mask in zip(parts, masks, strict=True)]
        gain = np.concatenate(logs)
        gains.append(np.where(np.isfinite(gain), gain, -math.inf))
        done.append(candidate)
    return chosen(done, np.array(gains))


def _lost(done: list[Candidate], gains: list[np.ndarray]) -> bool:
    """Whether models with more shared states are unlikely to be the best."""
    if len(done) < LEAST_SIZES:
        return False
    found = chosen(done, np.array(gains))
    before, last = found.scores[-2:]
    return last + 2 * max(last - before, 0.0) < max(found.scores) - found.errors[-1]


def chosen(tried: Iterable[Candidate], gains: np.ndarray) -> Selection:
    """The simplest model whose score is within one standard error of the highest, or 0.001.

    The error is that of the difference from the highest score, paired by reward. ``gains`` are the
    log-densities of n scored rewards by c candidates, simple ones first, c × n.

    Example:
        >>> gains = np.array([[-2.0, -2.2], [-1.01, -1.22], [-1.0, -1.23]])
        >>> chosen([Candidate("free", d) for d in (1, 2, 3)], gains).n_states
        2
    """
    tried, n = tuple(tried), gains.shape[1]
    scores = gains.mean(axis=1)
    with np.errstate(invalid="ignore"):  # a score may be −∞
        apart = gains - gains[scores.argmax()]
        spread = apart.std(axis=1) * math.sqrt(n / max(n - 1, 1))
    errors = np.where(np.isfinite(scores), spread / math.sqrt(n), math.inf)
    first = tried[int(_near(scores, errors).argmax())]
    return Selection(first, tried, tuple(scores.tolist()), tuple(errors.tolist()))


def _near(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    return np.isfinite(scores) & (scores >= scores.max() - np.maximum(errors, SLACK))


def choose(task: Task, progress: Progress, later: int) -> Selection | None:
    """The number of states that predicts best; None if the log is too short.

    ``later`` iterations follow.
    """
    parts = splits(task.data)
    if not parts:
        return None
    most = min(task.limits[0], MOST_ITERATIONS)
    task = task._replace(limits=(most, max(task.limits[1], LEAST_TOLERANCE)))
    tried = [
        one
        for one in candidates(task.n_arms, task.options.structure)
        if task.data.seen.size * one.n_states**2 <= LARGEST_GRID
    ]
    costs = {one: most * (2 + one.n_states) for one in tried}
    work = len(parts) * sum(costs.values()) + later * (2 + tried[-1].n_states)
    unit = math.log(task.units.scale)  # densities are those of raw rewards

    def predict(part: Split, candidate: Candidate) -> np.ndarray:
        report = progress.part(costs[candidate] / work, most)
        learned = task._replace(data=part.learned)
        parameters, _, _ = best_run(learned, candidate.n_states, lambda _: report)
        sequences = int(np.count_nonzero(part.learned.lengths))
        mean, cov = assembly.start_distribution(parameters, sequences)
        parameters = parameters._replace(initial_mean=mean, initial_cov=cov)
        parameters, doubt = with_new_arms(parameters, learned)
        return log_densities(parameters, part.whole, doubt) - unit

    return select(parts, tried, predict)


def with_new_arms(parameters: Parameters, learned: Task) -> tuple[Parameters, np.ndarray]:
    """With the mean offset for arms that have no rewards to learn from, and its variance, k."""
    # Rewards are centered at the arms' means in the whole log: zero would reveal scored rewards.
    new = np.bincount(learned.data.arms[learned.data.seen > 0], minlength=learned.n_arms) == 0
    if not learned.options.offsets or not new.any():
        return parameters, np.zeros(learned.n_arms)
    shifts, _ = learned.units.between()
    others = float((parameters.offsets + shifts)[~new].mean())
    parameters = parameters._replace(
        offsets=np.where(new, others - shifts, parameters.offsets),
        reads=np.where(new[:, None], 0.0, parameters.reads),
    )
    return parameters, np.where(new, learned.units.offset_var(), 0.0)
