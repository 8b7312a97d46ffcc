"""Numbers as they are shown."""

import math

import numpy as np
import pytest

from driftbandit.report import numbers
from driftbandit.report.numbers import estimate


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (math.inf, "inf"), (0.00009996, "0.000100"), (9.996, "10.0"), (1e7, "1.00e+07")],
)
def test_numbers_are_shown_to_three_digits(value, shown):
    assert numbers.short(value) == shown


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((0.1234, 0.0612, 0.1712), ("+0.12", "0.06 to 0.17")),
        ((-0.0031, -0.0042, 0.0011), ("-0.0031", "-0.0042 to 0.0011")),
        ((2818.4, 2626.1, 3178.2), ("+2,818", "2,626 to 3,178")),
        ((3.2e9, 2.1e9, 4.3e9), ("+3.2e+09", "2.1e+09 to 4.3e+09")),
        ((1.0, 0.5, np.inf), ("+1", "0.5 to inf")),
        ((np.inf, np.inf, np.inf), ("+inf", "inf to inf")),
        ((0.0, 0.0, 0.0), ("+0", "0 to 0")),
        ((2.0, np.nan, np.nan), ("+2", "–")),
    ],
)
def test_differences_are_shown_as_precisely_as_they_are_known(numbers, shown):
    assert estimate(*numbers, signed=True) == shown
