"""How well a model predicts a log (`one_step`), and the report of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.identify.data import Parameters, data_of
from driftbandit.identify.facts import fit_facts
from driftbandit.identify.fitting import Fit
from driftbandit.identify.smoothing import predicted
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.identify.structured.report import report as structured_report
from driftbandit.io import model_file
from driftbandit.io.log_reader import log_of_system
from driftbandit.io.logs import Log, Sequence, split_notes
from driftbandit.report import Block, Cell, Facts, Figure, Points, Report, Table, Text, storable
from driftbandit.report.figures import COLORS, grid

HOW_CHOSEN = (
    "score: log-likelihood per reward of held-out rewards, one step ahead; difference: from the "
    "highest score, ± its standard error. The simplest model within one standard error (or 0.001) "
    "is chosen."
)


class OneStep(NamedTuple):
    """Rewards and their predictions, sequence after sequence in order of time, n each.

    Example:
        >>> from driftbandit import LGDS, System
        >>> system = System(LGDS([[0.5]], [[3.0]], reward_std=2.0), [[1.0]])
        >>> ahead = one_step(system, {"round": [0, 1], "arm": [0, 0], "reward": [1.0, 2.0]})
        >>> ahead.surprises.round(3).tolist()  # 1/√8, 1.75/√7.5: small, so the model fits
        [0.354, 0.639]
        >>> round(ahead.log_likelihood, 3), round(ahead.log_likelihood_without_state, 3)
        (-2.076, -0.726)
        >>> ahead.own.tolist(), round(ahead.share, 3)  # worse than the mean, known in hindsight
        ([1.5, 1.5], -7.125)
    """

    rewards: np.ndarray  # those that were observed
    means: np.ndarray  # predicted
    stds: np.ndarray  # of the prediction errors: the state's uncertainty and the noise
    own: np.ndarray  # the mean of each reward's arm in this log: the prediction without a state

    def __repr__(self) -> str:
        each = f"log-likelihood {self.log_likelihood:.4g} per reward"
        return f"OneStep({len(self.rewards)} rewards; {each})"

    @property
    def surprises(self) -> np.ndarray:
        """(x − mean) / std: standard normal, and independent between rounds, in the true model."""
        left = self.rewards - self.means
        return np.divide(left, self.stds, out=np.zeros_like(left), where=self.stds > 0)

    @property
    def share(self) -> float:
        """The share of the rewards' variance around their arm's mean that was predicted."""
        apart = float(((self.rewards - self.own) ** 2).sum())
        left = float(((self.rewards - self.means) ** 2).sum())
        return 1 - left / apart if apart > 0 else math.nan

    @property
    def log_likelihood(self) -> float:
        """Per reward."""
        with np.errstate(divide="ignore"):
            logs = np.log(2 * math.pi * self.stds**2) + self.surprises**2
        return float(-0.5 * logs.mean())

    @property
    def log_likelihood_without_state(self) -> float:
        """Per reward, if all were independent and normal around their arm's mean."""
        variance = float(((self.rewards - self.own) ** 2).mean())
        return -0.5 * (math.log(2 * math.pi * variance) + 1) if variance > 0 else math.inf


def one_step(
    found: Any,
    log: Any,
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
) -> OneStep:
    """Predict every reward of a log from the rounds before its own, sequence after sequence.

    A decision is made before its round shows anything, so rewards of the same round do not help.

    Args:
        found: as `fit` returned it, or a `System`. The state of a system with a ``first_round``
            moves on from there to the log's first round.
        log: of the same arms: the one it was learned from or, for a fair judgment, another. Times
            are counted by the system's clock, if it has one. A `System` refuses rounds before its
            ``first_round``: it contains them.
        columns: as in `fit`, like ``every`` and ``zone``.

    Returns:
        The observed rewards and their predictions.

    Example:
        >>> from driftbandit import LGDS, System
        >>> system = System(LGDS([[0.5]], [[3.0]], reward_std=2.0), [[1.0]])
        >>> ahead = one_step(system, {"round": [0, 1], "arm": [0, 0], "reward": [1.0, 2.0]})
        >>> ahead.means.round(6).tolist(), (ahead.stds**2).round(6).tolist()
        ([0.0, 0.25], [8.0, 7.5])
    """
    read = log_of_system(found, log, columns, every, zone)
    if isinstance(found, StructuredFit):
        return _structured_one_step(found, read)
    if features := getattr(found, "contexts", None):
        problem = f"has contexts ({', '.join(features)}), and here arms cannot change"
        raise errors.InvalidInput("found", problem, "give what fit returned")
    model, k = found.model, len(read.names)
    start = getattr(found, "first_round", None)
    data = data_of(read if start is None else _begun(read, start), model.n_states)
    dynamics = model.transition, model.process_cov, np.asarray(model.reward_std**2)
    start = model.start_mean(), model.start_cov()
    parameters = Parameters(*dynamics, *start, found.arms, np.zeros(k))
    means, variances, _ = predicted(parameters, data)
    seen = data.seen > 0
    arms, rewards = data.arms[seen], data.rewards[seen]
    return OneStep(rewards, means[seen], np.sqrt(variances[seen]), _own_means(arms, rewards, k))


