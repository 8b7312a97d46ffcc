"""A stand-in for the service, for tests of its page: simulated experiments over HTTP."""

import json
import math
import random
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import driftbandit

PAGE = Path(driftbandit.__file__).parent / "service" / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FOLDER = "behind/a/proxy"  # the same is served here, too
HOSTILE = "<img src=x onerror=alert(1)>"
ARMS = ("Blue headline", "Red headline", "Short text", "Café", "No picture", HOSTILE)
DRIFT, SPEED, NOISE = 0.97, 0.18, 0.5


class Experiment:
    """An experiment whose arms drift independently, and its log."""

    def __init__(self, name="demo", arms=ARMS, rounds_are="rounds", seed=0, holds=True):
        self.name, self.arms, self.rounds_are, self.holds = name, list(arms), rounds_are, holds
        self.random = random.Random(seed)
        variance = SPEED**2 / (1 - DRIFT**2)
        self.levels = [self.random.gauss(0, math.sqrt(variance)) for _ in self.arms]
        self.means, self.variances = [0.0] * len(self.arms), [variance] * len(self.arms)
        self.plays, self.sums, self.counts = ([0] * len(self.arms) for _ in range(3))
        self.round, self.rewards, self.paused, self.last = -1, 0, None, None
        self.open, self.events, self.samples, self.surprises = [], [], [], []
        self.pace = rounds_are["seconds"] if isinstance(rounds_are, dict) else 1.0
        self.time = self.created = time.time()
        self.models = []
        self.log("created", settings={})
        self.add_model("created")

    def log(self, kind, **fields):
        event = {"number": len(self.events) + 1, "kind": kind, "time": self.time}
        self.events.append({**event, **fields})

    def add_model(self, kind, **fields):
        known = {"n_states": len(self.arms), "reward_std": NOISE, "time": self.time, "kind": kind}
        self.models.append({"number": len(self.models) + 1, **known, **fields})

    def start_ago(self, rounds):
        """Let the experiment have begun so many rounds ago."""
        self.time -= rounds * self.pace
        self.created = self.models[0]["time"] = self.events[0]["time"] = self.time
        return self

    def play(self, rounds=1):
        for _ in range(rounds):
            self._play()
        return self

    def _play(self):
        self.time += self.pace
        self.round += 1
        gauss, rank = self.random.gauss, range(len(self.arms))
        self.levels = [DRIFT * z + gauss(0, SPEED) for z in self.levels]
        self.means = [DRIFT * mean for mean in self.means]
        self.variances = [DRIFT**2 * v + SPEED**2 for v in self.variances]
        scores = self.scores()
        arm = max(rank, key=lambda i: scores[i]["mean"] + scores[i]["bonus"])
        self.plays[arm] += 1
        decision = {"decision": self.round, "arm": self.arms[arm], "round": self.round}
        self.last = {**decision, "time": self.time, "scores": scores}
        self.log("decided", **{**scores[arm], **decision})
        spread = NOISE if self.holds else 2 * NOISE
        self.open.append((self.round, arm, self.levels[arm] + gauss(0, spread)))
        while self.open and (len(self.open) > 6 or self.random.random() < 0.5):
            self._learn(*self.open.pop(self.random.randrange(len(self.open))))
        if self.round % 5 == 0:
            self.samples.append(self.sample())

    def _learn(self, decision, arm, reward):
        predicted = self.variances[arm] + NOISE**2
        gain = self.variances[arm] / predicted
        self.surprises.append((reward - self.means[arm]) / math.sqrt(predicted))
        self.means[arm] += gain * (reward - self.means[arm])
        self.variances[arm] *= 1 - gain
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.rewards += 1
        self.log("rewarded", decision=decision, reward=reward, arm=self.arms[arm], round=decision)
        if self.rewards in (100, 200, 400, 800):
            self.log("refitted", system={}, start=0, rewards=self.rewards, seconds=1.25)
            self.add_model("refitted", rewards=self.rewards)

    def scores(self):
        spreads = [math.sqrt(variance) for variance in self.variances]
        return [
            {"arm": arm, "mean": mean, "bonus": 0.8 * spread, "uncertainty": spread}
            for arm, mean, spread in zip(self.arms, self.means, spreads, strict=True)
        ]

    def sample(self):
        known = {"number": len(self.samples) + 1, "round": self.round, "time": self.time}
        spreads = [math.sqrt(variance) for variance in self.variances]
        return {**known, "arms": self.arms, "mean": list(self.means), "uncertainty": spreads}

    def arm_rows(self):
        total = max(sum(self.plays), 1)
        return [
            {
                **score,
                "plays": plays,
                "share": plays / total,
                "rewards": rewards,
                "mean_reward": earned / rewards if rewards else None,
            }
            for score, plays, earned, rewards in zip(
                self.scores(), self.plays, self.sums, self.counts, strict=True
            )
        ]

    def calibration(self):
        if len(self.surprises) < 30:
            return None
        square = sum(u * u for u in self.surprises) / len(self.surprises)
        half = 2.6 * math.sqrt(2 / len(self.surprises))
        low, high = 1 - half, 1 + half
        holds = low <= square <= high
        wrong = f"Surprises are larger than the model says: their mean square is {square:.2f}."
        band = {"mean_square": square, "low": low, "high": high}
        summary = "The model holds." if holds else wrong
        surprises = self.surprises[-500:]
        return {
            "holds": holds,
            "rewards": self.rewards,
            **band,
            "summary": summary,
            "advice": None if holds else "Wait for the next refit.",
            "surprises": surprises,
        }

    def document(self):
        return {
            "id": self.name,
            "created": self.created,
            "policy": "idea",
            "window": 100,
            "time": self.rounds_are,
            "n_arms": len(self.arms),
            "n_states": len(self.arms),
            "round": max(self.round, 0),
            "paused": self.paused is not None,
            "decisions": self.round + 1,
            "rewards": self.rewards,
            "open": len(self.open),
        }

    def state(self):
        return {
            **self.document(),
            "version": len(self.events),
            "time": self.time,
            "policy_title": "IDEA",
            "paused_reason": self.paused,
            "rounds_are": self.rounds_are,
            "reward_std": NOISE,
            "arms": self.arm_rows(),
            "retired": [],
            "calibration": self.calibration(),
            "models": self.models[-20:],
            "refit": {"in_progress": False, "next_after": 1600, "failure": None},
            "last": self.last,
        }


