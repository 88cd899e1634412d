"""The website: no broken link, no missing picture, readable on a phone, in the dark and by screen readers, no network.

Its pages are built with the outputs that are committed, and one lesson is run. Chromium looks at each; axe-core, from
its npm package, judges names, contrast and structure by the rules of WCAG 2 A and AA.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils.authoring.npm import package_file
from course_utils.authoring.site import build_site, sphinx_python
from course_utils.authoring.slides import CHROMIUM_OPTIONS
from course_utils.authoring.sources import ROOT, AuthoringError

AXE = ("axe-core", "4.10.3", "package/axe.min.js", "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb")
RULES = "axe.run({runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa']}, resultTypes: ['violations']})"
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def built(folder: Path, wanted: list[str] | None = None, run: bool = False) -> Path:
    """A built website; skipped where its packages are not there, which fails under CI=true."""
    try:
        sphinx_python(ROOT)
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))
    list(build_site(ROOT, wanted, out=folder, run=run))
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """All pages, as they are committed. Sphinx refuses every link that leads nowhere."""
    return built(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def lesson(tmp_path_factory) -> Path:
    """The first lesson, run."""
    return built(tmp_path_factory.mktemp("lesson"), ["00"], run=True)


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script."""
    return package_file(*AXE).decode("utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """Chromium; where there is none, the tests are skipped, and fail under CI=true."""
    chromium = shutil.which("chromium")
    if not chromium:
        assert os.environ.get("CI") != "true", "under CI=true Chromium must be there: apt install chromium"
        pytest.skip("no Chromium: install it (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        yield running
        running.close()


class Looked:
    """A tab without a network, and what went wrong in it."""

    def __init__(self, browser, size: dict[str, int], scheme: str = "light") -> None:
        self.tab = browser.new_context(viewport=size, color_scheme=scheme, offline=True).new_page()
        self.wrong: list[str] = []
        self.tab.on("console", self._said)
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.tab.on("requestfailed", lambda request: self.wrong.append(f"not there: {request.url}"))
        self.tab.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def _asked(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.wrong.append(f"asks the network: {request.url}")

    def open(self, page: Path) -> None:
        """Open a page and wait until it is there, formulas too."""
        self.tab.goto(page.as_uri())
        self.tab.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")


def all_pages(folder: Path) -> list[Path]:
    """The website's own pages, decks left out."""
    found = (page.relative_to(folder) for page in sorted(folder.rglob("*.html")))
    return [folder / page for page in found if page.parts[0] not in ("slides", "_static")]


def test_every_lesson_has_its_page_and_no_solution_is_shown(site) -> None:
    for page in (ROOT / "notebooks" / "src").glob("*.py"):
        assert (site / "notebooks" / f"{page.stem}.html").is_file()
    text = "\n".join(page.read_text(encoding="utf-8") for page in (site / "exercises").glob("*.html"))
    assert "your turn" in text and "solutions/" not in text
    assert not (site / "exercises" / "solutions").exists()


def test_pages_open_without_an_error_and_fit_a_phone(site, browser) -> None:
    looked = Looked(browser, PHONE)
    for page in all_pages(site):
        looked.open(page)
        beyond = looked.tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{page.name} is {beyond} pixels too wide"
        assert not looked.wrong, f"{page.name}: {looked.wrong}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_lesson_that_was_run_has_its_pictures_and_keeps_to_the_rules_of_accessibility(
    lesson, browser, scheme
) -> None:
    looked = Looked(browser, DESK, scheme)
    for page in all_pages(lesson):
        looked.open(page)
        looked.tab.add_script_tag(content=axe)
        found = looked.tab.evaluate(RULES)["violations"]
        assert not found, [(page.name, rule["id"], rule["nodes"][0]["html"][:200]) for rule in found]
    looked.open(lesson / "notebooks" / "00_first_steps.html")
    pictures = looked.tab.locator("article img")
    assert pictures.count() >= 2
    for picture in pictures.all():
        assert picture.evaluate("picture => picture.complete && picture.naturalWidth > 0")
        assert len(picture.get_attribute("alt") or "") > 10
    if folder := os.environ.get("COURSE_SCREENSHOTS"):
        looked.tab.screenshot(path=Path(folder) / f"site_{scheme}.png")


def test_the_keyboard_leads_to_the_text_and_the_search_finds_a_lesson(site, browser) -> None:
    looked = Looked(browser, DESK)
    looked.open(site / "index.html")
    looked.tab.keyboard.press("Tab")
    assert "main content" in looked.tab.evaluate("document.activeElement.innerText").lower()
    looked.tab.goto(f"{(site / 'search.html').as_uri()}?q=straggler")
    hit = looked.tab.locator("#search-results li a", has_text="What if nobody waits?").first
    hit.wait_for(timeout=20_000)
    assert not looked.wrong
