"""Rounds, rewards, names and contexts that go too far, one experiment at a time."""

import json

import numpy as np
import pytest

from service.inprocess import Service
from service.refused import check_headers, check_refused
from service.systems_served import DOCUMENT, OTHER_DOCUMENT, PRICED_DOCUMENT, UNSTABLE_DOCUMENT


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store"), batch=100, open=200) as running:
        yield running


@pytest.fixture(scope="module")
def one(service):
    """An experiment with three open decisions."""
    made = service.create("one", system=DOCUMENT)
    made.decide(count=3)
    return made


def body_of(document):
    """JSON text; bytes stay as they are."""
    return document if isinstance(document, bytes) else json.dumps(document).encode()


# Time.


@pytest.mark.parametrize("round_", [2**52 + 1, 2**53])
def test_a_round_after_which_few_could_follow_is_refused(service, round_):
    """Rounds cannot be taken back: a first round of 2**53 would be the experiment's last."""
    one = service.create(f"first-{round_}", system=DOCUMENT)
    check_refused(one.post("decisions", {"round": round_}), 422, "round")
    assert one.decide()["round"] == 0
    late = service.create(f"late-{round_}", system=DOCUMENT)
    assert late.decide(round=2**52)["round"] == 2**52
    assert late.decide()["round"] == 2**52 + 1
    created = service.post(
        "/v1/experiments", {"id": "later", "system": DOCUMENT | {"first_round": round_}}
    )
    check_refused(created, 422, "first_round")


def test_an_unstable_model_refuses_rounds_that_it_cannot_reach(service):
    one = service.create("unstable", system=UNSTABLE_DOCUMENT, window=2**53)
    made = one.decide(round=10**6)
    assert made["round"] == 10**6  # time begins with the first decision
    for round_ in (10**6 + 1000, 10**9, 2**53):
        check_refused(one.post("decisions", {"round": round_}), 422, "round")
    while (answer := one.post("decisions", {"count": 2})).status_code == 201:
        assert len(answer.json()["decisions"]) == 2
        assert one.get("/state")["decisions"] < 1000
        one.post("decisions", {"round": answer.json()["decisions"][0]["round"] + 20})
    check_refused(answer, 422, "round")
    version = one.version
    shown = one.get("/state")
    assert shown["arms"][0]["mean"] == 0.0
    assert one.tell(0, 1e149) == "learned"  # its state is still a number
    one.get("/state")
    replaced = dict(UNSTABLE_DOCUMENT, transition=[[0.5]])
    assert one.post("model", {"system": replaced}).status_code == 200
    assert one.decide()["decision"] == shown["decisions"]
    assert one.version == version + 3


def test_a_reward_that_would_break_the_experiment_is_refused(service):
    precise = dict(DOCUMENT, reward_std=1e-100, process_cov=[[1e-200, 0.0], [0.0, 1e-200]])
    one = service.create("precise", system=precise)
    one.decide()
    check_refused(one.post("rewards", {"decision": 0, "reward": 1e150}), 422, "reward")
    assert one.version == 2
    one.decide()
    assert one.tell(0, 1.0) == "learned"


def test_too_many_decisions_inside_the_window(service):
    one = service.create("crowded", system=DOCUMENT, window=5)
    for _ in range(2):
        one.decide(round=0, count=100, distinct=False)
    version = one.version
    check_refused(one.post("decisions", {"round": 0}), 409, "id")
    check_refused(one.post("decisions", {"round": 5, "count": 1}), 409, "id")
    assert one.version == version
    assert one.post("decisions", {"round": 6}).status_code == 201  # they have left the window


# Names, texts and other experiments.

NASTY = [
    "<script>alert(1)</script>",
    "\u0000",
    "a\nb",
    "\u202e",
    "'; DROP TABLE events; --",
    "{id}",
]


