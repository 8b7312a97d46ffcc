"""What a release has to look like: rules about names, versions and texts, without running anything.

Every function returns a list of problems, in plain words. An empty list means that all is well.
`tools/release.py` applies them to the archives that it builds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

NAME = "driftbandit"
REPOSITORY = "https://github.com/driftbandit/driftbandit"
URLS = {
    "Documentation": "https://driftbandit.github.io/driftbandit/",
    "Repository": REPOSITORY,
    "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
    "Issues": f"{REPOSITORY}/issues",
}
LICENSE = "Apache-2.0"
PYTHON = ">=3.11"
MAX_BYTES = {".whl": 1_500_000, ".tar.gz": 15_000_000}
"""Size limits. A file that does not belong there, such as a data set, is usually larger."""

PACKAGE = ("*.py", "py.typed", "report/*.j2", "report/*.js", "report/*.css")
PACKAGE += ("service/page/*.html", "service/page/*.css", "service/page/*.js")
"""What the package may hold; ``*`` matches slashes, too."""
DIST_INFO = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
NEEDED_IN_SDIST = ("LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md")
NEEDED_IN_SDIST += ("SECURITY.md", "Makefile", "pyproject.toml", "mkdocs.yml", "PKG-INFO")
FOLDERS_IN_SDIST = ("src", "tests", "docs", "examples", "benchmarks", "tools", ".github")
LOOSE_IN_SDIST = (*NEEDED_IN_SDIST, ".gitignore", "Dockerfile", "compose.yaml", ".dockerignore")
STRAY = ("*/__pycache__/*", "*.pyc", "*.db", "*.db-wal", "*.db-shm", "*.sqlite*", "*.log", "*~")
STRAY += ("*.orig", "*.rej", "*.swp", "*/.venv*", "*/.*_cache/*", "*/.hypothesis/*", "*.egg-info/*")
STRAY += ("*/.DS_Store", "*/.ipynb_checkpoints/*", "*/.env", "*.pem", "*.key", "*.so", "*.whl")

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=[\"']([^\"']+)", re.M)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
DATED = re.compile(r"(\d+\.\d+\.\d+\S*) \((\d{4}-\d\d-\d\d)\)")


def version_in(text: str) -> str:
    """The version that ``_version.py`` sets.

    Example:
        >>> version_in('__version__ = "0.2.0"')
        '0.2.0'
    """
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return "" if found is None else found[1]


def files_below(folder: Path) -> set[str]:
    """The files in a folder, except what Python leaves there, as names with slashes."""
    found = (path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix() for path in found}
    return {name for name in names if "__pycache__" not in name.split("/")}


def wheel_contents(names: Collection[str], package: Collection[str], version: str) -> list[str]:
    """Compare a wheel with the files of ``src/driftbandit``, and both with what is allowed."""
    wanted = {f"{NAME}/{name}" for name in package}
    wanted |= {f"{NAME}-{version}.dist-info/{name}" for name in DIST_INFO}
    problems = [f"{name} is missing" for name in sorted(wanted - set(names))]
    problems += [f"{name} does not belong there" for name in sorted(set(names) - wanted)]
    for name in sorted(wanted & set(names)):
        inside = name.removeprefix(f"{NAME}/")
        if inside != name and (not _any(inside, PACKAGE) or _any(f"/{inside}", STRAY)):
            problems.append(f"{name} is not a kind of file that the package holds")
    return problems


def sdist_contents(names: Iterable[str], package: Collection[str], version: str) -> list[str]:
    """Check that an sdist has all sources, tests and documents, and nothing else."""
    top, problems, inside = f"{NAME}-{version}/", [], set()
    for name in sorted(names):
        if not name.startswith(top):
            problems.append(f"{name} is outside {top}")
            continue
        inside.add(short := name.removeprefix(top))
        folder, slash, _ = short.partition("/")
        if folder not in FOLDERS_IN_SDIST if slash else short not in LOOSE_IN_SDIST:
            problems.append(f"{short} does not belong there")
        elif _any(f"/{short}", STRAY):
            problems.append(f"{short} is a file that a program left behind")
    needed = {*NEEDED_IN_SDIST, *(f"src/{NAME}/{name}" for name in package)}
    problems += [f"{name} is missing" for name in sorted(needed - inside)]
    folders = {name.partition("/")[0] for name in inside if "/" in name}
    return problems + [f"{name}/ is missing" for name in sorted({*FOLDERS_IN_SDIST} - folders)]


def _any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def size(name: str, n_bytes: int) -> list[str]:
    """Check the size of an archive."""
    limit = next(limit for suffix, limit in MAX_BYTES.items() if name.endswith(suffix))
    return [] if n_bytes <= limit else [f"{name} has {n_bytes:,} bytes; the limit is {limit:,}"]


def relative_links(markdown: str) -> list[str]:
    """Find links and pictures of a README that would lead nowhere on PyPI.

    Example:
        >>> relative_links("[a](docs/a.md) [b](https://b.org) [c](#c) `[d](d.md)`")
        ['docs/a.md is a relative link']
    """
    targets = ["".join(found) for found in LINK.findall(CODE.sub("", markdown))]
    wrong = (one for one in targets if not re.match(r"https?://|mailto:|#", one))
    return [f"{target} is a relative link" for target in wrong]


def newest_section(changelog: str) -> tuple[str, str]:
    r"""The version and date of the newest section of the changelog below "Unreleased".

    Example:
        >>> newest_section("## Unreleased\n## 0.2.0 (2026-11-18)\n## 0.1.0 (2026-01-01)")
        ('0.2.0', '2026-11-18')
    """
    titles = [title for title in SECTION.findall(changelog) if title != "Unreleased"]
    found = DATED.fullmatch(titles[0]) if titles else None
    return ("", "") if found is None else (found[1], found[2])


def versions(version: str, changelog: str, citation: Mapping[str, Any]) -> list[str]:
    """Check that the package, the changelog and the citation name the same version and day."""
    listed, date = newest_section(changelog)
    problems = [] if re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version) else [
        f"_version.py has {version!r}; give three numbers"
    ]  # fmt: skip
    if listed != version:
        problems.append(f"the newest section of CHANGELOG.md is {listed!r}, not {version!r}")
    if str(citation.get("version")) != version:
        problems.append(f"CITATION.cff has version {citation.get('version')!r}, not {version!r}")
    if str(citation.get("date-released")) != date:
        problems.append(f"CITATION.cff has another date than CHANGELOG.md, {date or 'none'}")
    return problems


def tagged(tag: str, version: str, changelog: str) -> list[str]:
    """Check what only has to hold for the commit that is released."""
    problems = [] if tag == f"v{version}" else [f"the tag is {tag}; the version needs v{version}"]
    waiting = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    if waiting is not None and waiting[1].strip():
        problems.append("CHANGELOG.md still has entries under Unreleased")
    return problems


def citation(found: Any) -> list[str]:
    """Check a CITATION.cff by the rules of the Citation File Format 1.2.0 that concern this one."""
    if not isinstance(found, dict):
        return ["it is not a mapping"]
    needed = {"cff-version", "message", "title", "authors", "version", "date-released", "license"}
    problems = [f"{name} is missing" for name in sorted(needed - set(found))]
    if found.get("cff-version") != "1.2.0":
        problems.append(f"cff-version is {found.get('cff-version')!r}; write 1.2.0 in quotes")
    if not isinstance(found.get("version"), str):
        problems.append("version is not a text")
    if found.get("license") != LICENSE:
        problems.append(f"license is {found.get('license')!r}, not {LICENSE}")
    if found.get("repository-code") != REPOSITORY:
        problems.append(f"repository-code is not {REPOSITORY}")
    works = [("the file", found), *(("a reference", one) for one in found.get("references", []))]
    for what, work in works:
        people = work.get("authors") or [{}]
        if not all("name" in one or {"given-names", "family-names"} <= set(one) for one in people):
            problems.append(f"{what} has an author without a name")
        if not work.get("title"):
            problems.append(f"{what} has no title")
    problems += [
        "a reference has no type" for one in found.get("references", []) if "type" not in one
    ]
    return problems


def metadata(fields: Mapping[str, list[str]], version: str, known: Collection[str]) -> list[str]:
    """Check the fields of a METADATA file; ``known`` are the classifiers that PyPI accepts."""
    wanted = {"Name": NAME, "Version": version, "License-Expression": LICENSE}
    wanted |= {"Requires-Python": PYTHON, "License-File": "LICENSE"}
    wanted |= {"Description-Content-Type": "text/markdown"}
    problems = [
        f"{name} is {fields.get(name)}, not {value}"
        for name, value in wanted.items()
        if fields.get(name) != [value]
    ]
    urls = dict(line.split(", ", 1) for line in fields.get("Project-URL", []))
    for label, url in URLS.items():
        if urls.get(label) != url:
            problems.append(f"the URL {label} is {urls.get(label)}, not {url}")
    classifiers = fields.get("Classifier", [])
    problems += [f"PyPI does not know {one!r}" for one in classifiers if one not in known]
    if "Typing :: Typed" not in classifiers:
        problems.append("the classifier Typing :: Typed is missing")
    return problems
