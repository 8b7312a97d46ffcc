"""MkDocs' hook: pages that are made from code, and links that leave the documentation."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reference  # MkDocs puts this folder on the path

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()((?:\.\./)+(?!docs/)[^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog, the reference, example files, and the gallery that was made before."""
    from mkdocs.structure.files import File

    changelog = (ROOT / "CHANGELOG.md").read_text()
    made = {"lookup/changelog.md": re.sub(r"\]\(docs/", "](../", changelog).encode()}
    made |= {f"lookup/api/{name}": text.encode() for name, text in reference.pages().items()}
    commands = (ROOT / "docs/lookup/commands.md").read_text()
    made["lookup/commands.md"] = f"{commands}\n{reference.commands()}".encode()
    for path in sorted((ROOT / "examples").glob("*.*")):
        made[f"examples/{path.name}"] = path.read_bytes()
    gallery = Path(os.environ.get("GALLERY", ROOT / "build/gallery"))
    for path in sorted(gallery.rglob("*")):
        if path.is_file():
            made[f"gallery/{path.relative_to(gallery)}"] = path.read_bytes()
    for name, content in made.items():
        if (old := files.get_file_from_path(name)) is not None:
            files.remove(old)
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Make links to files of the repository, outside docs/, links to the repository."""

    def outside(match: re.Match[str]) -> str:
        target = (ROOT / "docs" / page.file.src_uri).parent / match[2]
        path = target.resolve()
        if path.is_relative_to(ROOT / "docs") or not path.exists():
            return match[0]
        place = path.relative_to(ROOT).as_posix()
        if path.parent == ROOT / "examples":  # has a copy on the site
            return f"{match[1]}{posixpath.relpath(place, posixpath.dirname(page.file.src_uri))}"
        return f"{match[1]}{config.extra['repository']}/blob/main/{place}"

    return LINK.sub(outside, markdown)
