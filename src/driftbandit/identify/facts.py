"""What all fits share: facts of their reports, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from driftbandit.io import parsing
from driftbandit.report import Facts
from driftbandit.system import Name, names_and_number


def fit_facts(names: Sequence[Name], data: Mapping[str, Any], own: Mapping[str, str]) -> Facts:
    """What the log holds, what is ``own`` to the kind of model, and how well it predicts.

    Args:
        names: of the arms.
        data: the report's data.
        own: facts of this kind of model, shown after the arms.
    """
    predictable = "-"
    if (share := data["predictable_share"]) is not None:
        predictable = f"{100 * share:.0f}% of the variance around the arms' means, one step ahead"
    likelihoods = data["log_likelihood_per_reward"], data["log_likelihood_without_state"]
    with_state, without = ("-" if value is None else f"{value:.4g}" for value in likelihoods)
    return Facts(
        {
            "rewards": f"{data['rewards']:,}, from {data['rows']:,} plays",
            "sequences": f"{data['sequences']:,}, independent runs of the system",
            "arms": f"{data['arms']:,}: {parsing.first_names(names)}",
            **own,
            "reward noise σ": f"{data['reward_std']:.4g}, standard deviation",
            "predictable": predictable,
            "log-likelihood": f"{with_state} per reward; {without} with the arms' means alone",
        }
    )


def fit_repr(found: Any, learned: str) -> str:
    """The repr of a fit; ``learned`` says which model."""
    end = "" if found.converged else ", not converged"
    end = f"log-likelihood {found.log_likelihood:.4g}{end}"
    return f"{type(found).__name__}({learned}, {names_and_number(found.names)}; {end})"
