"""Speed, memory and start of `driftbandit serve`, with what limits them measured in the same run.

    python benchmarks/service.py                       # all; about twenty minutes
    python benchmarks/service.py --only open           # one measurement; the others' results stay
    python benchmarks/service.py --seconds 3 --events 20000 --json small.json       # small

One server process on 127.0.0.1, IDEA with d = k = 10, on SQLite and on a PostgreSQL server of its
own. Both wait for the disk before they answer. The clients run in one process on the same machine
and send every request with an Idempotency-Key.

reference   write and fdatasync of 4 KiB; an empty FastAPI endpoint under the same clients; ask and
            tell of a plain `Agent`
closed      clients that ask, wait for the answer, tell the reward, and so on
batches     the same, ten decisions in one request and their ten rewards in the next
late        one client whose rewards come so many decisions late
open        1000 decisions and 1000 rewards per second by a clock. Latency counts from the scheduled
            time, so a server that falls behind cannot hide it. A reward is due 10 ms after its
            decision was
million     memory while an experiment grows to a million events, and the time from the start of the
            process to its line on stdout and to its first decision

A processor's share is that of one core: 1.0 is all of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[0] = str(HERE.parent / "tests")  # beside this script, `service` would be this script

import driftbandit as db  # noqa: E402
from driftbandit.io.model_file import from_document  # noqa: E402
from service.connection import Connection, get, post  # noqa: E402
from service.load import settings  # noqa: E402
from service.postgres import Postgres, Unavailable, free_port, running  # noqa: E402
from service.servers import Server, environment  # noqa: E402

PARTS = ("reference", "closed", "batches", "late", "open", "million")
CLIENTS = (1, 4, 16, 64)
LATE = (0, 10, 100)
RATE = 1000  # decisions per second, and rewards per second, by the clock
DELAY = 0.01  # seconds from when a decision is due until its reward is
MOST = 256  # connections at a time
BATCH = 10
COUNTED = ("commits_total", "grouped_requests_total")  # of /metrics
FILL = 100  # decisions in one request that fills an experiment
EMPTY = """
import fastapi, uvicorn
app = fastapi.FastAPI()
@app.post("/empty")
async def empty() -> dict[str, int]:
    return {}