def _begun(log: Log, first: int) -> Log:
    """The log, with a play without a reward in round ``first`` of every sequence that lacks it.

    Nothing is learned from it, and the state moves on to the next play. Rounds are counted from
    ``first``.
    """
    begun = []
    for sequence in log.sequences:
        rounds, arms, rewards = sequence.rounds - first, sequence.arms, sequence.rewards
        if rounds[0] > 0:
            rounds, arms = np.append(0, rounds), np.append(arms[0], arms)
            rewards = np.append(math.nan, rewards)
        begun.append(Sequence(rounds, arms, rewards))
    return Log(tuple(begun), log.names)


def _structured_one_step(found: StructuredFit, log: Log) -> OneStep:
    problem = found.problem_of(log)
    means, variances = problem.predicted(found.theta)
    arms, rewards = (
        np.concatenate([getattr(one, field) for one in log.sequences])
        for field in ("arms", "rewards")
    )
    seen = ~np.isnan(rewards)
    own = _own_means(arms[seen], rewards[seen], len(log.names))
    return OneStep(rewards[seen], means[seen], np.sqrt(variances[seen]), own)


def _own_means(arms: np.ndarray, rewards: np.ndarray, n_arms: int) -> np.ndarray:
    """The mean of each reward's arm."""
    plays = np.bincount(arms, minlength=n_arms)
    return np.asarray((np.bincount(arms, rewards, n_arms) / np.maximum(plays, 1))[arms])


def report(found: Fit | StructuredFit, log: Log, name: str = "log") -> Report:
    """The report of a fit to a log of that name."""
    ahead = one_step(found, log)
    if isinstance(found, StructuredFit):
        return structured_report(found, log, ahead, name)
    data = _data(found, log, ahead)
    shown: list[Block] = [_facts(found, data)]
    if data["selection"] is not None:
        shown += [_candidates(data["selection"]), Text(HOW_CHOSEN, "dim")]
    plain, warnings = split_notes(found.warnings)
    shown += [Points(plain, "dim")] if plain else []
    shown += [Points(warnings, "bad")] if warnings else []
    caption = f"{name}: {found.kind.label}"
    alt = "The log-likelihood of EM, the predicted rewards, and the standardized errors."
    shown.append(Figure(caption, alt, lambda: draw(found, ahead, caption), "fit"))
    return Report(f"Model learned from {name}", found.summary(), shown, data)


def _data(found: Fit, log: Log, ahead: OneStep) -> dict[str, Any]:
    radius, choice = found.spectral_radius, found.selection
    selection = None
    if choice is not None:
        scored = zip(choice.candidates, choice.scores, choice.errors, strict=True)
        selection = {
            "chosen": choice.chosen.label,
            "states": choice.n_states,
            "close": [one.label for one in choice.close],
            "candidates": [
                {"model": one.label, "states": one.n_states, "score": score, "error": error}
                for one, score, error in scored
            ],
        }
    memory = None if radius >= 1 else -1 / math.log(radius) if radius > 0 else 0.0
    return dict(
        storable(
            {
                "rewards": log.rewards_seen,
                "rows": log.rows,
                "sequences": len(log.sequences),
                "arms": len(log.names),
                "summary": found.summary(),
                "states": found.n_states,
                "spectral_radius": radius,
                "memory": memory,
                "reward_std": float(found.model.reward_std),
                "predictable_share": ahead.share,
                "log_likelihood_per_reward": found.log_likelihood / len(ahead.rewards),
                "log_likelihood_without_state": ahead.log_likelihood_without_state,
                "iterations": len(found.log_likelihoods) - 1,
                "converged": found.converged,
                "selection": selection,
                "warnings": found.warnings,
                "model": model_file.to_document(found.system),
            }
        )
    )


