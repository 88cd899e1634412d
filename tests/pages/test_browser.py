"""What a learner sees: JupyterLab in Chromium runs lesson 0's first cells, and an exercise to a ✗ and to a ✓.

The panels of verdicts, hints and progress are held to what makes them readable: a name for screen readers, contrast in
both themes, no scrolling sideways in a narrow window.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from run_notebook import GRACE_SECONDS, ROOT, end, leftovers, marked, own_environment

from course_utils import settings
from course_utils.checks.registry import find

STEM = "04_messages"
TOKEN = "a-token-of-the-test"
WAIT = 120_000  # ms: two busy cores
# A page that does not come, and a key that is lost, are asked for again after this many ms, each time more patiently.
LOADING, TRIES = (15_000, 30_000, 60_000, 90_000), (5_000, 15_000, 40_000, 60_000)
FIRST_CELLS = 5  # code cells of lesson 0 that are run: a picture, the ranks, their cores, a prediction, `%%px`
CHROMIUM = shutil.which("chromium")
LEAST_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3
THEMES = ("Light", "Dark")

# The least contrast of the texts in an element with what lies behind them, and the text that has it.
CONTRAST = """element => {
  const pixel = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const pen = pixel.getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const data = pen.getImageData(0, 0, 1, 1).data;
    return [data[0], data[1], data[2], data[3] / 255];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = node => {
    const layers = [];
    for (; node; node = node.parentElement) {
      layers.push(rgba(getComputedStyle(node).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const luminance = colour => {
    const linear = share => share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = colour.slice(0, 3).map(part => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let least = [21, ""];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim(), parent = texts.currentNode.parentElement;
    if (!text || !parent.checkVisibility()) continue;
    const behind = ground(parent), ink = over(rgba(getComputedStyle(parent).color), behind);
    const [bright, dark] = [luminance(ink), luminance(behind)].sort((a, b) => b - a);
    const contrast = (bright + 0.05) / (dark + 0.05);
    if (contrast < least[0]) least = [contrast, text];
  }
  return least;
}"""

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# How many pixels too wide the widest of a cell's outputs is.
TOO_WIDE = """element => {
  const outputs = [...element.querySelectorAll(".jp-OutputArea-output")];
  return Math.max(...outputs.map(output => output.scrollWidth - output.clientWidth));
}"""


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory) -> Path:
    """Where screenshots go: $COURSE_SCREENSHOTS, or a temporary folder."""
    folder = settings.SCREENSHOTS.value() or tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[str]:
    """The address of a JupyterLab on a copy of the course, with `{}` for the notebook; ended with all it started."""
    if not CHROMIUM:
        assert os.environ.get("CI") != "true", "under CI=true Chromium must be there: apt install chromium"
        pytest.skip("no Chromium: install it (Debian: apt install chromium)")
    folder = tmp_path_factory.mktemp("lab")
    environment, runtime = own_environment(folder)
    port = free_port()
    log = folder / "lab.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *lab_options(copy_of_the_course(folder), port)],
            env={**environment, **jupyter_folders(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server, log)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?reset&token={TOKEN}"
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        assert leftovers(runtime, GRACE_SECONDS) == {}
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(20)
        end(marked(runtime))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def copy_of_the_course(folder: Path) -> Path:
    """A copy of the notebooks and of what they show, for the browser saves what it opens."""
    for name in ("notebooks", "exercises", "docs"):
        shutil.copytree(ROOT / name, folder / "course" / name, ignore=shutil.ignore_patterns("src", ".*"))
    return folder / "course"


def lab_options(course: Path, port: int) -> list[str]:
    """What JupyterLab is started with."""
    address = ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}"]
    return ["--no-browser", "--allow-root", f"--ServerApp.root_dir={course}", *address]


def jupyter_folders(folder: Path) -> dict[str, str]:
    """The course's settings and no user's, but for the one that draws every cell, on screen or not."""
    settings = folder / "config" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(json.dumps({"windowingMode": "none"}))
    names = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "jupyter-run", "JUPYTER_DATA_DIR": "jupyter-data"}
    own = {variable: str(folder / name) for variable, name in names.items()}
    return {**own, "JUPYTER_CONFIG_PATH": str(ROOT / ".jupyter")}


def wait_until_up(address: str, server: subprocess.Popen, log: Path) -> None:
    """Return when the server answers."""
    until = time.monotonic() + 120
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"JupyterLab does not answer\n{log.read_text()[-2000:]}")


@pytest.fixture
def tab(lab):
    """A page of Chromium."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options, timeout=WAIT)
        try:
            page = browser.new_page(viewport={"width": 1200, "height": 1000})
            page.set_default_timeout(WAIT)
            yield page
            print("dialogs at the end:", page.locator(".jp-Dialog").all_inner_texts())  # seen where the test fails
        finally:
            browser.close()


class Notebook:
    """A notebook open in JupyterLab."""

    def __init__(self, tab, address: str, path: str):
        self.tab = tab
        self.sources = [cell.source for cell in nbformat.read(ROOT / path, as_version=4).cells]
        self.cells = tab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell")
        self.open(address.format(path))

    def open(self, address: str) -> None:
        """Open the page and wait for its kernel; on a crowded machine now and then neither comes, so ask again."""
        from playwright.sync_api import TimeoutError as TooLong

        idle = self.tab.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first
        for patience in LOADING:
            try:
                self.tab.goto(address, wait_until="domcontentloaded")
                self.cells.nth(len(self.sources) - 1).wait_for(state="attached", timeout=patience)
                idle.wait_for(state="attached", timeout=patience)
                return
            except TooLong:
                print(f"{address}: not loaded within {patience} ms: {self.state()}")
                if patience == LOADING[-1]:
                    raise

    def state(self) -> str:
        """What the page shows of itself and its kernel, for a test that fails."""
        kernel = self.tab.locator(".jp-Notebook-ExecutionIndicator")
        shown = {
            "cells": self.cells.count(),
            "kernel": [one.get_attribute("data-status") for one in kernel.all()],
            "dialogs": self.tab.locator(".jp-Dialog").all_inner_texts(),
        }
        return ", ".join(f"{name}: {value}" for name, value in shown.items())

    def run(self, position: int, text: str | None = None, wait: float = WAIT) -> str:
        """Run the code cell at a position, with other text in it if given; returns its output's text.

        `wait`: milliseconds in which it must come to its end.
        """
        from playwright.sync_api import expect

        cell = self.cells.nth(position)
        prompt = cell.locator(".jp-InputArea-prompt").first
        before = prompt.inner_text()
        cell.scroll_into_view_if_needed()
        if text is not None:
            cell.locator(".cm-content").first.click()
            self.tab.keyboard.press("Control+a")
            self.tab.keyboard.insert_text(text)
        for patience in TRIES:  # a key that came too early for JupyterLab is lost
            prompt.click()
            self.tab.keyboard.press("Control+Enter")
            try:
                expect(prompt).not_to_have_text(before, timeout=patience)
                break
            except AssertionError:
                print(f"cell {position}: no answer to Ctrl+Enter within {patience} ms")
                if patience == TRIES[-1]:
                    raise
        try:
            expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=wait)
        except AssertionError:
            print(f"cell {position}: no end after {wait} ms, so far {cell.locator('.jp-OutputArea').all_inner_texts()}")
            raise
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())

    def unsaved(self) -> bool:
        """Whether JupyterLab marks a notebook as changed."""
        return self.tab.locator(".lm-DockPanel-tabBar .jp-mod-dirty").count() > 0

    def dress(self, theme: str, width: int) -> None:
        """Change the theme, "Light" or "Dark", and the width of the window."""
        self.tab.set_viewport_size({"width": 1280, "height": 1000})
        light = self.tab.locator("body").get_attribute("data-jp-theme-light") == "true"
        if light != (theme == "Light"):
            self.tab.get_by_role("menuitem", name="Settings", exact=True).click()
            self.tab.locator(".lm-Menu-item", has_text="Theme").first.hover()
            self.tab.locator(".lm-Menu-item", has_text=f"JupyterLab {theme}").first.click()
            self.tab.locator(f'body[data-jp-theme-light="{str(theme == "Light").lower()}"]').wait_for(state="attached")
            self.tab.locator("#jupyterlab-splash").wait_for(state="detached")
        self.tab.set_viewport_size({"width": width, "height": 1000})

    def output(self, position: int):
        """What the cell at a position shows."""
        return self.cells.nth(position).locator(".jp-OutputArea").first

    def shot(self, position: int, file: Path) -> None:
        """Save a screenshot with the cell in view."""
        self.cells.nth(position).scroll_into_view_if_needed()
        self.tab.wait_for_timeout(500)
        self.tab.screenshot(path=str(file))


def code_positions(path: str) -> list[int]:
    """Positions of a notebook's code cells."""
    cells = nbformat.read(ROOT / path, as_version=4).cells
    return [position for position, cell in enumerate(cells) if cell.cell_type == "code"]


def test_the_first_cells_of_lesson_0_run_in_the_browser(tab, lab, screenshots):
    path = "notebooks/00_first_steps.ipynb"
    notebook = Notebook(tab, lab, path)
    tab.wait_for_timeout(3000)  # for what JupyterLab may write into a notebook that it has just opened
    assert not notebook.unsaved()
    outputs = [notebook.run(position) for position in code_positions(path)[:FIRST_CELLS]]
    notebook.shot(code_positions(path)[FIRST_CELLS - 1], screenshots / "lesson_0.png")
    assert "4 ranks on this machine" in outputs[1]
    told = "\n".join(outputs)
    assert all(f"rank {rank}" in told for rank in range(4))
    assert not tab.get_by_text("Jupyter news").is_visible()
    assert "Traceback" not in told and "UsageError" not in told


def test_an_exercise_goes_from_not_begun_to_wrong_to_right(tab, lab, screenshots):
    path = f"exercises/{STEM}.ipynb"
    notebook = Notebook(tab, lab, path)
    check = next(i for i, source in enumerate(notebook.sources) if source.startswith("course.check("))
    name = re.search(r'"(\w+)"', notebook.sources[check])[1]
    for position in [position for position in code_positions(path) if position < check]:
        notebook.run(position)
    assert "○ not begun" in notebook.run(check)
    written = find(name).written
    for answer, words, file in (
        (written.wrong[0][0], "✗ not yet", "exercise_wrong.png"),
        (written.right[0], "✓ right", "exercise_right.png"),
    ):
        notebook.run(check - 1, answer.source)
        verdict = notebook.run(check)
        notebook.shot(check, screenshots / file)
        assert f"{words} {name}: " in re.sub(r"\s+", " ", verdict), f"{answer.name}: {verdict}"
    last = code_positions(path)[-1]
    assert "stop" in notebook.sources[last]
    notebook.run(last)


WRONG_AND_TALKATIVE = """def tree_broadcast(comm, vector, root=0):
    print("a line that is so long that it has to be broken somewhere, but please between its words, " * 3)
    if comm.rank == root:
        for other in range(comm.size):
            if other != root:
                comm.Send(vector, other)
    else:
        comm.Recv(vector, root)"""
SHOWN = {  # what is run for each picture, and what a screen reader is told
    "wrong": ('course.check("tree_broadcast", tree_broadcast)', "tree_broadcast: not yet"),
    "hint": ('course.hint("tree_broadcast")', "tree_broadcast: hint 1 of 2"),
    "prediction": (
        'course.predict("rounds", plain=60, doubling=9); course.measured("rounds", plain=63, doubling=6)',
        "Prediction rounds: 1 of 2 hit",
    ),
    "progress": ("course.progress()", "Your progress, lesson by lesson"),
}


@pytest.mark.long
def test_panels_have_names_read_in_both_themes_and_fit_a_narrow_window(tab, lab, screenshots):
    path = f"exercises/{STEM}.ipynb"
    notebook = Notebook(tab, lab, path)
    positions = code_positions(path)
    check = notebook.sources.index('course.check("tree_broadcast", tree_broadcast)')
    for position in [position for position in positions if position < check]:
        notebook.run(position)
    notebook.run(check - 1, WRONG_AND_TALKATIVE)
    cells = dict(zip(SHOWN, [check, *[position for position in positions if position > check]], strict=False))
    for what, (source, name) in SHOWN.items():
        notebook.run(cells[what], source)
        named = notebook.output(cells[what]).locator(f'[aria-label="{name}"]')
        assert named.count() == 1 and named.get_attribute("role") in ("status", "table"), what
    for theme in THEMES:
        for width in (1280, 700):
            notebook.dress(theme, width)
            for what, position in cells.items():
                output = notebook.output(position)
                output.scroll_into_view_if_needed()
                output.screenshot(path=str(screenshots / f"{what}_{theme.lower()}_{width}.png"))
                assert output.evaluate(TOO_WIDE) == 0, f"{what}, {theme}, {width} pixels"
                for shown in output.locator(".jp-OutputArea-output").all():  # the prompt beside it is JupyterLab's
                    contrast, text = shown.evaluate(CONTRAST)
                    assert contrast >= LEAST_CONTRAST, f"{what}, {theme}: {contrast:.1f} of {text!r}"
    verdict = notebook.output(cells["wrong"])
    (picture,) = verdict.locator("img").all()
    assert "Timeline of " in picture.get_attribute("alt")
    assert verdict.locator("pre").evaluate("element => getComputedStyle(element).wordBreak") == "normal"
    notebook.run(positions[-1], "ranks.stop()")
    notebook.output(cells["progress"]).get_by_role(
        "link", name="lesson 0, How do I run code on many processes?"
    ).click()
    tab.locator(".lm-TabBar-tab", has_text="00_first_steps.ipynb").first.wait_for(state="attached")


@pytest.mark.long
def test_a_term_leads_to_its_entry_in_the_glossary(tab, lab, screenshots):
    """The entry is rendered, not shown as source, and scrolled to, although JupyterLab keeps a heading's capitals."""
    Notebook(tab, lab, f"notebooks/{STEM}_further.ipynb")
    tab.locator(".jp-Notebook .jp-RenderedMarkdown a", has_text="VGG-11").first.click()
    entry = tab.locator(".jp-MarkdownViewer h3", has_text="VGG-11")
    entry.wait_for()
    tab.wait_for_function("heading => heading.getBoundingClientRect().top < innerHeight", arg=entry.element_handle())
    tab.screenshot(path=screenshots / "glossary.png")
