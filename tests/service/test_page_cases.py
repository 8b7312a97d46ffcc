"""The live page in a real browser, against unusual experiments and servers."""

from selenium.webdriver.common.keys import Keys

from browser import assert_readable, console_problems, open_url
from service.page_server import HOSTILE, Experiment, Service, serving
from service.page_view import (
    open_experiment,
    pressed,
    status,
    text,
    until,
    until_drawn,
    values,
)


def test_names_are_only_text():
    hostile = "<script>alert(2)</script>"
    strange = Experiment(hostile, [HOSTILE, '"><svg onload=alert(3)>', 7]).start_ago(60).play(60)
    strange.paused = HOSTILE
    with serving(Service(strange)) as url:
        driver = open_url(url)
        until(driver, "document.querySelectorAll('#experiments a').length === 1")
        driver.find_element("link text", hostile).click()
        until_drawn(driver, strange)
        assert text(driver, "h1") == hostile
        assert pressed(driver) == [HOSTILE, '"><svg onload=alert(3)>', "7"]
        assert "svg onload" in text(driver, "#log")
        assert HOSTILE in text(driver, "#running")
        assert driver.find_elements("css selector", "img, main script, svg svg") == []
        assert_readable(driver)


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
        assert text(driver, "#verdict") == "The policy predicts no rewards."
        assert "no model" in text(driver, "#belief-chart")
        assert "does not refit" in text(driver, "#refit")
        assert text(driver, "#shares-note") == "Retired: old."
        assert values(driver, "#shares-table td:nth-child(5)") == [None, None]
        assert_readable(driver)
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [still]})
        assert driver.execute_script("return document.getAnimations()") == []


class Featured(Experiment):
    """An experiment whose arms come with each question, by their features."""

    def log(self, kind, **fields):
        nameless = {"arm": None, "round": None} if kind == "rewarded" else {}
        super().log(kind, **fields | nameless)


def test_rewards_of_arms_offered_by_features():
    service = Service(Featured("demo", ["a", "b"]).start_ago(120).play(120))
    with serving(service) as url:
        driver = open_experiment(url, service)
        rewards = service.experiments["demo"].rewards
        note = driver.find_element("id", "rewards-note")
        until(driver, "arguments[0].textContent.startsWith(arguments[1])", note, f"{rewards} rew")
        assert "Gray" in note.text
        line = text(driver, "#log [data-kind=rewarded] span")
        assert line.startswith("Reward ")
        assert "(" not in line


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
