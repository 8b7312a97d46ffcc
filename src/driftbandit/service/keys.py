"""Who may do what: bearer keys with scopes.

A key is ``db_ID_SECRET``. The store keeps the SHA-256 of the secret, which has 256 random bits, so
that a copy of the store opens nothing. Keys are compared in constant time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
import time
from collections.abc import Collection
from typing import Any

from driftbandit import errors
from driftbandit.service.problems import Problem
from driftbandit.service.store import Store

SCOPES = ("decide", "reward", "read", "admin")
FRESH = 0.5  # seconds after which keys are read again, so that a revoked one stops working


@dataclasses.dataclass(frozen=True)
class Key:
    """A key as the store knows it."""

    id: str
    name: str
    hash: str
    scopes: tuple[str, ...]
    experiment: str | None
    created: float
    revoked: float | None

    def allows(self, scope: str, experiment: str | None) -> bool:
        """Whether the key may do something to an experiment; None: to all of them."""
        return (scope in self.scopes or "admin" in self.scopes) and (
            self.experiment is None or self.experiment == experiment
        )


def create(
    store: Store, scopes: Collection[str], experiment: str | None = None, name: str = ""
) -> str:
    """Make a key and return it; it cannot be shown again."""
    if not scopes:
        remedy = f"give some of {', '.join(SCOPES)}"
        raise errors.InvalidInput("scope", "is missing", remedy)
    for scope in scopes:
        errors.closest(scope, "scope", SCOPES)
    if len(name) > 200:
        raise errors.InvalidInput("name", f"has {len(name)} characters", "give at most 200")
    if not name.isprintable():
        problem = f"is {errors.printable(name)[:80]}"
        raise errors.InvalidInput("name", problem, "leave out line breaks and control characters")
    id_, secret = secrets.token_hex(6), secrets.token_hex(32)
    row: dict[str, Any] = {"id": id_, "name": name, "hash": hashed(secret), "created": time.time()}
    row |= {"scopes": " ".join(one for one in SCOPES if one in scopes), "experiment": experiment}
    with store.write() as transaction:
        if experiment is not None and transaction.version(experiment) is None:
            problem = f"{errors.printable(experiment)} does not exist"
            raise errors.InvalidInput("experiment", problem, "create it first")
        transaction.add_key(row)
    return f"db_{id_}_{secret}"


def listed(store: Store) -> list[Key]:
    """All keys, oldest first."""
    with store.read() as transaction:
        rows = transaction.keys()
    return [Key(**row | {"scopes": tuple(row["scopes"].split())}) for row in rows]


def revoke(store: Store, id: str) -> None:
    """Refuse a key from now on."""
    with store.write() as transaction:
        if not transaction.revoke_key(id, time.time()):
            problem = f"{errors.printable(id)[:60]} is no key in use"
            raise errors.InvalidInput("id", problem, "driftbandit keys list shows all")


def hashed(secret: str) -> str:
    """The SHA-256 of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Doorkeeper:
    """Says whether a request may pass. Without any key ever made, all may.

    It knows the keys that `refresh` read last, so that no request waits for the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[str, Key] = {}
        self._closed = False
        self.refresh()

    def refresh(self) -> None:
        """Read the keys again."""
        self._keys = {key.id: key for key in listed(self._store)}
        if self._keys:  # for good: a table that lost its keys must not open the server
            self._closed = True

    @property
    def open(self) -> bool:
        """Whether no key was ever seen."""
        return not self._closed

    def check(self, authorization: str | None) -> Key | None:
        """The key of a request; None: the server is open."""
        if self.open:
            return None
        scheme, _, token = (authorization or "").partition(" ")
        prefix, _, rest = token.strip().partition("_")
        id_, _, secret = rest.partition("_")
        key = self._keys.get(id_)
        expected = hashed("") if key is None else key.hash
        same = hmac.compare_digest(hashed(secret), expected)
        known = key is not None and key.revoked is None and same
        if scheme.lower() != "bearer" or prefix != "db" or not known:
            detail = "a valid key is needed; send the header Authorization: Bearer KEY"
            detail += " (driftbandit keys create makes one)"
            raise Problem(401, detail, "Authorization")
        return key