def test_nasty_names_are_names_like_any_other(service):
    arms = {name: [float(number), 1.0] for number, name in enumerate(NASTY)}
    one = service.create("nasty", arms=arms)
    found = one.decide(arms=NASTY, count=len(NASTY))["decisions"]
    assert {decision["arm"] for decision in found} == set(NASTY)
    for decision in found:
        one.tell(decision["decision"], 1.0, arm=decision["arm"], round=decision["round"])
    assert one.post("arms/retire", {"arm": "\u0000"}).status_code == 200
    assert one.post("arms", {"arm": "a\u2028b", "features": [3.0, 4.0]}).status_code == 201
    assert one.post("pause", {"reason": NASTY[0]}).status_code == 200
    for what in ("", "/state", "/events", "/samples", "/log.parquet"):
        answer = service.get(f"{one.path}{what}")
        assert answer.status_code == 200
        check_headers(answer)
        assert b"<html" not in answer.content
        assert answer.headers["Content-Type"] in (
            "application/json",
            "application/vnd.apache.parquet",
        )
    assert one.get("/state")["retired"] == ["\u0000"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"arm": ""}, "arm"),
        ({"arm": "  "}, "names"),
        ({"arm": "left"}, "names"),
        ({"arm": "7", "features": [1.0, 2.0]}, "names"),
        ({"arm": "x" * 201}, "arm"),
        ({"arm": None}, "arm"),
        ({"arm": 1.5}, "arm"),
        ({"arm": 2**53 + 1}, "arm"),
        (b'{"arm": "\\udfff"}', "body"),
        ({"arm": "new", "features": []}, "features"),
        ({"arm": "new", "features": [1.0]}, "features"),
        ({"arm": "new", "features": [0.0, 0.0]}, "features"),
        ({"arm": "new", "features": [1e200, 0.0]}, "features"),
        ({"arm": "new", "features": "free"}, "features"),
        ({"features": [1.0, 2.0]}, "arm"),
    ],
)
def test_arms_that_cannot_be_added(one, body, field):
    version = one.version
    check_refused(one.post("arms", body_of(body)), 422, field)
    assert one.version == version


def test_arms_that_cannot_be_retired(service):
    one = service.create("lonely", arms={"only": [1.0]})
    for body, field in [({"arm": "nobody"}, "arm"), ({"arm": "only"}, "arm"), ({}, "arm")]:
        check_refused(one.post("arms/retire", body), 422, field)
    assert one.version == 1


def test_decisions_of_another_experiment(service, one):
    other = service.create("other", system=OTHER_DOCUMENT)
    check_refused(other.post("rewards", {"decision": 0, "reward": 1.0}), 404, "decision")
    mine, theirs = one.get("/events")["events"][1], other.decide(arms=["both"], round=4)
    assert (mine["decision"], theirs["decision"]) == (0, 0)
    told = {"decision": 0, "reward": 1.0, "arm": mine["arm"], "round": mine["round"]}
    check_refused(other.post("rewards", told), 409, "decision")
    assert other.version == 2


def test_reasons_and_empty_documents(one):
    version = one.version
    for reason in ("x" * 501, 7, None, ["a"]):
        check_refused(one.post("pause", {"reason": reason}), 422, "reason")
    check_refused(one.post("pause", {"why": "a"}), 422, "why")
    for what in ("resume", "refit"):
        check_refused(one.post(what, {"reason": "a"}), 422, "reason")
        check_refused(one.post(what, b"[]"), 422, "body")
    assert one.version == version


def test_contexts_of_the_wrong_form(service):
    one = service.create("priced", system=PRICED_DOCUMENT)
    for context in (
        None,
        {},
        {"x_price": 1.0, "y": 2.0},
        {"x_price": [1.0]},
        {"x_price": {"basic": 1.0}},
        {"x_price": {"basic": 1.0, "2": 1.0, "3": 1.0}},
        {"x_price": 1e300},
        {"x_price": "1"},
        {"x_price": None},
    ):
        answer = one.post("decisions", {"context": context})
        check_refused(answer, 422, answer.json().get("field"))
        assert answer.json()["field"].startswith("context")
    assert one.version == 1
    assert np.isfinite(one.decide(context={"x_price": 1.0})["mean"])
