"""Requests that are wrong before their document is read: sizes, speeds, paths, methods, headers."""

import contextlib
import socket
import time

import pytest

from driftbandit.service import direct, exporting
from driftbandit.service.experiment import Experiment as Folded
from service.inprocess import Service, answer_of, request_of
from service.refused import check_refused
from service.systems_served import DOCUMENT

BODY = 20_000  # bytes
PATIENCE = 0.4  # seconds


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    limits = {"body": BODY, "patience": PATIENCE}
    with Service(tmp_path_factory.mktemp("store"), **limits) as running:
        yield running


@pytest.fixture(scope="module")
def one(service):
    return service.create("one", system=DOCUMENT)


# Bodies.


@pytest.mark.parametrize(
    "kind",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "application/jsonp", "application/json-patch+json", "text/json", "x" * 500, "é"],
)  # fmt: skip
def test_only_json_is_read(service, one, kind):
    """A page from elsewhere could send a form without asking first."""
    version = one.version
    headers = {} if kind is None else {"Content-Type": kind.encode()}
    for path in (f"{one.path}/decisions", f"{one.path}/pause", "/v1/experiments"):
        answer = service.client.post(path, content=b"{}", headers=headers)
        check_refused(answer, 422, "Content-Type")
    assert one.version == version


def test_json_may_say_its_encoding(one):
    kind = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert one.post("decisions", {}, headers=kind).status_code == 201


@pytest.mark.parametrize("what", ["decisions", "rewards", "model", "pause"])
def test_large_bodies(service, one, what):
    version, path = one.version, f"{one.path}/{what}"
    text = b'{"reason": "' + b"x" * BODY + b'"}'
    check_refused(one.post(what, text), 413, "body")
    for length in (BODY + 1, 10**15, 10**18):
        said = request_of(path, f"Content-Length: {length}")
        check_refused(answer_of(service.sent(said)), 413, "body")
    pieces = b"".join(b"3e8\r\n" + b"[" * 1000 + b"\r\n" for _ in range(BODY // 1000 + 1))
    chunked = request_of(path, "Transfer-Encoding: chunked", body=pieces + b"0\r\n\r\n")
    check_refused(answer_of(service.sent(chunked)), 413, "body")
    assert one.version == version


def test_a_large_answer_to_a_large_question_is_short(service, one):
    """What is refused is not repeated."""
    for body in (
        b'{"' + b"x" * 15_000 + b'": 1}',
        b'{"arms": ["' + b"y" * 15_000 + b'"]}',
        b'{"context": {"' + b"z" * 15_000 + b'": 1}}',
        b'{"round": "' + b"7" * 15_000 + b'"}',
    ):
        answer = one.post("decisions", body)
        check_refused(answer, 422, answer.json()["field"])


def test_small_pieces_are_put_together(service, one):
    pieces = (bytes([byte]) for byte in b'{"count": 2}')
    headers = {"Content-Type": "application/json"}
    found = service.client.post(f"{one.path}/decisions", content=pieces, headers=headers)
    assert len(found.json()["decisions"]) == 2


@pytest.mark.parametrize("what", ["decisions", "pause"])
def test_a_slow_client_is_not_waited_for(service, one, what):
    version, begun = one.version, time.monotonic()
    half = request_of(f"{one.path}/{what}", "Content-Length: 100", body=b'{"count"')
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(half)
        assert service.get(one.path).status_code == 200  # others are served meanwhile
        answer = b""
        while more := slow.recv(65536):
            answer += more
    assert PATIENCE <= time.monotonic() - begun < PATIENCE + 3
    check_refused(answer_of(answer), 408, "body")
    assert one.version == version


def test_a_client_that_trickles_is_not_waited_for(service, one):
    version = one.version
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as slow:
        slow.sendall(request_of(f"{one.path}/decisions", "Content-Length: 1000"))
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < begun + PATIENCE + 0.5:
                slow.sendall(b" ")
                time.sleep(0.05)
        assert b" 408 " in slow.recv(65536)[:20]
    assert one.version == version


def test_clients_that_leave_half_way(service, one):
    version = one.version
    for what in ("decisions", "pause"):
        half = request_of(f"{one.path}/{what}", "Content-Length: 100", body=b'{"count"')
        for part in (half, half[:30], half[:-20], b""):
            service.sent(part, and_close=True)
    time.sleep(PATIENCE + 0.2)
    assert one.version == version
    assert 'status="5' not in service.metrics()
    assert 'route="/v1/experiments/{id}/decisions",status="400"' in service.metrics()
    assert one.decide()["arm"]


# Headers.


KEYS = ["", " ", "a b", "k" * 256, "é", "\u20ac", "a\tb", "\x7f", "x" * 5000]


@pytest.mark.parametrize("key", KEYS)
def test_idempotency_keys_that_cannot_be(service, one, key):
    version = one.version
    headers = {"Idempotency-Key": key.encode()}
    if not key.strip() or "\x7f" in key:  # httpx does not send these
        said = request_of(f"{one.path}/decisions", "Content-Length: 2", f"Idempotency-Key: {key}")
        answer = service.sent(said + b"{}")
        assert b" 422 " in answer[:20] or b" 400 " in answer[:20]
    else:
        for what in ("decisions", "rewards", "pause", "arms"):
            body = {"decision": 0, "reward": 1} if what == "rewards" else {}
            body = {"arm": "new"} if what == "arms" else body
            check_refused(one.post(what, body, headers=headers), 422, "Idempotency-Key")
    assert one.version == version


def test_a_key_of_255_characters(one):
    key = "".join(chr(33 + number % 94) for number in range(255))
    first, second = (one.post("decisions", {}, key=key) for _ in range(2))
    assert first.content == second.content


def test_many_and_long_headers(service, one):
    version = one.version
    many = [f"X-{number}: {number}" for number in range(500)]
    for headers in (many, ["X-Long: " + "x" * 60_000], ["Cookie: " + "a=b; " * 2000]):
        raw = service.sent(request_of(one.path, *headers, method="GET"))
        assert raw[9:10] in (b"2", b"4"), raw[:200]
    assert one.version == version


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/experiments/a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/experiments/\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_what_is_no_http(service, raw):
    """The web server refuses it; the service never sees it."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                answer += more
    assert not answer or answer[9:10] == b"4", answer[:100]
    assert service.get("/healthz").status_code == 200


# Too many requests, and failures of the service itself.


def test_too_many_requests(tmp_path):
    with Service(tmp_path, rate=20) as service:
        one = service.create("one", system=DOCUMENT)
        answers = [one.post("decisions") for _ in range(60)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert 60 - len(refused) >= 19
        assert refused
        for answer in refused:
            check_refused(answer, 429)
            assert answer.headers["Retry-After"] == "1"
        assert service.get("/healthz").status_code == 200
        time.sleep(1)
        assert one.get("/state")["decisions"] == 60 - len(refused)


def test_a_failure_tells_nothing_and_stores_nothing(service, one, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("File /src/driftbandit/secret.py")

    version = one.version
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "parquet", fail)
        patch.setattr(Folded, "decide", fail)
        patch.setattr(Folded, "pause", fail)
        patch.setitem(direct.HANDLERS, "rewards", fail)
        answers = [service.get(f"{one.path}/log.parquet")]
        answers += [one.post(what) for what in ("decisions", "pause", "rewards")]
    for answer in answers:
        check_refused(answer, 500)
    assert len([record for record in caplog.records if record.exc_info]) == len(answers)
    assert one.version == version
    assert one.decide()["arm"]
