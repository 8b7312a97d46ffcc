"""Documents that are wrong, or meant to harm: refused by the name of their field, and not kept."""

import json

import pytest

from service.inprocess import Service
from service.refused import check_refused
from service.systems_served import DOCUMENT

HUGE = 10**400
LIMITS = {"arms": 50, "batch": 100, "open": 200}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("store"), **LIMITS) as running:
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


# Text that is no JSON, or JSON that is no document.

TEXTS = {
    "not JSON": b"decision=1",
    "cut off": b'{"decision": 0, "reward": ',
    "two documents": b'{"decision": 0, "reward": 1}{}',
    "a list": b"[]",
    "a number": b"17",
    "null": b"null",
    "a text": b'"{}"',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"decision":' * 50_000,
    "deep and closed": b'{"decision": 0, "reward": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "not UTF-8": b'{"decision": 0, "reward": 1, "arm": "\xff\xfe"}',
    "UTF-16": '{"decision": 0, "reward": 1}'.encode("utf-16"),
    "a mark before": b'\xef\xbb\xbf{"decision": 0, "reward": 1}',
    "half a character": b'{"decision": 0, "reward": 1, "round": 0, "arm": "\\ud800"}',
    "a control character": b'{"decision": 0, "reward": 1, "arm": "a\x00b"}',
    "5000 digits": b'{"decision": 0, "reward": ' + b"7" * 5000 + b"}",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("what", ["rewards", "decisions", "model"])
def test_texts_that_are_no_documents(one, name, what):
    version = one.version
    answer = one.post(what, TEXTS[name])
    field = answer.json()["field"]
    check_refused(answer, 422, field)
    assert field in ("body", "decision")
    assert one.version == version


def test_an_empty_body_is_an_empty_document(service, one):
    check_refused(one.post("rewards", b""), 422, "decision")
    check_refused(service.post("/v1/experiments", b""), 422, "id")
    assert one.post("resume", b"").status_code == 200


@pytest.mark.parametrize(
    ("what", "text", "field"),
    [
        ("rewards", b'{"decision": 0, "reward": 1, "decision": 1}', "decision"),
        ("rewards", b'{"rewards": [{"decision": 0, "reward": 1, "reward": 2}]}', "reward"),
        ("decisions", b'{"count": 1, "count": 1}', "count"),
        ("decisions", b'{"round": 8, "ro\\u0075nd": 9}', "round"),
        ("model", b'{"system": {"arms": [[1]], "arms": [[2]]}}', "arms"),
        ("pause", b'{"reason": "a", "reason": "b"}', "reason"),
    ],
)
def test_a_field_that_is_there_twice(one, what, text, field):
    version = one.version
    check_refused(one.post(what, text), 422, field)
    assert one.version == version


# Numbers.

REWARDS = [
    (b"NaN", "reward"),
    (b"Infinity", "reward"),
    (b"-Infinity", "reward"),
    (b"1e400", "reward"),
    (b"1e308", "reward"),
    (b"-1e151", "reward"),
    (str(HUGE).encode(), "reward"),
    (b'"1.5"', "reward"),
    (b'"yes"', "reward"),
    (b'"NaN"', "reward"),
    (b"[]", "reward"),
    (b"[1.0, 2.0, 3.0, 4.0]", "reward"),
    (b"{}", "reward"),
    (b"1.", "body"),
    (b"0x10", "body"),
    (b"01", "body"),
    (b"+1", "body"),
]


@pytest.mark.parametrize(("reward", "field"), REWARDS)
def test_rewards_that_are_no_numbers(one, reward, field):
    version = one.version
    check_refused(one.post("rewards", b'{"decision": 0, "reward": ' + reward + b"}"), 422, field)
    many = b'{"rewards": [{"decision": 1, "reward": 1}, {"decision": 0, "reward": ' + reward
    refused = one.post("rewards", many + b"}]}")
    check_refused(refused, 422, "body" if field == "body" else "rewards[1].reward")
    assert one.version == version


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"decision": -1, "reward": 1}, 422, "decision"),
        ({"decision": 3, "reward": 1}, 404, "decision"),
        ({"decision": 2**53, "reward": 1}, 404, "decision"),
        ({"decision": 2**53 + 1, "reward": 1}, 422, "decision"),
        ({"decision": 10**100, "reward": 1}, 422, "decision"),
        ({"decision": 1.0, "reward": 1}, 422, "decision"),
        ({"decision": "1", "reward": 1}, 422, "decision"),
        ({"decision": True, "reward": 1}, 422, "decision"),
        ({"decision": None, "reward": 1}, 422, "decision"),
        ({"decision": 0}, 422, "reward"),
        ({"reward": 0}, 422, "decision"),
        ({"decision": 0, "reward": 1, "extra": 1}, 422, "extra"),
        ({"decision": 0, "reward": 1, "arm": "", "round": 0}, 422, "arm"),
        ({"decision": 0, "reward": 1, "arm": "x" * 201, "round": 0}, 422, "arm"),
        ({"decision": 0, "reward": 1, "arm": "left", "round": 1e300}, 422, "round"),
        ({"rewards": []}, 422, "rewards"),
        ({"rewards": {}}, 422, "rewards"),
        ({"rewards": [1]}, 422, "rewards[0]"),
        ({"rewards": [{"decision": 0, "reward": 1}], "decision": 0}, 422, "decision"),
        ({"rewards": 101 * [{"decision": 0, "reward": 1}]}, 422, "rewards"),
    ],
)
def test_rewards_of_the_wrong_form(one, body, status, field):
    version = one.version
    check_refused(one.post("rewards", body), status, field)
    assert one.version == version


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": -1}, "count"),
        ({"count": 5}, "count"),
        ({"count": 101, "distinct": False}, "count"),
        ({"count": 10**30}, "count"),
        ({"count": 2.0}, "count"),
        ({"count": True}, "count"),
        ({"distinct": "off"}, "distinct"),
        ({"distinct": None}, "distinct"),
        ({"arms": []}, "arms"),
        ({"arms": "left"}, "arms"),
        ({"arms": ["nobody"]}, "arms"),
        ({"arms": [None]}, "arms[0]"),
        ({"arms": [["left"]]}, "arms[0]"),
        ({"arms": [1e300]}, "arms[0]"),
        ({"arms": [10**30]}, "arms[0]"),
        ({"arms": ["x" * 201]}, "arms[0]"),
        ({"arms": 51 * ["left"]}, "arms"),
        ({"arms": ["<script>alert(1)</script>"]}, "arms"),
        ({"arms": ["left\u0000"]}, "arms"),
        ({"features": []}, "arms"),
        ({"features": [[]]}, "arms"),
        ({"features": [[1.0]]}, "arms"),
        ({"features": [[1.0, 2.0], [1.0]]}, "arms"),
        ({"features": [[0.0, 0.0]]}, "arms"),
        ({"features": [[1.0, "2"]]}, "features[0][1]"),
        ({"features": [[1.0, None]]}, "features[0][1]"),
        ({"features": [[1e308, 1e308]]}, "arms"),
        (b'{"features": [[1.0, NaN]]}', "features[0][1]"),
        (b'{"features": [[1.0, 1e999]]}', "features[0][1]"),
        ({"features": [[1.0, HUGE]]}, "features[0][1]"),
        ({"features": 51 * [[1.0, 2.0]]}, "arms"),
        ({"arms": ["a"], "features": [[1.0, 2.0], [2.0, 1.0]]}, "features"),
        ({"arms": ["a", "a"], "features": [[1.0, 2.0], [2.0, 1.0]]}, "arms"),
        ({"arms": [1, "1"], "features": [[1.0, 2.0], [2.0, 1.0]]}, "arms"),
        ({"context": {"x_price": 1.0}}, "context"),
        ({"context": {}}, "context"),
        ({"context": {"x": [[1]]}}, "context.x"),
        ({"context": [1]}, "context"),
        ({"round": -1}, "round"),
        ({"round": 2**53 + 1}, "round"),
        ({"round": 1e3}, "round"),
        ({"round": "1"}, "round"),
        ({"round": HUGE}, "round"),
        ({"nonsense": 1}, "nonsense"),
        ({"__class__": {"__init__": 1}}, "__class__"),
    ],
)
def test_questions_of_the_wrong_form(one, body, field):
    version = one.version
    refused = one.post("decisions", body_of(body))
    check_refused(refused, 422, refused.json().get("field"))
    assert refused.json()["field"].startswith(field)
    assert one.version == version
