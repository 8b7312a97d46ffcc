"""The leaderboard: what it plays and how it ranks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftbandit as db
from driftbandit import leaderboard, studies
from driftbandit.families import FAMILIES
from driftbandit.leaderboard import ranking
from driftbandit.paper import table2
from driftbandit.paper.readings import Cell
from driftbandit.result import ORACLE
from leaderboards import NAMES, PLAYED, drawn, options, outcome

PLAYERS = ("idea", "kalman_ucb(width=2)", "random", ORACLE)


def test_everybody_plays_every_setting_of_every_family():
    specification = ranking.specification(options())
    assert sorted(specification.policies) == sorted(db.policies.available())
    found = [(cell.family, ranking.setting_of(cell).name) for cell in specification.cells]
    assert found == [(family, name) for family in FAMILIES for name in NAMES]
    for cell in specification.cells:
        setting = ranking.setting_of(cell)
        out = {name for name, absence in ranking.SITS_OUT.items() if setting.name in absence[0]}
        assert set(cell.absent) == out


def test_the_base_is_table_iis():
    """P20, P21: the same cells, so the same systems, states and noise."""
    mine = ranking.specification(options(settings=("base",)))
    assert mine.cells == table2.specification(options()).cells


SHAPES = {"k100": (100, 10), "k1000": (1000, 10), "d2": (10, 2), "d30": (10, 30)}


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_changes_one_thing(name):
    """P20, P24: all else is the base's, system by system."""
    specification = ranking.specification(options(settings=("base", name), families=("cauchy",)))
    by_setting = {ranking.setting_of(cell).name: cell for cell in specification.cells}
    base, changed = (
        specification.systems_of(studies.Chunk(by_setting[key], 2, 2)) for key in ("base", name)
    )
    assert base[1] is None
    for place, ((model, arms), (other, others)) in enumerate(zip(base[0], changed[0], strict=True)):
        assert others.shape == SHAPES.get(name, (10, 10))
        radius = np.abs(np.linalg.eigvals(other.transition)).max()
        assert radius == pytest.approx(0.99 if name == "rho0.99" else 0.9)
        if name not in ("d2", "d30"):
            factor = {"noise0.1": 0.1, "noise10": 10.0}.get(name, 1.0)
            assert other.reward_std == factor * model.reward_std
            assert np.array_equal(other.process_cov, model.process_cov)
            np.testing.assert_allclose(other.transition / radius, model.transition / 0.9)
        if name not in SHAPES:
            assert np.array_equal(others, arms)
        if not name.startswith("wrong_"):
            assert changed[1] is None
            continue
        wrong, wrong_arms = changed[1][place]
        differ = {
            part
            for part in ("transition", "process_cov", "reward_std")
            if not np.array_equal(getattr(wrong, part), getattr(model, part))
        }
        differ |= set() if np.array_equal(wrong_arms, arms) else {"arms"}
        assert differ == {name.removeprefix("wrong_")}


def test_a_first_look_leaves_out_a_thousand_arms():
    assert set(NAMES) - set(leaderboard.QUICK) == {"k1000"}


def test_the_references_always_play():
    assert ranking.specification(options(policies=("kalman_ucb(width=2)",))).policies == PLAYERS


def test_a_policy_sits_out_with_all_its_parameters(monkeypatch):
    monkeypatch.setitem(ranking.SITS_OUT, "kalman_ucb", ranking.Absence(("k1000",), "a reason"))
    asked = options(policies=("kode", "kalman_ucb(width=2)"), settings=("base", "k1000"))
    cells = ranking.specification(asked).cells
    assert {cell.absent for cell in cells if cell.n_arms is None} == {()}
    assert {cell.absent for cell in cells if cell.n_arms == 1000} == {("kalman_ucb(width=2)",)}
    assert all(ranking.setting_of(cell) for cell in cells)


def test_who_sits_out_is_registered_and_says_why():
    for policy, absence in ranking.SITS_OUT.items():
        assert policy in db.policies.available()
        assert set(absence.settings) < set(NAMES)
        assert len(absence.reason) > 20


