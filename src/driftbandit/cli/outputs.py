"""Files that commands write, checked before any work is done."""

from __future__ import annotations

import os
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
    if not path.parent.is_dir():
        raise errors.InvalidInput(option, f"{folder} is no folder", "make it first")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise errors.InvalidInput(option, f"cannot write {name}", "name a file you may write")
    interrupt.output(path)
