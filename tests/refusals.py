"""Wrong arguments are refused before any work, in one line that names the argument and its value.

Each test file lists the cases of its module.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from driftbandit import LGDS, InvalidInput

NAN, INF = float("nan"), float("inf")
EYE = np.eye(2)
STABLE = LGDS(0.5 * EYE, EYE, 1.0)
UNSTABLE = LGDS(2 * EYE, EYE, 1.0, initial_cov=EYE)
HALF_SEEN = LGDS(np.diag([2.0, 0.5]), EYE, 1.0, initial_cov=EYE)


class Case(NamedTuple):
    id: str
    call: Callable[[], Any]
    argument: str
    """What the message must begin with."""
    value: str
    """What it must show."""
    error: type[ValueError] = InvalidInput


def each(cases):
    """Run a test once for every case."""
    names = [case.id for case in cases]
    assert len(set(names)) == len(names)
    return pytest.mark.parametrize("case", cases, ids=names)


def assert_refused(case):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is looked at below
        case.call()
    message = str(caught.value)
    assert caught.type is case.error
    assert message.startswith(case.argument)
    assert case.value in message
    assert "\n" not in message


def lgds(transition=0.5 * EYE, process_cov=EYE, reward_std=1.0, initial_cov=None):
    return LGDS(transition, process_cov, reward_std, initial_cov)
