"""Files that are seen whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import threading
from pathlib import Path

__all__ = ["abandon", "write_whole"]

_unfinished: set[Path] = set()
_naming = threading.Lock()


def abandon() -> None:
    """Let no further file appear, and remove what is half-written: the process ends now."""
    _naming.acquire()  # for good: whoever begins or finishes a file waits until the end
    for temporary in tuple(_unfinished):
        with contextlib.suppress(OSError):
            temporary.unlink()


def _check_plain(path: Path) -> None:
    """Refuse a device, a pipe or a folder, which a file would take the place of."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a plain file")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is seen with all of its content, or not at all.

    The content goes to a file beside it, to the disk, and then by one rename to its name: whoever
    is killed at any moment leaves the old file or the new one, and perhaps a ``.NAME.…~`` that
    nobody reads. A file that was there keeps its permissions. Where the name is a symbolic link,
    the file it points to is written, and the link stays. A device, a pipe or a folder is refused.
    """
    asked, path = path, Path(os.path.realpath(path))
    temporary = path.parent / f".{path.name[:60]}.{secrets.token_hex(6)}~"
    try:
        with _naming:
            _check_plain(path)
            _unfinished.add(temporary)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less umask
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, path.stat().st_mode & 0o777)
            with _naming:
                os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:  # of the file that was asked for
        raise type(error)(error.errno, error.strerror or str(error), str(asked)) from None
    finally:
        _unfinished.discard(temporary)
    with contextlib.suppress(OSError):  # the name too; where folders cannot be synced, so be it
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
