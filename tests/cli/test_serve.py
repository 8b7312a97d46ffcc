"""`driftbandit serve`: how it starts, what it refuses, how it ends, and what it logs."""

import contextlib
import json
import logging
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from driftbandit.cli.serve import EXAMPLES
from driftbandit.errors import InvalidInput
from driftbandit.service import keys, middleware, serving
from driftbandit.service.store import using
from driftbandit.service.verifying import verify
from service.load import settings
from service.servers import NotReady, Server, command, environment
from service.stores import call, ran, rows, sqlite_url


def lines(server):
    """The log, every line of which is a JSON object."""
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def refusal(server):
    """The one line with which a server refuses to start."""
    with pytest.raises(NotReady, match="ended with exit code 2"):
        server.start()
    *_, line = server.log.read_text().splitlines()
    assert line.startswith("error ")
    return line


def snapshots(url, id_="one"):
    with using(url, make=False) as store, store.read() as transaction:
        return [one.number for one in transaction.snapshots(id_)]


# The help.


def test_the_help_fits_a_narrow_terminal_and_teaches(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    code, out, _ = ran(capsys, "serve", "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    words = " ".join(out.replace("│", " ").split())
    for said in ("driftbandit serve --demo", "Idempotency-Key", "a crash loses nothing"):
        assert said in words
    for said in ("DRIFTBANDIT_STORE", "sqlite:///decisions.db", "127.0.0.1", "needs a key"):
        assert said in words


def test_the_examples_of_the_help_run(tmp_path):
    text = EXAMPLES.replace("\\\n", " ")
    asked = [shlex.split(line) for line in text.splitlines() if line.strip().startswith("curl ")]
    assert len(asked) == 3
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        statuses = []
        for _, url, option, body in asked:
            assert option == "--json"
            here = url.replace("http://127.0.0.1:8080", server.url)
            statuses.append(call(here, json.loads(body)).status)
        assert statuses == [201, 201, 200]


# What is refused.


def test_a_port_that_is_in_use(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(Server(sqlite_url(tmp_path), tmp_path, port=port))
    said = f"error port: 127.0.0.1:{port} cannot be used (Address already in use); choose another,"
    assert line.startswith(said)
    assert list(tmp_path.glob("*.db*")) == []  # the store was not opened


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--max-body", 0], "error body: is 0; give a whole number ≥ 1"),
        (["--max-rate", -1], "error rate: is -1; give a whole number ≥ 1"),
        (["--port", 65536], "error port: is 65536; give one of 0..65535"),
        (["--port", -1], "error port: is -1; give one of 0..65535"),
    ],
)
def test_numbers_that_are_refused(words, line, capsys):
    code, out, err = ran(capsys, "serve", *words)
    assert (code, out) == (2, "")
    assert line in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True),
        ("LOCALHOST", True), ("0.0.0.0", False), ("::", False), ("192.168.0.1", False),
        ("example.org", False), ("localhost.example.org", False), ("", False),
    ],
)  # fmt: skip
def test_which_addresses_only_this_machine_reaches(host, is_local, tmp_path):
    assert middleware.is_loopback(host) is is_local
    with using(sqlite_url(tmp_path)) as store:
        if is_local:
            serving.check_host(store, host)
        else:
            with pytest.raises(InvalidInput, match="which other machines reach, and the store"):
                serving.check_host(store, host)


def test_other_machines_need_a_key(tmp_path):
    store = sqlite_url(tmp_path)
    server = Server(store, tmp_path, "--host", "0.0.0.0")
    said = "host: is 0.0.0.0, which other machines reach, and the store has no key; make one first"
    assert said in refusal(server)
    with using(store) as opened:
        made = keys.create(opened, ["read"])
    server.log.unlink()
    with server:
        assert call(f"{server.url}/v1/experiments").status == 401
        answer = call(f"{server.url}/v1/experiments", Authorization=f"Bearer {made}")
        assert answer.status == 200
        assert server.stop() == 0
    with using(store) as opened:
        keys.revoke(opened, made.split("_")[1])
        with pytest.raises(InvalidInput, match="the store has no key"):
            serving.check_host(opened, "0.0.0.0")


BLOCKED = """
import sys
sys.modules.update(dict.fromkeys({blocked!r}))
import driftbandit.cli
driftbandit.cli.main()
"""


@pytest.mark.parametrize(
    ("words", "blocked", "library"),
    [
        (["serve"], ["uvicorn", "fastapi", "sqlalchemy", "alembic"], "uvicorn"),
        (["serve"], ["sqlalchemy"], "SQLAlchemy"),
        (["keys", "list"], ["alembic"], "Alembic"),
        (["verify"], ["sqlalchemy", "alembic"], "SQLAlchemy"),
    ],
)
def test_without_the_extra_it_is_named(words, blocked, library, tmp_path):
    code = BLOCKED.format(blocked=blocked)
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path
    )
    line = f"error {words[0]} needs {library}; install driftbandit[service]\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)
    assert list(tmp_path.iterdir()) == []


# How it ends.


