"""Building a deck: slides, notes, mathematics and a PDF, without a network. The course's own decks: test_decks."""

import ast
import os
import re
import shutil
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_utils.measuring import BUSY
from workshop.publish.crowded import crowded
from workshop.publish.mathjax import mathjax_script
from workshop.publish.page_figures import figures_of
from workshop.publish.paper import CHROMIUM_OPTIONS
from workshop.publish.slides import (
    FIGURE,
    build_decks,
    count_slides,
    decks,
    draw_figures,
    next_slides,
    with_alt_texts,
)
from workshop.publish.sources import ROOT, AuthoringError, pages, read_cells

SMALL = """\
# A small deck

## A formula

$$ T = \\alpha + \\beta n $$

:::{revealjs-notes}
Ask the room.
:::

---

### A picture

```{figure} figures/90_line.png
:alt: A line that rises.
```

---

no heading, one more slide
"""
FIGURES = """\
from matplotlib.figure import Figure


def line() -> Figure:
    figure = Figure()
    figure.subplots().plot([1, 2, 3])
    return figure


FIGURES = {"90_line": line}
"""
OUTSIDE = re.compile(r"(?:https?:)?//")
CHROMIUM = shutil.which("chromium")
LARGEST_PDF = 4_000_000


class Loaded(HTMLParser):
    """What a page loads by itself, and what its slides hold."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list[str] = []
        self.without_alt: list[str] = []
        self.notes = self.pictures = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed"):
            self.addresses.append(attributes.get("src") or "")
        if tag == "link":
            self.addresses.append(attributes.get("href") or "")
        if tag == "img":
            self.pictures += 1
            if len(attributes.get("alt") or "") < 10 or (attributes["alt"] or "").endswith(".png"):
                self.without_alt.append(attributes.get("src") or "")
        self.notes += tag == "aside" and attributes.get("class") == "notes"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """The folder with a small deck, built."""
    root = tmp_path_factory.mktemp("decks")
    shutil.copytree(ROOT / "slides" / "style", root / "slides" / "style")
    shutil.copy(ROOT / "slides" / "conf.py", root / "slides")
    cache = ROOT / "slides" / "build" / "cache"
    if cache.is_dir():
        shutil.copytree(cache, root / "slides" / "build" / "cache")
    (root / "slides" / "src").mkdir()
    (root / "slides" / "src" / "90_small.md").write_text(SMALL, encoding="utf-8")
    (root / "slides" / "src" / "90_small.py").write_text(FIGURES, encoding="utf-8")
    try:
        mathjax_script(root / "slides" / "build" / "cache")
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))
    list(build_decks(root))
    if not cache.is_dir():
        shutil.copytree(root / "slides" / "build" / "cache", cache)
    return root


def needs_chromium() -> None:
    """Skip where there is no Chromium; under CI that is a failure."""
    if not CHROMIUM:
        assert os.environ.get("CI") != "true", "under CI=true Chromium must be there: apt install chromium"
        pytest.skip("no Chromium: install it (Debian: apt install chromium)")


@pytest.mark.timeout(300)
def test_headings_and_lines_begin_slides_and_notes_are_kept(small):
    page = small / "slides/build/90_small/index.html"
    assert count_slides(page) == 4
    loaded = Loaded(page.read_text(encoding="utf-8"))
    assert (loaded.notes, loaded.pictures, loaded.without_alt) == (1, 1, [])


def outside_addresses(deck: Path) -> list[str]:
    """Addresses of scripts, styles, fonts and pictures that a built deck would fetch from elsewhere."""
    found = [a for page in deck.rglob("*.html") for a in Loaded(page.read_text(encoding="utf-8")).addresses]
    for style in deck.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", style.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += re.findall(r"url\(\s*['\"]?([^'\")]+)", text) + re.findall(r"@import\s+['\"]([^'\"]+)", text)
    for script in deck.rglob("*.js"):
        found += re.findall(r"https?://[\w.-]*(?:cdn|unpkg|googleapis)[^\s\"']*", script.read_text(encoding="utf-8"))
    return [address for address in found if OUTSIDE.match(address)]


@pytest.mark.timeout(300)
def test_a_deck_names_no_script_style_or_font_from_elsewhere(small):
    deck = small / "slides/build/90_small"
    assert outside_addresses(deck) == []
    assert "mathjax/tex-svg.js" in (deck / "index.html").read_text(encoding="utf-8")
    assert (deck / "_static/mathjax/tex-svg.js").is_file()


@pytest.mark.timeout(300)
def test_an_address_from_elsewhere_would_be_found(small, tmp_path):
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example.org/x.js"></script><link href="//fonts.example">'
    )
    (tmp_path / "a.css").write_text("@import url(https://fonts.example.org/css); /* url(https://in.a.comment) */")
    (tmp_path / "a.js").write_text('load("https://cdn.example.org/y.js")')
    assert len(outside_addresses(tmp_path)) == 4


@pytest.mark.browser
@pytest.mark.timeout(300)
def test_a_deck_presents_offline_and_formulas_are_drawn(small):
    needs_chromium()
    requests, drawn = look(small / "slides/build/90_small/index.html")
    assert drawn == 1
    assert [address for address in requests if not address.startswith(("file:", "data:"))] == []


@pytest.mark.browser
@pytest.mark.timeout(300)
def test_what_does_not_fit_on_a_slide_is_told():
    needs_chromium()
    page = '<div class="pdf-page" style="position: relative; width: 1280px; height: {}px; overflow: hidden">{}</div>'
    picture = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='999'/>"
    slides = (
        (720, "<h2>Fine</h2><pre><code>x = 1</code></pre><aside><p style='margin-left: 2000px'>a note</p></aside>"),
        (720, "<p style='width: 1400px'>too wide</p>"),
        (720, f"<pre style='width: 300px'><code style='display: block; overflow: auto'>{'long' * 30}</code></pre>"),
        (1440, "<p>Two pages</p>"),
        (720, f'<img style="width: 20px" src="{picture}">'),
    )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        tab = browser.new_context(offline=True).new_page()
        tab.set_content(
            "<body style='margin: 0'>" + "".join(page.format(*slide) for slide in slides), wait_until="load"
        )
        told = crowded(tab)
        browser.close()
    assert [line.partition(":")[0] for line in told] == ["slide 2", "slide 3", "slide 4", "slide 5"]
    words = ("too wide” is 120 pixels over the edge", "has to be scrolled", "more than fits", "too small to read")
    assert all(word in line for word, line in zip(words, told, strict=True)), told


def look(page: Path) -> tuple[list[str], int]:
    """Open a deck in Chromium without a network; returns what it asked for and how many formulas it drew."""
    from playwright.sync_api import sync_playwright

    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        try:
            tab = browser.new_context(offline=True).new_page()
            tab.set_default_timeout(120_000)
            tab.on("request", lambda request: requests.append(request.url))
            tab.goto(page.as_uri())
            tab.wait_for_function("Reveal.isReady() && (!window.MathJax || MathJax.startup.promise)")
            tab.evaluate("window.MathJax ? MathJax.startup.promise.then(() => true) : true")
            return requests, tab.locator("mjx-container svg").count()
        finally:
            browser.close()


def pages_of(pdf: Path) -> int:
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


def faults_of(pdf: Path) -> list[str]:
    """What would show on another computer or on paper: fonts that are not in the file, empty pages, too many bytes."""
    data = pdf.read_bytes()
    objects = dict(re.findall(rb"(?:^|\n)(\d+) 0 obj\b(.*?)endobj", data, re.DOTALL))
    faults = [f"{name.decode()} is not in it" for name in re.findall(rb"/BaseFont\s*/((?![A-Z]{6}\+)\S+)", data)]
    pages = [body for body in objects.values() if re.search(rb"/Type\s*/Page\b", body)]
    for number, body in enumerate(pages, 1):
        shown = objects[re.search(rb"/Contents (\d+) 0 R", body)[1]]
        stream = zlib.decompressobj().decompress(shown.partition(b"stream")[2].lstrip(b"\r\n"))
        if not re.search(rb"\bT[jJ]\b", stream):
            faults.append(f"page {number} holds no text")
    return faults + ([f"{len(data)} bytes"] if len(data) > LARGEST_PDF else [])


@pytest.mark.browser
@pytest.mark.timeout(300)
def test_the_pdf_has_a_page_for_each_slide_and_its_own_fonts(small, tmp_path):
    needs_chromium()
    pdf = small / "slides/build/90_small.pdf"
    assert pages_of(pdf) == 4 and faults_of(pdf) == []
    without = tmp_path / "without.pdf"
    without.write_bytes(re.sub(rb"/BaseFont /[A-Z]{6}\+", b"/BaseFont /", pdf.read_bytes()))
    assert faults_of(without)


def test_a_line_in_a_listing_or_before_a_heading_begins_no_slide():
    text = "## One\n\n```yaml\n---\n```\n\n---\n\n## Two\n"
    assert next_slides(text) == text.replace("\n---\n\n## Two", "\n\n## Two")
    assert next_slides("a\n\n---\n\nb\n").count("{revealjs-break}") == 1


def test_a_picture_that_nothing_draws_is_rejected(tmp_path):
    deck = tmp_path / "91_none.md"
    deck.write_text("![A line](figures/91_line.png)")
    with pytest.raises(AuthoringError, match="no 91_none.py"):
        draw_figures(ROOT, deck, tmp_path / "figures")
    (tmp_path / "91_none.py").write_text(FIGURES)
    with pytest.raises(AuthoringError, match="91_line, which 91_none.py does not draw"):
        draw_figures(ROOT, deck, tmp_path / "figures")


@pytest.mark.long
def test_a_draft_takes_the_smaller_settings_that_its_file_names(tmp_path):
    deck, source = tmp_path / "92_runs.md", tmp_path / "92_runs.py"
    deck.write_text("![A line](figures/92_line.png)")
    counted = FIGURES.replace("90_line", "92_line").replace("[1, 2, 3]", "RUNS")
    source.write_text(f"RUNS = [1, 2, 3]\n{counted}DRAFT = {{'RUNS': [3, 1]}}\n")
    drawn = []
    for draft in (False, True):
        draw_figures(ROOT, deck, tmp_path / "figures", draft)
        drawn.append((tmp_path / "figures/92_line.png").read_bytes())
    assert drawn[0] != drawn[1]
    source.write_text(f"{counted}DRAFT = {{'RUN': 2}}\n")
    with pytest.raises(AuthoringError, match="DRAFT of 92_runs.py names RUN, which the file does not hold"):
        draw_figures(ROOT, deck, tmp_path / "figures")


PAGE = """\
# %% [markdown]
# # A page

