"""Systems that tests of the HTTP API serve, and the plain agents that they compare with."""

import numpy as np

from driftbandit import LGDS, System
from driftbandit.io import model_file

NAMES = ("left", "right", "both", 7)
SYSTEM = System(
    LGDS([[0.9, 0.1], [-0.1, 0.8]], [[0.2, 0.0], [0.0, 0.1]], 0.5),
    np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [-0.5, 0.5]]),
    NAMES,
)
OTHER = System(LGDS([[0.5, 0.0], [0.0, 0.5]], np.eye(2), 1.0), SYSTEM.arms, NAMES)
PRICED = System(
    LGDS(np.diag([0.9, 0.9, 1.0]), np.diag([0.1, 0.1, 0.0]), 0.5, np.eye(3)),
    np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    ("basic", 2),
    {"x_price": np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])},
)
UNSTABLE = System(LGDS([[2.0]], [[1.0]], 1.0, [[1.0]]), [[1.0], [2.0]], ("a", "b"))

DOCUMENT, OTHER_DOCUMENT, PRICED_DOCUMENT, UNSTABLE_DOCUMENT = (
    model_file.to_document(system) for system in (SYSTEM, OTHER, PRICED, UNSTABLE)
)


def answer(decision):
    """What the service answers where a plain agent returns a decision."""
    found = decision.to_dict()
    return {"decision": found.pop("id"), **found}