@contextlib.contextmanager
def watched(server, name="one"):
    """A live stream, which is read within this block; the lines that came."""
    stream = urllib.request.urlopen(f"{server.url}/v1/experiments/{name}/live", timeout=30)
    with stream:
        found = [stream.readline()]
        reader = threading.Thread(target=lambda: found.extend(stream), daemon=True)
        reader.start()
        yield found
        reader.join(10)
        assert not reader.is_alive()  # the server ended it


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path, number):
    """Also while a page watches; and the next start folds nothing."""
    url = sqlite_url(tmp_path)
    with Server(url, tmp_path) as server:
        call(f"{server.url}/v1/experiments", settings("one"))
        with watched(server) as stream:
            call(f"{server.url}/v1/experiments/one/decisions", {})
            begin = time.monotonic()
            server.process.send_signal(number)
            assert server.process.wait(10) == 0
            assert time.monotonic() - begin < 5
        assert stream[0] == b"event: state\n"
        assert server.process.stdout.read() == b""
    said = [line["message"] for line in lines(server)]
    assert said[1:] == ["opened 0 experiments, 0 events", "ready", "stopped"]
    assert snapshots(url) == [2]
    with Server(url, tmp_path) as server:
        assert server.stop() == 0
    assert "opened 1 experiment, 2 events" in [line["message"] for line in lines(server)]
    assert {path.name for path in tmp_path.iterdir()} == {"decisions.db", "stderr.txt"}


def test_a_second_signal_ends_it_at_once(tmp_path):
    """Here the first one waits for a request, which waits for the database."""
    url = sqlite_url(tmp_path)
    with Server(url, tmp_path) as server:
        call(f"{server.url}/v1/experiments", settings("one"))
        with rows(tmp_path) as other:
            other.execute("BEGIN IMMEDIATE")
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                head = f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
                said = f"POST /v1/experiments/one/decisions HTTP/1.1\r\n{head}"
                client.sendall(f"{said}Content-Length: 2\r\n\r\n{{}}".encode())
                assert call(f"{server.url}/healthz").status == 200
                begin = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                with pytest.raises(subprocess.TimeoutExpired):
                    server.process.wait(0.3)
                server.process.send_signal(signal.SIGTERM)
                assert server.process.wait(5) == 128 + signal.SIGTERM
                assert time.monotonic() - begin < 3
                assert client.recv(100) == b""  # no answer: the decision was not stored
    assert "Traceback" not in server.log.read_text()
    with using(url, make=False) as store:
        assert [(one.events, one.problem) for one in verify(store)] == [(1, None)]


def test_the_environment_names_the_store(tmp_path):
    given = environment() | {"DRIFTBANDIT_STORE": sqlite_url(tmp_path)}
    server = subprocess.Popen(
        command("serve", "--port", "0"), cwd=tmp_path, env=given,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with server:
        try:
            assert server.stdout.readline().startswith("driftbandit serves http://127.0.0.1:")
            server.send_signal(signal.SIGINT)
            assert server.wait(10) == 0
        finally:
            server.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["decisions.db"]


# The demonstration.


def test_the_demonstration_moves_within_ten_seconds(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    begin = time.monotonic()
    with Server(f"sqlite:///{tmp_path}/none.db", tmp_path, "--demo") as server:
        url = f"{server.url}/v1/experiments/demo/state"
        while (answer := call(url)).status != 200 or answer.document["rewards"] < 3:
            assert time.monotonic() < begin + 10, answer
            time.sleep(0.05)
        with urllib.request.urlopen(f"{server.url}/") as page:
            assert b"<html" in page.read()
        assert time.monotonic() < begin + 10
        with watched(server, "demo") as stream:
            time.sleep(1.2)
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(10) == 0
        states = [json.loads(line[6:]) for line in stream if line.startswith(b'data: {"id"')]
        assert states[-1]["version"] > states[0]["version"]
        said = server.said.decode() + server.process.stdout.read().decode()
        assert f"open {server.url}/#/demo in a browser; Ctrl-C ends it\n" in said
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "none.db").exists()
    assert {line["level"] for line in lines(server)} == {"info"}


# Logs.


def test_logs_are_json_and_hold_no_key(tmp_path):
    with using(sqlite_url(tmp_path)) as store:
        made = keys.create(store, ["admin"])
    wrong = "db_0123456789ab_" + "5e" * 32
    with Server(sqlite_url(tmp_path), tmp_path, "--log-requests") as server:
        base = f"{server.url}/v1/experiments"
        assert call(base, Authorization=f"Bearer {made}").status == 200
        for path in ("", f"/{made}", f"?key={made}", f"/{wrong}/state?after={wrong}"):
            assert call(base + path, Authorization=f"Bearer {wrong}").status == 401
            assert call(base + path, Authorization=wrong).status == 401
        assert call(f"{base}/{made}/decisions", {}, Authorization=f"Bearer {made}").status == 404
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(f"GET {made} nonsense {wrong}\r\n\r\n".encode())
            client.recv(1000)
        assert server.stop() == 0
    said = server.log.read_text()
    for one in (made, wrong):
        assert one not in said
        assert one.split("_")[2] not in said
    requests = [line for line in lines(server) if line["message"] == "request"]
    assert len(requests) == 10
    assert requests[0]["route"] == "/v1/experiments"
    assert {(line["method"], line["status"]) for line in requests} >= {("GET", 200), ("GET", 401)}
    for line in lines(server):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])


@pytest.fixture
def loggers():
    """The service's loggers get their handlers back."""
    kept = [logging.getLogger(name) for name in serving.LOGGERS]
    before = [(one, one.handlers, one.propagate, one.level) for one in kept]
    yield
    for one, handlers, propagate, level in before:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def test_a_traceback_is_one_line(capsys, loggers):
    serving.log_as_json()
    try:
        raise ZeroDivisionError("a\nb")
    except ZeroDivisionError:
        logging.getLogger("driftbandit.service").exception("%s", "it\nfailed")
    logging.getLogger("asyncio").warning("slow")
    logging.getLogger("sqlalchemy.pool").error("gone")
    logging.getLogger("uvicorn.error").info("started")
    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"]) == ("error", "it\nfailed")
    assert "ZeroDivisionError: a\nb" in first["traceback"]
    assert (second["message"], third["message"]) == ("slow", "gone")
