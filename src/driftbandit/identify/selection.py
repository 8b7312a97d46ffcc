"""Which model: the one that best predicts rewards it was not learned from.

    score = mean of log p(x | the rounds before; learned without x)

Several sequences take turns in being left out. Of few, the rewards are dealt at random into five
parts, which take turns: so a model is learned from most of the log, and most rewards are scored,
where learning from beginnings and predicting ends would leave half of a log for either. Both ways
the scored rewards are predicted one round ahead, with all rewards of the rounds before at hand: a
decision is made before its round shows anything, and what moves arms together within one round is
no drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from driftbandit.identify import em

__all__ = ["Candidate", "Selection", "Split", "candidates", "chosen", "select", "sizes", "splits"]

MOST_STATES = 20
FOLDS = 5
"""Into how many parts the sequences are dealt, where they are as many or more; else the rewards."""
SLACK = 1e-3
"""A gain per reward that is not worth a state: climbs that stop early differ by as much."""
LEAST_SIZES = 3
"""Numbers of shared states that are tried in any case: one more may be what two were short of."""
LEAST = 10
"""Fewest rewards to learn from, and fewest to score, in every split."""


class Candidate(NamedTuple):
    """A kind of model and its size."""

    kind: str
    """"constant", "alike" or "apart", see `own.KINDS`; or the structure of Γ, where arms share
    states: "free", "diagonal" or "scalar"."""
    n_states: int
    """That drift."""

    @property
    def label(self) -> str:
        """In a few words.

        Example:
            >>> Candidate("alike", 8).label, Candidate("free", 1).label
            ('each arm by itself, all alike', 'one shared factor')
        """
        own = {
            "constant": "no drift",
            "alike": "each arm by itself, all alike",
            "apart": "each arm by itself",
        }
        if self.kind in own:
            return own[self.kind]
        structure = "" if self.kind == "free" else f", {self.kind}"
        shared = "one shared factor" if self.n_states == 1 else f"{self.n_states} shared states"
        return shared + structure

    @property
    def sentence(self) -> str:
        """What it says of the arms, as a sentence.

        Example:
            >>> Candidate("apart", 8).sentence
            'Each arm drifts by itself (8 states).'
        """
        count = f"{self.n_states} states" if self.n_states != 1 else "1 state"
        if self.kind == "constant":
            return "No drift: each arm pays around a constant of its own."
        if self.kind == "alike" and self.n_states == 1:
            return "The arm drifts (1 state)."
        if self.kind == "alike":
            return f"Each arm drifts by itself, all equally far and fast ({count})."
        if self.kind == "apart":
            return f"Each arm drifts by itself ({count})."
        if self.n_states == 1:
            return "All arms share one drifting factor (1 state)."
        if self.kind == "free":
            return f"The arms share {count} that drift together."
        return f"The arms read {count} that drift each by itself."


class Selection(NamedTuple):
    """The model that was chosen, and what speaks for it."""

    chosen: Candidate
    candidates: tuple[Candidate, ...]
    """All that were tried, simpler ones first."""
    scores: tuple[float, ...]
    """Of each: log-likelihood per reward, one step ahead, of rewards it was not learned from."""
    errors: tuple[float, ...]
    """Standard error of each score's distance from the highest one, which has none."""

    @property
    def n_states(self) -> int:
        """How many states drift in the chosen model."""
        return self.chosen.n_states

    @property
    def close(self) -> tuple[Candidate, ...]:
        """Those whose score is within a standard error of the highest, or 0.001; not the chosen."""
        near = _near(np.array(self.scores), np.array(self.errors))
        return tuple(
            one
            for one, is_near in zip(self.candidates, near, strict=True)
            if is_near and one != self.chosen
        )


class Split(NamedTuple):
    """A part of a log to learn from, and a part to predict. Both have the shape of the log."""

    whole: em.Data
    """What is learned from, and what is scored."""
    learned: em.Data

    @property
    def scored(self) -> float:
        """How many rewards are scored."""
        return float(self.whole.seen.sum() - self.learned.seen.sum())


def sizes(n_arms: int) -> tuple[int, ...]:
    """Numbers of shared states worth a try: 1, 2, 3, 5, 8, 13, 20, and one for each arm.

    Example:
        >>> sizes(1), sizes(6), sizes(100)
        ((1,), (1, 2, 3, 5, 6), (1, 2, 3, 5, 8, 13, 20))
    """
    found = {d for d in (1, 2, 3, 5, 8, 13, MOST_STATES) if d <= n_arms}
    return tuple(sorted(found | {n_arms} if n_arms <= MOST_STATES else found))


def candidates(n_arms: int, structure: str | None, offsets: bool) -> tuple[Candidate, ...]:
    """What is tried, simpler models first.

    Args:
        n_arms: k.
        structure: of Γ, if it is given: then its sizes alone.
        offsets: whether arms have any; without, arms that do not drift pay nothing.

    Example:
        >>> [one.label for one in candidates(2, None, True)][:3]
        ['no drift', 'each arm by itself, all alike', 'one shared factor']
    """
    shared = [Candidate(structure or "free", d) for d in sizes(n_arms)]
    if structure is not None:
        return tuple(shared)
    still = [Candidate("constant", 0)] if offsets else []
    if n_arms == 1:
        return (*still, Candidate("alike", 1))
    first, *rest = shared
    return (*still, Candidate("alike", n_arms), first, Candidate("apart", n_arms), *rest)


