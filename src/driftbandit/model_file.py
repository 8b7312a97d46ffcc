"""Model files: a system and its arms as JSON.

    {"transition": [[…]], "process_cov": [[…]], "reward_std": x, "initial_cov": [[…]],
     "arms": [[…]]}

``initial_cov`` may be absent: the state then starts stationary.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS, checked_arms

__all__ = ["from_document", "read", "to_document"]

REQUIRED = ("transition", "process_cov", "reward_std", "arms")
LARGEST = 64 * 2**20
"""Bytes; a larger file is refused unread."""


def to_document(model: LGDS, arms: np.ndarray) -> dict[str, Any]:
    """The JSON object of a model file."""
    document: dict[str, Any] = {
        "transition": model.transition.tolist(),
        "process_cov": model.process_cov.tolist(),
        "reward_std": float(model.reward_std),
    }
    if model.initial_cov is not None:
        document["initial_cov"] = model.initial_cov.tolist()
    return document | {"arms": np.asarray(arms).tolist()}


def from_document(document: Any) -> tuple[LGDS, np.ndarray]:
    """The model and arms of a model file's JSON object."""
    if not isinstance(document, dict):
        raise errors.InvalidInput(
            "model file", f"holds a {type(document).__name__}", "write one JSON object"
        )
    for key in REQUIRED:
        if key not in document:
            raise errors.InvalidInput("model file", f"lacks {key!r}", f"give {', '.join(REQUIRED)}")
    for key in document:
        errors.closest(key, "model file", (*REQUIRED, "initial_cov"))
    model = LGDS(
        document["transition"],
        document["process_cov"],
        document["reward_std"],
        document.get("initial_cov"),
    )
    return model, checked_arms(document["arms"], model)


def read(path: str | Path) -> tuple[LGDS, np.ndarray]:
    """Read a model file."""
    try:
        path = Path(path)
        size = path.stat().st_size
        if size > LARGEST:
            raise errors.InvalidInput(
                "model file", f"{path} has {size} bytes", f"{LARGEST} is the most that is read"
            )
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, TypeError) as error:
        raise errors.InvalidInput(
            "model file", f"cannot read {path!s} ({error})", "give the path of a JSON file"
        ) from None
    except errors.InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise errors.InvalidInput(
            "model file", f"{path} is not JSON ({error})", "write one JSON object"
        ) from None
    return from_document(document)
