"""Keys: what each opens, that the store keeps no secret, and when a server notices a change."""

import asyncio
import hmac
import time

import pytest

from driftbandit.errors import InvalidInput
from driftbandit.service import app, keys
from driftbandit.service.keys import Doorkeeper, Key
from driftbandit.service.problems import Problem
from driftbandit.service.store import StoreError, using
from service.load import settings
from service.postgres import postgres  # noqa: F401
from service.servers import Server
from service.stores import call, desk, rows, sqlite_url


@pytest.fixture
def store(tmp_path):
    with using(sqlite_url(tmp_path)) as opened:
        yield opened


def status(keeper, authorization):
    """What a doorkeeper answers: 200, or the status of a refusal."""
    keeper.refresh()
    try:
        keeper.check(authorization)
        return 200
    except Problem as problem:
        return problem.status


def test_a_key_and_what_the_store_keeps_of_it(store, tmp_path):
    made = keys.create(store, ["reward", "decide"], name="web shop")
    prefix, id_, secret = made.split("_")
    assert (prefix, len(id_), len(secret)) == ("db", 12, 64)
    (kept,) = keys.listed(store)
    assert kept.id == id_
    assert (kept.name, kept.scopes, kept.experiment) == ("web shop", ("decide", "reward"), None)
    assert kept.revoked is None
    assert abs(kept.created - time.time()) < 60
    assert kept.hash == keys.hashed(secret)
    store.close()  # everything is in the file now
    stored = (tmp_path / "decisions.db").read_bytes()
    assert kept.hash.encode() in stored
    assert secret.encode() not in stored
    assert bytes.fromhex(secret) not in stored


def test_keys_are_different(store):
    assert len({keys.create(store, ["read"]) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"scopes": []}, "scope: is missing; give some of decide, reward, read, admin"),
        ({"scopes": ["read", "reed"]}, "scope: unknown name 'reed'; did you mean 'read'?"),
        ({"scopes": ["read"], "experiment": "x"}, "experiment: x does not exist; create it first"),
        ({"scopes": ["read"], "name": "n" * 201}, "name: has 201 characters; give at most 200"),
        ({"scopes": ["read"], "name": "a\0b"}, "name: is 'a\\x00b'; leave out line breaks"),
    ],
)
def test_what_is_refused(store, given, problem):
    with pytest.raises(InvalidInput) as caught:
        keys.create(store, **given)
    assert str(caught.value).startswith(problem)
    assert keys.listed(store) == []


def test_what_a_key_allows():
    def allowed(scopes, only, scope, experiment):
        return Key("id", "", "", scopes, only, 0.0, None).allows(scope, experiment)

    for scope in keys.SCOPES:
        assert allowed((scope,), None, scope, "one")
        assert allowed(("admin",), None, scope, "one")
        assert allowed((scope,), "one", scope, "one")
        assert not allowed((scope,), "one", scope, "two")
        assert not allowed((scope,), "one", scope, None)
        for other in keys.SCOPES:
            assert allowed((scope,), None, other, None) is (scope in (other, "admin"))


def test_a_server_is_open_until_the_first_key_and_never_again(store, tmp_path):
    keeper = Doorkeeper(store)
    assert keeper.open
    assert status(keeper, None) == 200
    assert status(keeper, "Bearer nonsense") == 200
    made = keys.create(store, ["read"])
    assert status(keeper, None) == 401
    assert not keeper.open
    assert status(keeper, f"Bearer {made}") == 200
    keys.revoke(store, made.split("_")[1])
    assert status(keeper, f"Bearer {made}") == 401
    assert status(keeper, None) == 401
    assert not keeper.open
    with rows(tmp_path) as connection:
        connection.execute("DELETE FROM keys")
    assert status(keeper, None) == 401  # a table that lost its keys does not open the server
    assert not keeper.open


def test_what_is_no_key(store):
    made = keys.create(store, ["read"])
    other = keys.create(store, ["read"])
    _, id_, secret = made.split("_")
    keeper = Doorkeeper(store)
    assert status(keeper, f"bearer  {made} ") == 200
    wrong = [None, "", "Bearer", "Bearer ", made, f"Basic {made}", f"Bearer {made[:-1]}"]
    wrong += [f"Bearer {made}0", f"Bearer {id_}_{secret}", f"Bearer xx_{id_}_{secret}"]
    wrong += [f"Bearer db_{id_}_", "Bearer db__", f"Bearer db_{id_}_{other.split('_')[2]}"]
    wrong += [f"Bearer db_{id_}_{keys.hashed(secret)}", f"Bearer db_none_{secret}"]
    wrong += [f"Bearer {made.upper()}", f"Bearer db_{id_}_\xe4\xff", "\xff" * 100]
    assert {one: status(keeper, one) for one in wrong} == dict.fromkeys(wrong, 401)


