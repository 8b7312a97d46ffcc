"""Random structures, arms and logs, for property tests."""

import numpy as np
from hypothesis import strategies as st

from driftbandit.structure import ar, constant, level, noise, regression, season, trend
from driftbandit.structure.base import Structure
from known_structures import log_of

ARMS = 3
GROUPS = {"a0": "even", "a1": "odd", "a2": "even"}
FEATURES = ("x_a", "x_b")
SCOPES = st.sampled_from(["arm", "group", "shared"])
SIZES = st.floats(1e-3, 1e3)
MODEST = st.floats(0.05, 20)  # so that rounding does not hide mistakes in likelihoods
SHARES = st.floats(0.01, 0.99)
LOADINGS = st.just("free") | st.lists(st.floats(-3, 3), min_size=ARMS, max_size=ARMS).filter(any)


@st.composite
def _common(draw, scopes=SCOPES):
    """Options of every component."""
    found = {"scope": draw(scopes), "own": draw(st.booleans())}
    if found["scope"] != "arm" and draw(st.booleans()):
        found["loadings"] = draw(LOADINGS)
    return found


@st.composite
def components(draw, sizes=SIZES):
    """A component with random options, some of its parameters fixed."""
    kind = draw(st.sampled_from([constant, level, trend, season, ar, regression, noise]))
    options, fixed = draw(_common()), {}
    if kind is not noise:
        options["start"] = draw(st.none() | sizes)
    if kind is level:
        options["memory"] = draw(st.sampled_from([None, "free"]) | st.floats(0.5, 1e4))
        fixed = {"drift": sizes}
    elif kind is trend:
        options["damping"] = draw(st.sampled_from([None, "free"]) | SHARES)
        options["smooth"] = draw(st.booleans())
        fixed = {"slope_drift": sizes}
    elif kind is season:
        period = draw(st.integers(2, 30) | st.floats(1.5, 400))
        most = max(int(period / 2), 1)
        harmonics = draw(st.integers(1, min(most, 3)))
        options |= {"period": period, "harmonics": harmonics, "unchanging": draw(st.booleans())}
        fixed = {} if options["unchanging"] else {"change": sizes}
    elif kind is ar:
        options["order"] = draw(st.integers(1, 3))
        fixed = {"drift": sizes, "partial1": st.floats(-0.9, 0.9)}
    elif kind is regression:
        options["features"] = draw(st.permutations(FEATURES))[: draw(st.integers(1, 2))]
        options["drifting"] = draw(st.booleans())
        fixed = {"change": sizes} if options["drifting"] else {}
    for name, values in fixed.items():
        if draw(st.integers(0, 3)) == 0:
            options[name] = draw(values)
    return kind(**options)


def structures(most=3, sizes=SIZES):
    """Sums of different components."""
    lists = st.lists(components(sizes), min_size=1, max_size=most, unique_by=str)
    return lists.filter(_every_arm_reads).map(lambda parts: Structure(tuple(parts)))


def _every_arm_reads(parts):
    """Whether every arm has a loading that is not zero: `Layout` refuses an arm without one."""
    loadings = [one.loadings if isinstance(one.loadings, tuple) else (1,) * ARMS for one in parts]
    return all(map(any, zip(*loadings, strict=True)))


def random_log(seed, rows=24, sequences=2, names=tuple(GROUPS)):
    """Several plays in a round, gaps, missing rewards, sequences that begin at any round."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(sequences):
        rounds = int(rng.integers(40)) + np.cumsum(rng.choice([0, 1, 1, 2, 17], size=rows))
        rewards = 3 * rng.standard_normal(rows)
        rewards[rng.random(rows) < 0.2] = np.nan
        parts.append((rounds, rng.integers(ARMS, size=rows), rewards, rng.normal(2, 1, (rows, 2))))
    return log_of(*map(list, zip(*parts, strict=True)), names=names, feature_names=FEATURES)
