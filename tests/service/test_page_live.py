"""The live page on a real server: a process of its own, with a SQLite store."""

import random
import time

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import assert_readable, console_problems, open_url
from driftbandit.service import keys
from driftbandit.service.store import using
from service.page_server import HOSTILE
from service.page_view import (
    LINES,
    PATIENCE,
    assert_shows,
    pressed,
    status,
    text,
    until,
    until_version,
)
from service.servers import Server
from service.stores import SYSTEM, call, sqlite_url

SCRIPT = "<script>alert(2)</script>"
ARMS = [HOSTILE, SCRIPT, "both"]


class Shop:
    """An experiment on a server, and its customers."""

    def __init__(self, server, **headers):
        self.url, self.headers, self.random = server.url, headers, random.Random(0)
        self.path = f"{server.url}/v1/experiments/shop"

    def post(self, path, document):
        answer = call(path, document, **self.headers)
        assert answer.status in (200, 201), answer
        return answer.document

    def create(self):
        settings = {"id": "shop", "system": SYSTEM | {"names": ARMS}, "window": 10}
        self.post(f"{self.url}/v1/experiments", settings)
        return self

    def play(self, rounds):
        """Decide so often, and tell each reward but the last."""
        for number in range(rounds):
            made = self.post(f"{self.path}/decisions", {})
            told = {"decision": made["decision"], "reward": self.random.gauss(0, 1)}
            if number < rounds - 1:
                self.post(f"{self.path}/rewards", told)
        return self

    def state(self):
        return call(f"{self.path}/state", **self.headers).document

    def open(self, width=1280, dark=False):
        """Show the page in the browser, and wait until it is drawn."""
        driver = open_url(f"{self.url}/#/shop", width, dark)
        until_version(driver, self.state()["version"])
        return driver


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    with Server(sqlite_url(folder), folder) as running:
        yield running


@pytest.fixture(scope="module")
def shop(server):
    return Shop(server).create().play(40)


def test_the_page_shows_the_state_and_follows_it(shop):
    driver = shop.open()
    assert_shows(driver, shop.state())
    assert text(driver, "#running") == "Running"
    before = driver.find_element("id", "belief-chart").get_attribute("data-samples")
    shop.play(5)
    shop.post(f"{shop.path}/pause", {"reason": "maintenance"})
    state = shop.state()
    until_version(driver, state["version"])
    assert_shows(driver, state)
    assert state["decisions"] == 45
    assert text(driver, "#running") == "Paused: maintenance"
    assert text(driver, "#log li span") == "Paused: maintenance"
    after = driver.find_element("id", "belief-chart").get_attribute("data-samples")
    assert int(after) > int(before)
    shop.post(f"{shop.path}/resume", {})
    until(driver, "document.querySelector('#running').textContent === 'Running'")
    said = f"{state['rewards']} rewards from"
    assert text(driver, "#rewards-note").startswith(said)
    assert status(driver) == "live"
    assert console_problems(driver) == []


def test_hostile_names_are_only_text(shop):
    driver = shop.open()
    assert pressed(driver) == ARMS
    for name in (HOSTILE, SCRIPT):
        for box in ("#legend", "#shares-table", "#why-table"):
            assert name in text(driver, box)
    assert SCRIPT in text(driver, "#belief-chart")
    assert driver.find_elements("css selector", "img, body script") == []
    assert console_problems(driver) == []


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (375, True),
        pytest.param(375, False, marks=pytest.mark.nightly),
        pytest.param(1280, False, marks=pytest.mark.nightly),
        pytest.param(1280, True, marks=pytest.mark.nightly),
    ],
)
def test_the_page_is_readable(shop, width, dark):
    driver = shop.open(width, dark)
    assert_readable(driver)
    driver.find_element("id", "home").click()
    until(driver, "document.querySelector('[data-experiment=shop] [data-value]')")
    assert_readable(driver)


def test_the_page_works_by_keyboard(shop):
    driver = open_url(shop.url)
    until(driver, "document.querySelector('[data-experiment=shop] a')")
    press = lambda *keys: ActionChains(driver).send_keys(*keys).perform()  # noqa: E731
    press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER)  # skip link, home, the experiment
    until_version(driver, shop.state()["version"])
    until(driver, LINES, 3)
    driver.execute_script("document.querySelector('#legend button').focus()")
    press(Keys.SPACE)
    until(driver, LINES, 2)
    assert pressed(driver) == ARMS[1:]
    driver.execute_script("document.querySelector('#belief-plot').focus()")
    press(Keys.END)
    until(driver, "document.querySelectorAll('#reading li').length === 2")
    said = text(driver, "#reading strong")
    assert said == f"Round {shop.state()['round']}"
    press(Keys.ESCAPE)
    until(driver, "document.querySelector('#reading').hidden")
    assert console_problems(driver) == []


def refusals(driver):
    """Wait for what the browser itself writes to its console when an answer is an error."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := console_problems(driver):
            return found
        time.sleep(0.02)
    return []


@pytest.mark.nightly
def test_a_server_that_gets_keys(tmp_path):
    with Server(sqlite_url(tmp_path), tmp_path) as server:
        shop = Shop(server).create().play(40)
        driver = shop.open(375)
        with using(server.store) as store:
            key = keys.create(store, ["admin"])  # while the page is open
        until(driver, "document.activeElement.id === 'key'")
        assert status(driver) == "key"
        (refused,) = refusals(driver)
        assert "401" in refused
        assert_readable(driver)
        ActionChains(driver).send_keys(key, Keys.ENTER).perform()
        shop.headers["Authorization"] = f"Bearer {key}"
        shop.play(5)
        state = shop.state()
        until_version(driver, state["version"])
        assert_shows(driver, state)
        assert_readable(driver)
        assert key not in driver.page_source