def test_secrets_are_compared_in_constant_time(store, monkeypatch):
    """Also for an id that does not exist, so that the time does not tell which ones do."""
    compared = []

    def compare(one, two):
        compared.append((one, two))
        return hmac_compare(one, two)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(keys.hmac, "compare_digest", compare)
    made = keys.create(store, ["read"])
    keeper = Doorkeeper(store)
    for told in (made, made[:-1] + "x", "db_none_secret"):
        status(keeper, f"Bearer {told}")
    assert len(compared) == 3
    assert {len(text) for pair in compared for text in pair} == {64}


def test_a_key_is_revoked_once(store):
    id_ = keys.create(store, ["read"]).split("_")[1]
    keys.revoke(store, id_)
    for unknown in (id_, "none", "a\nb"):
        with pytest.raises(InvalidInput, match=r"is no key in use; driftbandit keys list shows"):
            keys.revoke(store, unknown)
    (kept,) = keys.listed(store)
    assert kept.revoked is not None


def test_keys_on_postgresql(postgres):  # noqa: F811
    with desk(postgres.database()) as service:
        service.create()
        made = keys.create(service.store, ["decide"], "one", "ä")
        (kept,) = keys.listed(service.store)
        assert (kept.name, kept.experiment, kept.scopes) == ("ä", "one", ("decide",))
        keys.revoke(service.store, made.split("_")[1])
        assert status(Doorkeeper(service.store), f"Bearer {made}") == 401


def test_whoever_watches_the_keys_does_not_stop(store, monkeypatch, caplog):
    """Neither while the store is away nor after anything else."""
    keeper, seen = Doorkeeper(store), []
    refresh = keeper.refresh
    errors = [StoreError("away"), ZeroDivisionError("no such luck")]

    def failing():
        seen.append(len(seen))
        if errors:
            raise errors.pop()
        refresh()

    keeper.refresh = failing
    monkeypatch.setattr(app, "FRESH", 0.01)
    keys.create(store, ["read"])

    async def watch():
        task = asyncio.create_task(app._watch_keys(keeper))
        while keeper.open:
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(asyncio.wait_for(watch(), 10))
    assert len(seen) >= 3
    assert caplog.text.count("the keys cannot be read") == 1


def until(expected, ask):
    """How long it takes until the answer has the status."""
    begin = time.monotonic()
    while ask().status != expected:
        assert time.monotonic() < begin + 10, ask()
        time.sleep(0.01)
    return time.monotonic() - begin


def test_a_running_server_notices_within_a_second(tmp_path):
    store = sqlite_url(tmp_path)
    with Server(store, tmp_path, "--log-requests") as server, using(store) as opened:
        base = f"{server.url}/v1/experiments"
        for name in ("one", "two"):
            assert call(base, settings(name)).status == 201
        reader = keys.create(opened, ["read"], "one")
        assert until(401, lambda: call(base)) < 1.5  # within a second, if the machine is not busy
        ask = lambda path="", key=reader, **given: call(  # noqa: E731
            base + path, Authorization=f"Bearer {key}", **given
        )
        until(200, ask)
        assert [one["id"] for one in ask().document["experiments"]] == ["one"]
        assert ask("/one").status == 200
        assert ask("/two").status == ask("/none").status == 403
        refused = ask("/one/decisions", document={})
        assert refused.status == 403
        assert refused.document["detail"].startswith("this key lacks the scope decide; use a key")
        decider = keys.create(opened, ["decide"])
        until(201, lambda: ask("/two/decisions", decider, document={}))
        assert ask("/two", decider).status == 403
        keys.revoke(opened, reader.split("_")[1])
        assert until(401, lambda: ask("/one")) < 1.5
        refused = ask("/one")
        assert refused.headers["www-authenticate"] == "Bearer"
        assert refused.document["field"] == "Authorization"
        assert call(f"{server.url}/healthz").status == 200
        assert call(f"{server.url}/readyz").status == 200
        assert call(f"{server.url}/metrics").status == 401
        assert server.stop() == 0
    said = server.log.read_text()
    for made in (reader, decider):
        assert made not in said
        assert made.split("_")[2] not in said
