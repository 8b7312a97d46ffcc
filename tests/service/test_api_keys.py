"""Over HTTP, keys open what their scopes say; without keys, only this machine is let in."""

import time

import pytest

from driftbandit.service import keys
from driftbandit.service.store import Store
from service.inprocess import Experiment, Service
from service.refused import check_headers, check_refused
from service.systems_served import DOCUMENT

NEW = {"id": "new", "system": DOCUMENT}
ROUTES = [
    ("POST", "/v1/experiments", NEW, "admin"),
    ("POST", "/v1/experiments/one/decisions", {}, "decide"),
    ("POST", "/v1/experiments/one/rewards", {"decision": 0, "reward": 1}, "reward"),
    ("POST", "/v1/experiments/one/model", {"system": DOCUMENT}, "admin"),
    ("POST", "/v1/experiments/one/arms", {"arm": "new"}, "admin"),
    ("POST", "/v1/experiments/one/arms/retire", {"arm": "left"}, "admin"),
    ("POST", "/v1/experiments/one/refit", {}, "admin"),
    ("POST", "/v1/experiments/one/pause", {}, "admin"),
    ("POST", "/v1/experiments/one/resume", {}, "admin"),
    ("GET", "/v1/experiments", None, "read"),
    ("GET", "/v1/experiments/one", None, "read"),
    ("GET", "/v1/experiments/one/state", None, "read"),
    ("GET", "/v1/experiments/one/events", None, "read"),
    ("GET", "/v1/experiments/one/samples", None, "read"),
    ("GET", "/v1/experiments/one/log.parquet", None, "read"),
    ("GET", "/v1/experiments/one/live", None, "read"),
    ("GET", "/metrics", None, "read"),
]
EVERY_ROUTE = pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route[:2]))


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A service with the experiments one and two, the keys to it, and its store."""
    with Service(tmp_path_factory.mktemp("store")) as service:
        for id_ in ("one", "two"):
            service.create(id_, system=DOCUMENT).decide()
        store = Store(service.url)
        made = {scope: keys.create(store, [scope]) for scope in keys.SCOPES}
        made["admin of two"] = keys.create(store, ["admin"], experiment="two")
        made["read and reward"] = keys.create(store, ["read", "reward"], experiment="one")
        made["revoked"] = keys.create(store, keys.SCOPES)
        keys.revoke(store, made["revoked"].split("_")[1])
        _wait(lambda: service.get("/v1/experiments").status_code == 401)
        yield service, made, store
        store.close()


def _wait(happened, seconds=1.0):
    """Wait until something has happened; a second is what the service promises."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def _send(service, method, path, body=None, key=None):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if method == "POST":
        return service.post(path, body, headers=headers)
    with service.client.stream("GET", path, headers=headers) as answer:
        if not path.endswith("/live") or answer.status_code != 200:
            answer.read()
        return answer


def _version(locked):
    service, made, _ = locked
    return _send(service, "GET", "/v1/experiments/one", key=made["admin"]).json()["version"]


@EVERY_ROUTE
def test_without_a_valid_key_nothing_is_open(locked, route):
    service, made, _ = locked
    method, path, body, _ = route
    version, right = _version(locked), made["admin"]
    id_, secret = right.split("_")[1:]
    wrong = ["x", "db_", "db__", f"db_{id_}_", f"db_{id_}_{secret[:-1]}x", secret, right[::-1]]
    wrong += [f"xx_{id_}_{secret}", f"db_{id_}x_{secret}", made["revoked"], right.upper()]
    wrong += ["é" * 50, "db_" + "0" * 10_000, f"{right} {right}", f"{right},"]
    said = [None, *(f"Bearer {key}" for key in wrong), f"Basic {right}", right, f"Bearer{right}"]
    for authorization in said:
        headers = {} if authorization is None else {"Authorization": authorization.encode()}
        answer = service.client.request(method, path, json=body, headers=headers)
        check_refused(answer, 401, "Authorization")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert _version(locked) == version


@EVERY_ROUTE
def test_scopes(locked, route):
    service, made, _ = locked
    method, path, body, needed = route
    version = _version(locked)
    for scope in keys.SCOPES:
        if scope not in ("admin", needed):
            check_refused(_send(service, method, path, body, made[scope]), 403, "Authorization")
    assert _version(locked) == version
    for scope in {needed, "admin"}:
        assert _send(service, method, path, body, made[scope]).status_code in (200, 201, 409)


