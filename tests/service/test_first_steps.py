"""What a newcomer does first: names and no model, a program run twice, a key that is too weak."""

import numpy as np
import pytest

from driftbandit.errors import Conflict, InvalidInput
from driftbandit.io import model_file
from driftbandit.policies import PREFERRED
from driftbandit.service import keys
from driftbandit.service.settings import checked
from driftbandit.service.store import using
from service.inprocess import Service
from service.stores import SYSTEM

pytest_plugins = ["service.clients"]
NAMES = ["plain", "photo", "video", "quiz"]
MODEL = model_file.from_document(SYSTEM)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("first")) as running:
        running.address = f"http://127.0.0.1:{running.port}"
        yield running


def test_names_alone_are_enough(service):
    made = service.create("banner", names=NAMES)
    found = made.get()
    assert found["names"] == NAMES
    assert found["refit"]["structure"] == "level(arm)"
    assert found["refit"]["after"] == 40  # 10 for each arm
    assert found["refit"]["scale"] is None
    assert found["system"]["transition"] == np.eye(4).tolist()
    played = set()
    for _ in range(12):
        decision = made.decide()
        played.add(decision["arm"])
        made.tell(decision["decision"], 0.1)
    assert played == set(NAMES)


def test_names_alone_take_the_structure_of_the_refits():
    for given, structure in (
        ({}, "level(arm)"),
        ({"refit": {"after": 50}}, "level(arm)"),
        ({"refit": {"structure": "level(arm) + season(7)"}}, "level(arm) + season(7)"),
        ({"structure": "diagonal", "refit": {"structure": "free"}}, "diagonal"),
    ):
        assert checked({"names": NAMES, **given}, 10)["refit"]["structure"] == structure


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "system: is missing; give a model file; or names, perhaps a structure, or arms, to"),
        ({"arms": NAMES}, "arms: is a list; give features by name, as {\"a\": [1.0, 0.5]}, or"),
        ({"arms": [[1.0], [2.0]]}, "arms: is a list; give features by name"),
        ({"names": NAMES, "arms": {"a": [1.0]}}, "names: was given together with arms, which"),
        ({"names": NAMES, "system": MODEL}, "names: was given together with system, which"),
        ({"names": []}, "names: is missing; name the arms"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(service, connect, given, said):
    with pytest.raises(InvalidInput) as caught:
        connect(service.address).create("wrong", **given)
    assert str(caught.value).startswith(said)


def test_a_program_can_be_started_again(service, connect, request):
    server, id_ = connect(service.address), f"again{request.node.callspec.id}"
    given = {"names": NAMES, "window": 50, "time": {"seconds": 3600}}
    client = server.create(id_, exist_ok=True, **given)
    decision = client.ask()
    again = server.create(id_, exist_ok=True, **given)
    assert again.tell(decision, 1.0) == "learned"
    version = service.get(f"/v1/experiments/{id_}").json()["version"]
    assert version == 3  # nothing was stored
    for other, what in (
        ({"window": 51}, "window"),
        ({"names": NAMES[:3]}, "system"),
        ({"time": "rounds", "seed": 2}, "seed, time"),
    ):
        said = f"id: {id_} exists with another {what}; choose another id"
        with pytest.raises(Conflict) as caught:
            server.create(id_, exist_ok=True, **given | other)
        assert str(caught.value) == said
    with pytest.raises(Conflict, match="exists already; choose another id, or set exist_ok"):
        server.create(id_, **given)
    client.close()
    again.close()


def test_a_default_that_changed_is_no_conflict(service):
    """An experiment keeps the window that was the default when it was made."""
    body = {"id": "older", "names": NAMES}
    assert service.post("/v1/experiments", body | {"window": 100}).status_code == 201
    answer = service.post("/v1/experiments", body | {"exist_ok": True})
    assert answer.status_code == 200
    assert (
        service.post("/v1/experiments", body | {"exist_ok": True, "window": 9}).status_code == 409
    )


def test_refits_that_were_the_default_are_no_conflict(service):
    """An experiment of an earlier version has the old numbers, and keeps them."""
    old = {"after": 200, "scale": 1.0, "check": False}
    body = {"id": "earlier", "names": NAMES}
    assert service.post("/v1/experiments", body | {"refit": old}).status_code == 201
    for rules, status in (({}, 200), ({"refit": {}}, 200), ({"refit": {"after": 40}}, 409)):
        answer = service.post("/v1/experiments", body | rules | {"exist_ok": True})
        assert answer.status_code == status
    assert (
        service.get("/v1/experiments/earlier").json()["refit"] | old
        == (service.get("/v1/experiments/earlier").json()["refit"])
    )


def test_the_first_rewards_give_the_scale(service):
    made = service.create("revenue", names=NAMES, window=0)
    for _ in range(20):
        made.tell(made.decide()["decision"], 1500.0)
    means = [arm["mean"] for arm in made.get("/state")["arms"]]
    np.testing.assert_allclose(means, 1500.0)


def test_an_experiment_keeps_the_policy_it_was_made_with(service, connect):
    """Also if the program that is started again names none, and another one is the default now."""
    server, given = connect(service.address), {"names": NAMES, "exist_ok": True}
    server.create("idea", policy="idea", **given).close()
    again = server.create("idea", **given)
    assert service.get("/v1/experiments/idea").json()["policy"] == "idea"
    with pytest.raises(Conflict, match="exists with another policy"):
        server.create("idea", policy="kode", **given)
    server.create("unnamed", **given).close()
    assert service.get("/v1/experiments/unnamed").json()["policy"] == PREFERRED
    again.close()


def test_a_given_system_compares_equal_to_itself(service):
    body = {"id": "system", "system": SYSTEM, "policy": "kode", "exist_ok": True}
    answers = [service.post("/v1/experiments", body) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json() == answers[1].json()
    changed = SYSTEM | {"reward_std": 0.25}
    assert service.post("/v1/experiments", body | {"system": changed}).status_code == 409


def test_what_a_key_lacks_is_said_once(tmp_path, connect):
    with Service(tmp_path) as service:
        service.create("shop", names=NAMES)
        with using(service.url) as store:
            weak = keys.create(store, ["decide"], "shop")
        address = f"http://127.0.0.1:{service.port}"
        while service.get("/v1/experiments").status_code != 401:  # a key closes the server
            pass
        client = connect(address, weak, "shop")
        client.ask()
        said = "key: the service answers 403 Forbidden (this key {}); use a key {}"
        one, other = "is for one experiment only", "is for another experiment"
        for call, lacks, remedy in (
            (lambda: client.tell(0, 1.0), "lacks the scope reward", "that has it"),
            (client.state, "lacks the scope read", "that has it"),
            (lambda: client.create("other", names=NAMES), one, "for all experiments"),
            (lambda: connect(address, weak, "other").ask(), other, "for this experiment"),
        ):
            with pytest.raises(PermissionError) as caught:
                call()
            assert str(caught.value) == said.format(lacks, remedy)
        with pytest.raises(PermissionError) as caught:
            connect(address, experiment="shop").ask()
        said = "key: the service answers 401 Unauthorized (a valid key is needed); give key=…"
        assert str(caught.value) == f"{said} (driftbandit keys create makes one)"
        detail = service.get("/v1/experiments").json()["detail"]
        assert "driftbandit keys create makes one" in detail


@pytest.mark.parametrize(
    ("path", "body", "field", "said"),
    [
        ("", {"names": NAMES, "windw": 5}, "windw", "unknown name 'windw'; did you mean 'window'?"),
        ("", {"names": NAMES, "refit": {"aftr": 5}}, "refit.aftr", "did you mean 'after'?"),
        ("", {"names": NAMES, "time": {"secnds": 5}}, "time.secnds", "did you mean 'seconds'?"),
        ("", {"names": NAMES, "int": 5}, "int", "unknown name 'int'; "),
        ("", {"names": NAMES, "a[b]": 5}, "a[b]", "unknown name 'a[b]'; "),
        ("", {"names": NAMES, "Seconds": 5}, "Seconds", "unknown name 'Seconds'; "),
        ("", {"names": NAMES, "refit": {"str": 3}}, "refit.str", "unknown name 'str'; "),
        ("", {"names": NAMES, "window": "5"}, "window", 'is "5"; input should be a valid integer'),
        ("/rewards", {"decision": 0, "rewrd": 1}, "rewrd", "did you mean 'reward'?"),
        ("/rewards", {"decision": 0}, "reward", "field required"),
        ("/rewards", {"decision": 0, "reward": "0.7"}, "reward", 'is "0.7"; input should be a va'),
        ("/rewards", {"decision": 0, "reward": "x" * 999}, "reward", 'is "' + 60 * "x" + '"; inp'),
        (
            "/rewards",
            {"rewards": [{"decision": 0, "reward": 1}, {"decision": 1, "rewrd": 1}]},
            "rewards[1].rewrd",
            "did you mean 'reward'? valid: arm, decision, reward, round",
        ),
        (
            "/rewards",
            {"decision": 99, "reward": 1},
            "decision",
            "99 was never made: the decisions so far are 0 to 1; give the id that came with",
        ),
        (
            "/decisions",
            {"arms": ["phtoo"]},
            "arms",
            "'phtoo' is not the name of an arm; did you mean 'pho",
        ),
        ("/arms/retire", {"arm": "vidio"}, "arm", "did you mean 'video'? valid: 'plain', "),
    ],
)
def test_a_misspelled_name_is_recognized(service, path, body, field, said):
    if service.get("/v1/experiments/spelled").status_code == 404:
        made = service.create("spelled", names=NAMES)
        made.decide(count=2)
    where = f"/v1/experiments/spelled{path}" if path else "/v1/experiments"
    refused = service.post(where, body if path else {"id": "other"} | body)
    assert refused.status_code in (404, 422)
    assert refused.json()["field"] == field
    assert said in refused.json()["detail"]


def test_a_model_that_does_not_hold_may_be_the_first(service):
    rules = {"after": 200, "scale": 1.0}
    made = service.create("scale", names=NAMES[:2], window=0, refit=rules)
    for number in range(60):
        made.tell(made.decide()["decision"], 100.0 * (-1) ** number)
    found = made.get("/state")["calibration"]
    assert found["holds"] is False
    said = "Wait for the first refit, after 140 more rewards: this is still the initial model."
    assert found["advice"] == said
    assert "initial" not in found["summary"]
    system = made.get()["system"] | {"reward_std": 50.0}
    assert made.post("model", {"system": system}).status_code == 200
    advice = made.get("/state")["calibration"]["advice"]
    assert advice is None or advice.startswith("Wait for the next refit, after 140 more rewards")


def test_a_model_that_does_not_hold_and_is_never_learned(service):
    model = {"transition": [[0.5]], "process_cov": [[0.1]], "reward_std": 0.1}
    made = service.create("fixed", system=model | {"arms": [[1.0], [0.5]]}, window=0)
    for number in range(60):
        made.tell(made.decide()["decision"], 100.0 * (-1) ** number)
    advice = made.get("/state")["calibration"]["advice"]
    assert advice.startswith("Learn a new model from the log (driftbandit fit) and replace this")
