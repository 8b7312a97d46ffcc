"""The page on the architecture is true of the sources: its names exist, and every room is on it."""

import importlib
import re
from pathlib import Path

import pytest

from test_layers import LAYERS, PACKAGE

PAGE = (Path(__file__).parent.parent / "docs/understand/architecture.md").read_text(
    encoding="utf-8"
)
ROOMS = " ".join(LAYERS).split()
NAMES = sorted(
    name
    for name in set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE))
    if name.partition(".")[0] in ROOMS and not name.endswith(".py")
)


def test_the_page_names_functions():
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name):
    parts = name.split(".")
    found = importlib.import_module(f"driftbandit.{parts[0]}")
    for place, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(f"driftbandit.{'.'.join(parts[:place])}")
        found = getattr(found, part)


def test_every_room_is_on_the_page():
    picture = PAGE.split("```")[1]
    shown = set(re.findall(r"\b[a-z_]+\b", picture))
    small = {"_version", "machine", "program_cache"}  # a few lines each
    assert sorted(set(ROOMS) - small - shown) == []
    assert PACKAGE.is_dir()
