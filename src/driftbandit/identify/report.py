"""What a fit shows: the model in numbers, how it was chosen, and how well it predicts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.identify.fitting import Fit
from driftbandit.identify.prediction import OneStep, one_step
from driftbandit.io import model_file, parsing
from driftbandit.io.logs import Log
from driftbandit.report import (
    Block,
    Cell,
    Facts,
    Figure,
    Points,
    Report,
    Table,
    Text,
    Tone,
    figures,
    storable,
)

__all__ = ["draw", "report"]

HOW_CHOSEN = (
    "score: log-likelihood per reward of held-out rewards, one step ahead; difference: from the "
    "highest score, ± its standard error. The simplest model within one standard error (or 0.001) "
    "is chosen."
)


def report(found: Fit, log: Log, name: str = "log") -> Report:
    """The report of a fit.

    Args:
        found: from `fit`.
        log: the log that it was learned from.
        name: of the log.
    """
    predicted = one_step(found, log)
    data = _data(found, log, predicted)
    blocks: list[Block] = [_facts(found, data)]
    if data["selection"] is not None:
        blocks += [_candidates(data["selection"]), Text(HOW_CHOSEN, "dim")]
    if found.warnings:
        blocks.append(Points(found.warnings, "bad"))
    caption = f"{name}: {found.kind.label}"
    alt = "The log-likelihood of EM, the predicted rewards, and the standardized errors."
    blocks.append(Figure(caption, alt, lambda: draw(found, predicted, caption), "fit"))
    return Report(f"Model learned from {name}", found.summary(), blocks, data)


def _data(found: Fit, log: Log, predicted: OneStep) -> dict[str, Any]:
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
    data = {
        "rewards": log.rewards_seen,
        "rows": log.rows,
        "sequences": len(log.sequences),
        "arms": len(log.names),
        "summary": found.summary(),
        "states": found.n_states,
        "spectral_radius": radius,
        "memory": memory,
        "reward_std": float(found.model.reward_std),
        "predictable_share": predicted.share,
        "log_likelihood_per_reward": found.log_likelihood / len(predicted.rewards),
        "log_likelihood_without_state": predicted.log_likelihood_without_state,
        "iterations": len(found.log_likelihoods) - 1,
        "converged": found.converged,
        "selection": selection,
        "warnings": found.warnings,
        "model": model_file.to_document(found.system),
    }
    stored: dict[str, Any] = storable(data)
    return stored


def _facts(found: Fit, data: Mapping[str, Any]) -> Facts:
    memory, share = data["memory"], data["predictable_share"]
    offsets = "; the model adds the offsets" if found.model.n_states > data["states"] else ""
    with_state, without = (
        _number(data[f"log_likelihood_{key}"]) for key in ("per_reward", "without_state")
    )
    end = "converged" if data["converged"] else "not converged"
    return Facts(
        {
            "rewards": f"{data['rewards']:,}, from {data['rows']:,} plays",
            "sequences": f"{data['sequences']:,}, independent runs of the system",
            "arms": f"{data['arms']:,}: {parsing.some(found.names)}",
            "states": f"{data['states']} that drift{offsets}",
            "spectral radius ρ": f"{data['spectral_radius']:.4g}; at 1 or more it never settles",
            "memory": "unlimited"
            if memory is None
            else f"{memory:.3g} rounds, −1/log ρ, after which 37 % of a shock remains",
            "reward noise σ": f"{data['reward_std']:.4g}, standard deviation",
            "predictable": "-"
            if share is None
            else f"{100 * share:.0f} % of the variance around the arms' means, one step ahead",
            "log-likelihood": f"{with_state} per reward; {without} with the arms' means alone",
            "EM": f"{end}, {data['iterations']} iterations from the best start",
        }
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


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
        tone: Tone = "best" if chosen else ""
        rows.append([Cell(text, tone=tone) for text in (one["model"], *cells, mark)])
    return Table("Models, by cross-validation", ["model", "score", "difference", "±", ""], rows)


def draw(found: Fit, predicted: OneStep, title: str) -> Any:
    """EM's log-likelihood, the cross-validation if there was one, and the predictions."""
    panels = 3 if found.selection is None else 4
    figure, axes = figures.grid(panels, panels, 3.6 * panels, 3.4)
    blue, orange, *_ = figures.COLORS
    rise, seen, residuals = axes[0], axes[-2], axes[-1]
    rise.plot(found.log_likelihoods / len(predicted.rewards), color=blue)
    rise.set(title="EM", xlabel="iteration", ylabel="log-likelihood and prior, per reward")
    if found.selection is not None:
        _draw_selection(axes[1], found, blue, orange)
    dots = {"ls": "", "marker": ".", "color": blue, "ms": 4, "rasterized": True}
    dots["alpha"] = max(0.05, min(0.6, 300 / len(predicted.rewards)))
    seen.plot(predicted.means, predicted.rewards, **dots)
    ends = [predicted.means.min(), predicted.means.max()]
    seen.plot(ends, ends, color=orange)
    share = "" if math.isnan(predicted.share) else f": {100 * predicted.share:.0f} % of variance"
    seen.set(title=f"predicted{share}", xlabel="predicted one step ahead", ylabel="reward")
    residuals.plot(predicted.surprises, **dots)
    for height in (-2, 2):
        residuals.axhline(height, color=orange, lw=1)
    beyond = float((np.abs(predicted.surprises) > 2).mean())
    residuals.set(
        title=f"errors: {100 * beyond:.1f} % beyond ±2 (normal: 4.6 %)",
        xlabel="rewards in the order of the log",
        ylabel="(reward − predicted) / std",
    )
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