def test_a_cell_of_another_study_is_refused():
    with pytest.raises(db.InvalidInput, match=r"gaussian\.d-3 belongs to no setting"):
        ranking.setting_of(Cell("gaussian", n_states=3))


REGRETS = st.lists(
    st.tuples(*[st.just(0.0) | st.floats(1e-9, 1e9)] * 3), min_size=1, max_size=8
).map(lambda rows: np.array(rows).T)


@given(regrets=REGRETS, scale=st.sampled_from([0.25, 4.0]))
def test_log_ratios_are_bounded_and_antisymmetric(regrets, scale):
    mine, base, ceiling = regrets
    logs = ranking.log_ratios(mine, base, ceiling)
    assert np.abs(logs).max() <= math.log(1000) * (1 + 1e-12)
    np.testing.assert_allclose(ranking.log_ratios(base, mine, ceiling), -logs, atol=1e-12)
    np.testing.assert_allclose(ranking.log_ratios(*(scale * regrets)), logs, atol=1e-12)
    for log, a, b, c in zip(logs, mine, base, ceiling, strict=True):
        if min(a, b) >= 1.001e-3 * max(a, b, c) > 0:
            assert log == pytest.approx(math.log(a / b), abs=1e-12)
        if a == b:
            assert log == 0
        assert (a > b) >= (log > 0)


def test_regrets_of_zero():
    """Counted as a thousandth of the highest of the three; nothing at all is a tie."""
    rows = [(0, 1, 9), (1, 0, 9), (0, 0, 9), (0, 0, 0), (1, 0, 0), (0.002, 1, 1)]
    expected = [9e-3, 1 / 9e-3, 1, 1, 1000, 0.002]
    assert np.exp(ranking.log_ratios(*np.array(rows, float).T)) == pytest.approx(expected)


def resamples(families, systems):
    """Which systems each draw of a family holds, as the module counts them."""
    found = {}
    for family in families:
        rng = np.random.default_rng([0, list(FAMILIES).index(family)])
        counts = rng.multinomial(systems, [1 / systems] * systems, 2000)
        found[family] = [np.repeat(np.arange(systems), row) for row in counts]
    return found


def ends(values):
    values = sorted(values)
    return [values[50], values[-51]]  # 2.5% of 2000 beyond each


def test_every_number_by_a_plain_loop():
    regret = drawn()
    document = ranking.document(outcome(regret))
    chosen = resamples(("gaussian", "cauchy"), 7)
    means = {key: {p: v.mean(axis=1) for p, v in found.items()} for key, found in regret.items()}
    assert [(r["family"], r["setting"], r["policy"]) for r in document["rows"]] == [
        (*key, policy) for key in regret for policy in regret[key]
    ]
    for row in document["rows"]:
        key = row["family"], row["setting"]
        mine, base = means[key][row["policy"]], means[key]["idea"]
        draws = chosen[row["family"]]
        value = math.prod(mine / base) ** (1 / 7)
        low, high = ends([math.prod((mine / base)[draw]) ** (1 / 7) for draw in draws])
        assert row["geometric"] == pytest.approx([value, low, high], rel=1e-5)
        ratios = ends([sum(mine[draw]) / sum(base[draw]) for draw in draws])
        assert row["ratio"] == pytest.approx([sum(mine) / sum(base), *ratios], rel=1e-5)
        assert row["regret"] == pytest.approx(regret[key][row["policy"]].mean(), rel=1e-5)
        verdict = "better" if high < 1 else "worse" if low > 1 else "no difference seen"
        assert row["verdict"] == ("" if row["policy"] == "idea" else verdict)
        assert row["floored"] == 0
        rivals = ["idea", "kode", "random"]
        levels = {p: math.prod(means[key][p] / base) for p in rivals}
        ordered = sorted(rivals, key=levels.get)
        if row["policy"] == ORACLE:
            assert (row["rank"], row["lowest"], row["level"]) == (None, False, False)
            continue
        assert row["rank"] == 1 + ordered.index(row["policy"])
        assert row["lowest"] == (row["policy"] == ordered[0])
        behind = mine / means[key][ordered[0]]
        clearly = ends([math.prod(behind[draw]) for draw in draws])[0] > 1
        assert row["level"] == (not clearly)
    # Pooled: the systems of a family are drawn once for all of its settings.
    for row in document["overall"]:
        policy = row["policy"]
        logs = {
            family: np.mean(
                [np.log(means[family, s][policy] / means[family, s]["idea"]) for s in PLAYED],
                axis=0,
            )
            for family in ("gaussian", "cauchy")
        }
        values = [
            math.exp(sum(logs[family][chosen[family][n]].mean() for family in logs) / 2)
            for n in range(2000)
        ]
        value = math.exp(sum(found.mean() for found in logs.values()) / 2)
        assert row["geometric"] == pytest.approx([value, *ends(values)], rel=1e-5)
        mine = [r for r in document["rows"] if r["policy"] == policy]
        assert row["cells"] == len(mine) == 6
        assert row["better"] == sum(r["verdict"] == "better" for r in mine)
        assert row["worse"] == sum(r["verdict"] == "worse" for r in mine)
        assert (row["lowest"], row["level"]) == tuple(
            sum(r[key] for r in mine) for key in ("lowest", "level")
        )
        if policy != ORACLE:
            assert row["rank"] == pytest.approx(np.mean([r["rank"] for r in mine]), rel=1e-5)
    places = [row["geometric"][0] for row in document["overall"]]
    assert places == sorted(places)
    cells = {(r["family"], r["setting"], r["policy"]): r["geometric"][0] for r in document["rows"]}
    for row in document["by_setting"]:
        both = [cells[family, row["setting"], row["policy"]] for family in ("gaussian", "cauchy")]
        assert row["geometric"][0] == pytest.approx(math.sqrt(math.prod(both)), rel=1e-5)
    for row in document["by_family"]:
        all_of_it = [cells[row["family"], setting, row["policy"]] for setting in PLAYED]
        assert row["geometric"][0] == pytest.approx(math.prod(all_of_it) ** (1 / 3), rel=1e-5)


