"""Parts of the state against slopes of the likelihood, and what they find."""

import numpy as np
import pytest

from driftbandit import LGDS, System, kalman, monitor
from driftbandit.io.log_reader import as_log
from driftbandit.monitoring import parts
from monitored import ARMS, MEMORY, MODEL, NAMES, NOISE, SYSTEM, played
from refusals import Case, assert_refused, each

LEVELS = {f"level of {name}": [number] for number, name in enumerate(NAMES)}


@pytest.mark.parametrize("states", [[0], [1, 3], [4]])
def test_speed_is_the_slope_of_the_likelihood(states):
    """In the scale of the part's Q or, for a constant (the last state), in its variance."""
    wide = np.eye(ARMS + 1)
    wide[:ARMS, :ARMS] *= MEMORY
    cov = np.zeros((ARMS + 1, ARMS + 1))
    cov[:ARMS, :ARMS] = MODEL.process_cov
    arms = np.hstack([np.eye(ARMS), np.ones((ARMS, 1))])
    log = as_log(played(3, 80), NAMES)
    one = log.sequences[0]

    def likelihood(step):
        change = np.zeros_like(cov)
        block = np.ix_(states, states)
        change[block] = cov[block] if cov[block].any() else np.eye(len(states))
        model = LGDS(wide, cov + step * change, NOISE, np.eye(ARMS + 1))
        return kalman.log_likelihood(model, arms[one.arms], one.rewards)

    system = System(LGDS(wide, cov, NOISE, np.eye(ARMS + 1)), arms, NAMES)
    sums = parts.Sums()
    rows = list(parts.steps(system.model, arms[one.arms], one))
    draws = np.zeros((len(rows), parts.DRAWS))
    for block in parts.disturbances(wide, rows, one.rounds, draws):
        sums.add(block, np.array(states), cov, 0)
    step = 1e-5
    slope = (likelihood(step) - likelihood(0.0)) / step
    slope += (
        (likelihood(step) - likelihood(0.0) - (likelihood(2 * step) - likelihood(step))) / step / 2
    )
    assert sums.excess / 2 == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_true_parts_look_true():
    """Speeds have mean 0 and variance 1, and small p-values are rare."""
    found = [
        part
        for seed in range(40)
        for part in parts.smoothed(
            SYSTEM, as_log(played(seed, 150), NAMES), {"a": np.array([0]), "bc": np.array([1, 2])}
        )[1]
    ]
    speeds = np.array([part.speed for part in found])
    assert abs(speeds.mean()) < 0.45
    assert 0.6 < speeds.std() < 1.4
    assert sum(part.speed_p_value < 0.05 for part in found) <= 11  # 4 of 80 are expected
    assert sum(part.jump_p_value < 0.05 for part in found) <= 11


def test_a_jump_and_its_part():
    health = monitor(SYSTEM, played(1, jump=6.0), parts=LEVELS)
    (part,) = health.off_parts()
    assert part.name == "level of a"
    assert abs(part.jump_round - 200) <= 6
    assert part.speed > 3
    assert f"Part level of a jumped in round {part.jump_round}." in health.summary()
    table = health.report().blocks[-2]
    assert [row[0].text for row in table.rows] == list(LEVELS)


CASES = [
    Case(f"{bad!r:.40}", lambda bad=bad: monitor(SYSTEM, {}, parts=bad), "parts", value)
    for bad, value in [
        ([0], "[0]"),
        ({}, "{}"),
        ({3: [0]}, "3"),
        ({" ": [0]}, "' '"),
        ({"a": 0}, "is 0"),
        ({"a": []}, "is []"),
        ({"a": [4]}, "is 4"),
        ({"a": [-1]}, "is -1"),
        ({"a": [0.5]}, "0.5"),
        ({"a": [1, 1]}, "[1, 1]"),
        ({"a": "01"}, "'01'"),
    ]
]


@each(CASES)
def test_bad_parts(case):
    assert_refused(case)
