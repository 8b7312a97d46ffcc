"""The documentation site: the gallery runs, the site is whole, and it works in a browser."""

import contextlib
import functools
import http.server
import json
import os
import re
import string
import struct
import subprocess
import sys
import threading
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

import browser
import gallery
import reference

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(gallery.SCRIPTS.glob("*.py"))
LOOKED_AT = [
    "index",
    "start/tutorial",
    "do/simulate",
    "do/serve",
    "understand/lgds",
    "understand/comparison",
    "understand/tuning",
    "lookup/api/agent",
    "lookup/commands",
    "gallery/index",
    "gallery/season",
]
"""Pages that are opened every day, of every kind; the others are opened nightly."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("documentation")


def write(files, folder):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def brought_by(requirement):
    """The distributions that installing a requirement installs, with what they require."""
    brought, waiting = set(), [Requirement(requirement)]
    while waiting:
        asked = waiting.pop()
        name = re.sub(r"[-_.]+", "-", asked.name).lower()
        for extra in ["", *asked.extras]:
            if (name, extra) in brought:
                continue
            brought.add((name, extra))
            with contextlib.suppress(metadata.PackageNotFoundError):
                for text in metadata.requires(name) or []:
                    needed = Requirement(text)
                    if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                        waiting.append(needed)
    return {name for name, _ in brought}


@pytest.fixture(scope="module")
def missing():
    """Modules that the tests have, and an environment made by `make docs` alone has not."""
    absent = brought_by("driftbandit[test]") - brought_by("driftbandit[docs]")
    of_tests = ("pytest", "pluggy", "xdist", "execnet", "hypothesis", "selenium")
    modules = metadata.packages_distributions().items()
    lost = {name for name, owners in modules if {one.lower() for one in owners} <= absent}
    return {name for name in lost if not name.startswith(("_", *of_tests))}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_gallery(script, folder, missing, monkeypatch):
    """Each script runs and ends in a picture; its page and notebook hold all of it."""
    assert "pykalman" in missing
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    files = gallery.made(script)
    write(files, folder / "gallery")
    picture = files[f"pictures/{script.stem}.png"]
    width, height = struct.unpack(">II", picture[16:24])
    assert width >= 800
    assert 0.3 < height / width < 1.7
    assert len(picture) < 400_000
    text = files[f"{script.stem}.md"].decode()
    assert text.startswith("# ")
    assert f"(pictures/{script.stem}.png)" in text
    made = json.loads(files[f"{script.stem}.ipynb"])
    assert made["nbformat"] == 4
    shown = [out for cell in made["cells"] for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in shown)
    sources = "\n\n".join("".join(c["source"]) for c in made["cells"] if c["cell_type"] == "code")
    compile(sources, script.name, "exec")


def test_gallery_has_ten_examples():
    index = (ROOT / "docs/gallery/index.md").read_text()
    assert len(SCRIPTS) == 10
    assert [one.stem for one in SCRIPTS if f"({one.stem}.md)" not in index] == []


@pytest.fixture(scope="module")
def site(folder):
    """The site, built as `make docs` builds it; the tests above made the gallery."""
    for script in SCRIPTS:
        if not (folder / "gallery" / f"{script.stem}.md").exists():
            write(gallery.made(script), folder / "gallery")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder / "site"]
    quiet = {"NO_MKDOCS_2_WARNING": "1", "GALLERY": str(folder / "gallery")}
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **quiet}, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


class Links(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.add(found.get("href") or "")
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.add(found.get("href") or "")
        elif tag in ("script", "img", "iframe", "source"):
            self.loaded.add(found.get("src") or "")


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path.resolve(): Links(path.read_text()) for path in site.rglob("*.html")}
    assert len(pages) > 60
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are absolute, for any address
            continue
        for target in page.links | page.loaded:
            if target.startswith(("https://", "http://", "mailto:")):
                if target in page.loaded:
                    broken.append((path.name, target))
                continue
            name, _, anchor = target.partition("#")
            other = (path.parent / name).resolve() if name else path
            known = pages.get(other)
            if not other.is_file() or (anchor and known and anchor not in known.ids):
                broken.append((str(path.relative_to(site)), target))
    assert broken == []


def test_style_sheets_load_nothing_from_elsewhere(site):
    for path in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import\s+)[\"']?(https?:[^\"')]*)", path.read_text())
        assert found == [], path


def test_every_public_name_has_an_entry(site):
    text = "".join(path.read_text() for path in (site / "lookup/api").glob("*.html"))
    missing = [
        name
        for shelf in reference.PAGES.values()
        for name, _ in reference.documented(shelf.contents)
        if f'id="{name}"' not in text and name.rpartition(".")[2] not in text
    ]
    assert missing == []


def test_reference_covers_the_public_names():
    """A new public name needs a place on a page: tools/reference.py."""
    import driftbandit as db

    shown = {
        name.removeprefix("driftbandit.")
        for shelf in reference.PAGES.values()
        for name, _ in reference.documented(shelf.contents)
    }
    assert sorted({*db.__all__} - shown - {"__version__"} - {"monitor", "Health"}) == []
    assert {"monitoring.monitor", "monitoring.Health"} <= shown


def test_every_page_is_opened_some_day(site):
    names = {str(path.relative_to(site)).removesuffix(".html") for path in site.rglob("*.html")}
    assert {*LOOKED_AT} < names


def opened(path, width, dark):
    """Open a page without the choice of colors that an earlier one stored."""
    url = path.as_uri()
    driver = browser.open_url(url, width, dark)
    driver.execute_script("localStorage.clear()")
    return browser.open_url(url, width, dark)


def look(path, width, dark):
    look_at(opened(path, width, dark), dark)


def look_at(driver, dark):
    WebDriverWait(driver, 10).until(
        lambda d: d.execute_script("return [...document.images].every((one) => one.complete)")
    )
    assert browser.console_problems(driver, levels=None) == []
    assert driver.execute_script(BROKEN) == []
    page, screen = driver.execute_script(browser.WIDTHS)
    assert page <= screen, f"the page is {page} px wide on a screen of {screen} px"
    scheme = driver.execute_script("return document.body.dataset.mdColorScheme")
    assert scheme == ("slate" if dark else "default")
    for text in driver.execute_script(ARTICLE_TEXTS):
        color = blended(text["color"], text["background"])
        assert browser.contrast(color, text["background"]) >= browser.AA_CONTRAST, text


def blended(color, background):
    """The opaque color that a translucent one makes on its background."""
    *front, alpha = [*map(float, re.findall(r"[\d.]+", color)), 1.0][:4]
    behind = map(float, re.findall(r"[\d.]+", background)[:3])
    mixed = (alpha * f + (1 - alpha) * b for f, b in zip(front, behind, strict=True))
    return "rgb({}, {}, {})".format(*mixed)


BROKEN = """
return [...document.querySelectorAll("article img:not(.twemoji)")]
  .filter((one) => !(one.naturalWidth && one.clientWidth > 50 && one.alt))
  .map((one) => one.src);
