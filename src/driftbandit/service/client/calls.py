"""Every call of the service as `Steps`: what to send, and what the answer means.

Nothing here sends or waits, so that both clients share all of it.
"""

from __future__ import annotations

import json
import re
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit import errors
from driftbandit.agent.choosing import Decision, Score
from driftbandit.agent.history import Told
from driftbandit.service.client import payloads, refusals
from driftbandit.service.client.retries import Damaged, Patience, Reply, Request, Steps, exchange
from driftbandit.system import Name

PAGE = 1000  # events fetched at a time
MAGIC = b"PAR1"  # how a Parquet file begins and ends
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
PATH = re.compile(r"(?P<root>.*?)(/v1(/experiments(/(?P<experiment>[^/]+))?)?)?/*")


class Calls:
    """The calls to one experiment, and those to its server.

    Args:
        url, key, experiment, timeout, patience: as for `Client`.
    """

    def __init__(
        self, url: Any, key: Any, experiment: Any, timeout: float, patience: float
    ) -> None:
        self.root, in_url = split_url(url)
        self.experiment = in_url if experiment is None else _text(experiment, "experiment")
        """None: the only one of the server, which is not known yet."""
        if in_url not in (None, self.experiment):
            problem = f"is {payloads.shown(experiment)}, and the url names {in_url!r}"
            raise errors.InvalidInput("experiment", problem, "leave it out")
        self.key = None if key is None else _text(key, "key")
        if self.key is not None and not (self.key.isascii() and self.key.isprintable()):
            problem, remedy = "holds strange characters", "give what `driftbandit keys` printed"
            raise errors.InvalidInput("key", problem, remedy)  # without showing it
        self.timeout = errors.number(timeout, "timeout", low=0, strict=True)
        self.patience = Patience(errors.number(patience, "patience", low=0))

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, so that no proxy of the environment is between."""
        return urllib.parse.urlsplit(self.root).hostname in ("127.0.0.1", "localhost", "::1")

    def __repr__(self) -> str:
        experiment = "" if self.experiment is None else f", experiment={self.experiment!r}"
        return f"({self.root!r}{', key=…' if self.key else ''}{experiment})"

    # Decisions and rewards.

    def ask(self, arms: Any, round: int | None, context: Any, key: str | None) -> Steps[Decision]:
        """One decision."""
        body = payloads.question(arms, round, context)
        return payloads.decision_of((yield from self._post("decisions", body, key)))

    def ask_many(
        self,
        count: int,
        arms: Any,
        round: int | None,
        distinct: bool,
        context: Any,
        key: str | None,
    ) -> Steps[list[Decision]]:
        """Several decisions in one round."""
        body = payloads.question(arms, round, context)
        body["count"] = errors.whole_number(count, "count", low=1)
        body["distinct"] = errors.boolean(distinct, "distinct")
        document = yield from self._post("decisions", body, key)
        return [payloads.decision_of(one) for one in document["decisions"]]

    def tell(self, decision: Decision | int, reward: Any, key: str | None) -> Steps[Told]:
        """The reward of a decision."""
        body = payloads.told(decision, reward)
        return (yield from self._post("rewards", body, key))["outcome"]

    def tell_many(self, rewards: Iterable[Any], key: str | None) -> Steps[list[Told]]:
        """The rewards of several decisions."""
        body = {"rewards": [payloads.told_pair(pair) for pair in rewards]}
        if not body["rewards"]:
            return []
        return (yield from self._post("rewards", body, key))["outcomes"]

    # Changes of the experiment.

    def add_arm(self, name: Any, features: Any, key: str | None) -> Steps[None]:
        """One more arm."""
        body: dict[str, Any] = {"arm": payloads.name_of(name, "name")}
        if features is not None:
            body["features"] = errors.matrix(features, "features", shape=(None,)).tolist()
        yield from self._post("arms", body, key)

    def remove_arm(self, name: Any, key: str | None) -> Steps[None]:
        """One arm less."""
        yield from self._post("arms/retire", {"arm": payloads.name_of(name, "name")}, key)

    def replace_model(self, system: Any, key: str | None) -> Steps[None]:
        """Another model."""
        yield from self._post("model", {"system": payloads.system_of(system, "model")}, key)

    def refit(self, key: str | None) -> Steps[None]:
        """Begin to learn the model."""
        yield from self._post("refit", {}, key)

    def pause(self, reason: str | None, key: str | None) -> Steps[None]:
        """No more decisions."""
        body = {} if reason is None else {"reason": _text(reason, "reason")}
        yield from self._post("pause", body, key)

    def resume(self, key: str | None) -> Steps[None]:
        """Decisions again."""
        yield from self._post("resume", {}, key)

    # What there is to read.

    def state(self) -> Steps[dict[str, Any]]:
        """The state document."""
        return (yield from self._get("state"))

    def scores(self) -> Steps[list[Score]]:
        """The score of every arm."""
        state = yield from self.state()
        return [payloads.score_of(arm) for arm in state["arms"]]

    def names(self) -> Steps[tuple[Name, ...]]:
        """The names of the arms."""
        state = yield from self.state()
        return tuple(arm["arm"] for arm in state["arms"])

    def round(self) -> Steps[int]:
        """The round of the next decision."""
        state = yield from self.state()
        return int(state["round"])

    def events(self, after: int) -> Steps[list[dict[str, Any]]]:
        """The first `PAGE` events after a number."""
        after = errors.whole_number(after, "after", low=0)
        page = yield from self._get(f"events?after={after}&limit={PAGE}")
        return list(page["events"])

    def log(self) -> Steps[bytes]:
        """The log as the content of a Parquet file."""

        def read(reply: Reply) -> bytes:
            refusals.check(reply, self.key)
            if not (reply.content.startswith(MAGIC) and reply.content.endswith(MAGIC)):
                raise Damaged(f"its log of {len(reply.content)} bytes is not whole")
            return reply.content

        url = yield from self._experiment_url()
        return (yield from exchange(self._getting(f"{url}/log.parquet"), self.patience, read))

    # The server.

    def experiments(self) -> Steps[list[str]]:
        """The ids of all experiments."""
        document = yield from self._document_for(self._getting(self._url()))
        return [one["id"] for one in document["experiments"]]

    def create(
        self,
        id: str,
        system: Any,
        policy: str | None,
        exist_ok: bool,
        settings: Mapping[str, Any],
        key: str | None,
    ) -> Steps[str]:
        """A new experiment, or one with the same settings; its id."""
        body: dict[str, Any] = {"id": _text(id, "id")}
        if policy is not None:
            body["policy"] = _text(policy, "policy")
        body |= payloads.settings_of(settings)
        if errors.boolean(exist_ok, "exist_ok"):
            body["exist_ok"] = True
        if system is not None:
            body["system"] = payloads.system_of(system)
        document = yield from self._document_for(self._posting(self._url(), body, key))
        return str(document["id"])

    # How calls are sent and answers are read.

    def _post(self, path: str, body: dict[str, Any], key: str | None) -> Steps[dict[str, Any]]:
        url = yield from self._experiment_url()
        return (yield from self._document_for(self._posting(f"{url}/{path}", body, key)))

    def _get(self, path: str) -> Steps[dict[str, Any]]:
        url = yield from self._experiment_url()
        return (yield from self._document_for(self._getting(f"{url}/{path}")))

    def _document_for(self, request: Request) -> Steps[dict[str, Any]]:
        return (yield from exchange(request, self.patience, self._document))

    def _getting(self, url: str) -> Request:
        return Request("GET", url, self._headers(), None, self.timeout)

    def _posting(self, url: str, body: Mapping[str, Any], key: str | None) -> Request:
        """A request with a key of its own, under which the service carries it out once."""
        if key is None:
            key = uuid.uuid4().hex
        if not (isinstance(key, str) and IDEMPOTENCY_KEY.fullmatch(key)):
            remedy = "give a text of 1 to 255 letters, digits and signs of ASCII, without spaces"
            raise errors.InvalidInput("idempotency_key", f"is {payloads.shown(key)}", remedy)
        headers = self._headers() | {"Content-Type": "application/json", "Idempotency-Key": key}
        content = json.dumps(body, allow_nan=False).encode()
        return Request("POST", url, headers, content, self.timeout)

    def _headers(self) -> dict[str, str]:
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def _document(self, reply: Reply) -> dict[str, Any]:
        """The JSON object of an answer."""
        refusals.check(reply, self.key)
        kind = reply.headers.get("content-type", "").partition(";")[0].strip()
        document = payloads.json_of(reply.content) if kind == "application/json" else None
        if not isinstance(document, dict):
            problem = f"{self.root} answers with {payloads.shown(kind)}, as no such service does"
            raise errors.InvalidInput("url", problem, "give the url that `driftbandit serve` shows")
        return document

    def _url(self) -> str:
        return f"{self.root}/v1/experiments"

    def _experiment_url(self) -> Steps[str]:
        """The address of the experiment; if none was named, of the server's only one."""
        if self.experiment is None:
            ids = yield from self.experiments()
            if len(ids) != 1:
                more = ", …" if len(ids) > 20 else ""
                listed = f"the server has {', '.join(map(repr, ids[:20]))}{more}"
                problem = f"is missing, and {listed if ids else 'the server has none'}"
                remedy = "name one with experiment=…" if ids else "make one with create"
                raise errors.InvalidInput("experiment", problem, remedy)
            (self.experiment,) = ids
        return f"{self._url()}/{urllib.parse.quote(self.experiment, safe='')}"


