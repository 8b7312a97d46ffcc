"""The live page in a real browser, against simulated experiments."""

import json
import time

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import assert_readable, console_problems, open_url
from service.page_server import ARMS, HOSTILE, Experiment, Service, serving

PATIENCE = 8.0  # seconds


@pytest.fixture(scope="module")
def service():
    return Service(
        Experiment().start_ago(250).play(250),
        Experiment("prices", ["9.99", "12.50"], {"seconds": 3600}, holds=False)
        .start_ago(200)
        .play(200),
    )


@pytest.fixture(scope="module")
def url(service):
    with serving(service) as address:
        yield address


def until(driver, condition, *arguments):
    """Wait until a JavaScript expression is true, and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = driver.execute_script(f"return {condition}", *arguments)
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"still not true: {condition}")


def open_experiment(url, service, name="demo", width=1280, dark=False):
    """Open an experiment, and wait until its state and its history are drawn."""
    driver = open_url(f"{url}#/{name}", width, dark)
    until_drawn(driver, service.experiments[name])
    until(driver, "document.querySelector('#belief-chart').dataset.samples > 3")
    return driver


def until_drawn(driver, experiment):
    version = str(len(experiment.events))
    until(driver, "document.querySelector('#main').dataset.version === arguments[0]", version)
    until(driver, "document.querySelector('#log li')?.dataset.number === arguments[0]", version)


def status(driver):
    return driver.execute_script("return document.querySelector('#status').dataset.status")


def values(driver, selector):
    """The numbers behind the texts of some elements."""
    found = driver.find_elements("css selector", selector)
    return [json.loads(element.get_attribute("data-value")) for element in found]


def text(driver, selector):
    return driver.find_element("css selector", selector).text


def pressed(driver, box="#legend"):
    """The arms that are drawn."""
    found = driver.find_elements("css selector", f"{box} [aria-pressed=true]")
    return [button.get_attribute("data-arm") for button in found]


def test_the_page_shows_what_the_service_says(url, service):
    driver = open_experiment(url, service)
    assert_readable(driver)
    state = json.loads(json.dumps(service.experiments["demo"].state()))

    assert text(driver, "h1") == "demo"
    assert text(driver, "#running") == "Running"
    assert "IDEA · 6 arms" in text(driver, "[data-field=about]")
    for name in ("round", "decisions", "rewards", "open", "window"):
        assert values(driver, f"[data-field={name}]") == [state[name]]
    assert text(driver, "[data-field=time]") == "each decision starts a round"

    rows = sorted(state["arms"], key=lambda arm: -arm["plays"])
    assert values(driver, "#shares-table td:nth-child(3)") == [arm["plays"] for arm in rows]
    assert values(driver, "#shares-table .share .number") == [arm["share"] for arm in rows]
    assert values(driver, "#shares-table td:nth-child(4)") == [arm["mean_reward"] for arm in rows]
    assert values(driver, "#shares-table td:nth-child(5)") == [arm["mean"] for arm in rows]
    best = rows[0]
    said = f"{best['mean']:.2f} ± {2 * best['uncertainty']:.2f}".replace("-", "−")
    assert text(driver, "#shares-table tbody td:nth-child(5)") == said

    scores = sorted(state["last"]["scores"], key=lambda one: -one["mean"] - one["bonus"])
    for name in ("mean", "bonus", "uncertainty"):
        assert values(driver, f"[data-score={name}]") == [score[name] for score in scores]
    totals = [score["mean"] + score["bonus"] for score in scores]
    assert values(driver, "[data-score=total]") == totals
    chosen = driver.find_elements("css selector", "#why-table .chosen")
    assert [row.get_attribute("data-arm") for row in chosen] == [state["last"]["arm"]]

    calibration = state["calibration"]
    assert text(driver, "#verdict") == calibration["summary"]
    square = driver.find_element("css selector", "#square-chart")
    for name, key in (("value", "mean_square"), ("low", "low"), ("high", "high")):
        assert float(square.get_attribute(f"data-{name}")) == calibration[key]
    models = [model["number"] for model in reversed(state["models"])]
    assert values(driver, "#models-table small") == models
    assert "1,600 more rewards" in text(driver, "#refit")


def test_charts_say_what_they_show(url, service):
    driver = open_experiment(url, service)
    charts = driver.find_elements("css selector", "svg[role=img]")
    labels = [chart.get_attribute("aria-label") for chart in charts]
    assert len(labels) == 4
    assert labels[0].startswith("Believed reward of 6 arms, round 0 to round 249. Now: Blue")
    assert "rewards from" in labels[1]
    assert "surprises" in labels[2]
    assert "normal" in labels[3]
    assert len(driver.find_elements("css selector", "#belief-chart .line")) == len(ARMS)


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_readable(url, service, width, dark):
    driver = open_experiment(url, service, "prices", width, dark)
    assert "one round lasts 1 hour" in text(driver, "[data-field=time]")
    assert driver.find_element("css selector", "#verdict").get_attribute("data-holds") == "false"
    assert_readable(driver)
    if width == 375 and dark:
        open_experiment(url, service, "demo", width, dark)
        assert_readable(driver)


def test_the_page_follows_the_experiment(url, service):
    driver = open_experiment(url, service)
    before = int(driver.find_element("id", "belief-chart").get_attribute("data-samples"))
    with service.change() as experiment:
        experiment.play(3)
        experiment.log("refit_failed", reason="too few rewards")
        experiment.paused = "maintenance"
    until_drawn(driver, experiment)
    assert values(driver, "[data-field=decisions]") == [experiment.round + 1]
    assert text(driver, "#running") == "Paused: maintenance"
    after = int(driver.find_element("id", "belief-chart").get_attribute("data-samples"))
    assert after > before
    assert text(driver, "#log li:first-child span") == "Refit failed: too few rewards"
    driver.find_element("id", "only-changes").click()
    until(driver, "!document.querySelector('#log [data-kind=decided]')")
    with service.change() as experiment:
        experiment.paused = None
        experiment.log("resumed")
    until(driver, "document.querySelector('#running').textContent === 'Running'")
    assert console_problems(driver) == []


def test_everything_works_by_keyboard(url, service):
    driver = open_experiment(url, service)
    wanted = driver.execute_script(FOCUSABLE)
    reached = []
    for _ in range(len(wanted)):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        reached.append(driver.execute_script(FOCUSED))
    assert [one["label"] for one in reached] == wanted
    assert [one["label"] for one in reached if one["outline"] == "none"] == []

    driver.execute_script("document.querySelector('#legend button').focus()")
    assert len(pressed(driver)) == 6
    for key, drawn in ((Keys.SPACE, 5), (Keys.ENTER, 6)):
        ActionChains(driver).send_keys(key).perform()
        until(driver, LINES, drawn)
        assert len(pressed(driver)) == drawn
    assert driver.switch_to.active_element.get_attribute("data-arm") == ARMS[0]

    driver.execute_script("document.querySelector('#belief-plot').focus()")
    ActionChains(driver).send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.HOME).perform()
    until(driver, "document.querySelector('#reading strong')?.textContent === 'Round 0'")
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    until(driver, "document.querySelector('#reading').hidden")

    driver.execute_script("document.querySelector('#skip').focus()")
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    assert driver.switch_to.active_element.get_attribute("id") == "main"
    assert driver.current_url.endswith("#/demo")


LINES = "document.querySelectorAll('#belief-chart .line').length === arguments[0]"
FOCUSABLE = """
return [...document.querySelectorAll("a, button, input, summary, [tabindex='0']")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.id || element.textContent)
"""
FOCUSED = """
const element = document.activeElement;
return {label: element.id || element.textContent, outline: getComputedStyle(element).outlineStyle}
"""


def test_the_reader_chooses_what_is_drawn(url, service):
    driver = open_experiment(url, service)
    driver.find_element("css selector", "[data-choice=together]").click()
    until(driver, "document.querySelector('#belief-chart').classList.contains('crowded')")
    driver.find_element("id", "none").click()
    until(driver, LINES, 0)
    driver.find_element("css selector", f"[data-arm='{ARMS[2]}']").click()
    until(driver, LINES, 1)
    with service.change() as experiment:
        experiment.play()
    until_drawn(driver, experiment)
    assert pressed(driver) == [ARMS[2]]
    driver.find_element("id", "most-played").click()
    until(driver, LINES, 6)
    driver.find_element("css selector", "[data-choice='100']").click()
    chart = driver.find_element("id", "belief-chart")
    start = f"round {experiment.round - 100} to"
    until(driver, "arguments[0].ariaLabel.includes(arguments[1])", chart, start)
    assert_readable(driver)


def test_names_are_only_text(url, service):
    hostile = "<script>alert(2)</script>"
    strange = Experiment(hostile, [HOSTILE, '"><svg onload=alert(3)>', 7]).start_ago(60).play(60)
    strange.paused = HOSTILE
    service.experiments[hostile] = strange
    try:
        driver = open_url(url)
        until(driver, "document.querySelectorAll('#experiments a').length === 3")
        driver.find_element("link text", hostile).click()
        until_drawn(driver, strange)
        assert text(driver, "h1") == hostile
        assert pressed(driver) == [HOSTILE, '"><svg onload=alert(3)>', "7"]
        assert "svg onload" in text(driver, "#log")
        assert HOSTILE in text(driver, "#running")
        assert driver.find_elements("css selector", "img, main script, svg svg") == []
        assert_readable(driver)
    finally:
        del service.experiments[hostile]


def test_the_list_of_experiments(url, service):
    for width, dark in ((1280, False), (375, True)):
        driver = open_url(url, width, dark)
        until(driver, "document.querySelectorAll('[data-experiment]').length === 2")
        assert_readable(driver)
    card = "[data-experiment=demo]"
    shown = values(driver, f"{card} [data-field=decisions]")
    assert shown == [service.experiments["demo"].round + 1]
    driver.find_element("css selector", f"{card} a").click()
    until_drawn(driver, service.experiments["demo"])
    driver.find_element("id", "home").click()
    until(driver, "document.querySelector('h1').textContent === 'Experiments'")


def test_a_server_without_experiments():
    with serving(Service()) as url:
        driver = open_url(url)
        until(driver, "document.querySelector('#experiments p')")
        assert "No experiments yet." in text(driver, "#experiments")
        assert_readable(driver)
        driver.get(f"{url}#/nothing")
        until(driver, "document.querySelector('h1')?.textContent === 'Not found'")
        assert "nothing" in text(driver, "main")


def test_the_page_asks_for_the_key():
    service = Service(Experiment().start_ago(60).play(60), key="db_secret")
    with serving(service) as url:
        driver = open_url(f"{url}#/demo")
        until(driver, "document.activeElement.id === 'key'")
        assert status(driver) == "key"
        driver.find_element("id", "key").send_keys("wrong", Keys.ENTER)
        until(driver, "document.querySelector('main').textContent.includes('does not accept')")
        driver.find_element("id", "key").send_keys("db_secret", Keys.ENTER)
        until_drawn(driver, service.experiments["demo"])
        assert status(driver) == "live"
        assert driver.execute_script("return [localStorage.length, document.cookie]") == [0, ""]
        console_problems(driver)  # the browser itself reports the two answers 401
        driver.find_element("id", "forget").click()
        until(driver, "document.activeElement.id === 'key'")
        assert driver.execute_script("return sessionStorage.length") == 0


class Blind(Experiment):
    """An experiment whose policy has no model of the rewards."""

    def scores(self):
        nothing = {"mean": None, "bonus": None, "uncertainty": None}
        return [{**score, **nothing} for score in super().scores()]

    def state(self):
        nothing = {"calibration": None, "refit": None, "retired": ["old"], "reward_std": None}
        return {**super().state(), **nothing}


def test_a_policy_without_a_model():
    blind = Blind("demo", ["a", "b"])
    with serving(Service(blind)) as url:
        driver = open_url(f"{url}#/demo")
        until_drawn(driver, blind)
        assert text(driver, "#why-summary") == "No decision yet."
        assert text(driver, "#verdict") == "Too few rewards so far."
        assert "no model" in text(driver, "#belief-chart")
        assert "does not refit" in text(driver, "#refit")
        assert text(driver, "#shares-note") == "Retired: old."
        assert values(driver, "#shares-table td:nth-child(5)") == [None, None]
        assert_readable(driver)
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [still]})
        assert driver.execute_script("return document.getAnimations()") == []


def test_a_lost_connection_is_shown_and_comes_back():
    service = Service(Experiment().start_ago(150).play(150))
    with serving(service) as url:
        driver = open_experiment(url, service)
        service.set_online(False)
        until(driver, "document.querySelector('#status').dataset.status === 'lost'")
        assert text(driver, "#status") == "Connection lost. Trying again."
        with service.change() as experiment:
            experiment.play(150)  # more events than a first message holds
        service.set_online(True)
        until_drawn(driver, experiment)
        assert status(driver) == "live"
        note, said = driver.find_element("id", "rewards-note"), f"{experiment.rewards} rewards"
        until(driver, "arguments[0].textContent.startsWith(arguments[1])", note, said)


def test_a_thousand_arms():
    names = [f"article {number:04d}" for number in range(1000)]
    service = Service(Experiment("demo", names).start_ago(40).play(40))
    service.experiments["demo"].samples.clear()  # slow to send
    with serving(service) as url:
        driver = open_url(f"{url}#/demo", 375)
        until_drawn(driver, service.experiments["demo"])
        most = sorted(service.experiments["demo"].arm_rows(), key=lambda arm: -arm["plays"])[:12]
        assert sorted(pressed(driver)) == sorted(arm["arm"] for arm in most)
        assert driver.execute_script("return document.querySelectorAll('*').length") < 2000
        driver.find_element("css selector", "#more summary").click()
        driver.find_element("id", "find").send_keys("999")
        until(driver, "document.querySelectorAll('#found button').length === 1")
        driver.find_element("css selector", "#found button").click()
        until(driver, "document.querySelectorAll('#legend button').length === 13")
        assert "article 0999" in pressed(driver)
        driver.execute_script("document.querySelector('#find').value = ''")
        driver.find_element("id", "find").send_keys("8")
        until(driver, "document.querySelectorAll('#found button').length === 60")
        others = "document.querySelectorAll('#found [aria-pressed=false]')"
        driver.execute_script(f"for (const button of {others}) button.click()")
        until(driver, "document.querySelector('#drawn-note').textContent")
        until(driver, "document.querySelectorAll('#legend [aria-pressed=true]').length === 24")
        took = driver.execute_async_script(FRAMES)
        assert took < 200, f"a frame takes {took} ms"
        assert_readable(driver)


# The shortest of a few frames in which everything is drawn: other programs may disturb some.
FRAMES = """
const done = arguments[0], starts = [];
document.querySelector("#only-changes").click();
const tick = (now) => {
  starts.push(now);
  document.querySelector("#only-changes").click();
  if (starts.length < 5) requestAnimationFrame(tick);
  else done(Math.min(...starts.slice(1).map((start, place) => start - starts[place])));
};
requestAnimationFrame(tick);
"""