def _facts(found: Fit, data: Mapping[str, Any]) -> Facts:
    offsets = "; the model adds the offsets" if found.model.n_states > data["states"] else ""
    end = "converged" if data["converged"] else "not converged"
    memory = "unlimited"
    if data["memory"] is not None:
        memory = f"{data['memory']:.3g} rounds, −1/log ρ, after which 37% of a shock remains"
    own = {
        "states": f"{data['states']} that drift{offsets}",
        "spectral radius ρ": f"{data['spectral_radius']:.4g}; at 1 or more it never settles",
        "memory": memory,
        "EM": f"{end}, {data['iterations']} iterations from the best start",
    }
    return fit_facts(found.names, data, own)


def _candidates(selection: Mapping[str, Any]) -> Table:
    candidates = selection["candidates"]
    best = max((one["score"] for one in candidates if one["score"] is not None), default=0.0)
    rows = []
    for one in candidates:
        chosen = one["model"] == selection["chosen"]
        cells = ["-", "-", "-"]
        if one["score"] is not None:
            cells = [f"{value:.4f}" for value in (one["score"], one["score"] - best, one["error"])]
        mark = "chosen" if chosen else "close" if one["model"] in selection["close"] else ""
        texts = one["model"], *cells, mark
        rows.append([Cell(text, tone="best" if chosen else "") for text in texts])
    columns = ["model", "score", "difference", "±", ""]
    return Table("Models, by cross-validation", columns, rows)


def draw(found: Fit, ahead: OneStep, title: str) -> Any:
    """EM's log-likelihood, the cross-validation if there was one, and the predictions."""
    panels = 3 if found.selection is None else 4
    figure, axes = grid(panels, panels, 3.6 * panels, 3.4)
    blue, orange, *_ = COLORS
    rise, seen, residuals = axes[0], axes[-2], axes[-1]
    rise.plot(found.log_likelihoods / len(ahead.rewards), color=blue)
    rise.set(title="EM", xlabel="iteration", ylabel="log-likelihood and prior, per reward")
    if found.selection is not None:
        _draw_selection(axes[1], found, blue, orange)
    dots = {"ls": "", "marker": ".", "color": blue, "ms": 4, "rasterized": True}
    dots["alpha"] = max(0.05, min(0.6, 300 / len(ahead.rewards)))
    seen.plot(ahead.means, ahead.rewards, **dots)
    ends = [ahead.means.min(), ahead.means.max()]
    seen.plot(ends, ends, color=orange)
    share = "" if math.isnan(ahead.share) else f": {100 * ahead.share:.0f}% of variance"
    seen.set(title=f"predicted{share}", xlabel="predicted one step ahead", ylabel="reward")
    residuals.plot(ahead.surprises, **dots)
    for height in (-2, 2):
        residuals.axhline(height, color=orange, lw=1)
    beyond = float((np.abs(ahead.surprises) > 2).mean())
    residuals.set_title(f"errors: {100 * beyond:.1f}% beyond ±2 (normal: 4.6%)")
    residuals.set(xlabel="rewards in the order of the log", ylabel="(reward − predicted) / std")
    for axis in axes:
        axis.title.set_fontsize(9)
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_selection(axis: Any, found: Fit, color: str, mark: str) -> None:
    choice = found.selection
    assert choice is not None
    scores = np.where(np.isfinite(choice.scores), choice.scores, np.nan)
    places = np.arange(len(scores))
    axis.errorbar(places, scores, choice.errors, color=color, marker="o", ls="", capsize=3)
    place = choice.candidates.index(choice.chosen)
    axis.plot(place, scores[place], "o", ms=11, mfc="none", mec=mark, mew=2)
    axis.set(title="cross-validation", ylabel="score of held-out rewards")
    labels = [one.label for one in choice.candidates]
    axis.set_xticks(places, labels, rotation=30, ha="right", fontsize=7)
