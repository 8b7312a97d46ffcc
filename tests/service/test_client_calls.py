"""What the clients send and read: every call, every refusal, every form of a url."""

import numpy as np
import pytest

pytest.importorskip("httpx")

from driftbandit import LGDS, Decision, InvalidInput, Refit, System, errors
from driftbandit.agent.choosing import Score
from driftbandit.service.client import Client
from driftbandit.service.client.calls import split_url
from service.fake_service import PARQUET, FakeService

pytest_plugins = ["service.clients"]
KEY = "s3cret-Key"
SYSTEM = System(LGDS(0.9 * np.eye(2), np.eye(2), 1.0), [[1.0, 0.0], [0.0, 1.0]], ["left", 7])
JSON = {"Content-Type": "application/json"}


def test_the_answers_are_those_of_an_agent(service, connect):
    client = connect(service.url)
    first = client.ask()
    assert type(first) is Decision
    assert first == Decision(0, "a", 0, 0.5, None, 1.0)
    assert type(first.uncertainty) is float
    assert client.tell(first, 0.5) == "learned"
    assert client.tell(0, np.float32(0.5)) == "duplicate"
    pair = client.ask_many(2, distinct=False)
    assert [type(decision) for decision in pair] == [Decision, Decision]
    assert client.tell_many([(pair[0], True), (pair[1].id, None)]) == ["learned", "missing"]
    assert client.tell_many([]) == []
    assert client.names == ("a", "b", "c")
    assert client.round == 2
    assert client.scores()[0] == Score("a", 0.5, None, 1.0)
    bodies = [seen.body for seen in service.seen if seen.path.endswith("/rewards")]
    assert bodies[0] == {"decision": 0, "reward": 0.5, "arm": "a", "round": 0}
    assert bodies[1] == {"decision": 0, "reward": 0.5}
    assert [one["reward"] for one in bodies[2]["rewards"]] == [True, None]


QUESTIONS = [
    ({}, {}),
    ({"arms": ["a", "c"]}, {"arms": ["a", "c"]}),
    ({"arms": np.array(["a"])}, {"arms": ["a"]}),
    ({"arms": ("a", np.int64(7))}, {"arms": ["a", 7]}),
    ({"arms": np.arange(2)}, {"arms": [0, 1]}),
    ({"arms": [[1, 0.5], (0, 1)]}, {"features": [[1.0, 0.5], [0.0, 1.0]]}),
    ({"arms": np.eye(2)}, {"features": [[1.0, 0.0], [0.0, 1.0]]}),
    ({"arms": {"x": np.ones(2), 7: [0, 1]}}, {"arms": ["x", 7], "features": [[1, 1], [0, 1]]}),
    ({"round": np.int64(5)}, {"round": 5}),
    ({"context": {"x_a": np.float64(2.0), "x_b": 1}}, {"context": {"x_a": 2.0, "x_b": 1.0}}),
    ({"context": {"x": np.ones(2)}}, {"context": {"x": [1.0, 1.0]}}),
    ({"context": {"x": {"a": 1, 7: np.float32(2)}}}, {"context": {"x": {"a": 1.0, "7": 2.0}}}),
]


@pytest.mark.parametrize(("given", "sent"), QUESTIONS)
def test_questions_on_the_wire(service, given, sent):
    with Client(service.url, experiment="shop") as client:
        client.ask(**given)
        client.ask_many(1, **given)
    assert service.seen[0].body == sent
    assert service.seen[1].body == sent | {"count": 1, "distinct": True}


REFUSED = [
    ("arms", lambda client: client.ask("a")),
    ("arms", lambda client: client.ask([])),
    ("arms", lambda client: client.ask({})),
    ("arms", lambda client: client.ask({"a", "b"})),
    ("arms", lambda client: client.ask([None])),
    ("arms", lambda client: client.ask([0.5])),
    ("arms", lambda client: client.ask([[1.0], [1.0, 2.0]])),
    ("arms", lambda client: client.ask([[1.0, np.nan]])),
    ("arms", lambda client: client.ask({"a": 1})),
    ("round", lambda client: client.ask(round=0.5)),
    ("context", lambda client: client.ask(context=[1.0])),
    ("context 'x'", lambda client: client.ask(context={"x": np.inf})),
    ("count", lambda client: client.ask_many(0)),
    ("distinct", lambda client: client.ask_many(1, distinct=1)),
    ("decision", lambda client: client.tell("0", 1.0)),
    ("decision", lambda client: client.tell(True, 1.0)),
    ("reward", lambda client: client.tell(0, np.nan)),
    ("reward", lambda client: client.tell(0, "much")),
    ("rewards", lambda client: client.tell_many([Decision(0, "a", 0, 0.0, 0.0, 0.0)])),
    ("rewards", lambda client: client.tell_many([(0, 1.0, 2.0)])),
    ("name", lambda client: client.add_arm(None)),
    ("features", lambda client: client.add_arm("x", [np.nan])),
    ("model", lambda client: client.replace_model(SYSTEM.model)),
    ("system", lambda client: client.create("x", SYSTEM.model)),
    ("window", lambda client: client.create("x", SYSTEM, window=object())),
    ("reason", lambda client: client.pause(reason=3)),
]