@EVERY_ROUTE
def test_a_key_of_another_experiment(locked, route):
    service, made, _ = locked
    method, path, body, _ = route
    version, key = _version(locked), made["admin of two"]
    if (method, path) == ("GET", "/v1/experiments"):
        found = _send(service, method, path, body, key).json()["experiments"]
        assert [one["id"] for one in found] == ["two"]
        return
    check_refused(_send(service, method, path, body, key), 403, "Authorization")
    assert _version(locked) == version
    if "one" in path:
        own = _send(service, method, path.replace("one", "two"), body, key)
        assert own.status_code in (200, 201, 409)


def test_whether_other_experiments_exist_is_not_told(locked):
    service, made, _ = locked
    answers = [
        _send(service, "GET", f"/v1/experiments/{id_}/state", key=made["admin of two"])
        for id_ in ("one", "nobody", "%00", "x" * 100)
    ]
    assert len({answer.content for answer in answers}) == 1
    check_refused(answers[0], 403, "Authorization")


def test_a_key_with_two_scopes_of_one_experiment(locked):
    service, made, _ = locked
    key, path = made["read and reward"], "/v1/experiments/one"
    told = {"decision": 0, "reward": 1}
    assert _send(service, "POST", f"{path}/rewards", told, key).status_code == 200
    assert _send(service, "GET", f"{path}/state", key=key).status_code == 200
    check_refused(_send(service, "POST", f"{path}/decisions", {}, key), 403, "Authorization")


def test_a_revoked_key_stops_working_within_a_second(locked):
    service, _, store = locked
    key, path = keys.create(store, ["read", "decide"]), "/v1/experiments/two"
    _wait(lambda: _send(service, "GET", path, key=key).status_code == 200)
    headers = {"Authorization": f"Bearer {key}"}
    with service.client.stream("GET", f"{path}/live", headers=headers) as live:
        keys.revoke(store, key.split("_")[1])
        _wait(lambda: _send(service, "GET", path, key=key).status_code == 401)
        assert sum(1 for _ in live.iter_lines()) < 100  # the stream ends, too
    check_refused(_send(service, "POST", f"{path}/decisions", {}, key), 401, "Authorization")


def test_what_needs_no_key(locked):
    service, _, _ = locked
    for path in ("/", "/healthz", "/readyz", "/openapi.json", "/page/page.css"):
        answer = service.get(path)
        assert answer.status_code == 200
        check_headers(answer)


def test_with_keys_any_host_is_answered(locked):
    service, made, _ = locked
    headers = {"Authorization": f"Bearer {made['decide']}"}
    hosts = ("bandit.example", "[", "a" * 300, "x:y:z", "localhost:[", "%00")
    for number, host in enumerate(hosts):
        said = headers | {"Host": host}
        found = service.post(
            "/v1/experiments/one/decisions", {}, headers=said, key=f"host-{number}"
        )
        assert found.status_code in (201, 409), host


# Without keys.


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as service:
        service.create("one", system=DOCUMENT)
        yield service


FOREIGN = ["bandit.example", "127.0.0.1.example", "example:127.0.0.1", "localhost.example:80", ""]
FOREIGN += ["0.0.0.0", "128.0.0.1", "[::2]", "[::1].example", "localhost@example", "é"]


@pytest.mark.parametrize("host", FOREIGN)
def test_an_open_server_answers_only_under_local_names(unlocked, host):
    """A page from elsewhere may reach it under a name of its own (DNS rebinding)."""
    headers = {"Host": host.encode()}
    for path in ("/", "/v1/experiments", "/healthz", "/openapi.json", "/page/page.css", "/nothing"):
        check_refused(unlocked.get(path, headers=headers), 403, "Host")
    refused = unlocked.post("/v1/experiments/one/decisions", {}, headers=headers)
    check_refused(refused, 403, "Host")
    assert Experiment(unlocked, "one").version == 1


HOSTS = ["localhost", "LOCALHOST:80", "127.0.0.1:1", "127.0.0.2:80", "[::1]", "[::1]:80"]


@pytest.mark.parametrize("host", HOSTS)
def test_local_names(unlocked, host):
    assert unlocked.get("/v1/experiments", headers={"Host": host}).status_code == 200


def test_an_open_server_needs_no_key_and_ignores_one(unlocked):
    for key in ("db_x_y", "nonsense", "é"):
        headers = {"Authorization": f"Bearer {key}".encode()}
        assert unlocked.get("/v1/experiments/one", headers=headers).status_code == 200


def test_a_request_without_a_host(unlocked):
    answer = unlocked.sent(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
