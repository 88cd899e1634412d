"""The website: no broken link, no missing picture, readable on a phone, in the dark and by screen readers, no network.

It is built with the outputs that are committed, the first lesson with those of a run. Chromium opens every page, once;
axe-core, from its npm package, judges names, contrast and structure by the rules of WCAG 2 A and AA.
COURSE_SITE=site/build looks at a website that is built already: then axe-core judges every page.
"""

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from course_utils import settings
from workshop.publish.npm import package_file
from workshop.publish.paper import CHROMIUM_OPTIONS
from workshop.publish.site import build_site, order, sphinx_python
from workshop.publish.sources import ROOT, AuthoringError, pages

AXE = ("axe-core", "4.10.3", "package/axe.min.js", "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb")
RULES = """axe.run({runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
                     resultTypes: ["violations"], preload: false})"""
BUILT = settings.SITE.value()
RUN = "00_first_steps"
JUDGED = (
    "index.html",
    "search.html",
    f"notebooks/{RUN}.html",
    f"exercises/{RUN}.html",
    "docs/sources.html",
    "docs/plans.html",
)
DESK, PHONES = {"width": 1280, "height": 900}, ({"width": 390, "height": 844}, {"width": 320, "height": 640})
WAIT = 120_000  # ms: two busy cores
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
WIDEST = """[...document.querySelectorAll("article *")].filter(
    e => e.getBoundingClientRect().right > innerWidth && !e.closest("pre, .output")).slice(-1).map(
    e => e.outerHTML.slice(0, 200))"""
LOST = """[...document.images].filter(
    e => !e.complete || !e.naturalWidth || (e.closest("article") && e.alt.trim().length < 15)).map(
    e => `picture ${e.src.slice(0, 80)} with the words "${e.alt}"`)"""
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The website's folder; skipped where the packages that build it are not there, which fails under CI=true."""
    if BUILT:
        return (ROOT / BUILT).resolve()
    try:
        sphinx_python(ROOT)
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("site")
    told = list(build_site(ROOT, out=folder, only_run=[RUN]))
    assert any(f"notebooks/{RUN}.ipynb: run in " in line for line in told)
    return folder


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


class Tab:
    """A tab of the browser, and what went wrong in it: errors, files that are not there, requests to a network."""

    def __init__(self, browser, size: dict[str, int] = DESK, scheme: str = "light", server: str = "") -> None:
        # Without motion: the theme fades from light to dark, and axe-core would judge the colours on the way.
        calm = {"color_scheme": scheme, "reduced_motion": "reduce"}
        self.page = browser.new_context(viewport=size, offline=not server, **calm).new_page()
        self.page.set_default_timeout(WAIT)
        self.allowed = ("file:", "data:", "blob:", *([server] if server else []))
        self.wrong: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"not there: {request.url}"))
        self.page.on("request", self._asked)

    def _said(self, message) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def _asked(self, request) -> None:
        if not request.url.startswith(self.allowed):
            self.wrong.append(f"asks the network: {request.url}")

    def open(self, page: Path) -> None:
        """Open a page and wait until it is there, formulas too."""
        self.page.goto(page.as_uri())
        self.page.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")


def all_pages(site: Path) -> list[Path]:
    """The website's own pages, decks left out."""
    found = (page.relative_to(site) for page in sorted(site.rglob("*.html")))
    return [site / page for page in found if page.parts[0] not in ("slides", "_static")]


class Links(HTMLParser):
    """The ids of a page, and what it links to or shows."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src", "action") and value:
                self.targets.add(value)


links_of = functools.cache(Links)


def test_a_folder_that_holds_something_else_is_left_as_it_is(tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(AuthoringError, match="is not a website"):
        next(build_site(ROOT, out=tmp_path))
    assert (tmp_path / "thesis.tex").is_file()


def test_every_lesson_has_its_page_and_no_solution_is_shown(site) -> None:
    for page in pages(ROOT):
        if page.kind != "solution":
            assert (site / page.target.with_suffix(".html")).is_file()
    text = "\n".join(page.read_text(encoding="utf-8") for page in (site / "exercises").glob("*.html"))
    assert "your turn" in text and "solutions/" not in text
    assert not (site / "exercises" / "solutions").exists()


def test_every_link_leads_to_a_file_and_a_place_that_are_there(site) -> None:
    broken = []
    for page in site.rglob("*.html"):
        for target in links_of(page).targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            deck = page.is_relative_to(site / "slides")  # reveal.js writes the number of the slide behind the #
            there = file.exists() and (not place or deck or file.suffix != ".html" or place in links_of(file).ids)
            if not there or not file.is_relative_to(site):
                broken.append(f"{page.relative_to(site)}: {target}")
    assert not broken


class Buttons(HTMLParser):
    """Where the buttons at the end of a page lead, "prev" and "next"."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.lead: dict[str, str] = {}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("class") in ("left-prev", "right-next"):
            self.lead[given["class"].partition("-")[2]] = given["href"]


