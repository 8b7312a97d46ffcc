"""Files that commands write, checked before any work is done."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from driftbandit import errors
from driftbandit.cli import interrupt

__all__ = ["PICTURES", "check_file"]

PICTURES = (".png", ".svg", ".pdf")


def check_file(option: str, path: Path, *endings: str) -> None:
    """Refuse a file that could not be written, or that ends otherwise than in ``endings``."""
    name, folder = errors.printable(str(path)), errors.printable(str(path.parent))
    if path.suffix.lower() not in endings:
        wanted = ", ".join(endings[:-1]) + " or " * (len(endings) > 1) + endings[-1]
        raise errors.InvalidInput(option, f"is {name}", f"end it in {wanted}")
    if ".html" in endings:
        errors.require(option, "jinja2")
    if ".html" in endings or endings == PICTURES:
        errors.require(option, "matplotlib")
    if not path.parent.is_dir():
        raise errors.InvalidInput(option, f"{folder} is no folder", "make it first")
    if path.is_dir():
        raise errors.InvalidInput(option, f"cannot write {name}, a folder", "name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise errors.InvalidInput(option, f"cannot write {name}", "name a file you may write")
    probe = path.parent / f".driftbandit.{secrets.token_hex(6)}~"
    try:  # permissions alone do not tell: the disk may be read-only, or full
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        probe.unlink()
    except OSError as error:
        problem = f"cannot write {name} ({error.strerror})"
        raise errors.InvalidInput(option, problem, "name a file you may write") from None
    interrupt.output(path)
