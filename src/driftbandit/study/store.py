"""Where a study's chunks live: one folder per study, one Parquet file per chunk.

    FOLDER/IDENTITY/specification.json
    FOLDER/IDENTITY/gaussian-000050.3f2a….parquet     its name holds the hash of its bytes
    FOLDER/IDENTITY/manifest.json                     what is there, rebuilt by scanning
    FOLDER/IDENTITY/log.jsonl                         when, where and how fast chunks were played

A file appears whole or not at all, and a damaged one no longer matches its name, so it counts as
missing; so does one that says it is of another chunk or another study. Nothing needs a lock:
processes that share a folder write the same bytes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import math
import os
import platform
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit
from driftbandit import errors
from driftbandit.io.atomic import write_whole
from driftbandit.result import Timing
from driftbandit.study.chunks import Columns
from driftbandit.study.specification import Chunk, Specification

with errors.needing("a study"):
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["Store", "encode", "logged_seconds", "versions"]

KEY = b"driftbandit"
"""Name of our entry in a Parquet file's metadata."""


@functools.cache  # every chunk notes them, and to read them takes longer than to write it
def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    found = {"driftbandit": driftbandit.__version__}
    found |= {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scipy")}
    return found | {"python": platform.python_version(), "machine": platform.machine()}


def encode(specification: Specification, chunk: Chunk, columns: Columns) -> bytes:
    """A chunk as the bytes of a Parquet file; the same chunk gives the same bytes."""
    about = {"study": specification.identity, "chunk": chunk.name, "versions": versions()}
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about, sort_keys=True)})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


