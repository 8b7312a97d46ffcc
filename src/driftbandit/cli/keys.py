"""`driftbandit keys`: who may use the decision service."""

from __future__ import annotations

import json
import time

import typer
from rich.console import Console
from rich.table import Table

from driftbandit import errors
from driftbandit.cli import options

EXAMPLES = """
**Examples**

    driftbandit keys create --scope decide --scope reward --experiment shop --name "web shop"
    driftbandit keys list
    driftbandit keys revoke 5c1f0a9b2d3e
"""

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, list and revoke the keys of the decision service.\n\n"
    "As long as no key was ever made, a server is open to its own machine and to no other. "
    "A server that is running notices new and revoked keys within a second.",
)


@group.command("create")
def create(
    scope: list[str] = typer.Option(
        ...,
        help="What the key may do: decide, reward, read or admin (everything). Repeatable.",
    ),
    store: options.Store = "sqlite:///decisions.db",
    experiment: str | None = typer.Option(None, help="The only experiment that the key opens."),
    name: str = typer.Option("", help="A note for you: who has the key."),
) -> None:
    """Make a key and print it. The store keeps only its hash, so it cannot be shown again."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import Store
    print(keys.create(Store(store), scope, experiment, name))


@group.command("list")
def list_(
    store: options.Store = "sqlite:///decisions.db",
    as_json: options.Json = False,
) -> None:
    """Show all keys, without their secrets."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import Store
    found = keys.listed(Store(store))
    if as_json:
        rows = [{k: v for k, v in vars(key).items() if k != "hash"} for key in found]
        print(json.dumps({"keys": rows}))
        return
    table = Table("id", "name", "scopes", "experiment", "created", "state")
    for key in found:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(key.created))
        state = "in use" if key.revoked is None else "revoked"
        scopes, only = " ".join(key.scopes), key.experiment or "all"
        table.add_row(key.id, errors.printable(key.name), scopes, only, made, state)
    Console().print(table if found else "There are no keys: the server is open to its own machine.")


@group.command("revoke")
def revoke(
    id: str = typer.Argument(help="The key's id, from `driftbandit keys list`."),
    store: options.Store = "sqlite:///decisions.db",
) -> None:
    """Let a key open nothing any more."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import Store
    keys.revoke(Store(store), id)
    print(f"revoked {id}")
