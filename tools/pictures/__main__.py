"""Draw every picture, or those named: `python -m tools.pictures drift lgds`."""

from __future__ import annotations

import sys
from pathlib import Path

from . import canvas, drift, exploration, filter, lgds

FOLDER = Path(__file__).parents[2] / "docs/pictures"
ANIMATIONS = {"drift": drift, "lgds": lgds}
STILLS = {"filter": filter, "exploration": exploration}


def main(names: list[str]) -> None:
    """Write the named pictures, or all."""
    for name, module in ANIMATIONS.items():
        if not names or name in names:
            frames = (canvas.image(module.frame(step)) for step in module.STEPS)
            canvas.save_animation(frames, FOLDER / f"{name}.gif", module.HOLD)
            canvas.save_still(module.frame(module.STEPS[-1], scale=2), FOLDER / f"{name}.png")
    for name, module in STILLS.items():
        if not names or name in names:
            canvas.save_still(module.frame(scale=2), FOLDER / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
