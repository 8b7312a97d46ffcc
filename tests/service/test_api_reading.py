"""What the HTTP API tells of experiments, and of itself."""

import contextlib
import json
import math
import re
import threading
import time

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import driftbandit
from driftbandit import Agent
from driftbandit.identify import read_log
from driftbandit.service import routes_reading
from driftbandit.service.transaction import StoreError, Transaction
from driftbandit.service.writer import Job, Writer
from service.inprocess import Service
from service.systems_served import DOCUMENT, NAMES, OTHER_DOCUMENT, PRICED_DOCUMENT, SYSTEM

STATE = {
    "id", "version", "time", "created", "policy", "policy_title", "round", "paused",
    "paused_reason", "decisions", "rewards", "open", "window", "rounds_are", "n_states",
    "reward_std", "arms", "retired", "calibration", "models", "refit", "last",
}  # fmt: skip
ROUTES = {
    "/healthz": ["get"],
    "/metrics": ["get"],
    "/readyz": ["get"],
    "/v1/experiments": ["get", "post"],
    "/v1/experiments/{id}": ["get"],
    "/v1/experiments/{id}/arms": ["post"],
    "/v1/experiments/{id}/arms/retire": ["post"],
    "/v1/experiments/{id}/decisions": ["post"],
    "/v1/experiments/{id}/events": ["get"],
    "/v1/experiments/{id}/live": ["get"],
    "/v1/experiments/{id}/log.parquet": ["get"],
    "/v1/experiments/{id}/model": ["post"],
    "/v1/experiments/{id}/pause": ["post"],
    "/v1/experiments/{id}/refit": ["post"],
    "/v1/experiments/{id}/resume": ["post"],
    "/v1/experiments/{id}/rewards": ["post"],
    "/v1/experiments/{id}/samples": ["get"],
    "/v1/experiments/{id}/state": ["get"],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def busy(service):
    """An experiment that every kind of event happened to, and 60 rewards."""
    one = service.create("busy", system=DOCUMENT, window=10)
    rng = np.random.default_rng(0)
    for number in range(60):
        one.decide()
        one.tell(number, float(rng.standard_normal()))
    one.decide(arms=["left", 7])
    one.decide(features=[[0.1, 0.2]])
    one.post("arms", {"arm": "new", "features": [1.0, -1.0]})
    one.post("arms/retire", {"arm": "new"})
    one.post("model", {"system": OTHER_DOCUMENT})
    one.post("pause", {"reason": "a reason"})
    one.post("resume")
    return one


def test_the_state(busy):
    shown = busy.get("/state")
    assert set(shown) == STATE
    assert (shown["decisions"], shown["rewards"], shown["open"]) == (62, 60, 2)
    assert shown["version"] == busy.version == 1 + 122 + 5
    assert sum(arm["plays"] for arm in shown["arms"]) == 61  # without the arm that was new
    assert sum(arm["share"] for arm in shown["arms"]) == pytest.approx(1)
    assert sum(arm["rewards"] for arm in shown["arms"]) == 60
    assert [arm["arm"] for arm in shown["arms"]] == list(NAMES)
    assert shown["retired"] == ["new"]
    assert shown["calibration"]["rewards"] >= 40
    assert len(shown["calibration"]["surprises"]) == shown["calibration"]["rewards"]
    assert shown["last"]["decision"] == 61
    assert abs(shown["time"] - time.time()) < 60


def test_the_events_are_numbered_without_gaps_and_come_in_pages(busy):
    whole = busy.get("/events")["events"]
    assert [event["number"] for event in whole] == list(range(1, 129))
    pages, after = [], 0
    while page := busy.get("/events", params={"after": after, "limit": 50})["events"]:
        pages.append(len(page))
        assert page == whole[after : after + 50]
        after = page[-1]["number"]
    assert pages == [50, 50, 28]
    assert busy.get("/events", params={"after": 2**53})["events"] == []
    assert whole[0]["settings"]["system"] == DOCUMENT
    decided = {"decision", "arm", "round", "mean", "bonus", "uncertainty"}
    created, made, rewarded = (set(event) - {"number", "kind", "time"} for event in whole[:3])
    assert (created, made) == ({"settings"}, decided)
    assert rewarded >= {"decision", "reward"}
    tail = [{k: v for k, v in event.items() if k not in decided} for event in whole[121:]]
    for event in tail:
        assert event.pop("time") >= whole[0]["time"]
    assert tail == [
        {"number": 122, "kind": "decided", "offered": ["left", 7]},
        {"number": 123, "kind": "decided", "features": [0.1, 0.2]},
        {"number": 124, "kind": "arm_added", "features": [1.0, -1.0]},
        {"number": 125, "kind": "arm_retired"},
        {"number": 126, "kind": "model_replaced", "system": OTHER_DOCUMENT},
        {"number": 127, "kind": "paused", "reason": "a reason"},
        {"number": 128, "kind": "resumed"},
    ]


def test_samples(busy):
    found = busy.get("/samples")["samples"]
    assert found
    assert set(found[0]) == {"number", "round", "time", "arms", "mean", "uncertainty"}
    assert found[0]["arms"] == list(NAMES)
    assert busy.get("/samples", params={"limit": 1})["samples"] == found[-1:]


def test_the_log_is_what_fit_reads(busy, tmp_path):
    path = tmp_path / "log.parquet"
    answer = busy.service.get(f"{busy.path}/log.parquet")
    assert answer.headers["Content-Type"] == "application/vnd.apache.parquet"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="busy.parquet"'
    path.write_bytes(answer.content)
    (sequence,) = read_log(path).sequences
    rewards = {e["decision"]: e for e in busy.get("/events")["events"] if e["kind"] == "rewarded"}
    assert len(sequence.rewards) == 61
    assert np.isnan(sequence.rewards[60])
    assert sequence.rewards[:60].tolist() == [rewards[number]["reward"] for number in range(60)]
    fitted = driftbandit.fit(path, structure="level(arm)")
    assert set(fitted.system.names) <= {str(name) for name in NAMES}
    replayed = Agent(SYSTEM)
    assert replayed.tell_log(read_log(path, names=[str(name) for name in NAMES])) == {
        "learned": 60,
        "missing": 1,
    }


def test_logs_of_unusual_experiments(service, tmp_path):
    priced = service.create("priced", system=PRICED_DOCUMENT)
    for price in (1.5, [1.0, 2.0], {"basic": 3.0, "2": 3.0}):
        priced.decide(context={"x_price": price})
    oracle = service.create("oracle", system=DOCUMENT, policy="kalman_oracle")
    arm = oracle.decide()["arm"]
    oracle.tell(0, [1.0, 2.0, 3.0, 4.0])
    empty = service.create("empty", system=DOCUMENT)
    logs = {}
    for one in (priced, oracle, empty):
        path = tmp_path / f"{one.id}.parquet"
        path.write_bytes(service.get(f"{one.path}/log.parquet").content)
        with contextlib.suppress(driftbandit.InvalidInput):  # the last one has no rows
            logs[one.id] = read_log(path)
    assert set(logs) == {"priced", "oracle"}
    assert logs["oracle"].sequences[0].rewards.tolist() == [1.0 + NAMES.index(arm)]
    assert len(logs["priced"].sequences[0].rounds) == 3


def test_the_live_stream_begins_with_the_state_and_goes_on_with_news(busy):
    url = f"{busy.path}/live"
    with busy.service.client.stream("GET", url) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        messages = [_message(lines) for _ in range(2)]
        assert messages[0] == ("state", busy.get("/state") | {"time": messages[0][1]["time"]})
        assert messages[1] == ("events", busy.get("/events"))
        assert "driftbandit_live_pages 1.0" in busy.service.metrics()
        made = busy.decide()
        kind, state = _message(lines)
        assert (kind, state["last"]["decision"]) == ("state", made["decision"])
        kind, news = _message(lines)
        assert [event["kind"] for event in news["events"]] == ["decided"]
    assert busy.service.get("/v1/experiments/nobody/live").status_code == 404


def test_the_live_stream_repeats_no_event(service, monkeypatch):
    """Even if events are added after the state was read, and before its events are."""
    monkeypatch.setattr(routes_reading, "PACE", 0.05)
    one = service.create("streamed", system=DOCUMENT)
    state_of, late = routes_reading.state_of, [True]

    def slow(experiment, now):
        found = state_of(experiment, now)
        return found | {"version": found["version"] - 1} if late and late.pop() else found

    monkeypatch.setattr(routes_reading, "state_of", slow)
    one.decide()
    numbers = []
    with service.client.stream("GET", f"{one.path}/live") as stream:
        lines = stream.iter_lines()
        while 3 not in numbers:
            kind, document = _message(lines)
            numbers += [event["number"] for event in document.get("events", [])]
            if kind == "state" and document["version"] == 2 and 3 not in numbers:
                one.decide()
    assert numbers == list(range(1, len(numbers) + 1))


def _message(lines):
    kind = next(line for line in lines if line.startswith("event: "))
    data = next(line for line in lines if line.startswith("data: "))
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_unknown_experiments_are_not_found(service):
    for what in ("", "/state", "/events", "/samples", "/log.parquet", "/live"):
        answer = service.get(f"/v1/experiments/nobody{what}")
        assert (answer.status_code, answer.json()["field"]) == (404, "id")


# The service itself.


def test_health_and_readiness(service):
    assert service.get("/healthz").json()["status"] == "ok"
    assert service.get("/readyz").json() == {"status": "ready"}


def test_not_ready_without_the_writer(service, monkeypatch):
    monkeypatch.setattr(Writer, "is_alive", False)
    answer = service.get("/readyz")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["detail"] == "nothing can be written any more; start the server again"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("driftbandit.service.requests.PATIENCE", 0.2)


def test_not_ready_while_the_writer_is_stuck(service, busy, impatient):
    """It answers nothing; later it is ready again."""
    begun, go_on = threading.Event(), threading.Event()

    def stuck(experiment, now):
        begun.set()
        go_on.wait(30)
        return 200, None

    assert service.get("/readyz").status_code == 200
    service.app.state.gate.writer.submit(Job(busy.id, stuck, lambda _: None, writes=False))
    assert begun.wait(30)
    try:
        for _ in range(2):
            answer = service.get("/readyz")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert "has not answered for 0.2 s" in answer.json()["detail"]
        assert service.get("/healthz").status_code == 200
    finally:
        go_on.set()
    busy.decide()
    assert service.get("/readyz").status_code == 200


def test_not_ready_while_the_disk_is_full(service, monkeypatch):
    """Reading still works."""
    with monkeypatch.context() as patch:

        def full(*_):
            raise StoreError("database or disk is full")

        patch.setattr(Transaction, "touch", full)
        service.app.state.gate.writer._touched_at = -math.inf
        answer = service.get("/readyz")
        assert answer.status_code == 503
        assert "disk is full" in answer.json()["detail"]
    assert service.get("/readyz").status_code == 200


def test_readiness_writes_seldom_and_leaves_one_row(service):
    with service.app.state.store.read() as transaction:
        before = transaction.totals()
    for _ in range(30):
        assert service.get("/readyz").status_code == 200
    service.app.state.gate.writer._touched_at = -math.inf
    assert service.get("/readyz").status_code == 200
    with service.app.state.store.read() as transaction:
        assert transaction.totals() == before
        assert list(transaction.answers("", ["touch"])) == ["touch"]


def test_while_the_store_is_away(service, busy, monkeypatch):
    @contextlib.contextmanager
    def away():
        raise StoreError("the disk is full")
        yield

    version = busy.version
    with monkeypatch.context() as patch:
        patch.setattr(service.app.state.store, "read", away)
        patch.setattr(service.app.state.store, "write", away)
        answers = [service.get("/readyz"), service.get(busy.path), service.get("/v1/experiments")]
        answers += [busy.post("decisions"), busy.post("pause"), service.get(f"{busy.path}/events")]
        for answer in answers:
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert answer.headers["Content-Type"] == "application/problem+json"
        assert service.get("/healthz").status_code == 200
    assert busy.version == version
    busy.decide()


def test_outcomes_are_counted_once_and_only_when_they_are_stored(service, monkeypatch):
    one = service.create("counted", system=DOCUMENT)
    one.decide()
    told = {"decision": 0, "reward": 1.5}
    before = _learned(service)

    def failing(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "append", failing)
        assert one.post("rewards", told, key="a").status_code == 503
    assert _learned(service) == before
    for _ in range(3):
        assert one.post("rewards", told, key="a").json() == {"outcome": "learned"}
    assert _learned(service) == before + 1


def _learned(service):
    found = re.search(r'driftbandit_rewards_total{outcome="learned"} (\S+)', service.metrics())
    return float(found.group(1)) if found else 0.0


def test_the_metrics(service, busy):
    text = service.metrics()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    events = {s.labels["kind"]: s.value for s in families["driftbandit_events"].samples}
    assert events["rewarded"] >= 60
    assert events["created"] >= 1
    outcomes = {s.labels["outcome"] for s in families["driftbandit_rewards"].samples}
    assert outcomes == {"learned"}
    routes = {s.labels["route"] for s in families["driftbandit_requests"].samples}
    assert {"/v1/experiments/{id}/decisions", "/v1/experiments/{id}/state"} <= routes
    assert routes <= {*ROUTES, "other", "/", "/openapi.json"}  # no ids: they would be without end
    assert families["driftbandit_commit_seconds"].type == "histogram"


def test_the_description_lists_every_route(service):
    document = service.get("/openapi.json").json()
    assert {path: sorted(methods) for path, methods in document["paths"].items()} == ROUTES
    assert document["info"]["version"] == driftbandit.__version__
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text, f"{name} is not used"
    for methods in document["paths"].values():
        for described in methods.values():
            assert described["responses"]["403"]


def test_the_page_is_served_under_a_strict_policy(service):
    page = service.get("/")
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    files = re.findall(r'(?:src|href)="/?(page/[^"]+)"', page.text)
    assert len(files) >= 2
    for path in files:
        assert service.get(f"/{path}").status_code == 200
