"""`driftbandit keys`: create, list, revoke."""

import json
import re

import pytest

from driftbandit.service import keys
from driftbandit.service.store import using
from service.stores import desk, ran, sqlite_url


@pytest.fixture
def url(tmp_path, monkeypatch):
    """A store with an experiment, which the environment names."""
    with desk(sqlite_url(tmp_path)) as service:
        service.create("shop")
    monkeypatch.setenv("DRIFTBANDIT_STORE", sqlite_url(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return sqlite_url(tmp_path)


def created(capsys, *words):
    code, out, err = ran(capsys, "keys", "create", *words)
    assert (code, err) == (0, "")
    assert re.fullmatch(r"db_[0-9a-f]{12}_[0-9a-f]{64}\n", out)
    return out.strip()


def test_a_key_is_made_listed_and_revoked(url, capsys):
    made = created(capsys, "--scope", "reward", "--scope", "decide", "--name", "[/] till, ä")
    other = created(capsys, "--scope", "read", "--experiment", "shop")
    id_, secret = made.split("_")[1:]
    code, out, err = ran(capsys, "keys", "list")
    assert (code, err) == (0, "")
    lines = [line for line in out.splitlines() if "in use" in line]
    assert all(words in lines[0] for words in (id_, "[/] till, ä", "decide reward", "all"))
    assert all(words in lines[1] for words in (other.split("_")[1], "read", "shop"))
    assert ran(capsys, "keys", "revoke", id_) == (0, f"revoked {id_}\n", "")
    code, out, _ = ran(capsys, "keys", "list", "--json")
    first, second = json.loads(out)["keys"]
    fields = {"id", "name", "scopes", "experiment", "created", "revoked"}
    assert set(first) == set(second) == fields
    assert first["revoked"] > first["created"]
    assert (second["revoked"], second["scopes"], second["experiment"]) == (None, ["read"], "shop")
    shown = ran(capsys, "keys", "list").out + out
    assert "revoked" in shown
    for hidden in (secret, other.split("_")[2], keys.hashed(secret)):
        assert hidden not in shown


def test_the_first_key_makes_the_store(tmp_path, capsys):
    made = created(capsys, "--scope", "admin", "--store", sqlite_url(tmp_path))
    with using(sqlite_url(tmp_path), make=False) as store:
        assert [key.id for key in keys.listed(store)] == [made.split("_")[1]]


def test_there_are_no_keys(url, capsys):
    code, out, _ = ran(capsys, "keys", "list")
    assert (code, out) == (0, "There are no keys: the server is open to its own machine.\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["create", "--scope", "reed"], "scope: unknown name 'reed'; did you mean 'read'? valid:"),
        (
            ["create", "--scope", "read", "--experiment", "x"],
            "experiment: x does not exist; create",
        ),
        (["create", "--scope", "read", "--name", "a\nb"], r"name: is 'a\nb'; leave out line"),
        (["revoke", "none"], "id: none is no key in use; driftbandit keys list shows all"),
        (["list", "--store", "sqlite:///none.db"], "store: sqlite:///none.db does not exist; give"),
        (["revoke", "a", "--store", "mysql://a"], "store: is a mysql database; give sqlite:///"),
    ],
)
def test_what_is_refused(url, capsys, words, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, "keys", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error {line}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "none.db").exists()


def test_a_scope_is_needed(url, capsys):
    code, out, err = ran(capsys, "keys", "create")
    assert (code, out) == (2, "")
    assert "Missing option '--scope'" in err


@pytest.mark.parametrize("words", [[], ["create"], ["list"], ["revoke"]])
def test_the_help_fits_a_narrow_terminal(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    code, out, _ = ran(capsys, "keys", *words, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