uvicorn.run(app, port=PORT, log_level="error", access_log=False)
"""


def document(name: str, window: int = 100) -> dict[str, Any]:
    return settings(name, size=10, window=window)


def share(process: int) -> float:
    """Seconds of processor time that a process and its children have used."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(place.name) == process:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == process:
                ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> float:
    """Memory of a process, MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def counters(server: Server) -> dict[str, float]:
    """The numbers of /metrics, summed over labels."""
    found: dict[str, float] = collections.defaultdict(float)
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            if not line.startswith("#") and "_bucket" not in line:
                name, _, value = line.rpartition(" ")
                found[name.partition("{")[0]] += float(value)
    return found


class Watch:
    """What a server and its database did in the meantime."""

    def __init__(self, server: Server, postgres: Postgres | None) -> None:
        self.server = server
        self.disk = synced(server.log.parent, 0.5)  # shared disks change their speed
        self.processes = {"server": server.pid}
        if postgres is not None and postgres.process is not None:
            self.processes["PostgreSQL"] = postgres.process.pid
        self.before = self.now()

    def now(self) -> dict[str, float]:
        """Counters and clocks."""
        used = {f"{name} CPU": share(pid) for name, pid in self.processes.items()}
        numbers = counters(self.server)
        commits = {name: numbers.get(f"driftbandit_{name}") for name in COUNTED}
        clocks = {"clients CPU": time.process_time(), "seconds": time.perf_counter()}
        return used | clocks | {name: value for name, value in commits.items() if value is not None}

    def figures(self) -> dict[str, float]:
        """What changed since the beginning, per second."""
        after = self.now()
        used = {name: after[name] - value for name, value in self.before.items() if name in after}
        seconds = used.pop("seconds")
        found = {name: value / seconds for name, value in used.items() if name.endswith("CPU")}
        if used.get(COUNTED[0]):
            found["commits/s"] = used[COUNTED[0]] / seconds
            found["requests per commit"] = used[COUNTED[1]] / used[COUNTED[0]]
        return found | {"fdatasync/s before": self.disk}


def spread(name: str, seconds: list[float]) -> dict[str, float]:
    median, high = np.percentile(seconds, [50, 99]) * 1e3
    return {f"{name} p50 ms": float(median), f"{name} p99 ms": float(high)}


class Caller:
    """One connection that asks and tells; it notes how long its requests took."""

    def __init__(self, url: str, experiment: str, took: dict[str, list[float]]) -> None:
        self.connection = Connection(url, timeout=60)
        self.path = f"/v1/experiments/{experiment}/"
        self.took = took

    async def call(self, what: str, body: Any, since: float | None = None) -> Any:
        """The answer to a request; its latency counts from ``since``."""
        begin = time.perf_counter() if since is None else since
        key, data = os.urandom(12).hex(), json.dumps(body).encode()
        answer = await self.connection.request("POST", self.path + what, data, key)
        if answer.status not in (200, 201):
            raise RuntimeError(f"{what}: {answer.status} {answer.body[:300]!r}")
        self.took[what].append(time.perf_counter() - begin)
        return answer.document


async def pairs(caller: Caller, until: float, late: int = 0) -> None:
    """Ask and tell, so many decisions late."""
    waiting: collections.deque[int] = collections.deque()
    while time.perf_counter() < until:
        made = await caller.call("decisions", {})
        waiting.append(made["decision"])
        if len(waiting) > late:
            told = {"decision": waiting.popleft(), "reward": float(np.cos(made["decision"]))}
            await caller.call("rewards", told)


async def batches(caller: Caller, until: float, count: int = BATCH) -> None:
    """Ask and tell many at a time."""
    asked = {"count": count} if count <= BATCH else {"count": count, "distinct": False}
    while time.perf_counter() < until:
        made = (await caller.call("decisions", asked))["decisions"]
        told = [{"decision": one["decision"], "reward": np.cos(one["decision"])} for one in made]
        await caller.call("rewards", {"rewards": told})


def loop_of(
    url: str, name: str, clients: int, seconds: float, play: Callable[..., Awaitable[None]]
) -> tuple[dict[str, list[float]], float]:
    """Let so many clients play; how long their requests took, and all of it."""
    took: dict[str, list[float]] = collections.defaultdict(list)

    async def run() -> None:
        callers = [Caller(url, name, took) for _ in range(clients)]
        until = time.perf_counter() + seconds
        await asyncio.gather(*(play(caller, until) for caller in callers))
        for caller in callers:
            await caller.connection.close()

    begin = time.perf_counter()
    asyncio.run(run())
    return took, time.perf_counter() - begin


def measured(
    server: Server,
    postgres: Postgres | None,
    clients: int,
    seconds: float,
    play: Any,
    each: int = 1,
) -> dict[str, float]:
    """The figures of a closed loop on a new experiment."""
    made = document(f"bench-{os.urandom(4).hex()}")
    post(f"{server.url}/v1/experiments", made)
    loop_of(server.url, made["id"], clients, min(1.0, seconds / 5), play)  # warm up
    watch = Watch(server, postgres)
    took, passed = loop_of(server.url, made["id"], clients, seconds, play)
    figures = {
        "decisions/s": each * len(took["decisions"]) / passed,
        "rewards/s": each * len(took["rewards"]) / passed,
    }
    figures |= spread("decision", took["decisions"]) | spread("reward", took["rewards"])
    return figures | watch.figures()


def by_the_clock(server: Server, postgres: Postgres | None, seconds: float) -> dict[str, float]:
    """The figures of arrivals at a fixed rate."""
    made = document(f"bench-{os.urandom(4).hex()}")
    post(f"{server.url}/v1/experiments", made)
    loop_of(server.url, made["id"], 4, 1.0, pairs)  # warm up
    took: dict[str, list[float]] = collections.defaultdict(list)
    behind: list[float] = []  # of the clock itself
    free: list[Caller] = []
    room = asyncio.Semaphore(MOST)
    undecided: collections.deque[asyncio.Future[int]] = collections.deque()

    async def one(what: str, due: float, result: asyncio.Future[int]) -> None:
        body: dict[str, Any] = {}
        if what == "rewards":
            id_ = await result
            body = {"decision": id_, "reward": float(np.cos(id_))}
        async with room:
            caller = free.pop() if free else Caller(server.url, made["id"], took)
            answer = await caller.call(what, body, due)
            free.append(caller)
        if what == "decisions":
            result.set_result(answer["decision"])

    async def clock() -> None:
        begin, number = time.perf_counter() + 0.1, round(RATE * seconds)
        dues = [(begin + i / RATE, "decisions") for i in range(number)]
        dues += [(due + DELAY, "rewards") for due, _ in dues]
        async with asyncio.TaskGroup() as group:
            for due, what in sorted(dues):
                wait = due - time.perf_counter()
                if wait > 0:
                    await asyncio.sleep(wait)
                behind.append(max(0.0, time.perf_counter() - due))
                if what == "decisions":
                    undecided.append(asyncio.get_running_loop().create_future())
                result = undecided[-1] if what == "decisions" else undecided.popleft()
                group.create_task(one(what, due, result))
        for caller in free:
            await caller.connection.close()

    watch, begin = Watch(server, postgres), time.perf_counter()
    asyncio.run(clock())
    passed = time.perf_counter() - begin - 0.1
    figures = {"seconds": passed, "connections": len(free)}
    figures |= {f"{what}/s": len(took[what]) / passed for what in ("decisions", "rewards")}
    figures |= spread("decision", took["decisions"]) | spread("reward", took["rewards"])
    return figures | {"clock behind p50 ms": 1e3 * float(np.median(behind))} | watch.figures()


def million(server: Server, postgres: Postgres | None, events: int) -> dict[str, Any]:
    """Fill an experiment, then start the server again: after its end, and after a crash."""
    made, held = document("million", window=10), {}
    filled = functools.partial(batches, count=FILL)
    post(f"{server.url}/v1/experiments", made)
    held["at the start"] = memory(server.pid)
    begin, done = time.perf_counter(), 0
    for part in (0.1, 0.5, 1.0):
        while done < part * events:
            took, _ = loop_of(server.url, "million", 2, 1.0, filled)
            done += FILL * sum(map(len, took.values()))
            if time.perf_counter() - begin > 1800:
                raise RuntimeError(f"{done} events in half an hour")
        held[f"{part:.0%}"] = memory(server.pid)
    figures: dict[str, Any] = {"events": done, "events/s": done / (time.perf_counter() - begin)}
    figures["memory MiB"] = held
    for how in ("stopped", "killed"):
        server.stop(120) if how == "stopped" else server.kill()
        begin = time.perf_counter()
        server.start(600)
        figures[f"{how}: seconds until it serves"] = time.perf_counter() - begin
        asyncio.run(_first_decision(server.url))
        figures[f"{how}: seconds until the first decision"] = time.perf_counter() - begin
        figures[f"{how}: memory MiB"] = memory(server.pid)
        loop_of(server.url, "million", 2, 0.5, filled)  # a crash leaves work behind
    shown = get(f"{server.url}/v1/experiments/million/state")
    return figures | {"decisions": shown["decisions"], "rewards": shown["rewards"]}


async def _first_decision(url: str) -> None:
    caller = Caller(url, "million", collections.defaultdict(list))
    await caller.call("decisions", {})
    await caller.connection.close()


def synced(folder: Path, seconds: float) -> float:
    """How often a second the disk confirms 4 KiB at the end of a file."""
    block, number = os.urandom(4096), 0
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            file.write(block)
            os.fdatasync(file.fileno())
            number += 1
        return number / (time.perf_counter() - begin)


def reference(folder: Path, seconds: float) -> dict[str, Any]:
    """What a disk, a web framework and an agent can do by themselves."""
    figures: dict[str, Any] = {}
    figures["fdatasync/s"] = synced(folder, min(seconds, 5))
    for clients in CLIENTS:
        figures[f"empty endpoint/s, {clients} clients"] = _empty(clients, min(seconds, 5))
    agent = db.Agent(from_document(document("plain")["system"]))
    begin, number = time.perf_counter(), 0
    while time.perf_counter() - begin < min(seconds, 5):
        agent.tell(agent.ask(), float(np.cos(number)))
        number += 1
    figures["plain ask and tell/s"] = number / (time.perf_counter() - begin)
    return figures


def _empty(clients: int, seconds: float) -> float:
    port = free_port()
    code = EMPTY.replace("PORT", str(port))
    process = subprocess.Popen([sys.executable, "-c", code], env=environment())
    number = 0

    async def play(caller: Caller, until: float) -> None:
        nonlocal number
        while time.perf_counter() < until:
            answer = await caller.connection.request("POST", "/empty", b"{}")
            assert answer.status == 200
            number += 1

    try:
        for _ in range(100):
            time.sleep(0.1)
            with contextlib.suppress(OSError):
                post(f"http://127.0.0.1:{port}/empty", {})
                break
        _, took = loop_of(f"http://127.0.0.1:{port}", "", clients, seconds, play)
        return number / took
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def served(name: str, folder: Path) -> Iterator[tuple[Server, Postgres | None]]:
    """A server on a new store."""
    place = Path(tempfile.mkdtemp(dir=folder))
    with contextlib.ExitStack() as stack:
        if name == "SQLite":
            store, postgres = f"sqlite:///{place}/decisions.db", None
        else:
            postgres = stack.enter_context(running())
            store = postgres.database()
        yield stack.enter_context(Server(store, place)), postgres


def on_store(
    name: str, folder: Path, parts: list[str], options: argparse.Namespace
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All measurements on one kind of store, one after the other."""
    each = options.seconds / 3
    with served(name, folder) as given:
        if "closed" in parts:
            for clients in CLIENTS:
                yield f"closed, {clients} clients", measured(*given, clients, each, pairs)
        if "batches" in parts:
            for clients in (1, 8):
                found = measured(*given, clients, each, batches, BATCH)
                yield f"batches of {BATCH}, {clients} clients", found
        if "late" in parts:
            for late in LATE:
                play = functools.partial(pairs, late=late)
                yield f"{late} decisions late, 1 client", measured(*given, 1, each, play)
        if "open" in parts:
            yield "open", by_the_clock(*given, options.seconds)
    if "million" in parts:
        with served(name, folder) as given:
            yield "million", million(*given, options.events)


