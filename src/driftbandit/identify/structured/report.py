"""The report of a structure that was learned from a log: parameters, comparison, components."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandit.identify.findings import sentence
from driftbandit.identify.predictions import one_step
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.components import Path, components
from driftbandit.identify.structured.fitting import Fit
from driftbandit.identify.structured.intervals import Estimate, estimates
from driftbandit.io import model_file, parsing
from driftbandit.io.logs import Log, split_notes
from driftbandit.report import Block, Cell, Facts, Figure, Points, Report, Table, Text, storable
from driftbandit.report.figures import COLORS, grid
from driftbandit.report.numbers import NONE, short
from driftbandit.report.numbers import estimate as shown

HOW_COMPARED = (
    "score: log-likelihood per reward of later rewards, one step ahead, by parameters learned from "
    "earlier ones; difference: from the highest score, ± its standard error. The simplest "
    "structure within one standard error (or 0.001) is chosen: the one with the fewest states."
)
HOW_CERTAIN = (
    "The estimate includes the prior: its median, and 95% of it between the two numbers. Where a "
    "prior is shown, the 95% interval is a profile interval: it says what the log says, without "
    "that prior, and may exclude the estimate. Numbers of single arms or groups are drawn toward "
    "common ones; their intervals are ± 1.96 standard errors, and include that. A drift is the "
    "standard deviation of a change in one round."
)
TURNING = (
    "Factors whose weights are learned can turn into each other, which changes no prediction: so "
    "no intervals are given."
)
MOST_LINES = 8  # of one component that a figure labels
MOST_ROUNDS = 2000  # that a figure shows, the last ones


def report(found: Fit, log: Log, name: str = "log") -> Report:
    """The report of a fit to a log of that name."""
    ahead, rows = one_step(found, log), estimates(found)
    data = _data(found, log, ahead, rows)
    blocks: list[Block] = [
        _facts(found, data),
        _parameters(rows),
        Text(TURNING if found.layout.learns_factors else HOW_CERTAIN, "dim"),
    ]
    if found.comparison is not None:
        blocks += [comparison_table(found.comparison), Text(HOW_COMPARED, "dim")]
    plain, warnings = split_notes(found.warnings)
    blocks += [Points(plain, "dim")] if plain else []
    blocks += [Points(warnings, "bad")] if warnings else []
    caption = f"{name}: {found.structure}"
    alt = "Rewards and their predictions, and each component over time with a band of two stds."
    blocks.append(Figure(caption, alt, lambda: draw(found, log, ahead, caption), "components"))
    return Report(f"Model learned from {name}", found.summary(), blocks, data)


def _data(found: Fit, log: Log, ahead: Any, rows: list[Estimate]) -> dict[str, Any]:
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
                "states": found.layout.n_states,
                "state_names": found.layout.states,
                "parameters": [row._asdict() for row in rows],
                "memory": found.memory,
                "reward_std": float(found.model.reward_std),
                "predictable_share": ahead.share,
                "log_likelihood_per_reward": found.log_likelihood / len(ahead.rewards),
                "log_likelihood_without_state": ahead.log_likelihood_without_state,
                "converged": found.converged,
                "comparison": candidates(found.comparison),
                "warnings": found.warnings,
                "model": model_file.to_document(found.system),
            }
        )
    )


def _facts(found: Fit, data: dict[str, Any]) -> Facts:
    states = f"{data['states']}; the model starts in the round after the log's last"
    predictable = "-"
    if (share := data["predictable_share"]) is not None:
        predictable = f"{100 * share:.0f}% of the variance around the arms' means, one step ahead"
    likelihoods = data["log_likelihood_per_reward"], data["log_likelihood_without_state"]
    with_state, without = ("-" if value is None else f"{value:.4g}" for value in likelihoods)
    return Facts(
        {
            "rewards": f"{data['rewards']:,}, from {data['rows']:,} plays",
            "sequences": f"{data['sequences']:,}, independent runs of the system",
            "arms": f"{data['arms']:,}: {parsing.first_names(found.names)}",
            "structure": str(found.structure),
            "states": states,
            **drift_fact(found),
            **_memory_fact(data),
            "reward noise σ": f"{data['reward_std']:.4g}, standard deviation",
            "predictable": predictable,
            "log-likelihood": f"{with_state} per reward; {without} with the arms' means alone",
        }
    )


def _memory_fact(data: dict[str, Any]) -> dict[str, str]:
    """How long the factors remember, if there are any."""
    if (memory := data["memory"]) is None:
        return {}
    return {"memory": f"{memory:.3g} rounds, after which 37% of a shock on the factors remains"}


def drift_fact(found: Any) -> dict[str, str]:
    """Whether arms drift, if structures were compared."""
    return {} if found.comparison is None else {"drift": sentence(found.drift)}


def candidates(found: Comparison | None) -> list[dict[str, Any]] | None:
    """What was compared, with its scores."""
    if found is None:
        return None
    tried = zip(found.structures, found.scores, found.errors, strict=True)
    return [{"structure": str(one), "score": score, "error": error} for one, score, error in tried]


def _parameters(rows: list[Estimate]) -> Table:
    lines: list[list[Cell | str | float]] = []
    for row in rows:
        if math.isnan(row.prior_median) and math.isnan(row.low) and not row.unit:
            continue  # a number that means nothing by itself
        value, _ = shown(row.value, row.value - row.std_error, row.value + row.std_error)
        lines.append([row.name, value, interval_text(row), _prior(row), row.unit or "-"])
    head = ["parameter", "estimate", "95% interval", "prior", "unit"]
    return Table("Parameters", head, lines)


def interval_text(row: Estimate) -> str:
    """A parameter's interval; in words where it is open."""
    if math.isnan(row.low):
        return NONE
    if math.isinf(row.high):
        return f"above {row.low:.3g}" if row.low else "any value"
    return f"{row.low:.3g} to {row.high:.3g}" if row.low else f"below {row.high:.3g}"