def test_the_buttons_at_the_end_of_a_notebook_lead_where_its_bars_lead(site) -> None:
    for name, around in order([page for page in pages(ROOT) if page.kind != "solution"]).items():
        page = site / f"{name}.html"
        lead = {button: (page.parent / target).resolve() for button, target in Buttons(page).lead.items()}
        assert lead == {button: site / f"{other}.html" for button, other in around.items()}, name
        contents = re.findall(r'href="([^"]+)"><span[^>]*>all lessons<', page.read_text(encoding="utf-8"))
        assert contents == ["../index.html"] * 2, name


@pytest.mark.long
def test_pages_open_without_an_error_show_their_pictures_and_fit_a_phone(site, browser) -> None:
    tab, wrong = Tab(browser), []
    for page in all_pages(site):
        tab.page.set_viewport_size(DESK)
        tab.open(page)
        found = [*tab.wrong, *tab.page.evaluate(LOST)]
        for size in PHONES:
            tab.page.set_viewport_size(size)
            if beyond := max(0, tab.page.evaluate(TOO_WIDE)):
                found.append(f"{beyond} too wide at {size['width']}: {tab.page.evaluate(WIDEST)}")
        wrong += [f"{page.relative_to(site)}: {what}" for what in found]
        tab.wrong.clear()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("size", [DESK, PHONES[0]], ids=["desk", "phone"])
def test_a_page_offers_one_way_to_search(site, browser, size) -> None:
    tab = Tab(browser, size)
    tab.open(site / "index.html")
    assert tab.page.locator(".search-button__button:visible").count() == 1


def test_the_front_page_gives_a_reason_and_a_way_in_for_each_user(site) -> None:
    front = site / "index.html"
    doors = {"notebooks/00_first_steps.html", "docs/install.html", "docs/teachers.html", "docs/clusters.html"}
    assert doors <= links_of(front).targets
    assert front.read_text(encoding="utf-8").count("<img") >= 2


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_pages_keep_to_the_rules_of_accessibility(site, browser, axe, scheme) -> None:
    tab, wrong = Tab(browser, scheme=scheme), []
    for page in all_pages(site) if BUILT else [site / name for name in JUDGED]:
        tab.open(page)
        tab.page.evaluate(axe)
        for rule in tab.page.evaluate(RULES)["violations"]:
            first = rule["nodes"][0]
            wrong.append(f"{page.relative_to(site)}: {rule['id']}, {len(rule['nodes'])} times: {first['html'][:200]}")
        if (folder := settings.SCREENSHOTS.value()) and page.stem == RUN:
            tab.page.screenshot(path=folder / f"site_{page.parent.name}_{scheme}.png")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script."""
    return package_file(*AXE).decode("utf-8")


@pytest.mark.long
def test_the_keyboard_leads_to_the_text_through_the_menu_and_to_what_is_searched(site, browser) -> None:
    tab = Tab(browser)
    tab.open(site / "index.html")
    tab.page.keyboard.press("Tab")
    assert "main content" in tab.page.evaluate("document.activeElement.innerText").lower()
    tab.page.keyboard.press("Enter")
    assert "#main-content" in tab.page.url
    tab.page.keyboard.press("Control+k")
    tab.page.keyboard.type("straggler")
    tab.page.keyboard.press("Enter")
    hit = tab.page.locator("#search-results li a", has_text="What if nobody waits?").first
    hit.wait_for()
    hit.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/notebooks/08_parameter_server.html*")
    assert not tab.wrong


@pytest.mark.long
def test_on_a_phone_the_keyboard_opens_the_menu_and_the_contents_and_turns_the_page_dark(site, browser) -> None:
    tab = Tab(browser, PHONES[0])
    tab.open(site / "notebooks" / f"{RUN}.html")
    keys = tab.page.keyboard
    for button, opened in (("primary-toggle", "Lessons"), ("secondary-toggle", "Contents")):
        for _ in range(8):
            keys.press("Tab")
            if button in tab.page.evaluate("document.activeElement.className"):
                break
        keys.press("Enter")
        tab.page.locator("dialog[open]", has_text=opened).wait_for()
        keys.press("Escape")
        tab.page.locator("dialog[open]").wait_for(state="detached")
        assert button in tab.page.evaluate("document.activeElement.className")
    tab.page.locator("button.theme-switch-button:visible").focus()
    keys.press("Enter")
    tab.page.locator(".theme-change-button[data-mode=dark]:visible").focus()
    keys.press("Enter")
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert not tab.wrong


@pytest.mark.long
def test_a_web_server_adds_to_the_search_the_words_around_a_hit(site, browser) -> None:
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        tab = Tab(browser, server=address)
        tab.page.goto(f"{address}/search.html?q=straggler")
        tab.page.locator("#search-results li .context", has_text="straggler").first.wait_for()
        server.shutdown()
    assert not tab.wrong


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A web server that writes no log."""

    def log_message(self, *_) -> None:
        """Say nothing."""
