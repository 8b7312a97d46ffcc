"""`driftbandit serve`: the decision service."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import typer

from driftbandit import errors
from driftbandit.cli import interrupt, options

EXAMPLES = """
**Examples**

    driftbandit serve --demo
    driftbandit serve --store sqlite:///decisions.db
    driftbandit serve --store postgresql://bandit@db/shop --host 0.0.0.0

**First decision**, while a server runs:

    curl http://127.0.0.1:8080/v1/experiments --json \\
      '{"id": "shop", "names": ["red", "blue"]}'
    curl http://127.0.0.1:8080/v1/experiments/shop/decisions --json '{}'
    curl http://127.0.0.1:8080/v1/experiments/shop/rewards --json \\
      '{"decision": 0, "reward": 1.5}'

With a model file from `driftbandit fit`, send it as "system" in place of the names.
"""
PANEL = "Limits and logs"


def _limit(default: int, description: str) -> Any:
    return typer.Option(default, metavar="N", help=description, rich_help_panel=PANEL)


def command(
    store: options.Store = "sqlite:///decisions.db",
    host: str = typer.Option(
        "127.0.0.1",
        metavar="ADDRESS",
        help="Address to listen at. One that other machines reach needs a key in the store.",
    ),
    port: int = typer.Option(8080, metavar="N", help="Port to listen at; 0 picks a free one."),
    demo: bool = typer.Option(
        False, "--demo", help="Show the service at work: simulated visitors, a temporary store."
    ),
    max_body: int = _limit(2**20, "Bytes of a request."),
    max_batch: int = _limit(1000, "Decisions or rewards in a request."),
    max_arms: int = _limit(10_000, "Arms of an experiment."),
    max_open: int = _limit(100_000, "Decisions of an experiment that wait for a reward."),
    max_rate: int = _limit(10_000, "Requests per second with one key."),
    log_requests: bool = typer.Option(
        False,
        "--log-requests",
        help="Log method, route, status and time of every request.",
        rich_help_panel=PANEL,
    ),
) -> None:
    """Run the decision service: agents behind an HTTP API, and a page that shows what they do.

    A client asks for a decision, plays its arm and tells the reward. Each is stored before it is
    acknowledged, so a crash loses nothing. A request with an Idempotency-Key may be repeated: it
    is carried out once. Open the page at / in a browser to watch the experiments.

    As long as no key was made, the server lets everybody in, and only listens to this machine.
    Make keys with `driftbandit keys create`. Several servers can share one PostgreSQL store.

    Logs go to standard error, one JSON object per line. Ctrl-C stops the server cleanly.
    """
    with errors.needing("serve"):
        from driftbandit.service.limits import Limits
        from driftbandit.service.serving import bound, log_as_json, serve
        from driftbandit.service.store import using
    errors.whole_number(port, "port", low=0, high=65535)
    limits = Limits(max_body, max_batch, max_arms, max_open, max_rate)
    visitors = None
    if demo:
        with errors.needing("--demo"):
            from driftbandit.service.demo import Visitors
        visitors = Visitors()

    def ready(url: str) -> None:
        print(f"driftbandit serves {url}", flush=True)
        if visitors is not None:
            print(f"open {url}#/{visitors.experiment} in a browser; Ctrl-C ends it", flush=True)
            visitors.start(url)

    log_as_json()
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(bound(host, port))  # before the store is touched
        if visitors is not None:
            folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            store = f"sqlite:///{Path(stack.enter_context(folder)) / 'demo.db'}"
            stack.callback(visitors.stop)
        opened = stack.enter_context(using(store))
        stack.enter_context(interrupt.released())
        serve(opened, host, listening, limits, log_requests=log_requests, on_ready=ready)