def show(name: str, value: Any, depth: int = 0) -> None:
    """Print figures as an indented list; groups of plain numbers take one line."""
    if not isinstance(value, dict):
        print("  " * depth + f"{name}: {value:.6g}")
    elif any(isinstance(inner, dict) for inner in value.values()):
        print("  " * depth + f"{name}:")
        for inner, figure in value.items():
            show(inner, figure, depth + 1)
    else:
        figures = ", ".join(f"{inner} {figure:.4g}" for inner, figure in value.items())
        print("  " * depth + f"{name}: {figures}")


def main() -> None:
    """Run the measurements, print and store them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="measure nothing else")
    parser.add_argument("--store", choices=["SQLite", "PostgreSQL"], action="append")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the open loop; closed: 1/3")
    parser.add_argument("--events", type=int, default=10**6, help="of the large experiment")
    parser.add_argument("--folder", type=Path, help="on the disk to measure")
    parser.add_argument("--json", type=Path, default=HERE / "results/service.json")
    options = parser.parse_args()
    parts = options.only or list(PARTS)
    figures = json.loads(options.json.read_text()) if options.json.exists() else {}
    figures |= {"machine": platform.machine(), "cores": os.cpu_count()}

    def keep(name: str, found: dict[str, Any]) -> None:
        show(name, found)
        figures[name] = found
        options.json.write_text(json.dumps(figures, indent=2) + "\n")

    print(f"driftbandit {db.__version__}")
    tempfile.tempdir = options.folder and str(options.folder.resolve())
    with tempfile.TemporaryDirectory() as folder:
        if "reference" in parts:
            keep("reference", reference(Path(folder), options.seconds))
        for store in options.store or ["SQLite", "PostgreSQL"]:
            try:
                for name, found in on_store(store, Path(folder), parts, options):
                    keep(f"{store}: {name}", found)
            except Unavailable as error:
                print(f"{store}: left out ({error})")


if __name__ == "__main__":
    main()
