"""Where a study's chunks live: one folder per study, one Parquet file per chunk.

    FOLDER/IDENTITY/specification.json
    FOLDER/IDENTITY/gaussian-000050.3f2a….parquet     the name holds the hash of the bytes
    FOLDER/IDENTITY/manifest.json                     the list of files, rebuilt by scanning
    FOLDER/IDENTITY/log.jsonl                         when, where and how fast chunks were computed

A file appears whole or not at all. A damaged one no longer matches its name and counts as missing;
so does one that belongs to another chunk or another study. No locks are needed: processes that
share a folder write the same bytes.
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
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit._version import __version__
from driftbandit.io.atomic import write_whole
from driftbandit.result import Timing
from driftbandit.studies.specification import Chunk, Columns, Specification

with errors.needing("a study"):
    import pyarrow as pa
    import pyarrow.parquet as pq

KEY = b"driftbandit"  # name of our entry in a Parquet file's metadata


@functools.cache  # every chunk records them, and reading them takes longer than writing a chunk
def versions() -> dict[str, str]:
    """Versions of the packages that compute the numbers, and the kind of machine."""
    found = {name: metadata.version(name) for name in ("jax", "jaxlib", "numpy", "scipy")}
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    return {"driftbandit": __version__} | found | machine


def encode(specification: Specification, chunk: Chunk, columns: Columns) -> bytes:
    """A chunk as the bytes of a Parquet file; equal chunks give equal bytes."""
    about = {"study": specification.identity, "chunk": chunk.name, "versions": versions()}
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about, sort_keys=True)})
    sink = io.BytesIO()
    repeated = ["system", "run"]  # a dictionary of regrets would be as long as the regrets
    pq.write_table(table, sink, compression="zstd", use_dictionary=repeated)
    return sink.getvalue()


class Store:
    """The stored chunks of one study.

    Args:
        folder: where studies are stored, each in a folder of its own, which is created if needed.
        specification: of the study.

    Example:
        >>> import tempfile
        >>> from driftbandit.studies import Cell
        >>> from driftbandit.studies.specification import compute
        >>> shape = {"n_states": 2, "n_arms": 2, "measure": "metric"}
        >>> study = Specification((Cell("gaussian"),), ("idea",), systems=3, chunk=2, **shape)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, study)
        ...     wanted = store.missing()
        ...     for chunk in wanted:
        ...         columns, timing = compute(study, chunk)
        ...         store.put(chunk, encode(study, chunk, columns), timing)
        ...     found, manifest = store.gather()
        ...     store.find(wanted[1]).unlink()  # a file is lost
        ...     again = [chunk.name for chunk, file in store.read_all() if file is None]
        >>> [chunk.name for chunk in wanted], manifest["complete"], again
        (['gaussian-000000', 'gaussian-000002'], True, ['gaussian-000002'])
        >>> found["gaussian"]["system"].tolist()
        [0, 1, 2]
    """

    def __init__(self, folder: Path, specification: Specification) -> None:
        """Open the study's folder below ``folder``, and create it if needed."""
        self.specification = specification
        self.folder = Path(folder) / specification.identity
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_json("specification.json", specification.as_dict())
        except OSError as error:
            problem = f"{folder} cannot be written to ({error.strerror})"
            raise errors.InvalidInput("out", problem, "give a folder that can") from None
        # Files that were half-written an hour ago belong to processes that were killed.
        for leftover in self.folder.glob(".*~"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - leftover.stat().st_mtime > 3600:
                    leftover.unlink()

    def _write_json(self, name: str, value: Any) -> None:
        text = json.dumps(value, indent=1, sort_keys=True) + "\n"
        write_whole(self.folder / name, text.encode())

    def find(self, chunk: Chunk) -> Path | None:
        """The intact file of a chunk, if there is one."""
        found = self._intact(chunk, self._files(chunk))
        return None if found is None else found[0]

    def read_all(self) -> Iterator[tuple[Chunk, tuple[Path, bytes] | None]]:
        """Every chunk with its file and bytes, or None; lists the folder only once."""
        listing: dict[str, list[Path]] = {}
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".parquet"):  # CHUNK.HASH.parquet, and CHUNK may have dots
                listing.setdefault(name.rsplit(".", 2)[0], []).append(self.folder / name)
        for chunk in self.specification.chunks():
            yield chunk, self._intact(chunk, listing.get(chunk.name, ()))

    def _files(self, chunk: Chunk) -> list[Path]:
        """All files with the chunk's name, including damaged ones."""
        return sorted(self.folder.glob(f"{chunk.name}.*.parquet"))

    def _intact(self, chunk: Chunk, files: Iterable[Path]) -> tuple[Path, bytes] | None:
        """The first file that holds this chunk of this study undamaged, and its bytes."""
        for path in files:
            try:
                content = path.read_bytes()
            except OSError:  # just removed by another process, or a bad disk
                continue
            if path.name == _file_name(chunk, content) and self._belongs(chunk, content):
                return path, content
        return None

    def _belongs(self, chunk: Chunk, content: bytes) -> bool:
        """Whether the bytes are labeled as this chunk of this study."""
        about = _about(content)
        return (about.get("study"), about.get("chunk")) == (self.folder.name, chunk.name)

    def missing(self) -> list[Chunk]:
        """The chunks still to be computed, including damaged ones."""
        return [chunk for chunk, found in self.read_all() if found is None]

    def put(self, chunk: Chunk, content: bytes, timing: Timing, *, replace: bool = False) -> None:
        """Store a chunk's bytes, then remove its damaged files.

        Args:
            chunk, content, timing: the chunk, as `encode` returns it, and the time it took.
            replace: remove its other files as well, even if they are intact.

        Raises:
            InvalidInput: the bytes are those of another chunk, or were computed by other code.
        """
        if not self._belongs(chunk, content):
            problem = f"chunk {chunk.name} was computed by other code than this process runs"
            raise errors.InvalidInput("engine", problem, "install the same driftbandit everywhere")
        name = _file_name(chunk, content)
        write_whole(self.folder / name, content)
        for path in self._files(chunk):
            if path.name != name and (replace or self._intact(chunk, [path]) is None):
                path.unlink(missing_ok=True)
        entry = {"chunk": chunk.name, "at": time.strftime("%FT%TZ", time.gmtime())}
        line = json.dumps(entry | timing._asdict() | {"host": platform.node()}) + "\n"
        # The log is optional: failing to write it must not end a study.
        with contextlib.suppress(OSError), (self.folder / "log.jsonl").open("a") as log:
            log.write(line)

    def gather(self) -> tuple[dict[str, Columns], Mapping[str, Any]]:
        """All columns of a finished study by cell, and its manifest, which is also written.

        Raises:
            InvalidInput: a chunk is missing or damaged.
        """
        listed, absent = {}, []
        parts: dict[str, list[Columns]] = {}
        for chunk, found in self.read_all():
            if found is None:
                absent.append(chunk.name)
                continue
            path, content = found
            # Threads take longer to start than such a small file takes to read.
            table = pq.ParquetFile(io.BytesIO(content)).read(use_threads=False)
            columns = {name: table.column(name).to_numpy() for name in table.column_names}
            parts.setdefault(chunk.cell.label, []).append(columns)
            digest = hashlib.sha256(content).hexdigest()
            about = {"bytes": len(content), "versions": _about(content)["versions"]}
            listed[chunk.name] = {"file": path.name, "sha256": digest} | about
        manifest = {"study": self.folder.name, "complete": not absent, "chunks": listed}
        self._write_json("manifest.json", manifest)
        if absent:
            problem = f"chunk {absent[0]} is missing or damaged"
            raise errors.InvalidInput("study", problem, "run the study again")
        joined = {
            label: {name: np.concatenate([part[name] for part in found]) for name in found[0]}
            for label, found in parts.items()
        }
        return joined, manifest


def logged_seconds(folder: Path) -> dict[str, float]:
    """Seconds spent on a study's chunks, by kind, from its log; damaged lines do not count."""
    kinds = ("prepare", "compile", "play")
    last: dict[str, list[float]] = {}  # by chunk: a chunk computed twice counts once
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
    """The label that `encode` put on a chunk's bytes; empty for other bytes."""
    try:
        notes = pq.read_metadata(io.BytesIO(content)).metadata
    except (pa.ArrowException, OSError):
        return {}
    return dict(json.loads((notes or {}).get(KEY, b"{}")))


def _file_name(chunk: Chunk, content: bytes) -> str:
    return f"{chunk.name}.{hashlib.sha256(content).hexdigest()[:16]}.parquet"
