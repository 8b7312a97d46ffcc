"""The HTTP API decides and learns as a plain agent does, whatever form a request has."""

import random
import time

import numpy as np
import pytest

from driftbandit import Agent, InvalidInput, Refit, policies
from service.inprocess import Service
from service.systems_served import (
    DOCUMENT,
    OTHER,
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
        "next_after": options.after - 20,
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


# Rewards.


def test_what_rewards_do(service):
    one = service.create("rewards", system=DOCUMENT, window=3)
    made = [one.decide() for _ in range(4)]
    assert one.tell(0, 0.5) == "learned"
    assert one.tell(0, 0.5) == "duplicate"
    assert one.tell(1, None) == "missing"
    assert one.tell(1, True) == "learned"
    assert one.tell(1, 1) == "duplicate"
    assert one.tell(2, 7, arm=made[2]["arm"], round=2) == "learned"
    version = one.version
    for body, status, field in [
        ({"decision": 0, "reward": 0.6}, 409, "reward"),
        ({"decision": 0, "reward": None}, 409, "reward"),
        ({"decision": 4, "reward": 0.6}, 404, "decision"),
        ({"decision": 3, "reward": 0.6, "arm": "nobody", "round": 3}, 409, "decision"),
        ({"decision": 3, "reward": 0.6, "arm": made[3]["arm"], "round": 4}, 409, "decision"),
    ]:
        refused = one.post("rewards", body)
        assert (refused.status_code, refused.json()["field"]) == (status, field), body
    assert one.version == version
    for _ in range(5):
        one.decide()
    assert one.tell(3, 0.6) == "too late"
    assert one.get("/state")["rewards"] == 3


def test_many_rewards_are_learned_together_or_not_at_all(service):
    one, agent = service.create("batch", system=DOCUMENT), Agent(SYSTEM)
    one.decide(count=4)
    agent.ask_many(4)
    told = [{"decision": 2, "reward": 1.5}, {"decision": 0, "reward": False}]
    wrong = [*told, {"decision": 2, "reward": 9.0}], [*told, {"decision": 9, "reward": 1.0}]
    for rewards, status, field in zip(
        wrong, (409, 404), ("rewards[2].reward", "rewards[2].decision"), strict=True
    ):
        refused = one.post("rewards", {"rewards": rewards})
        assert (refused.status_code, refused.json()["field"]) == (status, field)
    assert one.version == 5
    rewards = [*told, {"decision": 2, "reward": 1.5}, {"decision": 1, "reward": None}]
    found = one.post("rewards", {"rewards": rewards})
    assert (found.status_code, found.json()) == (
        200,
        {"outcomes": ["learned", "learned", "duplicate", "missing"]},
    )
    agent.tell_many([(2, 1.5), (0, 0.0)])
    assert [arm["mean"] for arm in one.get("/state")["arms"]] == [s.mean for s in agent.scores()]


def test_an_arm_may_be_called_rewards(service):
    arms = {"rewards": [1.0, 0.0], '"rewards"': [0.0, 1.0]}
    one = service.create("named", arms=arms)
    made = one.decide()
    assert one.tell(0, 1.0, arm=made["arm"], round=0) == "learned"


# Arms, models, pauses.


def test_arms_come_and_go_and_models_are_replaced(service):
    one, agent = service.create("changes", system=DOCUMENT), Agent(SYSTEM)
    changes = [
        ("arms", {"arm": "new", "features": [0.5, 0.5]}, lambda: agent.add_arm("new", [0.5, 0.5])),
        ("arms/retire", {"arm": "left"}, lambda: agent.remove_arm("left")),
        ("arms", {"arm": 12}, lambda: agent.add_arm(12)),
        ("arms/retire", {"arm": 7}, lambda: agent.remove_arm(7)),
        ("arms/retire", {"arm": "new"}, lambda: agent.remove_arm("new")),
        ("arms/retire", {"arm": 12}, lambda: agent.remove_arm(12)),
        ("model", {"system": OTHER_DOCUMENT}, lambda: agent.replace_model(OTHER)),
        ("arms", {"arm": "left", "features": [2, 0]}, lambda: agent.add_arm("left", [2.0, 0.0])),
    ]
    for number, (what, body, change) in enumerate(changes):
        assert one.decide() == answer(agent.ask())
        assert one.tell(number, number / 3) == agent.tell(number, number / 3)
        found = one.post(what, body)
        assert (found.status_code, found.json()) == (
            201 if what == "arms" else 200,
            {"version": 4 + 3 * number},
        )
        change()
        assert one.get()["names"] == list(agent.names)
    assert one.decide() == answer(agent.ask())
    shown = one.get("/state")
    assert shown["retired"] == [7, "new", 12]
    kinds = ["created", "arm_added", "arm_retired", "arm_added"] + 3 * ["arm_retired"]
    assert [model["kind"] for model in shown["models"]] == [*kinds, "model_replaced", "arm_added"]
    assert one.get()["n_states"] == agent.model.n_states


def test_what_an_agent_refuses_is_refused_by_the_same_name(service):
    one, agent = service.create("refused", system=DOCUMENT), Agent(SYSTEM)
    for what, body, refuse in [
        ("arms", {"arm": "left", "features": [1.0, 2.0]}, lambda: agent.add_arm("left", [1, 2])),
        ("arms", {"arm": "new", "features": [1.0]}, lambda: agent.add_arm("new", [1.0])),
        ("arms/retire", {"arm": "nobody"}, lambda: agent.remove_arm("nobody")),
        ("decisions", {"arms": ["nobody"]}, lambda: agent.ask(["nobody"])),
        ("decisions", {"features": [[1.0]]}, lambda: agent.ask([[1.0]])),
        ("decisions", {"count": 9}, lambda: agent.ask_many(9)),
    ]:
        with pytest.raises(InvalidInput) as expected:
            refuse()
        error, found = expected.value, one.post(what, body)
        assert found.status_code == 422
        assert found.json()["field"] == error.argument
        assert found.json()["detail"] == f"{error.problem}; {error.remedy}"
    assert one.version == 1


def test_a_paused_experiment_takes_rewards_but_makes_no_decisions(service):
    one = service.create("paused", system=DOCUMENT)
    one.decide()
    assert one.post("pause", {"reason": "stock-taking"}).json() == {"version": 3}
    assert one.post("pause").json() == {"version": 3}  # nothing changes
    refused = one.post("decisions")
    assert refused.status_code == 409
    assert "stock-taking" in refused.json()["detail"]
    shown = one.get("/state")
    assert (shown["paused"], shown["paused_reason"]) == (True, "stock-taking")
    assert one.tell(0, 1.0) == "learned"
    assert one.post("resume").json() == {"version": 5}
    assert one.post("resume").json() == {"version": 5}
    assert one.decide()["decision"] == 1


def test_a_refit_needs_rewards_and_says_that_it_started(service, monkeypatch):
    one = service.create("refit", system=DOCUMENT)
    refused = one.post("refit")
    assert (refused.status_code, refused.json()["field"]) == (409, "id")
    for number in range(10):
        one.decide()
        one.tell(number, 0.1 * number)
    found = {"system": OTHER_DOCUMENT, "start": 0, "rewards": 10}
    monkeypatch.setattr(type(service.app.state.refitter), "_worked", lambda *_: dict(found))
    started = one.post("refit", key="once")
    assert (started.status_code, started.json()) == (202, {"started": True})
    while one.get("/state")["models"][-1]["kind"] != "refitted":
        time.sleep(0.01)
    assert one.get()["system"]["transition"] == OTHER_DOCUMENT["transition"]
    again = one.post("refit", key="once")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true")
    assert one.version == 23
