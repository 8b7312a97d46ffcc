import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/pictures"
LIMIT = 1_500_000


@pytest.fixture(scope="module")
def pictures():
    """The package `tools/pictures`, under a name of its own."""
    place = ROOT / "tools/pictures"
    spec = importlib.util.spec_from_file_location(
        "site_pictures", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    sys.modules["site_pictures"] = importlib.util.module_from_spec(spec)
    yield importlib.import_module("site_pictures.__main__")
    for name in [name for name in sys.modules if name.startswith("site_pictures")]:
        del sys.modules[name]


def test_an_animation_draws_its_first_and_last_frame(pictures):
    pictures.drift.SEEDS = 3
    for module in pictures.ANIMATIONS.values():
        first, last = (
            pictures.canvas.image(module.frame(step, scale=0.2))
            for step in (module.STEPS[0], module.STEPS[-1])
        )
        assert first.size == last.size == tuple(round(0.2 * side) for side in module.SIZE)
        assert (np.asarray(first) != np.asarray(last)).any()


def test_a_still_is_drawn(pictures):
    for module in pictures.STILLS.values():
        drawn = pictures.canvas.image(module.frame(scale=0.2))
        assert len(np.unique(np.asarray(drawn))) > 10


def test_labels_are_moved_apart(pictures):
    assert pictures.canvas.spaced([1.0, 5.0, 1.2], 0.5).tolist() == [1.0, 5.0, 1.5]


def test_the_page_on_exploration_and_its_picture_have_the_same_arms(pictures):
    page = (ROOT / "docs/understand/exploration.md").read_text()
    for name, arm in pictures.exploration.ARMS.items():
        assert f'"{name}": {arm}' in page


@pytest.mark.parametrize("name", ["drift", "lgds"])
def test_a_stored_animation_is_small_and_moves(name):
    """If this fails: `python -m tools.pictures` draws the pictures anew."""
    path = FOLDER / f"{name}.gif"
    assert path.stat().st_size < LIMIT
    with Image.open(path) as animation:
        assert animation.n_frames > 20
        assert animation.size[0] == 720
        length = 0
        for frame in range(animation.n_frames):
            animation.seek(frame)
            length += animation.info["duration"]
        assert 6_000 <= length <= 10_000


@pytest.mark.parametrize("name", ["drift", "lgds", "filter", "exploration"])
def test_a_stored_still_is_small_and_sharp(name):
    path = FOLDER / f"{name}.png"
    assert path.stat().st_size < LIMIT
    with Image.open(path) as still:
        assert still.size[0] == 1440
