"""Result files: arrays and a few words in one archive, written whole, read without pickle.

An .npz file as NumPy writes it: ``header`` holds JSON with the format's number, the policies'
names and the settings; ``regret0``, ``curves0``, … are the arrays in the order of the names.
Every part has a checksum, so that a damaged file is noticed.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.io.atomic import write_whole

if TYPE_CHECKING:
    from driftbandit.result import Result

__all__ = ["read", "write"]

FORMAT = 1
REMEDY = "give a file that Result.save wrote"


def write(path: Path, result: Result) -> None:
    """Write a result to a file that is seen whole or not at all."""
    header = {
        "driftbandit_result": FORMAT,
        "rounds": result.rounds,
        "seed": result.seed,
        "timing": result.timing._asdict(),
        "regret": list(result.regret),
        "curves": list(result.curves),
    }
    arrays: dict[str, Any] = {"checkpoints": result.checkpoints}
    for kind in ("regret", "curves"):
        for place, values in enumerate(getattr(result, kind).values()):
            arrays[f"{kind}{place}"] = values
    sink = io.BytesIO()
    np.savez(sink, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    write_whole(path, sink.getvalue())


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a stored result but for its timing, and that."""
    name = errors.printable(str(path))
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise errors.InvalidInput(name, problem, REMEDY) from None
    try:
        return _fields(content, name)
    except errors.InvalidInput:
        raise
    except Exception:  # NumPy, zip and JSON each have errors of their own for damaged input
        raise errors.InvalidInput(name, "is not a whole result file", REMEDY) from None


def _fields(content: bytes, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if any(part.compress_type for part in archive.infolist()):
            raise errors.InvalidInput(name, "is packed, which we never do", REMEDY)
    with np.load(io.BytesIO(content), allow_pickle=False) as parts:
        arrays = {key: parts[key] for key in parts.files}
    header = json.loads(arrays["header"].tobytes())
    version = header["driftbandit_result"]
    if version != FORMAT:
        problem = f"has format {version!r}"
        raise errors.InvalidInput(name, problem, f"this version reads format {FORMAT}")
    found = {"rounds": header["rounds"], "seed": header["seed"]}
    found["checkpoints"] = arrays["checkpoints"]
    for kind in ("regret", "curves"):
        found[kind] = {key: arrays[f"{kind}{i}"] for i, key in enumerate(header[kind])}
    return found, header["timing"]
