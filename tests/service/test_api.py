"""The HTTP API decides and learns as a plain agent does, whatever form a request has."""

import random
import time

import numpy as np
import pytest

from driftbandit import Agent, Refit, policies
from service.inprocess import Service
from service.systems_served import (
    DOCUMENT,
    OTHER_DOCUMENT,
    PRICED,
    PRICED_DOCUMENT,
    SYSTEM,
    answer,
)

SHOWN = {
    "id", "created", "policy", "seed", "window", "rounds", "memory", "time", "refit", "on_alarm",
    "names", "n_states", "paused", "version", "decisions", "rewards", "open", "system",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as running:
        yield running


# Experiments.


def test_an_experiment_is_made_shown_and_listed(service):
    settings = {"policy": "kode", "seed": 5, "window": 9, "rounds": 50, "memory": 70}
    created = service.post("/v1/experiments", {"id": "shown", "system": DOCUMENT} | settings)
    assert created.status_code == 201
    document = created.json()
    assert set(document) >= SHOWN
    assert {key: document[key] for key in settings} == settings
    assert document["system"] == DOCUMENT
    assert document["names"] == list(SYSTEM.names)
    assert (document["version"], document["time"], document["refit"]) == (1, "rounds", None)
    assert abs(document["created"] - time.time()) < 60
    assert service.get("/v1/experiments/shown").json() == document
    (listed,) = (
        one for one in service.get("/v1/experiments").json()["experiments"] if one["id"] == "shown"
    )
    assert "system" not in listed
    assert listed.items() <= document.items()


def test_an_id_is_taken_once(service):
    service.create("taken", system=DOCUMENT)
    again = service.post("/v1/experiments", {"id": "taken", "system": OTHER_DOCUMENT})
    assert (again.status_code, again.json()["field"]) == (409, "id")
    assert service.get("/v1/experiments/taken").json()["system"] == DOCUMENT


@pytest.mark.parametrize("refit", [None, {"after": 50, "scale": 3.0, "structure": "diagonal"}])
def test_without_a_model_it_starts_from_arms(service, refit):
    arms = {"red": [1.0, 0.2], "blue": [-0.3, 1.0], "green": [0.7, -0.7]}
    asked = {"arms": arms} if refit is None else {"arms": arms, "refit": refit}
    one = service.create(f"arms-{refit is None}", **asked)
    rows, options = np.array(list(arms.values())), Refit(**refit or {})
    _same_decisions(one, Agent(None, rows, names=list(arms), refit=options))
    shown = one.get()["refit"]
    assert {key: shown[key] for key in refit or {}} == (refit or {})
    assert one.get("/state")["refit"] == {
        "in_progress": False,
        "next_after": options.pause(0) - 20,
        "failure": None,
    }


def test_without_a_model_it_starts_from_a_structure(service):
    structure = "level(arm) + season(7)"
    one = service.create("structure", structure=structure, names=["a", "b", 3])
    refit = Refit(structure=structure)
    _same_decisions(one, Agent(None, np.eye(3), names=["a", "b", 3], refit=refit))
    assert one.get()["refit"]["structure"] == structure


@pytest.mark.parametrize("policy", policies.available())
def test_every_policy_decides_as_in_an_agent(service, policy):
    one = service.create(f"policy-{policy}", system=DOCUMENT, policy=policy, seed=3, window=4)
    agent = Agent(SYSTEM, policy=policy, seed=3, window=4)
    _same_decisions(one, agent, all_arms=policy == "kalman_oracle")
    assert one.get("/state")["policy_title"] == policies.title(agent.policy.label)
    assert one.service.get(f"{one.path}/log.parquet").status_code == 200


def _same_decisions(one, agent, all_arms=False):
    """Twenty rounds with rewards that come two rounds late."""
    rng, late = random.Random(0), []
    for _ in range(22):
        decision = agent.ask()
        assert one.decide() == answer(decision)
        late.append(decision.id)
        if len(late) > 2:
            reward = [rng.gauss(0, 1) for _ in agent.names] if all_arms else rng.gauss(0, 1)
            assert one.tell(late[0], reward) == agent.tell(late.pop(0), reward)
    expected = [score.to_dict() for score in agent.scores()] if agent.policy.scores else None
    shown = one.get("/state")
    assert (shown["decisions"], shown["rewards"], shown["open"]) == (22, 20, 2)
    keys = ("arm", "mean", "bonus", "uncertainty")
    assert expected is None or [{k: arm[k] for k in keys} for arm in shown["arms"]] == expected


# Decisions.


FORMS = [
    {},
    {"round": 5},
    {"round": 5},
    {"arms": ["right", 7]},
    {"arms": ["left"], "round": 9},
    {"features": [[0.3, 1.0], [1.0, 0.1], [-2.0, 0.5]]},
    {"arms": ["new", 12], "features": [[0.3, 1.0], [1.0, 0.1]]},
    {"count": 1},
    {"count": 3},
    {"count": 6, "distinct": False},
    {"count": 2, "arms": ["both", "right", "left"], "round": 20},
    {"count": 2, "features": [[0.3, 1.0], [1.0, 0.1], [-2.0, 0.5]]},
    {"count": 2, "arms": ["x", "y"], "features": [[0.3, 1.0], [1.0, 0.1]]},
    {"arms": None, "features": None, "context": None, "round": None, "count": None},
]


def test_every_form_of_a_question(service):
    one, agent = service.create("forms", system=DOCUMENT), Agent(SYSTEM)
    for number, form in enumerate(FORMS):
        given = {key: value for key, value in form.items() if value is not None}
        arms, features = given.pop("arms", None), given.pop("features", None)
        if features is not None:
            arms = features if arms is None else dict(zip(arms, features, strict=True))
        found = one.decide(**form)
        if "count" in given:
            decisions = agent.ask_many(given.pop("count"), arms, **given)
            assert found == {"decisions": [answer(decision) for decision in decisions]}
        else:
            decisions = [agent.ask(arms, **given)]
            assert found == answer(decisions[0])
        for decision in decisions:
            assert one.tell(decision.id, number / 7) == agent.tell(decision, number / 7)
    assert [arm["mean"] for arm in one.get("/state")["arms"]] == [s.mean for s in agent.scores()]


def test_contexts(service):
    one, agent = service.create("contexts", system=PRICED_DOCUMENT), Agent(PRICED)
    for number, price in enumerate([1.5, [1.0, 2.0], {"basic": 1.0, "2": 3.0}, -0.5]):
        found = one.decide(context={"x_price": price})
        named = {"basic": 1.0, 2: 3.0} if isinstance(price, dict) else price
        assert found == answer(agent.ask(context={"x_price": named}))
        assert one.tell(number, 0.3) == agent.tell(number, 0.3)
    refused = one.post("decisions", {})
    assert (refused.status_code, refused.json()["field"]) == (422, "context")
    assert one.get("/state")["arms"][0]["mean"] is None  # it depends on the price
    events = one.get("/events")["events"]
    assert [e["context"]["x_price"] for e in events if e["kind"] == "decided"][2]["2"] == 3.0


def test_rounds_follow_the_clock(service):
    one = service.create("clock", system=DOCUMENT, time={"seconds": 0.2})
    first = one.decide()["round"]
    while (later := one.decide()["round"]) == first:
        time.sleep(0.05)
    assert later > first
    time.sleep(0.25)
    shown = one.get("/state")
    assert shown["rounds_are"] == {"seconds": 0.2}
    assert shown["round"] > later
    refused = one.post("decisions", {"round": later + 100})
    assert (refused.status_code, refused.json()["field"]) == (422, "round")
    slow = service.create("slow-clock", system=DOCUMENT, time={"seconds": 1e9})
    assert [slow.decide()["round"] for _ in range(3)] == [0, 0, 0]
