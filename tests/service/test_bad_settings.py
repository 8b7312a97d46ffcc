"""Experiments and models that cannot be, or that would take the service down: none is made."""

import json
import time

import numpy as np
import pytest

from driftbandit.agent import ledger
from driftbandit.service import settings
from driftbandit.service.store import Store
from service.inprocess import Service
from service.refused import check_refused
from service.systems_served import DOCUMENT, PRICED_DOCUMENT

MOST_ARMS = 50


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store"), arms=MOST_ARMS) as running:
        yield running


@pytest.fixture(scope="module")
def one(service):
    return service.create("one", system=DOCUMENT)


def stored(service):
    """How much there is in the store."""
    store = Store(service.url)
    try:
        with store.read() as transaction:
            experiments = transaction.experiments()
            return [(one["id"], one["version"]) for one in experiments]
    finally:
        store.close()


def changed(**fields):
    """The system with other fields; those that are None are left out."""
    return {key: value for key, value in (DOCUMENT | fields).items() if value is not None}


def eye(size, scale=1.0):
    return (scale * np.eye(size)).tolist()


SYSTEMS = {
    "empty": ({}, "model file"),
    "unknown field": (changed(extra=1), "model file"),
    "without arms": (changed(arms=None), "model file"),
    "without noise": (changed(reward_std=None), "model file"),
    "zero arms": (changed(arms=[], names=None), "model file arms"),
    "arms without features": (changed(arms=[[], [], [], []]), "model file arms"),
    "an arm of zeros": (changed(arms=[[0, 0], [1, 0], [0, 1], [1, 1]]), "model file arms"),
    "ragged arms": (changed(arms=[[1], [1, 0], [0, 1], [1, 1]]), "model file arms"),
    "other features": (changed(arms=[[1, 2, 3]] * 4), "model file arms"),
    "text for a matrix": (changed(transition="[[1]]"), "model file transition"),
    "a number for a matrix": (changed(transition=0.5), "model file transition"),
    "not square": (changed(transition=[[0.5, 0.1]]), "model file transition"),
    "text in a matrix": (changed(transition=[["0.5", 0], [0, 1]]), "model file transition"),
    "true in a matrix": (changed(transition=[[True, 0], [0, 1]]), "model file transition"),
    "null in a matrix": (changed(transition=[[None, 0], [0, 1]]), "model file transition"),
    "too large": (changed(transition=[[1e200, 0], [0, 1]]), "model file transition"),
    "400 digits": (changed(transition=[[10**400, 0], [0, 1]]), "model file transition"),
    "wrong shape": (changed(process_cov=[[1.0]]), "model file process_cov"),
    "indefinite": (changed(process_cov=[[1, 2], [2, 1]]), "model file process_cov"),
    "negative": (changed(process_cov=[[-1, 0], [0, -1]]), "model file process_cov"),
    "not symmetric": (changed(process_cov=[[1, 0.5], [0, 1]]), "model file process_cov"),
    "indefinite start": (changed(initial_cov=[[1, 2], [2, 1]]), "model file initial_cov"),
    "short start": (changed(initial_mean=[1.0]), "model file initial_mean"),
    "negative noise": (changed(reward_std=-1), "model file reward_std"),
    "matrix of noise": (changed(reward_std=[[1.0]]), "model file reward_std"),
    "unstable, no start": (changed(transition=eye(2, 2.0), initial_cov=None), "transition"),
    "too few names": (changed(names=["a"]), "model file names"),
    "a name twice": (changed(names=["a", "b", "c", "a"]), "model file names"),
    "1 and the text 1": (changed(names=["1", "b", "c", 1]), "model file names"),
    "an empty name": (changed(names=["", "b", "c", "d"]), "model file names"),
    "names of numbers": (changed(names=[1.5, 2.5, 3.5, 4.5]), "model file names"),
    "names of lists": (changed(names=[["a"], "b", "c", "d"]), "model file names"),
    "names as an object": (changed(names={"a": 1}), "model file names"),
    "a long name": (changed(names=["x" * 201, "b", "c", "d"]), "model file names"),
    "a name of 31 digits": (changed(names=[10**30, 1, 2, 3]), "model file names"),
    "contexts as a list": (changed(contexts=[1]), "model file contexts"),
    "a context's shape": (changed(contexts={"x_price": [[1.0]]}), "model file contexts x_price"),
    "a nameless context": (changed(contexts={"": [[1.0, 1.0]] * 4}), "model file contexts"),
    "a context named reward": (
        PRICED_DOCUMENT | {"contexts": {"reward": PRICED_DOCUMENT["contexts"]["x_price"]}},
        "model file contexts",
    ),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_that_cannot_be(service, one, name):
    system, field = SYSTEMS[name]
    before = stored(service)
    new = service.post("/v1/experiments", {"id": "new", "system": system})
    check_refused(new, 422, new.json().get("field"))
    assert new.json()["field"].startswith(field), new.text
    replaced = one.post("model", {"system": system})
    check_refused(replaced, 422, replaced.json().get("field"))
    assert stored(service) == before


def test_literals_that_json_does_not_have(service, one):
    before = stored(service)
    for text in (b"NaN", b"Infinity", b"-Infinity", b"1e999"):
        system = json.dumps(DOCUMENT).encode().replace(b"0.5", text, 1)
        refused = service.post("/v1/experiments", b'{"id": "new", "system": ' + system + b"}")
        check_refused(refused, 422, refused.json().get("field"))
        refused = one.post("model", b'{"system": ' + system + b"}")
        check_refused(refused, 422, refused.json().get("field"))
    assert stored(service) == before


SETTINGS = [
    ({}, "system"),
    ({"system": None}, "system"),
    ({"system": []}, "system"),
    ({"system": DOCUMENT, "arms": {"a": [1.0]}}, "system"),
    ({"system": DOCUMENT, "names": ["a"]}, "names"),
    ({"system": DOCUMENT, "window": -1}, "window"),
    ({"system": DOCUMENT, "window": 2**53 + 1}, "window"),
    ({"system": DOCUMENT, "window": 1.5}, "window"),
    ({"system": DOCUMENT, "seed": -1}, "seed"),
    ({"system": DOCUMENT, "seed": 2**63}, "seed"),
    ({"system": DOCUMENT, "rounds": 0}, "rounds"),
    ({"system": DOCUMENT, "memory": 10**7}, "memory"),
    ({"system": DOCUMENT, "time": "hours"}, "time"),
    ({"system": DOCUMENT, "time": {"seconds": 0}}, "time.seconds"),
    ({"system": DOCUMENT, "time": {"seconds": 1e300}}, "time.seconds"),
    ({"system": DOCUMENT, "time": {"seconds": "60"}}, "time.seconds"),
    ({"system": DOCUMENT, "time": {"minutes": 1}}, "time"),
    ({"system": DOCUMENT, "on_alarm": "refit"}, "on_alarm"),
    ({"system": DOCUMENT, "on_alarm": "rm -rf"}, "on_alarm"),
    ({"system": DOCUMENT, "surprise": 1}, "surprise"),
    ({"system": DOCUMENT, "policy": 7}, "policy"),
    ({"system": DOCUMENT, "policy": ""}, "policy"),
    ({"system": DOCUMENT, "policy": "nobody"}, "policy"),
    ({"system": DOCUMENT, "policy": "x" * 201}, "policy"),
    ({"system": DOCUMENT, "policy": "__import__('os').system('true')"}, "policy"),
    ({"system": DOCUMENT, "policy": "idea\u0000"}, "policy"),
    ({"system": DOCUMENT, "policy": "../../etc/passwd"}, "policy"),
    ({"system": DOCUMENT, "policy": "<script>"}, "policy"),
    ({"system": DOCUMENT, "policy": "kalman_ucb(width=__import__('os'))"}, "kalman_ucb"),
    ({"system": DOCUMENT, "policy": "kalman_ucb(width=1e400)"}, "width"),
    ({"system": DOCUMENT, "policy": "kalman_ucb(width=1e200)"}, "width"),
    ({"system": DOCUMENT, "policy": "kalman_ucb(**{})"}, "policy"),
    ({"system": DOCUMENT, "policy": "kalman_ucb(" + "(" * 180}, "policy"),
    ({"system": DOCUMENT, "policy": "lookahead(steps=1000000000)"}, "steps"),
    ({"system": DOCUMENT, "policy": "sliding_window_ucb(window=10000000)"}, "policy"),
    ({"system": PRICED_DOCUMENT, "policy": "ucb"}, "policy"),
    ({"system": PRICED_DOCUMENT, "refit": {}}, "refit"),
    ({"system": DOCUMENT, "policy": "kalman_oracle", "refit": {}}, "refit"),
    ({"system": DOCUMENT, "refit": {"after": 1}}, "refit.after"),
    ({"system": DOCUMENT, "refit": {"after": 100, "memory": 50}}, "memory"),
    ({"system": DOCUMENT, "refit": {"growth": -1}}, "refit.growth"),
    ({"system": DOCUMENT, "refit": {"scale": 0}}, "refit.scale"),
    ({"system": DOCUMENT, "refit": {"scale": 1e308}}, "scale"),
    ({"system": DOCUMENT, "refit": {"background": True}}, "refit.background"),
    ({"system": DOCUMENT, "refit": {"structure": "__import__('os')"}}, "structure"),
    ({"system": DOCUMENT, "refit": {"stable": "yes"}}, "refit.stable"),
    ({"arms": {}}, "arms"),
    ({"arms": {"a": []}}, "arms"),
    ({"arms": {"": [1.0]}}, "arms"),
    ({"arms": {"a": [0.0]}}, "arms"),
    ({"arms": {"a": [1.0], "b": [1.0, 2.0]}}, "arms"),
    ({"arms": {"a": [1e308]}}, "arms"),
    ({"arms": {"a": ["1"]}}, "arms.a[0]"),
    ({"arms": {"x" * 201: [1.0]}}, "arms"),
    ({"arms": {"a": [1.0]}, "refit": {"scale": 1e140}}, "process_cov"),
    ({"arms": {str(n): [1.0, n] for n in range(MOST_ARMS + 1)}}, "arms"),
    ({"structure": "level(arm)"}, "names"),
    ({"structure": "level(arm)", "names": []}, "names"),
    ({"structure": "level(arm)", "names": ["a", "a"]}, "names"),
    ({"structure": "level(arm)", "names": [None]}, "names[0]"),
    ({"structure": "level(arm)", "names": list(range(MOST_ARMS + 1))}, "arms"),
    ({"structure": "", "names": ["a"]}, "structure"),
    ({"structure": "x" * 1001, "names": ["a"]}, "structure"),
    ({"structure": "__import__('os')", "names": ["a"]}, "structure"),
    ({"structure": "level(arm) + season(1000000000)", "names": ["a"]}, "season: period"),
    ({"structure": "season(1e400)", "names": ["a"]}, "season: period"),
    ({"structure": "ar(100000)", "names": ["a"]}, "ar: order"),
    ({"structure": "level(group)", "names": ["a"]}, "structure"),
    ({"structure": "(" * 900, "names": ["a"]}, "structure"),
    ({"structure": "level(arm)\u0000", "names": ["a"]}, "structure"),
]


@pytest.mark.parametrize(("given", "field"), SETTINGS)
def test_settings_that_cannot_be(service, given, field):
    before = stored(service)
    refused = service.post("/v1/experiments", {"id": "new"} | given)
    check_refused(refused, 422, refused.json().get("field"))
    assert refused.json()["field"].startswith(field), refused.text
    assert stored(service) == before


IDS = ["", ".", "..", "-a", "a/b", "a b", "a\n", "a\u0000", "é", "x" * 65, "../x", "a%2fb", 7, None]


@pytest.mark.parametrize("id_", IDS)
def test_ids_that_cannot_be(service, id_):
    before = stored(service)
    check_refused(service.post("/v1/experiments", {"id": id_, "system": DOCUMENT}), 422, "id")
    assert stored(service) == before


def test_models_too_large_for_the_service_are_refused_at_once(service):
    before, begun = stored(service), time.monotonic()
    most = int((settings.LARGEST_STATE / 8) ** 0.5)
    for given in (
        {"structure": "level(arm)", "names": list(range(100_000))},
        {"arms": {"a": [1.0] * 100_000}},
        {"system": {"transition": [[0.5]] * (most + 1)}},
    ):
        refused = service.post("/v1/experiments", {"id": "new"} | given)
        check_refused(refused, 422, next(iter(given)))
        assert "states" in refused.json()["detail"]
    assert time.monotonic() - begun < 5
    assert stored(service) == before


def test_an_experiment_does_not_grow_without_end(service, monkeypatch):
    one = service.create("growing", system=DOCUMENT)
    assert one.post("arms", {"arm": "level"}).status_code == 201
    monkeypatch.setattr(settings, "LARGEST_STATE", 8 * 3 * 3)
    version = one.version
    check_refused(one.post("arms", {"arm": "another level"}), 422, "arm")
    larger = changed(transition=eye(4, 0.5), process_cov=eye(4), arms=eye(4), names=None)
    check_refused(one.post("model", {"system": larger}), 422, "system")
    assert one.version == version
    for number in range(MOST_ARMS - 5):
        added = one.post("arms", {"arm": f"new {number}", "features": [1.0, number, 0.0]})
        assert added.status_code == 201
    check_refused(one.post("arms", {"arm": "last", "features": [1.0, 1.0, 1.0]}), 422, "arm")


def test_open_decisions_fit_into_memory(service, monkeypatch):
    monkeypatch.setattr(ledger, "MEMORY", 2 * 96 * 5)  # five decisions with one state and six sums
    one = service.create("small", system=DOCUMENT)
    one.decide(count=5, distinct=False)
    check_refused(one.post("decisions"), 409, "id")
    assert one.version == 6


def test_a_million_wrong_entries_are_refused_as_fast_as_one(service, one):
    documents = [
        ("decisions", {"features": [[""] * 200_000]}),
        ("decisions", {"arms": [None] * 150_000}),
        ("decisions", {"context": {str(number): "" for number in range(70_000)}}),
        ("decisions", {str(number): 0 for number in range(70_000)}),
        ("rewards", {"rewards": [{}] * 200_000}),
        ("rewards", {"rewards": [0] * 300_000}),
        ("rewards", {"decision": 0, "reward": [""] * 200_000}),
        ("arms", {"arm": "a", "features": [""] * 200_000}),
    ]
    before = stored(service)
    for what, document in documents:
        text, begun = json.dumps(document).encode(), time.monotonic()
        refused = one.post(what, text)
        assert time.monotonic() - begun < 1.0  # others wait meanwhile
        check_refused(refused, 422, refused.json().get("field"))
    assert stored(service) == before


@pytest.mark.parametrize(
    ("arms", "structure"),
    [
        ({"a": [1.0, 0.0], "b": [0.0, 1.0]}, "level(arm)"),
        ({"a": [1.0, 0.5], "b": [0.0, 1.0]}, "free"),
    ],
)
def test_arms_without_common_features_get_levels(arms, structure):
    """As in an `Agent`."""
    assert settings.checked({"arms": arms}, 10)["refit"]["structure"] == structure
    assert settings.checked({"names": list(arms)}, 10)["refit"]["structure"] == "level(arm)"