def test_one_system_does_not_decide_a_geometric_mean():
    """A thousand times IDEA's regret on one system of 40, nine tenths of it on the others."""
    regret = drawn(systems=40, names=("base",), families=("cauchy",))
    [found] = regret.values()
    found["kode"] = 0.9 * found["idea"]
    found["kode"][3] *= 1000
    rows = ranking.document(outcome(regret, ("base",), ("cauchy",)))["rows"]
    row = next(row for row in rows if row["policy"] == "kode")
    assert row["ratio"][0] > 2
    assert row["geometric"][0] == pytest.approx(0.9 * 1000 ** (1 / 40), rel=1e-5)
    assert row["geometric"][2] / row["geometric"][1] < row["ratio"][2] / row["ratio"][1]


def test_intervals_hold_what_they_promise():
    """Of 200 leaderboards with a true factor of 1.1, about 95% have it in their interval."""
    held = []
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        base = np.exp(2 * rng.normal(size=30))
        logs = math.log(1.1) + 0.4 * rng.normal(size=30)
        means = {"idea": base, "kode": base * np.exp(logs), "random": 9 * base}
        board = ranking.Board({("gaussian", "base"): means}, seed)
        _, low, high = board.geometric("kode", [("gaussian", "base")])
        held.append(low < 1.1 < high)
    # With 30 systems the bootstrap itself covers 93%; three standard errors are 5%.
    assert 0.88 < np.mean(held) < 0.98


def test_few_systems_decide_nothing():
    for systems, verdicts in ((5, {"", "too few to tell"}), (6, {"", "better", "worse"})):
        regret = drawn(systems=systems, kode=1e-2, **{ORACLE: 1e-3})
        rows = ranking.document(outcome(regret))["rows"]
        assert {row["verdict"] for row in rows} == verdicts
        assert all(row["level"] for row in rows if systems == 5 and row["policy"] != ORACLE)


def test_equal_regrets_share_their_rank():
    regret = drawn(names=("base",))
    for found in regret.values():
        found["kode"] = found["idea"]
    rows = ranking.document(outcome(regret, ("base",)))["rows"]
    ranks = {row["policy"]: row["rank"] for row in rows}
    assert (ranks["idea"], ranks["kode"], ranks["random"]) == (1.5, 1.5, 3)
