"""Over HTTP, rewards, arms, models and pauses do what they do to a plain agent."""

import time

import pytest

from driftbandit import Agent, InvalidInput
from driftbandit.service.late_rewards import LateRewards
from service.inprocess import Service
from service.systems_served import DOCUMENT, OTHER, OTHER_DOCUMENT, SYSTEM, answer


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store")) as running:
        yield running


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


def test_rewards_that_come_too_late_are_said_once_a_minute(service, caplog):
    """A busy site makes many decisions before its first rewards come."""
    one = service.create("late", system=DOCUMENT, window=3)
    for _ in range(9):
        one.decide()
    for decision in range(3):
        assert one.tell(decision, 0.5) == "too late"
    said = [record.getMessage() for record in caplog.records if "too late" in record.msg]
    assert said == [
        "experiment late: 1 reward came too late and changed nothing: its window is 3 rounds; tell "
        "rewards sooner, or make an experiment with a larger window"
    ]


def test_a_line_about_late_rewards_counts_those_before_it(caplog):
    late = LateRewards()
    for now in (0.0, 30.0, 59.0, 61.0, 200.0):
        late.add("a", 2, 5, now)
    late.add("b", 1, 1, 59.0)
    said = [record.getMessage().partition(" came")[0] for record in caplog.records]
    ours = ["experiment a: 2 rewards", "experiment a: 6 rewards", "experiment a: 2 rewards"]
    assert said == [*ours, "experiment b: 1 reward"]
    assert "its window is 1 round;" in caplog.records[-1].getMessage()


def test_by_default_a_reward_may_come_a_thousand_decisions_late(service):
    assert service.create("default", names=["a", "b"]).get()["window"] == 1000
    assert service.create("null", names=["a", "b"], window=None).get()["window"] == 1000
    by_clock = service.create("clock", names=["a", "b"], time={"seconds": 60})
    assert by_clock.get()["window"] == 100
    large = service.create("large", names=[f"arm {number}" for number in range(300)])
    assert large.get()["window"] == 100  # a thousand beliefs about 300 levels take 1.4 GB


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
