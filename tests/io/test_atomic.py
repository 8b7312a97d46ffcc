"""Files that are seen whole or not at all."""

import os
import stat

import pytest

from driftbandit.io import atomic


def test_a_file_is_seen_whole_or_not_at_all(tmp_path, monkeypatch):
    """Its bytes are on the disk before it has its name, and the old ones stay until then."""
    path = tmp_path / "file"
    seen = []
    fsync = os.fsync

    def checked_fsync(handle):
        fsync(handle)
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            return
        seen.append(path.read_bytes() if path.exists() else None)
        assert os.fstat(handle).st_size == len(content)

    monkeypatch.setattr(atomic.os, "fsync", checked_fsync)
    for content in (b"first", b"the second"):
        atomic.write_whole(path, content)
        assert path.read_bytes() == content
    assert seen == [None, b"first"]

    monkeypatch.undo()

    def broken(*_):
        raise OSError("disk full")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic.os, step, broken)
            with pytest.raises(OSError, match="disk full"):
                atomic.write_whole(path, b"third")
        assert path.read_bytes() == b"the second"
        assert os.listdir(tmp_path) == ["file"]
