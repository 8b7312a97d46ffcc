"""Releases: contents of archives, agreement of versions, the citation, and the workflows.

`make release-check` applies the same rules to real archives and installs them.
"""

import re
from pathlib import Path

import pytest
import yaml

import release_rules as rules

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PACKAGE = {"__init__.py", "py.typed", "service/page/charts/marks.js", "report/page.html.j2"}
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-18)\n\n- new\n"
CITATION = {"version": "0.2.0", "date-released": "2026-11-18"}


def wheel(*more, without=()):
    inside = {f"driftbandit/{name}" for name in PACKAGE}
    inside |= {f"driftbandit-0.2.0.dist-info/{name}" for name in rules.DIST_INFO}
    return (inside | set(more)) - set(without)


def sdist(*more, without=()):
    inside = {*rules.NEEDED_IN_SDIST, *(f"{name}/one.md" for name in rules.FOLDERS_IN_SDIST)}
    inside |= {f"src/driftbandit/{name}" for name in PACKAGE}
    return {f"driftbandit-0.2.0/{name}" for name in (inside | set(more)) - set(without)}


def test_whole_archives_pass():
    assert rules.wheel_contents(wheel(), PACKAGE, "0.2.0") == []
    assert rules.sdist_contents(sdist(), PACKAGE, "0.2.0") == []


@pytest.mark.parametrize(
    "stray",
    ["decisions.db", "driftbandit/decisions.db", "driftbandit/__pycache__/a.pyc",
     "benchmarks/results/agent.json", ".venv/pyvenv.cfg", "tests/naive.py"],
)  # fmt: skip
def test_a_stray_file_in_a_wheel_is_found(stray):
    assert rules.wheel_contents(wheel(stray), PACKAGE, "0.2.0") == [
        f"{stray} does not belong there"
    ]


@pytest.mark.parametrize("stray", ["service/decisions.db", "notes.txt", "service/page/logo.png"])
def test_a_stray_file_in_the_sources_is_found(stray):
    """Hatch would put it into the wheel, so that both agree."""
    name = f"driftbandit/{stray}"
    (problem,) = rules.wheel_contents(wheel(name), PACKAGE | {stray}, "0.2.0")
    assert problem.startswith(name)


def test_a_missing_asset_is_found():
    for name in PACKAGE:
        lost = f"driftbandit/{name}"
        assert rules.wheel_contents(wheel(without=[lost]), PACKAGE, "0.2.0") == [
            f"{lost} is missing"
        ]
    lost = "driftbandit-0.2.0.dist-info/licenses/LICENSE"
    assert rules.wheel_contents(wheel(without=[lost]), PACKAGE, "0.2.0") == [f"{lost} is missing"]


@pytest.mark.parametrize(
    "stray",
    ["site/index.html", "decisions.db", "tests/decisions.db", "demo.png", ".venv/pyvenv.cfg",
     "src/driftbandit/__pycache__/a.pyc", "tests/.hypothesis/examples/1"],
)  # fmt: skip
def test_a_stray_file_in_an_sdist_is_found(stray):
    (problem,) = rules.sdist_contents(sdist(stray), PACKAGE, "0.2.0")
    assert problem.startswith(f"{stray} ")


@pytest.mark.parametrize(
    "lost", ["LICENSE", "mkdocs.yml", "src/driftbandit/py.typed", "tests/one.md"]
)
def test_a_file_missing_from_an_sdist_is_found(lost):
    missing = "tests/" if lost == "tests/one.md" else lost
    found = rules.sdist_contents(sdist(without=[lost]), PACKAGE, "0.2.0")
    assert found == [f"{missing} is missing"]


def test_the_sources_hold_only_what_is_allowed():
    """What `make release-check` would find in the present sources, without building."""
    package = rules.files_below(ROOT / "src/driftbandit")
    assert {"py.typed", "service/page/index.html", "report/page.html.j2"} <= package
    assert "service/migrations/versions/0001_first_tables.py" in package
    names = {f"driftbandit/{name}" for name in package}
    names |= {f"driftbandit-1.dist-info/{name}" for name in rules.DIST_INFO}
    assert rules.wheel_contents(names, package, "1") == []