class Store:
    """The stored chunks of one study."""

    def __init__(self, folder: Path, specification: Specification) -> None:
        """Open a study's folder below ``folder``, made if need be."""
        self.specification = specification
        self.folder = Path(folder) / specification.identity
        stored = json.dumps(specification.as_dict(), indent=1, sort_keys=True) + "\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / "specification.json", stored.encode())
        except OSError as error:
            raise errors.InvalidInput(
                "out",
                f"{folder} cannot be written to ({error.strerror})",
                "give a folder that can",
            ) from None
        self._sweep()

    def _sweep(self) -> None:
        """Remove what processes that were killed an hour ago or longer left half-written."""
        for leftover in self.folder.glob(".*~"):
            try:
                if time.time() - leftover.stat().st_mtime > 3600:
                    leftover.unlink()
            except FileNotFoundError:
                pass

    def find(self, chunk: Chunk) -> Path | None:
        """The file of a chunk, if there is one whose bytes are what they were when written."""
        found = self._read(chunk)
        return None if found is None else found[0]

    def _read(
        self, chunk: Chunk, listing: Mapping[str, list[Path]] | None = None
    ) -> tuple[Path, bytes] | None:
        files = self._files(chunk) if listing is None else listing.get(chunk.name, [])
        for path in files:
            content = self._whole(chunk, path)
            if content is not None:
                return path, content
        return None

    def read_all(self) -> Iterator[tuple[Chunk, tuple[Path, bytes] | None]]:
        """Every chunk with its file and bytes, or None: one look at the folder, one reading."""
        listing: dict[str, list[Path]] = {}
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".parquet"):  # CHUNK.HASH.parquet, and a chunk's name may have dots
                listing.setdefault(name.rsplit(".", 2)[0], []).append(self.folder / name)
        for chunk in self.specification.chunks():
            yield chunk, self._read(chunk, listing)

    def _whole(self, chunk: Chunk, path: Path) -> bytes | None:
        """The bytes of a file, where they are what they were when written."""
        try:
            content = path.read_bytes()
        except OSError:  # cleared away by another process just now, or a bad disk
            return None
        whole = path.name == _file_name(chunk, content) and self._belongs(chunk, content)
        return content if whole else None

    def _files(self, chunk: Chunk) -> list[Path]:
        """All that go by the chunk's name, whole or not."""
        return sorted(self.folder.glob(f"{chunk.name}.*.parquet"))

    def _belongs(self, chunk: Chunk, content: bytes) -> bool:
        """Whether the bytes say that they are this chunk of this study."""
        about = _about(content)
        return (about.get("study"), about.get("chunk")) == (self.folder.name, chunk.name)

    def missing(self) -> list[Chunk]:
        """The chunks that are still to be played, damaged ones among them."""
        return [chunk for chunk, found in self.read_all() if found is None]

    def put(self, chunk: Chunk, content: bytes, timing: Timing, *, replace: bool = False) -> None:
        """Store a chunk's bytes; then clear away damaged files of it, or all (``replace``)."""
        if not self._belongs(chunk, content):
            raise errors.InvalidInput(
                "engine",
                f"chunk {chunk.name} was played by other code than this process runs",
                "install the same driftbandit everywhere",
            )
        name = _file_name(chunk, content)
        write_whole(self.folder / name, content)
        for path in self._files(chunk):
            if path.name != name and (replace or self._whole(chunk, path) is None):
                path.unlink(missing_ok=True)
        entry = {"chunk": chunk.name, "at": time.strftime("%FT%TZ", time.gmtime())}
        line = json.dumps(entry | timing._asdict() | {"host": platform.node()}) + "\n"
        # What it took is good to know; not to know it must not end a study.
        with contextlib.suppress(OSError), (self.folder / "log.jsonl").open("a") as log:
            log.write(line)

    def gather(self) -> tuple[dict[str, Columns], Mapping[str, Any]]:
        """All columns of a finished study, joined by cell, and its manifest, which is written.

        The manifest says what is there: files, hashes, sizes, versions.
        """
        listed, absent = {}, []
        parts: dict[str, list[Columns]] = {}
        for chunk, found in self.read_all():
            if found is None:
                absent.append(chunk.name)
                continue
            path, content = found
            table = pq.read_table(io.BytesIO(content))
            columns = {name: table.column(name).to_numpy() for name in table.column_names}
            parts.setdefault(chunk.cell.label, []).append(columns)
            listed[chunk.name] = {
                "file": path.name,
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
                "versions": _about(content)["versions"],
            }
        manifest = {"study": self.folder.name, "complete": not absent, "chunks": listed}
        text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        write_whole(self.folder / "manifest.json", text.encode())
        if absent:
            raise errors.InvalidInput(
                "study", f"chunk {absent[0]} is missing or damaged", "run the study again"
            )
        joined = {
            label: {name: np.concatenate([part[name] for part in found]) for name in found[0]}
            for label, found in parts.items()
        }
        return joined, manifest


def logged_seconds(folder: Path) -> dict[str, float]:
    """Seconds spent on a study's chunks, by kind, from its log; torn lines do not count."""
    kinds = ("prepare", "compile", "play")
    last: dict[str, list[float]] = {}  # of each chunk: what was played again counts once
    log = folder / "log.jsonl"
    for line in log.read_bytes().splitlines() if log.exists() else ():
        try:
            entry = json.loads(line)
            name, seconds = str(entry["chunk"]), [float(entry[kind]) for kind in kinds]
        except (ValueError, KeyError, TypeError):
            continue
        if all(map(math.isfinite, seconds)):
            last[name] = seconds
    return {kind: sum(times[i] for times in last.values()) for i, kind in enumerate(kinds)}


def _about(content: bytes) -> dict[str, Any]:
    """What `encode` noted in a chunk's bytes; nothing where they are no chunk's."""
    try:
        notes = pq.read_metadata(io.BytesIO(content)).metadata
    except (pa.ArrowException, OSError):
        return {}
    return dict(json.loads((notes or {}).get(KEY, b"{}")))


def _file_name(chunk: Chunk, content: bytes) -> str:
    return f"{chunk.name}.{hashlib.sha256(content).hexdigest()[:16]}.parquet"