class Service:
    """The experiments that the server shows, and its faults."""

    def __init__(self, *experiments, key=None):
        self.experiments = {one.name: one for one in experiments}
        self.key, self.online = key, True
        self.changed = threading.Condition()

    @contextmanager
    def change(self, name="demo"):
        """Yield an experiment to change; open pages are told."""
        with self.changed:
            yield self.experiments[name]
            self.changed.notify_all()

    def set_online(self, online):
        """Cut every connection and refuse new ones, or serve again."""
        with self.changed:
            self.online = online
            self.changed.notify_all()


@contextmanager
def serving(service):
    """Serve on a free port of this machine; yield the address."""
    handler = type("Bound", (Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        service.set_online(False)
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers like the service, for one `Service`."""

    service: Service

    def log_message(self, *_):
        pass

    def do_GET(self):
        address = urlsplit(self.path)
        path = address.path.removeprefix(f"/{FOLDER}").strip("/")
        parts = [unquote(part) for part in path.split("/")]
        if not self.service.online:
            self.close_connection = True
        elif parts[0] != "v1":
            self.give_file(parts)
        elif self.service.key and self.headers["Authorization"] != f"Bearer {self.service.key}":
            self.give({"title": "Unauthorized", "detail": "key: missing; send one"}, 401)
        elif len(parts) == 2:
            found = [one.document() for one in self.service.experiments.values()]
            self.give({"experiments": found})
        elif parts[2] not in self.service.experiments:
            self.give({"title": "Not found", "detail": f"no experiment {parts[2]!r}"}, 404)
        else:
            self.give_part(self.service.experiments[parts[2]], parts[3:], parse_qs(address.query))

    def give_file(self, parts):
        file = PAGE / "/".join(parts[1:] or ["index.html"])
        if parts[0] not in ("", "page") or not file.is_file():
            return self.give({"title": "Not found"}, 404)
        self.start(200, TYPES[file.suffix])
        return self.wfile.write(file.read_bytes())

    def give_part(self, experiment, part, query):
        number = {name: int(values[0]) for name, values in query.items()}
        with self.service.changed:
            samples, events = list(experiment.samples), list(experiment.events)
        if part == ["samples"]:
            return self.give({"samples": samples[-number["limit"] :]})
        if part == ["events"]:
            first = number["after"]
            return self.give({"events": events[first : first + number["limit"]]})
        return self.give_live(experiment)

    def give_live(self, experiment):
        self.start(200, "text/event-stream")
        told = max(len(experiment.events) - 200, 0)
        while self.service.online:
            with self.service.changed:
                state, news = experiment.state(), experiment.events[told:][-200:]
                told = len(experiment.events)
            for name, document in (("state", state), ("events", {"events": news})):
                text = json.dumps(document, ensure_ascii=False)
                self.send(f"event: {name}\ndata: {text}\n\n: ping\r\n\r\n")
            with self.service.changed:
                while self.service.online and len(experiment.events) == told:
                    self.service.changed.wait()

    def send(self, text):
        """Send in two pieces; the first ends inside of a letter, where there is one to split."""
        coded = text.encode()
        place = next((i for i, byte in enumerate(coded) if byte > 0x7F), len(coded) // 2) + 1
        for piece in (coded[:place], coded[place:]):
            self.wfile.write(piece)
            self.wfile.flush()

    def give(self, document, status=200):
        self.start(status, "application/json" if status == 200 else "application/problem+json")
        self.wfile.write(json.dumps(document).encode())

    def start(self, status, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
