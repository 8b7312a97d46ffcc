"""The leaderboard: who plays, and how it ranks."""

import math
import zlib

import numpy as np
import pytest

import driftbandit as db
from driftbandit.leaderboard import PROBLEMS, ranking
from driftbandit.leaderboard.problems import Cell
from driftbandit.result import ORACLE
from leaderboards import KEYS, drawn, options, outcome

KINDS = {family: PROBLEMS[family].kind for family, _ in KEYS}


def test_everybody_plays_everything():
    specification = ranking.specification(options())
    assert set(specification.policies) == {*db.policies.default(), "whittle"}
    found = [(cell.family, cell.memory) for cell in specification.cells]
    assert found == [(family, m) for family, one in PROBLEMS.items() for m in one.memories]
    for cell in specification.cells:
        apart = PROBLEMS[cell.family].independent and cell.memory != "forever"
        absent = () if apart else ("whittle",)
        assert cell.absent == (*absent, *([ORACLE] if cell.memory == "forever" else []))
        [system], _ = Cell(cell.family, memory=cell.memory).systems(range(1), 0, 0, 0)
        assert specification.shape(cell) == system.arms.shape[::-1]


def test_the_references_always_play():
    asked = options(policies=("kalman_ucb(width=2)",), memories=("2",), families=("gaussian",))
    specification = ranking.specification(asked)
    assert specification.policies == ("reach", "kalman_ucb(width=2)", ORACLE)
    assert [(cell.family, cell.memory) for cell in specification.cells] == [("gaussian", "2")]


def ends(values):
    values = sorted(values)
    return [values[50], values[-51]]  # 2.5% of 2000 beyond each


def by_hand(means, keys, policy, other):
    """exp(mean log ratio) and its interval; the cells of a family draw the same systems."""
    families = dict.fromkeys(family for family, _ in keys)
    counts = {}
    for family in families:
        rng = np.random.default_rng([0, zlib.crc32(family.encode())])
        counts[family] = rng.multinomial(7, [1 / 7] * 7, 2000)
    logs = {key: np.log(means[key][policy] / means[key][other]) for key in keys}
    value = np.mean([found.mean() for found in logs.values()])
    draws = [
        np.mean([counts[key[0]][n] @ found / 7 for key, found in logs.items()]) for n in range(2000)
    ]
    return np.exp([value, *ends(draws)])


@pytest.fixture(scope="module")
def regret():
    found = drawn(least_regret=0.6)
    for key, policies in found.items():
        if key[0] != "equal_arms":
            del policies["least_regret"]
    del found["gaussian", "10"]["random"]
    return found


def test_every_number_by_a_plain_loop(regret):
    document = ranking.document(outcome(regret))
    means = {key: {p: v.mean(axis=1) for p, v in found.items()} for key, found in regret.items()}
    groups = {}
    for row in document["rows"]:
        groups.setdefault((row["family"], row["kind"], row["memory"]), []).append(row)
    kinds, memories = set(KINDS.values()), {memory for _, memory in KEYS}
    pooled = {("all", KINDS[family], memory) for family, memory in KEYS}
    pooled |= {("all", kind, "all") for kind in kinds} | {("all", "all", m) for m in memories}
    single = {(family, KINDS[family], memory) for family, memory in KEYS}
    assert set(groups) == single | pooled | {("all", "all", "all")}
    for (family, kind, memory), rows in groups.items():
        keys = [
            key
            for key in KEYS
            if family in (key[0], "all")
            and kind in (KINDS[key[0]], "all")
            and memory in (key[1], "all")
        ]
        players = set.intersection(*(set(regret[key]) for key in keys)) - {"least_regret"}
        assert {row["policy"] for row in rows} == players
        score = {p: sum(np.log(means[key][p]).mean() for key in keys) for p in players}
        assert [row["policy"] for row in rows] == sorted(players, key=score.get)
        best = min(players - {ORACLE}, key=score.get)
        bounded = all("least_regret" in regret[key] for key in keys)
        for row in rows:
            expected = by_hand(means, keys, row["policy"], best)
            assert row["over_best"] == pytest.approx(expected, rel=1e-4)
            assert row["best"] == (row["policy"] == best)
            assert row["level"] == (row["policy"] != ORACLE and expected[1] <= 1)
            assert row["cells"] == len(keys)
            assert ("over_least" in row) == bounded
            if bounded:
                above = by_hand(means, keys, row["policy"], "least_regret")
                assert row["over_least"] == pytest.approx(above, rel=1e-4)


def test_one_system_does_not_decide():
    """A hundred times the other's regret on one system of 40, nine tenths of it on the others."""
    base = np.exp(np.random.default_rng(0).normal(size=40))
    board = ranking.Board({KEYS[0]: {"reach": base, "idea": base * np.r_[90, [0.9] * 39]}}, 0)
    value, low, high = board.over("idea", "reach", [KEYS[0]])
    assert value == pytest.approx(0.9 * 100 ** (1 / 40), rel=1e-4)
    assert low < 1 < high


def test_regrets_of_zero():
    """Counted as a thousandth of the highest on their system; nothing at all is a tie."""
    means = {"reach": np.array([0.0, 1, 0]), "idea": np.array([1.0, 1, 0])}
    means["random"] = np.array([9.0, 1, 0])
    board = ranking.Board({KEYS[0]: means}, 0)
    over = board.over("reach", "idea", [KEYS[0]])[0]
    assert over == pytest.approx((9e-3) ** (1 / 3), rel=1e-4)


def test_intervals_hold_what_they_promise():
    """Of 200 leaderboards with a true factor of 1.1, about 95% have it in their interval."""
    held = []
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        base = np.exp(2 * rng.normal(size=30))
        logs = math.log(1.1) + 0.4 * rng.normal(size=30)
        board = ranking.Board({KEYS[0]: {"reach": base, "idea": base * np.exp(logs)}}, seed)
        _, low, high = board.over("idea", "reach", [KEYS[0]])
        held.append(low < 1.1 < high)
    # With 30 systems the bootstrap itself covers 93%; three standard errors are 5%.
    assert 0.88 < np.mean(held) < 0.98


def test_few_systems_decide_nothing():
    for systems in (5, 6):
        rows = ranking.document(outcome(drawn(systems=systems, idea=1e-1)))["rows"]
        level = {row["policy"] for row in rows if row["level"]}
        assert level == ({"reach", "idea", "random"} if systems == 5 else {"idea"})
