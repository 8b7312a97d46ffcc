"""Models that start in a given round, and logs that begin later: `monitor` and `one_step`."""

import dataclasses

import numpy as np
import pytest

import driftbandit as db
from driftbandit.identify import as_log, one_step, read_log
from driftbandit.monitoring.surprises import surprises_of

ROUNDS, LATER = 200, 210
START = np.datetime64("2026-01-05T00")


def played(rounds=ROUNDS + 300, seed=0):
    """Columns of a log of three arms that drift, with a season of seven rounds."""
    rng = np.random.default_rng(seed)
    level, rows = np.array([1.0, 2.0, 3.0]), []
    for t in range(rounds):
        level = level + 0.1 * rng.standard_normal(3)
        arm = rng.integers(3)
        season = 2 * np.cos(2 * np.pi * t / 7)
        rows.append((t, "abc"[arm], level[arm] + season + 0.5 * rng.standard_normal()))
    return dict(zip(("round", "arm", "reward"), zip(*rows, strict=True), strict=True))


LOG = played()


def part(first, last, **more):
    return {name: column[first:last] for name, column in (LOG | more).items()}


@pytest.fixture(scope="module")
def found():
    return db.fit(part(0, ROUNDS), structure="level(arm) + season(7)", starts=1)


@pytest.mark.parametrize("first", [ROUNDS, ROUNDS + 3, ROUNDS + 110])
def test_a_later_log_is_predicted_as_the_agent_predicts_it(found, first):
    """At once or after a pause: the state moves on, and the season stays in phase."""
    log = part(first, first + 150)
    health, ahead = db.monitor(found.system, log), one_step(found.system, log)
    agent = db.Agent(found.system, window=0)
    agent.tell_log(log)
    agent.advance()
    np.testing.assert_allclose(health.surprises.values, agent.health().surprises.values, atol=1e-7)
    np.testing.assert_allclose(health.surprises.values, ahead.surprises, atol=1e-7)
    assert health.holds
    assert 0.7 < np.mean(ahead.surprises**2) < 1.3
    assert health.surprises.rounds[0] == first
    assert all(part.jump_round > first for part in db.monitor(found, log).parts)


def test_every_sequence_starts_from_the_same_round(found):
    """The first begins in ``first_round``, the second after a pause, with pauses inside."""
    late = list(range(LATER, LATER + 120, 3)) + list(range(LATER + 200, LATER + 240))
    both = {name: [*column[ROUNDS : ROUNDS + 80]] for name, column in LOG.items()}
    for name, column in LOG.items():
        both[name] += [column[t] for t in late]
    both["sequence"] = ["x"] * 80 + ["y"] * len(late)
    late = {name: [column[t] for t in late] for name, column in LOG.items()}
    alone = [one_step(found.system, log) for log in (part(ROUNDS, ROUNDS + 80), late)]
    whole = one_step(found.system, both)
    for field in ("means", "stds", "rewards"):
        ones = np.concatenate([getattr(one, field) for one in alone])
        np.testing.assert_allclose(getattr(whole, field), ones, atol=1e-9)
    health = db.monitor(found.system, both)
    np.testing.assert_allclose(health.surprises.values, whole.surprises, atol=1e-7)
    assert health.holds


@pytest.mark.parametrize("judge", [db.monitor, one_step])
def test_earlier_rounds_are_refused_and_what_fit_returned_takes_them(found, judge):
    for log, last in ((part(0, ROUNDS), ROUNDS - 1), (part(0, LATER), LATER - 1)):
        with pytest.raises(db.InvalidInput) as caught:
            judge(found.system, log)
        assert str(caught.value) == (
            f"log: holds rounds 0 to {last}, but the model was learned from those before round "
            "200, in which it starts; give only rounds from 200 on, or what fit returned in place "
            "of its system"
        )
        judge(found, log)
        judge(dataclasses.replace(found.system, first_round=None), log)  # whoever says so
    assert db.monitor(found, part(0, ROUNDS)).holds


def test_without_a_first_round_a_state_starts_in_the_first_round_of_a_sequence(found):
    system, log = found.start_system, as_log(part(LATER, LATER + 50))
    moved = dataclasses.replace(system, first_round=LATER)
    ones = [surprises_of(one, log).values for one in (system, moved)]
    np.testing.assert_array_equal(*ones)
    np.testing.assert_array_equal(*(one_step(one, log).means for one in (system, moved)))


def test_a_first_round_below_zero(found):
    moved = dataclasses.replace(found.system, first_round=-70)  # ten weeks
    log, other = part(0, 50), part(0, 50, round=range(ROUNDS + 70, ROUNDS + 120))
    ones = [one_step(moved, log), one_step(found.system, other)]
    np.testing.assert_allclose(ones[0].means, ones[1].means, atol=1e-9)
    health = db.monitor(moved, log)
    np.testing.assert_allclose(health.surprises.values, ones[0].surprises, atol=1e-7)


@pytest.mark.parametrize("judge", [db.monitor, one_step])
def test_times_are_counted_by_the_clock_of_the_system(judge):
    hours = START + np.arange(len(LOG["round"])) * np.timedelta64(1, "h")
    learned = read_log(part(0, ROUNDS, round=hours), every="hour")
    found = db.fit(learned, structure="level(arm) + season(7)", starts=1)

    def values(log):
        judged = judge(found.system, log).surprises
        return getattr(judged, "values", judged)

    every = slice(LATER, LATER + 160, 2)  # alone, their rounds would be steps of two hours
    numbered = {name: column[every] for name, column in LOG.items()}
    timed = numbered | {"round": hours[every]}
    expected = values(numbered)
    np.testing.assert_allclose(values(timed), expected, atol=1e-9)
    called = {"round": "when", "arm": "variant", "reward": "pay"}
    theirs = {called.get(name, name): column for name, column in timed.items()}
    for options in ({}, {"every": "hour"}, {"every": "30min"}, {"clock": found.system.clock}):
        log = read_log(theirs, columns=called, **options)
        np.testing.assert_allclose(values(log), expected, atol=1e-9)
    with pytest.raises(db.InvalidInput, match=r"^log: counts rounds as .*, which are not parts of"):
        values(read_log(timed, every="2 hours"))
    kept = [place for place, arm in enumerate(timed["arm"]) if arm != "a"]
    few = {name: [column[place] for place in kept] for name, column in timed.items()}
    assert read_log(few).names == ("b", "c")
    np.testing.assert_array_equal(values(read_log(few)), values(few))
    with pytest.raises(db.InvalidInput, match=r"^log: holds rounds 0 to 199, but the model"):
        values(part(0, ROUNDS, round=hours))