@pytest.mark.parametrize(("argument", "call"), REFUSED)
def test_bad_input_is_refused_before_anything_is_sent(service, connect, argument, call):
    with pytest.raises(InvalidInput) as caught:
        call(connect(service.url, experiment="shop"))
    assert caught.value.argument == argument
    assert service.seen == []


def test_changes(service, connect):
    client = connect(service.url, experiment="shop")
    client.add_arm("d", np.ones(2))
    client.add_arm(8)
    client.remove_arm("a")
    client.replace_model(SYSTEM)
    client.refit()
    client.pause("too hot")
    with pytest.raises(errors.Conflict, match="experiment: the experiment is paused; resume it"):
        client.ask()
    client.resume()
    client.ask()
    assert client.names == ("b", "c", "d", 8)
    events = list(client.events())
    assert [event["kind"] for event in events] == (
        ["arms", "arms", "arms/retire", "model", "refit", "pause", "resume", "decided"]
    )
    assert events[0]["features"] == [1.0, 1.0]
    assert events[3]["system"]["names"] == ["left", 7]
    assert events[5]["reason"] == "too hot"
    assert next(iter(client.events(after=7)))["kind"] == "decided"


def test_events_come_page_by_page(service, connect):
    shop = service.experiments["shop"]
    for _ in range(2500):
        shop.note("refit")
    client = connect(service.url, experiment="shop")
    assert [event["number"] for event in client.events()] == list(range(1, 2501))
    assert [seen.path.partition("?")[2] for seen in service.seen] == (
        [f"after={after}&limit=1000" for after in (0, 1000, 2000)]
    )


def test_create_returns_a_client_of_the_new_experiment(service, connect):
    client = connect(service.url)
    settings = {"window": np.int64(50), "time": {"seconds": 3600}, "refit": Refit(after=10)}
    made = client.create("page 1/a", SYSTEM, "kode", seed=3, **settings)
    body = service.seen[0].body
    assert (body["policy"], body["window"], body["seed"]) == ("kode", 50, 3)
    assert body["refit"]["after"] == 10
    assert "background" not in body["refit"]
    assert body["system"]["arms"] == [[1.0, 0.0], [0.0, 1.0]]
    assert made.names == ("left", 7)
    assert made.experiments() == ["shop", "page 1/a"]
    made.close()
    learned = client.create("learned", None, arms={"u": np.ones(2)}, refit={})
    assert service.seen[-1].body["arms"] == {"u": [1.0, 1.0]}
    assert learned.names == ("u",)
    learned.close()
    with pytest.raises(errors.Conflict, match="id: 'learned' is there already; take another id"):
        client.create("learned", SYSTEM)


def test_the_log_is_written_whole_or_not_at_all(service, connect, tmp_path):
    client = connect(service.url, experiment="shop")
    path = tmp_path / "log.parquet"
    service.script.append((200, {"Content-Type": "application/octet-stream"}, PARQUET[:9]))
    client.download_log(path)
    assert path.read_bytes() == PARQUET
    service.script.append((404, {}, b""))
    with pytest.raises(InvalidInput, match="request: the service answers 404 Not Found; check"):
        client.download_log(str(path))
    assert path.read_bytes() == PARQUET
    assert list(tmp_path.iterdir()) == [path]


# Refusals.


def test_what_an_agent_refuses_the_client_refuses_with_the_same_error(service, connect):
    client = connect(service.url, experiment="shop")
    with pytest.raises(InvalidInput) as caught:
        client.tell(3, 1.0)
    error = caught.value
    said = ("decision", "3 was never made: no decision was made yet")
    assert (error.argument, error.problem) == said
    assert error.remedy == "tell what ask returned, or its id"
    decision = client.ask()
    with pytest.raises(errors.Conflict, match="decision: 0 is arm a"):
        client.tell(decision._replace(arm="b"), 1.0)  # of another experiment
    assert client.tell(decision, 1.0) == "learned"
    with pytest.raises(errors.Conflict, match="reward: 0 has another reward"):
        client.tell(decision, 2.0)
    with pytest.raises(InvalidInput, match="count: is 9, and there are 3 arms; give less"):
        client.ask_many(9)
    with pytest.raises(InvalidInput, match="decision: 8 was never made"):
        client.tell_many([(client.ask(), 1.0), (8, 1.0)])
    assert service.experiments["shop"].rewards == {0: 1.0}  # none of the two
    with pytest.raises(InvalidInput, match="id: there is no experiment 'mall'; see"):
        connect(service.url, experiment="mall").ask()


