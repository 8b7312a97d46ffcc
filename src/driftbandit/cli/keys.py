"""`driftbandit keys`: who may use the decision service."""

from __future__ import annotations

import json
import time

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driftbandit import errors
from driftbandit.cli import options

EXAMPLES = """
**Examples**

    driftbandit keys create --scope decide --scope reward --name checkout
    driftbandit keys create --scope read --experiment shop --name dashboard
    driftbandit keys list
    driftbandit keys revoke 5c1f0a9b2d3e
"""

group = typer.Typer(
    cls=options.Group,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, list and revoke the keys of the decision service.\n\n"
    "As long as no key was made, a server lets everybody in, and only listens to its own "
    "machine. Once there is a key, every request needs one, even after all are revoked. "
    "A running server notices new and revoked keys within a second.",
)


@group.command("create", cls=options.Command)
def create(
    scope: list[str] = typer.Option(
        ...,
        help="What the key may do: decide, reward, read or admin (everything). Repeatable.",
    ),
    store: options.Store = "sqlite:///decisions.db",
    experiment: str | None = typer.Option(None, help="The only experiment that the key is for."),
    name: str = typer.Option("", help="A note for you: who has the key."),
) -> None:
    """Make a key and print it. The store keeps only its hash, so it cannot be shown again."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import using
    with using(store) as opened:
        print(keys.create(opened, scope, experiment, name))


@group.command("list", cls=options.Command)
def list_(
    store: options.Store = "sqlite:///decisions.db",
    as_json: options.Json = False,
) -> None:
    """Show all keys, without their secrets."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import using
    with using(store, make=False) as opened:
        found = keys.listed(opened)
    if as_json:
        rows = [{k: v for k, v in vars(key).items() if k != "hash"} for key in found]
        print(json.dumps({"keys": rows}))
        return
    table = Table("id", "name", "scopes", "experiment", "created", "state")
    for key in found:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(key.created))
        state = "in use" if key.revoked is None else "revoked"
        scopes, only = " ".join(key.scopes), key.experiment or "all"
        row = (key.id, errors.printable(key.name), scopes, only, made, state)
        table.add_row(*map(Text, row))  # a name is no markup
    Console().print(table if found else "There are no keys: the server is open to its own machine.")


@group.command("revoke", cls=options.Command)
def revoke(
    id: str = typer.Argument(help="The key's id, from `driftbandit keys list`."),
    store: options.Store = "sqlite:///decisions.db",
) -> None:
    """Revoke a key: a running server refuses it within a second."""
    with errors.needing("keys"):
        from driftbandit.service import keys
        from driftbandit.service.store import using
    with using(store, make=False) as opened:
        keys.revoke(opened, id)
    print(f"revoked {id}")