# %%
import matplotlib.pyplot as plt

points = [1, 2, 3]

# %% tags=["figure:93_line"]
picture, ax = plt.subplots()
ax.plot(points)
picture.alt_text = f"A line through {points}."
picture

# %%
print("behind the last figure nothing is run" / 2)
"""
SLIDES = """\
```{figure} figures/93_line.png
```
![](figures/93_own.png) ![](figures/93_alone.png)
"""
DECK = """\
from matplotlib.figure import Figure

PAGE = {"points": [3, 1]}


def own(page):
    figure = Figure()
    figure.subplots().plot(page.points)
    return figure


def alone(points=(1, 2)):
    figure = Figure()
    figure.subplots().plot(points)
    return figure


FIGURES = {"93_own": own, "93_alone": alone}
"""


@pytest.mark.parametrize("deck", [deck.stem for deck in decks()])
def test_no_deck_defines_again_what_its_page_defines(deck):
    """A function of both would be an experiment in two places, which can disagree."""

    def functions(source: str) -> set[str]:
        return {node.name for node in ast.parse(source).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}

    sources = [ROOT / page.source for page in pages() if page.teaches and page.lesson == deck]
    code = [cell.source for source in sources for cell in read_cells(source) if cell.cell_type == "code"]
    cells = [source for source in code if not source.startswith("%")]
    on_the_page = set().union(*map(functions, cells))
    own = ROOT / "slides/src" / f"{deck}.py"
    of_the_deck = functions(own.read_text(encoding="utf-8")) if own.is_file() else set()
    assert of_the_deck & on_the_page == set()


@pytest.fixture
def deck_with_page(tmp_path) -> Path:
    """A deck with three figures, one of which its page draws."""
    for name, text in {
        "notebooks/src/93_page.py": PAGE,
        "slides/src/93_page.md": SLIDES,
        "slides/src/93_page.py": DECK,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / "slides/src/93_page.md"


def test_a_figure_of_the_page_is_drawn_by_the_page_with_the_decks_settings(deck_with_page, tmp_path):
    draw_figures(ROOT, deck_with_page, tmp_path / "figures")
    assert (tmp_path / "figures/93_own.png").is_file()
    text = with_alt_texts(deck_with_page.read_text(encoding="utf-8"), tmp_path / "figures")
    assert "figures/93_line.png\n:alt: A line through [3, 1].\n```" in text
    assert with_alt_texts(text, tmp_path / "figures") == text


def test_a_further_notebook_draws_figures_too_with_the_decks_settings(deck_with_page, tmp_path):
    further = tmp_path / "notebooks/src/93_page_further.py"
    further.write_text(PAGE.replace("93_line", "93_more").replace("points", "corners"), encoding="utf-8")
    assert figures_of("93_page", tmp_path) == ["93_line"]
    deck_with_page.write_text(SLIDES + "![](figures/93_more.png)", encoding="utf-8")
    assert figures_of("93_page", tmp_path) == ["93_line", "93_more"]
    deck = deck_with_page.with_suffix(".py")
    own = DECK.replace('{"points"', '{"corners": [2, 5], "points"').replace("page.points", "page.points + page.corners")
    deck.write_text(own, encoding="utf-8")
    draw_figures(ROOT, deck_with_page, tmp_path / "figures")
    said = {name: (tmp_path / "figures" / f"{name}.txt").read_text() for name in ("93_line", "93_more")}
    assert said == {"93_line": "A line through [3, 1].", "93_more": "A line through [2, 5]."}


def test_a_page_may_draw_all_figures_and_a_busy_machine_is_told(deck_with_page, tmp_path):
    deck_with_page.with_suffix(".py").unlink()
    deck_with_page.write_text("![](figures/93_line.png)")
    assert draw_figures(ROOT, deck_with_page, tmp_path / "figures") == []
    page = tmp_path / "notebooks/src/93_page.py"
    page.write_text(PAGE.replace("A line through {points}", BUSY), encoding="utf-8")
    (warning,) = draw_figures(ROOT, deck_with_page, tmp_path / "figures")
    assert warning == "93_line says that the machine was busy: build this deck again"


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("notebooks/src/93_page.py", "points = [1, 2, 3]\n", "1 / 0\n", "ZeroDivisionError"),
        ("notebooks/src/93_page.py", "\npicture\n", "\n", "the cell of 93_line ends with no figure"),
        ("slides/src/93_page.py", '"points"', '"point"', "93_page assigns no point, which its deck sets"),
        ("slides/src/93_page.py", '"93_own": own', '"93_line": own', "93_page.py draws 93_line, which the page draws"),
    ],
)
def test_what_deck_and_page_do_not_agree_on_is_said(deck_with_page, tmp_path, file, old, new, says):
    source = tmp_path / file
    source.write_text(source.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(AuthoringError, match=re.escape(says)):
        draw_figures(ROOT, deck_with_page, tmp_path / "figures")


@pytest.mark.parametrize("deck", decks(), ids=lambda deck: deck.stem)
def test_a_figure_that_a_page_names_is_on_a_slide(deck):
    assert set(figures_of(deck.stem)) <= set(FIGURE.findall(deck.read_text(encoding="utf-8")))