ANSWERS = [
    (500, {}, b"", RuntimeError, "service: failed with 500 Internal Server Error; its log"),
    (500, {}, b'{"detail": "no disk"}', RuntimeError, r"500 Internal Server Error \(no disk\)"),
    (418, {}, b"[]", InvalidInput, "request: the service answers 418 I'm a Teapot; check the url"),
    (499, {}, b"\xff", InvalidInput, "request: the service answers 499; check the url"),
    (413, {}, b'{"title": "Large"}', InvalidInput, "request: Large; send less at a time"),
    (422, {}, b'{"detail": [{"loc": 1}]}', InvalidInput, "loc.*; give what the service can read"),
    (422, {}, b'{"detail": "a: is b; c", "field": "a"}', InvalidInput, "^a: is b; c$"),
    (422, {}, b'{"detail": "is\\nb; c", "field": "a"}', InvalidInput, r"^a: is b; c$"),
    (301, {"Location": "http://x/"}, b"", InvalidInput, "url: is redirected to http://x/; give"),
    (200, {"Content-Type": "text/html"}, b"<p>", InvalidInput, "url: .* answers with 'text/html'"),
    (200, JSON, b"[1]", InvalidInput, "url: http.* as no such service does; give the url that"),
]


@pytest.mark.parametrize(("status", "headers", "content", "error", "message"), ANSWERS)
def test_strange_answers(service, status, headers, content, error, message):
    service.script.append((status, headers, content))
    with (
        Client(service.url, experiment="shop") as client,
        pytest.raises(error, match=message) as caught,
    ):
        client.state()
    assert "\n" not in str(caught.value)


def test_keys_are_sent_and_never_shown(connect):
    with FakeService("shop", keys={KEY: {"decide"}}) as service:
        client = connect(service.url, KEY, "shop")
        assert client.ask().id == 0
        assert service.seen[-1].authorization == f"Bearer {KEY}"
        with pytest.raises(PermissionError, match=r"key: the service answers 403 Forbidden \(the"):
            client.tell(0, 1.0)
        with pytest.raises(PermissionError, match=r"401 Unauthorized.*; give key=…"):
            connect(service.url, experiment="shop").ask()
        with pytest.raises(PermissionError, match="the key is unknown or revoked") as caught:
            connect(service.url, "wrong-" + KEY, "shop").ask()  # the fake repeats it
        assert KEY not in str(caught.value)
        shown = repr(getattr(client, "client", client))
        assert KEY not in shown
        assert shown.endswith(f"Client({service.url!r}, key=…, experiment='shop')")
    with pytest.raises(InvalidInput, match="key: holds strange characters") as caught:
        Client("http://here", f"{KEY}\n")
    assert KEY not in str(caught.value)


# Addresses.


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://127.0.0.1:8080", ("http://127.0.0.1:8080", None)),
        ("http://127.0.0.1:8080/", ("http://127.0.0.1:8080", None)),
        ("http://[::1]:80/v1", ("http://[::1]:80", None)),
        ("https://x/v1/experiments/", ("https://x", None)),
        ("https://x/v1/experiments/shop", ("https://x", "shop")),
        ("https://x/v1/experiments/a%2Fb/", ("https://x", "a/b")),
        ("https://x/under/here/v1/experiments/shop", ("https://x/under/here", "shop")),
        (" https://x/v1x ", ("https://x/v1x", None)),
    ],
)
def test_forms_of_a_url(url, found):
    assert split_url(url) == found


WRONG_URLS = ["", None, "127.0.0.1:8080", "ftp://x", "http://", "http://x:port", "http://x/?a=1"]
WRONG_URLS += ["http://x/#a", "http://me:secret@x", "http://x/v1/experiments/a/state", "http://[x"]


@pytest.mark.parametrize("url", WRONG_URLS)
def test_other_urls_are_refused(url):
    with pytest.raises(InvalidInput, match=r"^url: ") as caught:
        Client(url)
    assert "secret" not in str(caught.value)


def test_which_experiment(service, connect):
    assert connect(service.url).ask().id == 0  # the only one
    assert connect(f"{service.url}/v1/experiments/shop").ask().id == 1
    assert connect(f"{service.url}/v1/experiments/shop", experiment="shop").ask().id == 2
    with pytest.raises(InvalidInput, match="experiment: is 'mall', and the url names 'shop'"):
        Client(f"{service.url}/v1/experiments/shop", experiment="mall")
    with FakeService() as empty, FakeService("a", "b") as two:
        with pytest.raises(InvalidInput, match="is missing, and the server has none; make one"):
            connect(empty.url).ask()
        with pytest.raises(InvalidInput, match="is missing, and the server has 'a', 'b'; name"):
            connect(two.url).ask()


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": None}, {"patience": -1}])
def test_times_are_checked(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Client("http://here", **wrong)
