"""Report pages, as text and as a browser shows them."""

import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from browser import assert_readable, console_problems, luminance, open_page, set_width
from driftbandit.report import Cell, Facts, Figure, Heading, Points, Report, Table, Text
from driftbandit.report import html as html_face

HOSTILE = """"'><script>window.hit = 1</script><img src=x onerror="window.hit = 1"> &amp; &"""
PLACES = "h1, header p, nav a, h2, figcaption, thead th, tbody span, small, dt, dd, main p, main li"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 100" width="{width}">
<style>rect {{ fill: teal }}</style><rect width="{width}" height="50"/></svg>"""
TABLE = Table(
    "Excess regret: median, and below it the published value",
    ["Policy", "Gaussian", "Cauchy", "Uniform", "Bernoulli", "Exponential"],
    [
        ["UCB", Cell("10.2 (3)", 10.2, "3.84"), 7.73, 1.72, 2.71, "–"],
        ["IDEA", Cell("9.4 (0.9)", 9.4, "1.37", "good"), 1.82, 0.84, 0.11, 0.08],
        ["KODE", Cell("9.4 (0.8)", 9.4, "1.41", "bad"), 1.84, 0.88, 0.11, 0.08],
        ["Kalman-UCB", Cell("–", tone="dim"), 2.4, 0.9, 0.44, 0.57],
        ["Random", Cell("-2 (3)", -2, "3.95"), float("inf"), 1.82, 2.9, 3.34],
    ],
)


class Drawn:
    """A figure whose file is known."""

    def __init__(self, svg):
        self.svg = svg

    def savefig(self, sink, **_):
        sink.write(self.svg.encode())


BLOCKS = [
    Heading("Text"),
    Text("Run `driftbandit reproduce` again: a lone ` stays, *so* do <i>these</i>."),
    Points(["`idea` first", "then the others"]),
    Facts({"seed": "0", "commit": "0123456789abcdef" * 4}),
    Heading("Table"),
    TABLE,
    Heading("Figures"),
    Figure("A wide one", "a bar", lambda: Drawn(SVG.format(width=800))),
    Figure("A narrow one", "a bar", lambda: Drawn(SVG.format(width=150))),
]


def page(title, subtitle, blocks):
    return html_face.page(Report(title, subtitle, blocks))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page("A title", "A subtitle", BLOCKS), encoding="utf-8")
    return path


def column(driver, place):
    """Return what a column's cells show, from top to bottom, without their notes."""
    cells = driver.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({place}) > span")
    return [cell.text for cell in cells]


def test_same_input_gives_the_same_text():
    assert page("A title", "", BLOCKS) == page("A title", "", BLOCKS)


def test_refers_to_nothing_outside_the_file():
    html = page("A title", "A subtitle", BLOCKS)
    targets = re.findall(r"""(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import (.*)""", html)
    assert len(targets) > 3
    assert all("".join(target).startswith(("data:", "#")) for target in targets)
    assert "://" not in html


def test_code_is_all_that_is_interpreted():
    html = page("A title", "", BLOCKS)
    assert "Run <code>driftbandit reproduce</code> again: a lone ` stays, *so* do &lt;i&gt;" in html
    assert "<li><code>idea</code> first</li>" in html


def test_text_before_any_heading_and_rows_below_the_table():
    table = Table("above", ["a", "b"], [["x", 2.0]], footer=[["in all", "2"]])
    html = page("A title", "", [Text("First.", "dim"), table, Heading("Then")])
    assert '<section id="start">\n<p class="dim">First.</p>' in html
    assert html.count("<li><a") == 1
    body, foot = html.split("<tfoot>")
    assert "in all" in foot
    assert "in all" not in body


def test_hostile_text_shows_verbatim_and_never_runs(tmp_path):
    svg = SVG.format(width=100).replace("<rect", "<script>alert(1)</script><rect onload='alert(1)'")
    blocks = [
        Table(HOSTILE, [HOSTILE], [[HOSTILE], [Cell(HOSTILE, HOSTILE, HOSTILE)]]),
        Figure(HOSTILE, HOSTILE, lambda: Drawn(svg)),
        Facts({HOSTILE: HOSTILE}),
        Text(HOSTILE),
        Points([HOSTILE]),
    ]
    path = tmp_path / "report.html"
    html = page(HOSTILE, HOSTILE, [Heading(HOSTILE, "s"), *blocks])
    path.write_text(html, encoding="utf-8")
    assert HOSTILE not in html
    with open_page(path) as driver:
        assert driver.title == HOSTILE
        for place in PLACES.split(", "):
            elements = driver.find_elements(By.CSS_SELECTOR, place)
            assert elements, place
            assert all(element.text.removesuffix(" #") == HOSTILE for element in elements), place
        (image,) = driver.find_elements(By.TAG_NAME, "img")
        assert image.get_attribute("alt") == HOSTILE
        assert driver.execute_script("return window.hit") is None
        assert_readable(driver)


