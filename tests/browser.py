"""Pages in a real browser: opening them, and what every page must pass."""

import atexit
import functools
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AA_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3: the least contrast of text with what is behind it."""


@functools.cache
def browser():
    """The browser of this process; starting one takes longer than most tests."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        remedy = "(Debian: apt install chromium chromium-driver)"
        pytest.skip(f"Chromium and its driver are not installed {remedy}")
    # The browser may still be writing to its profile while it quits.
    profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    atexit.register(profile.cleanup)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={profile.name}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    atexit.register(driver.quit)
    return driver


@contextmanager
def open_page(path, width=1200, dark=False):
    """Yield the browser, which shows the file on a screen of that width and color scheme."""
    yield open_url(Path(path).resolve().as_uri(), width, dark)


def open_url(url, width=1200, dark=False):
    """Return the browser, which shows the address on a screen of that width and color scheme."""
    driver = browser()
    driver.get("about:blank")  # so that the same page is loaded again
    console_problems(driver)
    set_width(driver, width)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get(url)
    return driver


def set_width(driver, width):
    """Give the screen a width in pixels; one below 600 behaves as a phone."""
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def console_problems(driver, levels=("SEVERE", "WARNING")):
    """Return what the browser wrote to its console since last asked; levels None: everything."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if levels is None or entry["level"] in levels
    ]


def assert_readable(driver):
    """Assert of any page: no errors, pictures shown, no sideways scrolling, legible text."""
    assert console_problems(driver) == []
    assert driver.execute_script(BROKEN_IMAGES) == []
    page, screen = driver.execute_script(WIDTHS)
    assert page <= screen, f"the page is {page} px wide on a screen of {screen} px"
    texts = driver.execute_script(TEXTS)
    assert texts
    for text in texts:
        assert text["size"] >= (12 if text["small"] else 15), text
        assert contrast(text["color"], text["background"]) >= AA_CONTRAST, text


def contrast(first, second):
    """Return WCAG's contrast ratio, 1 to 21, of two opaque colors as CSS writes them."""
    dark, light = sorted(luminance(color) for color in (first, second))
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    *channels, alpha = [*map(float, re.findall(r"[\d.]+", color)), 1.0][:4]
    assert alpha == 1, f"{color} is not opaque"
    shares = [channel / 255 for channel in channels]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(w * s for w, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


WIDTHS = """
const page = document.documentElement;
return [page.scrollWidth, page.clientWidth];
"""

BROKEN_IMAGES = """
return [...document.images]
  .filter((image) => !(image.complete && image.naturalWidth && image.checkVisibility()
                       && image.clientWidth > 50 && image.clientHeight > 20))
  .map((image) => image.alt);
"""

# Every element with text of its own that can be seen, and the first opaque color behind it.
# Labels of charts may be as small as <small>.
TEXTS = """
const own = (element) => [...element.childNodes]
  .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data.trim()).join("");
return [...document.body.querySelectorAll("*")]
  .filter((element) => own(element) && element.checkVisibility({opacityProperty: true}))
  .map((element) => {
    let behind = element;
    while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
      behind = behind.parentElement;
    const style = getComputedStyle(element);
    return {
      text: own(element), size: parseFloat(style.fontSize),
      small: element.tagName === "SMALL" || element instanceof SVGElement,
      color: style.color, background: getComputedStyle(behind).backgroundColor,
    };
  });
"""
