"""The live page in a real browser, against simulated experiments."""

import json

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from browser import assert_readable, console_problems, open_url
from service.page_server import ARMS, FOLDER, Experiment, Service, serving
from service.page_view import (
    LINES,
    assert_shows,
    open_experiment,
    pressed,
    text,
    until,
    until_drawn,
    values,
)


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


def test_the_page_shows_what_the_service_says(url, service):
    driver = open_experiment(url, service)
    assert_readable(driver)
    assert_shows(driver, json.loads(json.dumps(service.experiments["demo"].state())))
    assert text(driver, "#running") == "Running"
    assert "IDEA · 6 arms" in text(driver, "[data-field=about]")
    assert text(driver, "[data-field=time]") == "each decision starts a round"
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


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (375, True),
        (1280, False),
        pytest.param(375, False, marks=pytest.mark.nightly),
        pytest.param(1280, True, marks=pytest.mark.nightly),
    ],
)
def test_the_page_is_readable(url, service, width, dark):
    driver = open_experiment(url, service, "prices", width, dark)
    assert "one round lasts 1 hour" in text(driver, "[data-field=time]")
    assert driver.find_element("css selector", "#verdict").get_attribute("data-holds") == "false"
    assert_readable(driver)
    if width == 375 and dark:
        open_experiment(url, service, "demo", width, dark)
        assert_readable(driver)


PATHS = """
return [...document.querySelectorAll(arguments[0])].map((one) => one.getAttribute("d"));
"""


def test_nothing_is_drawn_across_a_change_of_the_model(url, service):
    """Else a band narrows before the model that makes it narrow."""
    driver = open_experiment(url, service)
    demo = service.experiments["demo"]
    changes = [model["time"] for model in demo.models if model["kind"] == "refitted"]
    eras = {sum(time <= one["time"] for time in changes) for one in demo.samples}
    assert len(eras) == 3
    for kind in ("line", "band"):
        # In one call: the page may draw anew at any time.
        drawn = driver.execute_script(PATHS, f"#belief-chart .{kind}")
        assert [path.count("M") for path in drawn] == [3] * len(ARMS), kind


def test_a_model_that_does_not_hold_says_what_to_do(url, service):
    driver = open_experiment(url, service, "prices")
    assert text(driver, "#verdict") == "Rewards are not as the model predicts."
    assert text(driver, "#advice") == "Wait for the next refit."
    assert text(driver, "#findings p") == ""  # statistics only for those who ask
    driver.find_element("css selector", "#findings summary").click()
    assert "their mean square is" in text(driver, "#findings p")
    assert_readable(driver)
    new = Experiment("new", ["a", "b"]).start_ago(25).play(25)
    with serving(Service(new)) as other:
        open_experiment(other, Service(new), "new")
        said = "Too few rewards so far: 20 must be older than the window (100 rounds)."
        assert text(driver, "#verdict") == said
        assert not driver.find_element("id", "findings").is_displayed()


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


def test_a_proxy_may_serve_the_page_in_a_folder(url, service):
    open_experiment(f"{url}{FOLDER}/", service, "prices")