@pytest.mark.parametrize("dark", [False, True])
def test_reads_well_on_every_screen(report, dark):
    with open_page(report, dark=dark) as driver:
        for width in (1200, 800, 375):
            set_width(driver, width)
            assert_readable(driver)


def test_dark_scheme_turns_the_page_but_not_the_figures(report):
    with open_page(report, dark=True) as driver:
        page, card = (
            driver.find_element(By.CSS_SELECTOR, place).value_of_css_property("background-color")
            for place in ("body", ".picture .scroll")
        )
        assert luminance(page) < 0.05
        assert luminance(card) == pytest.approx(1)


def test_click_sorts_numbers_up_then_down_and_ties_keep_their_order(report):
    with open_page(report) as driver:
        headers = driver.find_elements(By.CSS_SELECTOR, "thead th")
        headers[1].find_element(By.TAG_NAME, "button").click()
        assert column(driver, 1) == ["Random", "IDEA", "KODE", "UCB", "Kalman-UCB"]
        assert [header.get_attribute("aria-sort") for header in headers[:2]] == [None, "ascending"]
        headers[1].find_element(By.TAG_NAME, "button").click()
        assert column(driver, 1) == ["UCB", "IDEA", "KODE", "Random", "Kalman-UCB"]
        assert headers[1].get_attribute("aria-sort") == "descending"

        headers[2].find_element(By.TAG_NAME, "button").click()
        assert column(driver, 3) == ["1.82", "1.84", "2.4", "7.73", "inf"]
        assert [header.get_attribute("aria-sort") for header in headers[1:3]] == [None, "ascending"]
        assert console_problems(driver) == []


def test_keyboard_sorts(report):
    with open_page(report) as driver:
        header = driver.find_element(By.CSS_SELECTOR, "thead th")
        box = driver.find_element(By.CSS_SELECTOR, ".table .scroll")
        box.send_keys(Keys.TAB)  # from the table's box to its first heading
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        assert column(driver, 1) == ["IDEA", "Kalman-UCB", "KODE", "Random", "UCB"]
        driver.switch_to.active_element.send_keys(Keys.SPACE)
        assert column(driver, 1) == ["UCB", "Random", "KODE", "Kalman-UCB", "IDEA"]
        assert header.get_attribute("aria-sort") == "descending"


def test_phone_scrolls_tables_in_their_box_beside_the_first_column(report):
    with open_page(report, width=375) as driver:
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 375
        box = driver.find_element(By.CSS_SELECTOR, ".table .scroll")
        name, number = driver.find_elements(By.CSS_SELECTOR, "tbody tr:first-child > *")[:2]
        places = [cell.rect["x"] for cell in (name, number)]
        driver.execute_script("arguments[0].scrollLeft = 60", box)
        assert [cell.rect["x"] for cell in (name, number)] == [places[0], places[1] - 60]


def test_contents_fold_where_there_is_no_room_and_lead_to_sections(report):
    with open_page(report, width=1200) as driver:
        link = driver.find_element(By.LINK_TEXT, "Figures")
        patience = WebDriverWait(driver, 5)  # the page hears of the new width a frame later
        set_width(driver, 375)
        patience.until(expected_conditions.invisibility_of_element(link))
        set_width(driver, 1200)
        patience.until(expected_conditions.visibility_of(link))
        link.click()
        top = "return document.getElementById('figures').getBoundingClientRect().top"
        assert 0 <= driver.execute_script(top) < 400
        assert driver.current_url.endswith("#figures")


def test_reads_without_scripts(report, tmp_path):
    path = tmp_path / "report.html"
    html = report.read_text(encoding="utf-8")
    path.write_text(re.sub(r"<script>.*</script>", "", html, flags=re.DOTALL), encoding="utf-8")
    with open_page(path, width=375) as driver:
        assert not driver.find_elements(By.TAG_NAME, "button")
        assert driver.find_element(By.LINK_TEXT, "Figures").is_displayed()
        assert_readable(driver)
