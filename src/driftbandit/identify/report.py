"""The report of a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.identify.facts import fit_facts
from driftbandit.identify.predictions import OneStep, one_step
from driftbandit.identify.shared_states import Fit
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.identify.structured.report import (
    HOW_COMPARED,
    candidates,
    comparison_table,
    drift_fact,
)
from driftbandit.identify.structured.report import report as structured_report
from driftbandit.io import model_file
from driftbandit.io.logs import Log, split_notes
from driftbandit.report import Block, Cell, Facts, Figure, Points, Report, Table, Text, storable
from driftbandit.report.figures import COLORS, grid

HOW_CHOSEN = (
    "score: log-likelihood per reward of held-out rewards, one step ahead; difference: from the "
    "highest score, ± its standard error. The simplest model within one standard error (or 0.001) "
    "is chosen."
)


def report(found: Fit | StructuredFit, log: Log, name: str = "log") -> Report:
    """The report of a fit to a log of that name."""
    ahead = one_step(found, log)
    if isinstance(found, StructuredFit):
        return structured_report(found, log, ahead, name)
    data = _data(found, log, ahead)
    shown: list[Block] = [_facts(found, data)]
    if data["selection"] is not None:
        shown += [_candidates(data["selection"]), Text(HOW_CHOSEN, "dim")]
    if found.comparison is not None:
        shown += [comparison_table(found.comparison), Text(HOW_COMPARED, "dim")]
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
                "drift": found.drift._asdict(),
                "structure": str(found.structure),
                "comparison": candidates(found.comparison),
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
        **drift_fact(found),
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
