"""`driftbandit verify`: the same, bit for bit; or what differs, and where."""

import json

import pytest

from driftbandit.agent import history
from driftbandit.errors import InvalidInput
from driftbandit.service import writer
from driftbandit.service.store import using
from driftbandit.service.transaction import checksum_of
from driftbandit.service.verifying import verify
from driftbandit.service.writer import parsed
from service.stores import desk, ran, rows, sqlite_url


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store with two experiments, which are at event 61, with snapshots on the way."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "SNAPSHOT_EVERY", 25)
        with desk(sqlite_url(folder)) as service:
            for name in ("one", "two"):
                service.create(name)
                service.play(30, name)
    return (folder / "decisions.db").read_bytes()


@pytest.fixture
def folder(template, tmp_path):
    (tmp_path / "decisions.db").write_bytes(template)
    return tmp_path


def problems(folder, **options):
    with using(sqlite_url(folder), make=False) as store:
        return {one.experiment: one.problem for one in verify(store, **options)}


def changed(folder, statement, *given):
    with rows(folder) as connection:
        assert connection.execute(statement, given).rowcount == 1


def test_everything_is_the_same(folder):
    with using(sqlite_url(folder), make=False) as store:
        assert [tuple(one) for one in verify(store)] == [("one", 61, 2, None), ("two", 61, 2, None)]
        assert [one.experiment for one in verify(store, "two")] == ["two"]
        with pytest.raises(InvalidInput, match="experiment: there is no three; valid: one, two"):
            verify(store, "three")


def test_it_says_how_far_it_is(folder):
    calls = []
    with using(sqlite_url(folder), make=False) as store:
        verify(store, "one", lambda *said: calls.append(said))
    assert calls == [("one", 61, 61)]  # and on the way every thousand events


def test_it_only_reads(folder):
    before = (folder / "decisions.db").read_bytes()
    problems(folder)
    assert (folder / "decisions.db").read_bytes() == before


def test_a_snapshot_that_differs(folder):
    with rows(folder) as connection:
        (number,) = connection.execute(
            "SELECT max(number) FROM snapshots WHERE experiment = 'one'"
        ).fetchone()
    changed(
        folder,
        "UPDATE snapshots SET rest = replace(rest, '\"decisions\": 30', '\"decisions\": 31') "
        "WHERE experiment = 'one' AND number = ?",
        number,
    )
    found = problems(folder)
    assert found == {
        "one": f"snapshot {number} differs from what its events give",
        "two": None,
    }


def test_a_snapshot_after_the_last_event(folder):
    changed(folder, "UPDATE snapshots SET number = 70 WHERE experiment = 'two' AND number = 61")
    said = "snapshot 70 cannot be compared: the last event is 61"
    assert problems(folder) == {"one": None, "two": said}


def test_a_snapshot_that_cannot_be_read(folder):
    changed(folder, "UPDATE snapshots SET agent = '{' WHERE experiment = 'two' AND number = 61")
    found = problems(folder)
    assert found["two"] == "snapshot 61 differs from what its events give and cannot be read"
    assert found["one"] is None


