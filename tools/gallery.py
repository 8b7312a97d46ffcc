"""Turn the scripts of examples/gallery into pages, notebooks and pictures, by running them.

    python tools/gallery.py FOLDER             # all
    python tools/gallery.py FOLDER sphere      # one

A script consists of cells: ``# %% [markdown]`` starts text, in comments, and ``# %%`` starts code.
A cell that assigns ``figure`` shows it.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples/gallery"
CELL = re.compile(r"^# %%([^\n]*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A piece of a script: Markdown or code, and what the code printed and drew."""

    kind: str
    source: str
    output: str = ""
    png: bytes = b""


def cells(script: str) -> list[Cell]:
    r"""Split a script into cells.

    Example:
        >>> [text, code] = cells("# %% [markdown]\n# # Title\n#\n# Why.\n\n# %%\nx = 1\n")
        >>> text.source, code.source
        ('# Title\n\nWhy.', 'x = 1')
    """
    parts = CELL.split(script)[1:]
    found = []
    for mark, body in zip(parts[::2], parts[1::2], strict=True):
        kind = "markdown" if "[markdown]" in mark else "code"
        if kind == "markdown":
            body = "\n".join(re.sub("^# ?", "", line) for line in body.splitlines())
        found.append(Cell(kind, body.strip("\n")))
    return found


def executed(script: Path) -> list[Cell]:
    """Run a script in an empty folder; return its cells with outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    done, shown = [], None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(cells(script.read_text())):
            if cell.kind == "markdown":
                done.append(cell)
                continue
            printed, png = io.StringIO(), b""
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.source, f"{script.name}, cell {number}", "exec"), namespace)
            figure = namespace.get("figure")
            if figure is not None and figure is not shown:
                shown, png = figure, _png(figure)
            done.append(Cell("code", cell.source, printed.getvalue(), png))
    return done


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, facecolor="white")
    return buffer.getvalue()


def page(cells: list[Cell], name: str, pictures: dict[str, bytes]) -> str:
    """Return the page of a script; its pictures are added to ``pictures``, by file name."""
    title, _, rest = cells[0].source.partition("\n")
    drawn = [cell for cell in cells if cell.png]
    parts = [f"{title}\n\n{rest.strip()}\n"]
    for cell in cells[1:]:
        if cell.kind == "markdown":
            parts.append(cell.source + "\n")
            continue
        parts.append(f"```python\n{cell.source}\n```\n")
        if cell.output:
            parts.append(f"```text\n{cell.output.rstrip()}\n```\n")
        if cell.png:
            last = cell is drawn[-1]
            file = f"{name}.png" if last else f"{name}_{drawn.index(cell) + 1}.png"
            pictures[file] = cell.png
            parts.append(f"![{title.removeprefix('# ')}](pictures/{file})\n")
    parts.append(
        f"[Script]({name}.py){{ .md-button download }} "
        f"[Notebook]({name}.ipynb){{ .md-button download }}\n"
    )
    return "\n".join(parts)


def notebook(cells: list[Cell]) -> str:
    """Return the cells, with their outputs, as a Jupyter notebook (nbformat 4.5)."""
    made = []
    for number, cell in enumerate(cells):
        entry: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": cell.source.splitlines(keepends=True),
        }
        if cell.kind == "code":
            entry |= {"execution_count": None, "outputs": list(_outputs(cell))}
        made.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _outputs(cell: Cell) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = []
    if cell.output:
        lines = cell.output.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines})
    if cell.png:
        picture = base64.b64encode(cell.png).decode()
        outputs.append(
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture}}
        )
    return outputs


def made(script: Path) -> dict[str, bytes]:
    """Run a script; return the files of its page, by path in the folder of the gallery."""
    done = executed(script)
    pictures: dict[str, bytes] = {}
    text = page(done, script.stem, pictures)
    return {
        f"{script.stem}.md": text.encode(),
        f"{script.stem}.ipynb": notebook(done).encode(),
        f"{script.stem}.py": script.read_bytes(),
        **{f"pictures/{name}": png for name, png in pictures.items()},
    }


def main() -> None:
    """Write the files of the gallery."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="default: all scripts")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.stem for path in SCRIPTS.glob("*.py"))
    for name in names:
        for file, content in made(SCRIPTS / f"{name}.py").items():
            path = arguments.folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        print(f"made {name}")


if __name__ == "__main__":
    main()