"""
ARTICLE_TEXTS = browser.TEXTS.replace(
    'document.body.querySelectorAll("*")', 'document.querySelectorAll("article *")'
)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (375, True)])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_pages_in_a_browser(site, name, width, dark):
    look(site / f"{name}.html", width, dark)


@pytest.mark.nightly
def test_all_pages_in_a_browser(site):
    for path in sorted({*site.rglob("*.html")} - {site / "404.html"}):
        for width, dark in ((1280, False), (1280, True), (375, False), (375, True)):
            look(path, width, dark)


def results_of(driver, query):
    field = driver.find_element(By.CSS_SELECTOR, ".md-search__input")
    WebDriverWait(driver, 10).until(lambda d: field.is_displayed() and field.is_enabled())
    for letter in string.ascii_lowercase:  # as somebody types: each is a search of its own
        field.send_keys(letter)
        field.clear()
    field.send_keys(query)
    titles = ".md-search-result__item a h1, .md-search-result__item a h2"
    WebDriverWait(driver, 20).until(lambda d: d.find_elements(By.CSS_SELECTOR, titles))
    return [found.text for found in driver.find_elements(By.CSS_SELECTOR, titles)]


def test_search_works_from_files_and_from_a_server(site):
    driver = opened(site / "do/fit.html", 1280, False)
    assert any("ate" in title for title in results_of(driver, "late rewards"))
    assert browser.console_problems(driver, levels=None) == []

    with served(site) as url:
        driver = browser.open_url(f"{url}/index.html", 1280)
        assert results_of(driver, "kalman_ucb")
        assert browser.console_problems(driver, levels=None) == []


def test_the_page_of_a_wrong_address_works_on_the_server(site):
    """Its links begin with /driftbandit/, as the site's address does."""
    with served(site) as url:
        driver = browser.open_url(f"{url}/404.html", 1280)
        look_at(driver, dark=False)
        assert "404" in driver.find_element(By.TAG_NAME, "article").text


@contextlib.contextmanager
def served(site):
    """Serve the site under the path that it has on the web; yield its address."""
    root = site.parent / "server"
    root.mkdir(exist_ok=True)
    if not (root / "driftbandit").exists():
        (root / "driftbandit").symlink_to(site)
    serve = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/driftbandit"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *_):
        pass