def splits(data: em.Data) -> list[Split]:
    """The ways to learn from one part of a log and predict another; none if it is too short.

    Args:
        data: S sequences. With S ≥ 5 of like size each is predicted from others; else each
            reward by a model that was learned from four fifths of the others.
    """
    counts = data.seen.sum(axis=(1, 2))
    dealt = len(counts) >= FOLDS and FOLDS * counts.max() <= 2 * counts.sum()
    found = list(_folds(data, counts) if dealt else _rewards(data))
    enough = all(min(one.learned.seen.sum(), one.scored) >= LEAST for one in found)
    return found if enough else []


def _folds(data: em.Data, counts: np.ndarray) -> Iterator[Split]:
    """Sequences dealt into parts of like size, the longest first."""
    parts, sizes = np.zeros(len(counts), int), np.zeros(FOLDS)
    for sequence in np.argsort(-counts, kind="stable"):
        parts[sequence] = sizes.argmin()
        sizes[parts[sequence]] += counts[sequence]
    for part in range(FOLDS):
        yield Split(data, _until(data, np.where(parts == part, 0, data.lengths)))


def _rewards(data: em.Data) -> Iterator[Split]:
    """Rewards dealt at random, the same way every time, into parts of like size.

    The first fifth of each sequence is learned from and never scored: there arms are new, and a
    model that doubts their offsets is at a disadvantage against one that knows them from later.
    """
    so_far = data.seen.sum(axis=2).cumsum(axis=1)
    late = so_far > np.ceil(so_far[:, -1:] / FOLDS)
    scored = (data.seen > 0) & late[:, :, None]
    parts = np.full(scored.shape, -1)
    parts[scored] = np.random.default_rng(0).permutation(np.arange(scored.sum()) % FOLDS)
    for part in range(FOLDS):
        yield Split(data, data._replace(seen=data.seen * (parts != part)))


def _until(data: em.Data, ends: np.ndarray) -> em.Data:
    """The rounds before ``ends``; the shape stays, so that nothing is compiled anew."""
    ends = np.minimum(ends, data.lengths)
    before = np.arange(data.seen.shape[1]) < ends[:, None]
    return data._replace(seen=data.seen * before[:, :, None], lengths=ends)


def select(
    parts: list[Split],
    tried: Iterable[Candidate],
    predict: Callable[[Split, Candidate], np.ndarray],
) -> Selection:
    """Choose the model.

    Larger models with shared states are not tried once one predicts clearly worse than the best,
    and twice what it gained on the size before would not make up for it.

    Args:
        parts: by `splits`, at least one.
        tried: candidates, simpler ones first.
        predict: gives log-densities of all rewards of a split, S × n × m, by a model that was
            learned from its learned part.

    Returns:
        `Selection`, as `chosen` makes it.
    """
    masks = [(part.whole.seen > 0) & ~(part.learned.seen > 0) for part in parts]
    done: list[Candidate] = []
    gains: list[np.ndarray] = []
    shared = 0
    for candidate in tried:
        if candidate.kind in em.STRUCTURES and shared >= LEAST_SIZES and _lost(done, gains):
            continue
        logs = [predict(part, candidate)[mask] for part, mask in zip(parts, masks, strict=True)]
        gain = np.concatenate(logs)
        gains.append(np.where(np.isfinite(gain), gain, -math.inf))
        done.append(candidate)
        shared += candidate.kind in em.STRUCTURES
    return chosen(done, np.array(gains))


def _lost(done: list[Candidate], gains: list[np.ndarray]) -> bool:
    """Whether models with shared states will hardly be the best any more."""
    found = chosen(done, np.array(gains))
    before, last = [i for i, one in enumerate(done) if one.kind in em.STRUCTURES][-2:]
    hope = 2 * max(found.scores[last] - found.scores[before], 0.0)
    return found.scores[last] + hope < max(found.scores) - found.errors[last]


def chosen(tried: Iterable[Candidate], gains: np.ndarray) -> Selection:
    """The simplest model whose score is within one standard error of the highest, or 0.001.

    The error is that of the difference from the highest score, reward by reward: what all
    candidates find hard cancels.

    Args:
        tried: c candidates, simpler ones first.
        gains: c × n, log-densities of the scored rewards.

    Example:
        >>> gains = np.array([[-2.0, -2.2], [-1.01, -1.22], [-1.0, -1.23]])
        >>> chosen([Candidate("free", d) for d in (1, 2, 3)], gains).n_states
        2
    """
    tried, n = tuple(tried), gains.shape[1]
    scores = gains.mean(axis=1)
    with np.errstate(invalid="ignore"):  # what cannot be scored is infinitely bad
        apart = gains - gains[scores.argmax()]
        spread = apart.std(axis=1) * math.sqrt(n / max(n - 1, 1))
    errors = np.where(np.isfinite(scores), spread / math.sqrt(n), math.inf)
    first = tried[int(_near(scores, errors).argmax())]
    return Selection(first, tried, tuple(scores.tolist()), tuple(errors.tolist()))


def _near(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    return np.isfinite(scores) & (scores >= scores.max() - np.maximum(errors, SLACK))
