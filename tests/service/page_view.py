"""What a browser shows of the live page: waiting for it, reading it, comparing it with a state."""

import json
import time

from browser import open_url

PATIENCE = 8.0  # seconds
LINES = "document.querySelectorAll('#belief-chart .line').length === arguments[0]"


def until(driver, condition, *arguments):
    """Wait until a JavaScript expression is true, and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = driver.execute_script(f"return {condition}", *arguments)
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"still not true: {condition}")


def until_version(driver, version):
    """Wait until the state after so many events is drawn, and the newest event is in the log."""
    number = str(version)
    until(driver, "document.querySelector('#main').dataset.version === arguments[0]", number)
    until(driver, "document.querySelector('#log li')?.dataset.number === arguments[0]", number)


def until_drawn(driver, experiment):
    """Wait until all events of a simulated experiment are drawn."""
    until_version(driver, len(experiment.events))


def open_experiment(url, service, name="demo", width=1280, dark=False):
    """Open a simulated experiment, and wait until its state and its history are drawn."""
    driver = open_url(f"{url}#/{name}", width, dark)
    until_drawn(driver, service.experiments[name])
    until(driver, "document.querySelector('#belief-chart').dataset.samples > 3")
    return driver


def status(driver):
    return driver.execute_script("return document.querySelector('#status').dataset.status")


def text(driver, selector):
    return driver.find_element("css selector", selector).text


def values(driver, selector):
    """The numbers behind the texts of some elements."""
    found = driver.find_elements("css selector", selector)
    return [json.loads(element.get_attribute("data-value")) for element in found]


def pressed(driver, box="#legend"):
    """The arms that are drawn."""
    found = driver.find_elements("css selector", f"{box} [aria-pressed=true]")
    return [button.get_attribute("data-arm") for button in found]


def assert_shows(driver, state):
    """Assert that every number on the page is the one of a state document with few arms."""
    assert text(driver, "h1") == state["id"]
    assert state["policy_title"] in text(driver, "[data-field=about]")
    for name in ("round", "decisions", "rewards", "open", "window"):
        assert values(driver, f"[data-field={name}]") == [state[name]]
    assert_shows_arms(driver, sorted(state["arms"], key=lambda arm: -arm["plays"]))
    assert_shows_scores(driver, state["last"])
    calibration = state["calibration"]
    off = "Rewards are not as the model predicts."
    assert text(driver, "#verdict") == (calibration["summary"] if calibration["holds"] else off)
    assert text(driver, "#advice") == (calibration["advice"] or "")
    square = driver.find_element("id", "square-chart")
    for name, key in (("value", "mean_square"), ("low", "low"), ("high", "high")):
        assert float(square.get_attribute(f"data-{name}")) == calibration[key]
    models = [model["number"] for model in reversed(state["models"])]
    assert values(driver, "#models-table small") == models


def assert_shows_arms(driver, arms):
    assert values(driver, "#shares-table td:nth-child(3)") == [arm["plays"] for arm in arms]
    assert values(driver, "#shares-table .share .number") == [arm["share"] for arm in arms]
    assert values(driver, "#shares-table td:nth-child(4)") == [arm["mean_reward"] for arm in arms]
    assert values(driver, "#shares-table td:nth-child(5)") == [arm["mean"] for arm in arms]
    best = arms[0]
    said = f"{best['mean']:z.2f} ± {2 * best['uncertainty']:.2f}".replace("-", "−")
    assert text(driver, "#shares-table tbody td:nth-child(5)") == said


def assert_shows_scores(driver, last):
    scores = sorted(last["scores"], key=lambda one: -one["mean"] - one["bonus"])
    for name in ("mean", "bonus", "uncertainty"):
        assert values(driver, f"[data-score={name}]") == [score[name] for score in scores]
    totals = [score["mean"] + score["bonus"] for score in scores]
    assert values(driver, "[data-score=total]") == totals
    chosen = driver.find_elements("css selector", "#why-table .chosen")
    assert [row.get_attribute("data-arm") for row in chosen] == [last["arm"]]
