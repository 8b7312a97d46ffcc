"""A request with an Idempotency-Key is carried out once, and answered the same."""

import threading

import pytest

from service.inprocess import Experiment, Service
from service.systems_served import DOCUMENT, OTHER_DOCUMENT

REQUESTS = [
    ("decisions", {}),
    ("decisions", {"count": 2}),
    ("rewards", {"decision": 0, "reward": 1.5}),
    ("rewards", {"rewards": [{"decision": 1, "reward": 1.5}]}),
    ("arms", {"arm": "new", "features": [1.0, 2.0]}),
    ("arms/retire", {"arm": "new"}),
    ("model", {"system": OTHER_DOCUMENT}),
    ("pause", {"reason": "why"}),
    ("resume", {}),
]


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as running:
        yield running


def test_every_post_is_answered_the_same_also_by_another_server(tmp_path):
    new = {"id": "one", "system": DOCUMENT}
    with Service(tmp_path) as service:
        first = [service.post("/v1/experiments", new, key="create")]
        one = Experiment(service, "one")
        first += [one.post(*request, key=f"key-{n}") for n, request in enumerate(REQUESTS)]
        assert all(answer.status_code in (200, 201) for answer in first)
        assert not any("Idempotent-Replayed" in answer.headers for answer in first)
        version = one.version
    for _ in range(2):
        with Service(tmp_path) as service:
            again = [service.post("/v1/experiments", new, key="create")]
            one = Experiment(service, "one")
            again += [one.post(*request, key=f"key-{n}") for n, request in enumerate(REQUESTS)]
            for before, after in zip(first, again, strict=True):
                assert (after.status_code, after.content) == (before.status_code, before.content)
                assert after.headers["Idempotent-Replayed"] == "true"
            assert one.version == version


def test_a_key_stands_for_one_request(service):
    one, two = service.create("one", system=DOCUMENT), service.create("two", system=DOCUMENT)
    assert one.post("decisions", {}, key="k").status_code == 201
    for what, body in [("decisions", {"count": 1}), ("decisions", b"{ }"), ("pause", {})]:
        refused = one.post(what, body, key="k")
        assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")
    assert one.version == 2
    assert two.post("decisions", {}, key="k").status_code == 201  # keys belong to an experiment
    assert two.version == 2


def test_a_refused_request_does_not_use_its_key_up(service):
    one = service.create("one", system=DOCUMENT)
    assert one.post("rewards", {"decision": 0, "reward": 1.0}, key="k").status_code == 404
    one.decide()
    told = one.post("rewards", {"decision": 0, "reward": 1.0}, key="k")
    assert told.json() == {"outcome": "learned"}
    assert "Idempotent-Replayed" not in told.headers


def test_reading_is_never_answered_from_memory(service):
    one = service.create("one", system=DOCUMENT)
    key = {"Idempotency-Key": "k"}
    before = service.get(f"{one.path}/state", headers=key).json()
    one.decide()
    after = service.get(f"{one.path}/state", headers=key)
    assert "Idempotent-Replayed" not in after.headers
    assert after.json()["decisions"] == before["decisions"] + 1


def test_threads_with_one_key_make_one_decision(service):
    one = service.create("one", system=DOCUMENT)
    found, begin = [], threading.Barrier(8)

    def ask(key):
        begin.wait()
        found.append(one.post("decisions", {"count": 2}, key=key))

    for turn in range(10):
        found.clear()
        threads = [threading.Thread(target=ask, args=(f"turn-{turn}",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status_code for answer in found} == {201}
        assert len({answer.content for answer in found}) == 1
        replayed = [answer.headers.get("Idempotent-Replayed") for answer in found]
        assert sorted(map(str, replayed)) == ["None"] + 7 * ["true"]
    assert one.get("/state")["decisions"] == 20


def test_threads_create_an_experiment_once(service):
    found, begin = [], threading.Barrier(6)

    def create(key):
        begin.wait()
        found.append(service.post("/v1/experiments", {"id": "one", "system": DOCUMENT}, key=key))

    threads = [threading.Thread(target=create, args=(key,)) for key in 3 * ["k", None]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [answer for answer in found if answer.status_code == 201]
    assert len({answer.content for answer in made}) == 1
    assert {answer.status_code for answer in found} <= {201, 409}
    assert Experiment(service, "one").version == 1