def _prior(row: Estimate) -> str:
    if math.isnan(row.prior_median):
        return NONE
    return f"{short(row.prior_median, 2)}, {short(row.prior_low, 2)} to {short(row.prior_high, 2)}"


def comparison_table(found: Comparison) -> Table:
    """The structures that were compared, the best first."""
    best, lines = max(found.scores), []
    order = np.argsort(np.array(found.scores), kind="stable")[::-1]
    for i in order:
        score, error = found.scores[i], found.errors[i]
        chosen = i == found.chosen_place
        apart = NONE if score == best else f"{score - best:.4f} ± {error:.4f}"
        texts = str(found.structures[i]), f"{score:.4f}", apart, "chosen" if chosen else ""
        lines.append([Cell(text, tone="best" if chosen else "") for text in texts])
    title = f"Structures, by prediction of {found.scored:,} later rewards"
    return Table(title, ["structure", "score", "difference", ""], lines)


def draw(found: Fit, log: Log, ahead: Any, title: str) -> Any:
    """The rewards with their one-step predictions, and a panel for every component."""
    paths = components(found)
    kinds = list(dict.fromkeys(path.component for path in paths))
    figure, axes = grid(len(kinds) + 1, 1, 9.0, 1.9, sharex=True)
    data = found.problem.described
    seen = data.rows.seen[: data.n_rows] > 0
    last = data.rounds.max() - MOST_ROUNDS
    now = (data.sequences[seen] == data.sequences[-1]) & (data.rounds[seen] > last)
    rounds = data.rounds[seen][now]
    top = axes[0]
    dots = {"ls": "", "marker": ".", "ms": 3, "rasterized": True}
    top.plot(rounds, ahead.rewards[now], color=COLORS[0], alpha=0.5, label="reward", **dots)
    top.plot(rounds, ahead.means[now], color=COLORS[1], lw=0.8, label="predicted one step ahead")
    top.set(title=title, ylabel="reward")
    top.legend(fontsize=7, loc="upper left", ncol=2)
    for axis, kind in zip(axes[1:], kinds, strict=True):
        _draw_component(axis, [path for path in paths if path.component == kind], last)
        axis.set_title(kind, fontsize=9)
    axes[-1].set_xlabel("round")
    top.title.set_fontsize(10)
    return figure


def _draw_component(axis: Any, paths: list[Path], last: int) -> None:
    many = len(paths) > MOST_LINES
    for number, path in enumerate(paths):
        shown = (path.sequences == path.sequences[-1]) & (path.rounds > last)
        rounds, mean, std = path.rounds[shown], path.mean[shown], path.std[shown]
        color = "0.5" if many else COLORS[number % len(COLORS)]
        axis.plot(rounds, mean, color=color, lw=1, label=path.label or None, alpha=0.8)
        if not many:
            axis.fill_between(rounds, mean - 2 * std, mean + 2 * std, color=color, alpha=0.12, lw=0)
    if not many and any(path.label for path in paths):
        axis.legend(fontsize=7, loc="upper left", ncol=len(paths))
