"""The tables of a store. `migrations` makes them; a test holds the two equal."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()

experiments = Table(
    "experiments",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("version", BigInteger, nullable=False),  # number of the last event
    Column("created", Double, nullable=False),
    Column("summary", Text, nullable=False),  # for lists of experiments
)
events = Table(
    "events",
    metadata,
    Column("experiment", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("time", Double, nullable=False),
    Column("data", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),  # of the other columns
    sqlite_with_rowid=False,
)
snapshots = Table(
    "snapshots",
    metadata,
    Column("experiment", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("agent", Text, nullable=False),
    Column("rest", Text, nullable=False),
)
samples = Table(
    "samples",
    metadata,
    Column("experiment", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("data", Text, nullable=False),
)
answers = Table(
    "answers",
    metadata,
    Column("experiment", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),  # of the request
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("time", Double, nullable=False),
    Index("answers_by_time", "time"),
    sqlite_with_rowid=False,
)
keys = Table(
    "keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("scopes", String(64), nullable=False),  # separated by spaces
    Column("experiment", String(64)),  # None: all
    Column("created", Double, nullable=False),
    Column("revoked", Double),
)