def split_url(url: Any) -> tuple[str, str | None]:
    """The server's part of a url, and the id of the experiment if the url names one.

    Example:
        >>> split_url("https://bandits.example/shop/v1/experiments/page%201")
        ('https://bandits.example/shop', 'page 1')
    """
    remedy = "give http://HOST:PORT, or that with /v1/experiments/ID"
    try:
        parts = urllib.parse.urlsplit(_text(url, "url").strip())
        _ = parts.port  # raises an error if it is no number
    except ValueError as error:
        if isinstance(error, errors.InvalidInput):
            raise
        raise errors.InvalidInput("url", f"is {payloads.shown(url)}", remedy) from None
    if "@" in parts.netloc:  # not shown: it may hold a password
        raise errors.InvalidInput("url", "holds a user's name", "give the key as key=…")
    found = PATH.fullmatch(parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        found = None
    if found is None or "/v1/experiments/" in found["root"]:  # there is more behind the id
        raise errors.InvalidInput("url", f"is {payloads.shown(url)}", remedy)
    experiment = found["experiment"]
    root = f"{parts.scheme}://{parts.netloc}{found['root']}"
    return root, None if experiment is None else urllib.parse.unquote(experiment)


def _text(value: Any, argument: str) -> str:
    if not isinstance(value, str) or not value.strip():
        shown = "is empty" if isinstance(value, str) else f"has type {type(value).__name__}"
        raise errors.InvalidInput(argument, shown, "give a text")
    return value
