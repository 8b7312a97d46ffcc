"""`driftbandit serve`: the decision service."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from driftbandit import errors
from driftbandit.cli import interrupt, options

EXAMPLES = """
**Examples**

    driftbandit serve --demo
    driftbandit serve --store sqlite:///decisions.db
    driftbandit serve --store postgresql://bandit@db.example/decisions --host 0.0.0.0

**First decision**, with a model file from `driftbandit fit`:

    curl -X POST http://127.0.0.1:8080/v1/experiments \\
         -H 'Content-Type: application/json' -d '{"id": "shop", "system": …}'
    curl -X POST http://127.0.0.1:8080/v1/experiments/shop/decisions \\
         -H 'Content-Type: application/json' -d '{}'
"""


def command(
    store: options.Store = "sqlite:///decisions.db",
    host: str = typer.Option(
        "127.0.0.1", help="Address to listen at. Others than loopback need a key in the store."
    ),
    port: int = typer.Option(8080, min=0, max=65535, help="Port; 0: any that is free."),
    demo: bool = typer.Option(
        False,
        "--demo",
        help="Serve an experiment with simulated visitors from a temporary store, to look at.",
    ),
    max_body: int = typer.Option(2**20, help="Most bytes of a request."),
    max_batch: int = typer.Option(1000, help="Most decisions or rewards in a request."),
    max_arms: int = typer.Option(10_000, help="Most arms of an experiment."),
    max_open: int = typer.Option(100_000, help="Most decisions inside a window."),
    max_rate: int = typer.Option(10_000, help="Most requests per second of a key."),
    log_requests: bool = typer.Option(False, "--log-requests", help="Log every request."),
) -> None:
    """Serve decisions over HTTP: durable, safe to repeat, watched in a browser.

    An experiment is an agent whose decisions and rewards are events in the store. Nothing is
    acknowledged before it is stored, so a crash loses nothing. The page at / shows what every
    experiment believes. Logs go to standard error, one JSON object per line.

    Without keys the server is open, and answers only this machine. Make keys with `driftbandit
    keys create`. Several servers may share a PostgreSQL store.
    """
    with errors.needing("serve"):
        from driftbandit.service.limits import Limits
        from driftbandit.service.serving import check_host, serve
        from driftbandit.service.store import Store
    limits = Limits(max_body, max_batch, max_arms, max_open, max_rate)

    def announce(url: str) -> None:
        print(f"driftbandit serves {url}", flush=True)

    with interrupt.released():
        if not demo:
            opened = Store(store)
            check_host(opened, host)
            serve(opened, host, port, limits, log_requests=log_requests, on_ready=announce)
            return
        from driftbandit.service.demo import Visitors

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            opened = Store(f"sqlite:///{Path(folder) / 'demo.db'}")
            visitors = Visitors()

            def ready(url: str) -> None:
                announce(url)
                print(f"open {url}#/{visitors.experiment} in a browser; Ctrl-C ends it", flush=True)
                visitors.start(url)

            try:
                serve(opened, host, port, limits, log_requests=log_requests, on_ready=ready)
            finally:
                visitors.stop()
