"""A small service with the real one's answers, which decides by turns: to test clients against.

It speaks HTTP over loopback, one thread per connection, and carries out each Idempotency-Key once.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from driftbandit.agent.history import never_made

PARQUET = b"PAR1 whatever PAR1"


class Seen(NamedTuple):
    """A request that arrived whole."""

    method: str
    path: str
    key: str | None  # Idempotency-Key
    body: Any
    authorization: str | None = None


class Refused(Exception):
    """A problem document."""

    def __init__(self, status: int, detail: str, field: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.document = {"type": "about:blank", "title": "No", "status": status, "detail": detail}
        if field is not None:
            self.document["field"] = field


class Experiment:
    """Decides by turns; its ledger is the list of its events."""

    def __init__(self, names: list[Any]) -> None:
        self.names, self.paused = names, False
        self.events: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []
        self.rewards: dict[int, Any] = {}

    def note(self, kind: str, **fields: Any) -> None:
        number = len(self.events) + 1
        self.events.append({"number": number, "kind": kind, "time": 0.0} | fields)

    def decide(self, body: dict[str, Any]) -> tuple[int, Any]:
        if self.paused:
            raise Refused(409, "the experiment is paused; resume it first", "experiment")
        count, names = body.get("count", 1), body.get("arms", self.names)
        if "features" in body and "arms" not in body:
            names = list(range(len(body["features"])))
        if count > len(names) and body.get("distinct", True):
            raise Refused(422, f"is {count}, and there are {len(names)} arms; give less", "count")
        last = self.decisions[-1]["round"] if self.decisions else -1
        round_ = body.get("round", last + 1)
        found = []
        for turn in range(count):
            id_ = len(self.decisions)
            decision = {"decision": id_, "arm": names[(id_ + turn) % len(names)], "round": round_}
            decision |= {"mean": 0.5, "bonus": None, "uncertainty": 1}
            self.decisions.append(decision)
            self.note("decided", **decision)
            found.append(decision)
        return 201, {"decisions": found} if "count" in body else found[0]

    def reward(self, body: dict[str, Any]) -> tuple[int, Any]:
        told = body.get("rewards", [body])
        for one in told:  # all or nothing: first the checks
            id_ = one["decision"]
            if not 0 <= id_ < len(self.decisions):
                problem = never_made(id_, len(self.decisions))
                raise Refused(404, f"{problem}; tell what ask returned, or its id", "decision")
            made = self.decisions[id_]
            if any(one.get(field, made[field]) != made[field] for field in ("arm", "round")):
                raise Refused(
                    409, f"{id_} is arm {made['arm']}; tell what ask returned", "decision"
                )
            if self.rewards.get(id_, one["reward"]) != one["reward"]:
                raise Refused(409, f"{id_} has another reward; the first is kept", "reward")
        outcomes = []
        for one in told:
            id_, reward = one["decision"], one["reward"]
            outcomes.append("duplicate" if id_ in self.rewards else "learned")
            if reward is None:
                outcomes[-1] = "missing"
            elif id_ not in self.rewards:
                self.rewards[id_] = float(reward)
                self.note("rewarded", decision=id_, reward=float(reward))
        return 200, {"outcomes": outcomes} if "rewards" in body else {"outcome": outcomes[0]}

    def change(self, action: str, body: dict[str, Any]) -> tuple[int, Any]:
        if action == "arms":
            if body["arm"] in self.names:
                raise Refused(422, f"{body['arm']!r} is there already; give another", "arm")
            self.names.append(body["arm"])
        elif action == "arms/retire":
            self.names.remove(body["arm"])
        elif action in ("pause", "resume"):
            self.paused = action == "pause"
        elif action not in ("model", "refit"):
            raise Refused(404, f"there is no {action}; read the documentation")
        self.note(action, **body)
        if action == "refit":
            return 202, {"started": True}
        return 201 if action == "arms" else 200, {"version": len(self.events)}

    def state(self) -> dict[str, Any]:
        last = self.decisions[-1]["round"] if self.decisions else -1
        score = {"mean": 0.5, "bonus": None, "uncertainty": 1.0, "plays": 0}
        return {"round": last + 1, "arms": [{"arm": name} | score for name in self.names]}


class FakeService:
    """The service in threads of this process.

    ``script``: answers to give first, whatever is asked: (status, headers, content).
    ``gate``: while it is not set, requests wait after they were carried out.
    """

    def __init__(self, *ids: str, keys: dict[str, set[str]] | None = None) -> None:
        self.experiments = {id_: Experiment(["a", "b", "c"]) for id_ in ids}
        self.keys = keys
        self.seen: list[Seen] = []
        self.script: deque[tuple[int, dict[str, str], bytes]] = deque()
        self.gate = threading.Event()
        self.gate.set()
        self._answers: dict[str, tuple[str, Any, tuple[int, Any]]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> tuple[int, Any, bool]:
        """The status, the document, and whether it was given before."""
        with self._lock:
            self.seen.append(seen)
            if seen.key is None:
                return *self._carried_out(seen), False
            if seen.key in self._answers:
                path, body, given = self._answers[seen.key]
                if (path, body) != (seen.path, seen.body):
                    raise Refused(422, "was used before; take a new one", "Idempotency-Key")
                return *given, True
            try:
                given = self._carried_out(seen)
            except Refused as error:
                given = error.status, error.document
            self._answers[seen.key] = (seen.path, seen.body, given)
            return *given, False

    def _carried_out(self, seen: Seen) -> tuple[int, Any]:
        url = urllib.parse.urlsplit(seen.path)
        scope = {"decisions": "decide", "rewards": "reward"}.get(url.path.rsplit("/")[-1], "admin")
        self._check_key(seen.authorization, scope if seen.method == "POST" else "read")
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")]
        if parts[:3] != ["", "v1", "experiments"]:
            raise Refused(404, f"there is no {url.path}; read the documentation")
        if len(parts) == 3:
            if seen.method == "GET":
                return 200, {"experiments": [{"id": id_} for id_ in self.experiments]}
            id_ = seen.body["id"]
            if id_ in self.experiments:
                raise Refused(409, f"{id_!r} is there already; take another id", "id")
            system = seen.body.get("system") or {"names": list(seen.body.get("arms", ["x"]))}
            self.experiments[id_] = Experiment(list(system["names"]))
            return 201, {"id": id_}
        if parts[3] not in self.experiments:
            raise Refused(404, f"there is no experiment {parts[3]!r}; see /v1/experiments", "id")
        experiment, action = self.experiments[parts[3]], "/".join(parts[4:])
        if seen.method == "GET" and action == "events":
            query = urllib.parse.parse_qs(url.query)
            after, limit = int(query["after"][0]), int(query["limit"][0])
            return 200, {"events": experiment.events[after : after + limit]}
        if seen.method == "GET":
            return 200, PARQUET if action == "log.parquet" else experiment.state()
        if action == "decisions":
            return experiment.decide(seen.body)
        if action == "rewards":
            return experiment.reward(seen.body)
        return experiment.change(action, seen.body)

    def _check_key(self, authorization: str | None, scope: str) -> None:
        if self.keys is None:
            return
        scopes = self.keys.get((authorization or "").removeprefix("Bearer "))
        if scopes is None:
            raise Refused(401, f"{authorization} is no key; make one")
        if not scopes & {scope, "admin"}:
            raise Refused(403, f"the key lacks the scope {scope}")


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a connection that a client keeps open ends with the process
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: connections are cut on purpose."""


def _handler_of(service: FakeService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body in one piece

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            content = self.rfile.read(length)
            if len(content) < length:  # cut half way
                self.close_connection = True
                return
            body = json.loads(content) if content else None
            key, authorization = (self.headers[n] for n in ("Idempotency-Key", "Authorization"))
            seen = Seen(self.command, self.path, key, body, authorization)
            headers: dict[str, str] = {}
            kind = "application/json"
            if service.script:
                service.seen.append(seen)
                status, headers, answer = service.script.popleft()
            else:
                try:
                    status, document, replayed = service.answer(seen)
                    headers = {"Idempotent-Replayed": "true"} if replayed else {}
                except Refused as error:
                    status, document = error.status, error.document
                is_bytes = isinstance(document, bytes)
                answer = document if is_bytes else json.dumps(document).encode()
                kind = "application/octet-stream" if is_bytes else kind
            kind = "application/problem+json" if status >= 400 else kind
            service.gate.wait()
            self.send_response(status)
            sent = {"Content-Type": kind, "Content-Length": str(len(answer))} | headers
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            """Write no log."""

    return Handler