def test_sizes_are_limited():
    assert rules.size("a.whl", 700_000) == []
    assert rules.size("a.tar.gz", 10**9) == [
        "a.tar.gz has 1,000,000,000 bytes; the limit is 15,000,000"
    ]


def test_versions_agree():
    version = rules.version_in((ROOT / "src/driftbandit/_version.py").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert rules.versions(version, changelog, cited) == []
    assert rules.citation(cited) == []


def test_versions_that_differ_are_found():
    assert rules.versions("0.2.0", CHANGELOG, CITATION) == []
    assert len(rules.versions("0.3.0", CHANGELOG, CITATION)) == 2
    assert len(rules.versions("0.2.0", CHANGELOG, CITATION | {"version": "0.1.0"})) == 1
    assert len(rules.versions("0.2.0", CHANGELOG, CITATION | {"date-released": "2026-11-17"})) == 1
    assert len(rules.versions("0.2.0", "## 0.2.0\n", CITATION)) == 2  # a section without a date
    assert len(rules.versions("next", CHANGELOG.replace("0.2.0", "next"), {})) == 4


def test_a_release_has_its_tag_and_nothing_unreleased():
    assert rules.tagged("v0.2.0", "0.2.0", CHANGELOG) == []
    assert len(rules.tagged("0.2.0", "0.2.0", CHANGELOG)) == 1
    more = CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n- a line\n")
    assert rules.tagged("v0.2.0", "0.2.0", more) == [
        "CHANGELOG.md still has entries under Unreleased"
    ]


def test_a_wrong_citation_is_found():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert rules.citation([]) == ["it is not a mapping"]
    assert rules.citation(cited | {"cff-version": 1.2}) != []
    assert rules.citation({**cited, "authors": [{"given-names": "A"}]}) == [
        "the file has an author without a name"
    ]
    del cited["message"]
    assert rules.citation(cited) == ["message is missing"]


def test_relative_links_are_found():
    text = '[a](a.md)\n![b](b.png)\n<img src="c.png">\n[d]: d.md\n```md\n[e](e.md)\n```\n'
    found = [problem.split()[0] for problem in rules.relative_links(text)]
    assert found == ["a.md", "b.png", "c.png", "d.md"]
    assert rules.relative_links("[a](https://a.org/a.md) [b](#b) <mail@a.org>") == []


def test_metadata():
    fields = {
        "Name": ["driftbandit"], "Version": ["0.2.0"], "License-Expression": ["Apache-2.0"],
        "License-File": ["LICENSE"], "Requires-Python": [">=3.11"],
        "Description-Content-Type": ["text/markdown"],
        "Project-URL": [f"{label}, {url}" for label, url in rules.URLS.items()],
        "Classifier": ["Typing :: Typed"],
    }  # fmt: skip
    assert rules.metadata(fields, "0.2.0", {"Typing :: Typed"}) == []
    assert rules.metadata(fields, "0.2.0", ()) == ["PyPI does not know 'Typing :: Typed'"]
    for name in fields:
        assert len(rules.metadata(fields | {name: []}, "0.2.0", {"Typing :: Typed"})) >= 1, name


# Workflows.


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_make_targets_that_exist(path):
    workflow = yaml.safe_load(path.read_text())
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = [re.match(r"make ([\w-]+)", step.get("run", "")) for step in steps(workflow)]
    assert {match[1] for match in called if match} <= targets
    assert workflow["permissions"] == {"contents": "read"}  # jobs that need more say so
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    for step in steps(workflow):
        assert re.search(r"@(v\d+|release/v\d+)$", step.get("uses", "@v0")), step


def test_workflows_run_every_check():
    text = (ROOT / ".github/workflows/test.yml").read_text()
    for target in ("test", "light", "numbers", "docs", "release-check"):
        assert f"run: make {target} " in text, target
    for path in re.findall(r"tests/[\w/.]+", text):
        assert (ROOT / path).exists(), path


def test_the_claimed_pythons_are_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert jobs["test"]["strategy"]["matrix"]["python"] == classifiers
