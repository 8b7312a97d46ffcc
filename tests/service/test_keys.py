"""Keys open what their scopes say, and nothing else; without keys, only this machine is let in."""

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


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A service with the experiments one and two, and the keys to it."""
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


def _send(service, method, path, body, key=None):
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if method == "POST":
        return service.post(path, body, headers=headers)
    with service.client.stream("GET", path, headers=headers) as answer:
        if not path.endswith("/live") or answer.status_code != 200:
            answer.read()
        return answer


def _version(locked, id_="one"):
    service, made, _ = locked
    return _send(service, "GET", f"/v1/experiments/{id_}", None, made["admin"]).json()["version"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_without_a_valid_key_nothing_is_open(locked, route):
    service, made, _ = locked
    version, right = _version(locked), made["admin"]
    id_, secret = right.split("_")[1:]
    wrong = [None, "x", "db_", "db__", f"db_{id_}_", f"db_{id_}_{secret[:-1]}0x", secret]
    wrong += [f"xx_{id_}_{secret}", f"db_{id_}x_{secret}", made["revoked"], right[::-1]]
    wrong += [right.upper(), "é" * 50, "db_" + "0" * 10_000]
    for key in wrong:
        headers = {} if key is None else {"Authorization": f"Bearer {key}".encode()}
        method, path, body, _ = route
        answer = service.client.request(method, path, json=body, headers=headers)
        check_refused(answer, 401, "Authorization")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for scheme in (f"Basic {right}", right, f"Bearer{right}"):
        answer = service.client.request(method, path, json=body, headers={"Authorization": scheme})
        check_refused(answer, 401, "Authorization")
    assert _version(locked) == version


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_scopes(locked, route):
    service, made, _ = locked
    method, path, body, needed = route
    version = _version(locked)
    for scope in keys.SCOPES:
        if scope not in ("admin", needed):
            check_refused(_send(service, method, path, body, made[scope]), 403, "Authorization")
    assert _version(locked) == version
    opened = _send(service, method, path, body, made[needed])
    assert opened.status_code < 300 or opened.json()["title"] == "Conflict"
    if needed != "admin":
        assert _send(service, method, path, body, made["admin"]).status_code in (200, 201)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_a_key_of_another_experiment(locked, route):
    service, made, _ = locked
    method, path, body, _ = route
    version = _version(locked)
    if path == "/v1/experiments" and method == "GET":
        found = _send(service, method, path, body, made["admin of two"]).json()["experiments"]
        assert [one["id"] for one in found] == ["two"]
        return
    check_refused(_send(service, method, path, body, made["admin of two"]), 403, "Authorization")
    assert _version(locked) == version
    if "one" in path:
        mine = path.replace("one", "two")
        assert _send(service, method, mine, body, made["admin of two"]).status_code in (
            200,
            201,
            409,
        )


def test_whether_other_experiments_exist_is_not_told(locked):
    service, made, _ = locked
    answers = [
        _send(service, "GET", f"/v1/experiments/{id_}/state", None, made["admin of two"])
        for id_ in ("one", "nobody", "%00", "x" * 100)
    ]
    assert len({answer.content for answer in answers}) == 1
    check_refused(answers[0], 403, "Authorization")


def test_a_key_with_two_scopes_of_one_experiment(locked):
    service, made, _ = locked
    key = made["read and reward"]
    told = {"decision": 0, "reward": 1}
    assert _send(service, "POST", "/v1/experiments/one/rewards", told, key).status_code == 200
    assert _send(service, "GET", "/v1/experiments/one/state", None, key).status_code == 200
    answer = _send(service, "POST", "/v1/experiments/one/decisions", {}, key)
    check_refused(answer, 403, "Authorization")


def test_a_revoked_key_stops_working_within_a_second(locked):
    service, _, store = locked
    key = keys.create(store, ["read", "decide"])
    path = "/v1/experiments/two"
    _wait(lambda: _send(service, "GET", path, None, key).status_code == 200)
    with service.client.stream(
        "GET", f"{path}/live", headers={"Authorization": f"Bearer {key}"}
    ) as live:
        keys.revoke(store, key.split("_")[1])
        _wait(lambda: _send(service, "GET", path, None, key).status_code == 401)
        assert sum(1 for _ in live.iter_lines()) < 100  # the stream ends, too
    check_refused(_send(service, "POST", f"{path}/decisions", {}, key), 401, "Authorization")


def test_keys_are_not_told_and_not_stored(locked, tmp_path_factory):
    service, made, store = locked
    secrets = [key.split("_")[2] for key in made.values()]
    shown = _send(service, "GET", "/metrics", None, made["read"]).text
    with store.read() as transaction:
        shown += str(transaction.keys())
    for secret in secrets:
        assert secret not in shown


def test_what_needs_no_key(locked):
    service, _, _ = locked
    for path in ("/", "/healthz", "/readyz", "/openapi.json", "/page/page.css"):
        answer = service.get(path)
        assert answer.status_code == 200
        check_headers(answer)


def test_with_keys_any_host_is_answered(locked):
    service, made, _ = locked
    headers = {"Authorization": f"Bearer {made['decide']}", "Host": "bandit.example"}
    path = "/v1/experiments/one/decisions"
    hosts = ("bandit.example", "[", "a" * 300, "x:y:z", "localhost:[", "%00")
    for number, host in enumerate(hosts):
        answer = service.post(path, {}, headers=headers | {"Host": host}, key=f"host-{number}")
        assert answer.status_code in (201, 409), host


# Without keys.


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as service:
        service.create("one", system=DOCUMENT)
        yield service


FOREIGN = ["bandit.example", "127.0.0.1.example", "example:127.0.0.1", "localhost.example:80", ""]
FOREIGN += ["0.0.0.0", "127.0.0.2", "[::2]", "[::1].example", "localhost@example", "é"]


@pytest.mark.parametrize("host", FOREIGN)
def test_an_open_server_answers_only_under_local_names(unlocked, host):
    headers = {"Host": host.encode()}
    for path in ("/", "/v1/experiments", "/healthz", "/openapi.json", "/page/page.css", "/nothing"):
        check_refused(unlocked.get(path, headers=headers), 403, "Host")
    refused = unlocked.post("/v1/experiments/one/decisions", {}, headers=headers)
    check_refused(refused, 403, "Host")
    assert Experiment(unlocked, "one").version == 1


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:80"]
)
def test_local_names(unlocked, host):
    assert unlocked.get("/v1/experiments", headers={"Host": host}).status_code == 200


def test_an_open_server_needs_no_key_and_ignores_one(unlocked):
    for key in ("db_x_y", "nonsense", "é"):
        headers = {"Authorization": f"Bearer {key}".encode()}
        assert unlocked.get("/v1/experiments/one", headers=headers).status_code == 200


def test_a_request_without_a_host(unlocked):
    answer = unlocked.sent(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