def nudged(value, by):
    """The document with all its inner numbers changed a little."""
    if isinstance(value, float):
        return value * (1 + by)
    if isinstance(value, list):
        return [nudged(one, by) for one in value]
    return {k: nudged(v, by) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(("by", "rounding"), [(1e-15, True), (1e-12, True), (1e-6, False)])
def test_rounding_is_named(folder, by, rounding):
    with rows(folder) as connection:
        asked = "SELECT agent FROM snapshots WHERE experiment = 'one' AND number = 61"
        (text,) = connection.execute(asked).fetchone()
    text = json.dumps(nudged(json.loads(text), by) | {"checksum": "another"})
    changed(folder, "UPDATE snapshots SET agent = ? WHERE experiment = 'one' AND number = 61", text)
    said = problems(folder)["one"]
    assert said.startswith("snapshot 61 differs from what its events give")
    assert ("by rounding (at most " in said) is rounding
    assert said.endswith("another kind of machine wrote it") is rounding


def test_an_event_is_missing(folder):
    changed(folder, "DELETE FROM events WHERE experiment = 'one' AND number = 20")
    said = problems(folder)["one"]
    assert said == "event 20 of experiment one is missing"


def test_the_first_event_is_missing(folder):
    changed(folder, "DELETE FROM events WHERE experiment = 'one' AND number = 1")
    assert problems(folder)["one"] == "event 1 of experiment one is missing"


def test_the_last_event_is_missing(folder):
    changed(folder, "DELETE FROM events WHERE experiment = 'one' AND number = 61")
    assert problems(folder)["one"] == "the last event is 60, and the experiment says 61"


def test_all_events_are_missing(folder):
    with rows(folder) as connection:
        connection.execute("DELETE FROM events WHERE experiment = 'one'")
    assert problems(folder)["one"] == "the last event is 0, and the experiment says 61"


def test_an_event_was_changed(folder):
    """Even if the fold would take it: a reward that is another one."""
    changed(
        folder,
        "UPDATE events SET data = replace(data, '\"reward\":', '\"reward\":1') "
        "WHERE experiment = 'one' AND number = 61",
    )
    said = "event 61 of experiment one is not what was stored: its checksum does not match"
    assert problems(folder) == {"one": said, "two": None}


def test_an_event_that_cannot_be_folded(folder):
    """As a newer version might have stored it."""
    with rows(folder) as connection:
        asked = "SELECT time, data FROM events WHERE experiment = 'one' AND number = 61"
        time, data = connection.execute(asked).fetchone()
    checksum = checksum_of("one", 61, "teleported", time, data)
    changed(
        folder,
        "UPDATE events SET kind = 'teleported', checksum = ? "
        "WHERE experiment = 'one' AND number = 61",
        checksum,
    )
    said = problems(folder)["one"]
    assert said.startswith("the event after 60 cannot be applied (event: 61 has the unknown kind")


def test_a_snapshot_is_compared_before_the_damage(folder):
    changed(folder, "DELETE FROM events WHERE experiment = 'one' AND number = 55")
    with using(sqlite_url(folder), make=False) as store:
        (found,) = verify(store, "one")
    assert (found.events, found.snapshots) == (54, 1)


# The command.


def test_without_snapshots_nothing_is_called_the_same(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with rows(folder) as connection:
        connection.execute("DELETE FROM snapshots WHERE experiment = 'two'")
    code, out, _ = ran(capsys, "verify", "--store", sqlite_url(folder))
    assert code == 0
    assert out.count("the same, bit for bit") == 1
    assert out.count("no snapshot to compare; all events can be applied") == 1


def test_the_command_says_that_all_is_well(folder, capsys):
    code, out, _ = ran(capsys, "verify", "--store", sqlite_url(folder))
    assert code == 0
    assert out.count("the same, bit for bit") == 2
    code, out, _ = ran(capsys, "verify", "--store", sqlite_url(folder), "--json")
    assert code == 0
    row = {"events": 61, "snapshots": 2, "problem": None, "clean": True}
    assert json.loads(out) == {
        "clean": True,
        "experiments": [{"experiment": name, **row} for name in ("one", "two")],
    }


def test_the_command_says_what_differs(folder, capsys, monkeypatch):
    changed(folder, "DELETE FROM events WHERE experiment = 'two' AND number = 61")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("DRIFTBANDIT_STORE", sqlite_url(folder))
    code, out, _ = ran(capsys, "verify")
    assert code == 1
    assert "the last event is 60, and the experiment says 61" in out
    assert out.count("the same, bit for bit") == 1
    code, out, _ = ran(capsys, "verify", "--json", "--experiment", "two")
    assert code == 1
    assert json.loads(out)["clean"] is False
    assert ran(capsys, "verify", "--experiment", "one").code == 0


def test_the_command_refuses_in_one_line(tmp_path, folder, capsys):
    code, out, err = ran(capsys, "verify", "--store", f"sqlite:///{tmp_path}/other.db")
    assert (code, out) == (2, "")
    assert err.startswith("error store: ")
    assert "other.db does not exist; give the right file" in err
    code, out, err = ran(capsys, "verify", "--store", sqlite_url(folder), "--experiment", "x")
    assert (code, err) == (2, "error experiment: there is no x; valid: one, two\n")
    assert not (tmp_path / "other.db").exists()


def test_a_new_store_has_nothing_to_verify(tmp_path, capsys):
    with using(sqlite_url(tmp_path)):
        pass
    code, out, _ = ran(capsys, "verify", "--store", sqlite_url(tmp_path))
    assert (code, out) == (0, "There are no experiments.\n")


def test_snapshots_of_a_version_that_kept_decisions_longer_are_clean(tmp_path, monkeypatch):
    """Version 0.2 kept all that were inside the window."""
    monkeypatch.setattr(history, "KEPT", 10**9)
    with desk(sqlite_url(tmp_path)) as service:
        service.create(window=10)
        for number in range(5):
            made = parsed(service.writer.run("one", batch))
            told = [{"decision": id_, "reward": id_ / 7 % 1} for id_ in made[number // 4 :]]
            service.writer.run("one", lambda one, now, told=told: (200, one.reward(now, told)))
    assert problems(tmp_path) == {"one": None}
    monkeypatch.setattr(history, "KEPT", 20)
    assert problems(tmp_path) == {"one": None}
    with desk(sqlite_url(tmp_path)) as service:
        assert service.decide()["decision"] == 150
    assert problems(tmp_path) == {"one": None}


def batch(experiment, now):
    """A job that makes 30 decisions in a round."""
    return 201, [one.id for one in experiment.decide(now, count=30, distinct=False, most_open=999)]
