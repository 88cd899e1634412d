"""What a learner sees: JupyterLab in Chromium runs lesson 4's first cells, and an exercise to a ✗ and to a ✓."""

import ast
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

STEM = "04_messages"
TOKEN = "a-token-of-the-test"
WAIT = 120_000  # ms: two busy cores
TRIES = 4
FIRST_CELLS = 6  # code cells of the lesson that are run
CHROMIUM = shutil.which("chromium")

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory) -> Path:
    """Where screenshots go: $COURSE_SCREENSHOTS, or a temporary folder."""
    named = os.environ.get("COURSE_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
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
    """A copy of the notebooks, for the browser saves what it opens."""
    for name in ("notebooks", "exercises"):
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
        for attempt in range(TRIES):
            try:
                self.tab.goto(address, wait_until="domcontentloaded")
                self.cells.nth(len(self.sources) - 1).wait_for(state="attached", timeout=WAIT / TRIES)
                idle.wait_for(state="attached", timeout=WAIT / TRIES)
                return
            except TooLong:
                if attempt == TRIES - 1:
                    raise

    def run(self, position: int, text: str | None = None) -> str:
        """Run the code cell at a position, with other text in it if given; returns its output's text."""
        from playwright.sync_api import expect

        cell = self.cells.nth(position)
        prompt = cell.locator(".jp-InputArea-prompt").first
        before = prompt.inner_text()
        cell.scroll_into_view_if_needed()
        if text is not None:
            cell.locator(".cm-content").first.click()
            self.tab.keyboard.press("Control+a")
            self.tab.keyboard.insert_text(text)
        for attempt in range(TRIES):  # a key that came too early for JupyterLab is lost
            prompt.click()
            self.tab.keyboard.press("Control+Enter")
            try:
                expect(prompt).not_to_have_text(before, timeout=WAIT / TRIES)
                break
            except AssertionError:
                if attempt == TRIES - 1:
                    raise
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"), timeout=WAIT)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())

    def shot(self, position: int, file: Path) -> None:
        """Save a screenshot with the cell in view."""
        self.cells.nth(position).scroll_into_view_if_needed()
        self.tab.wait_for_timeout(500)
        self.tab.screenshot(path=str(file))


def code_positions(path: str) -> list[int]:
    """Positions of a notebook's code cells."""
    cells = nbformat.read(ROOT / path, as_version=4).cells
    return [position for position, cell in enumerate(cells) if cell.cell_type == "code"]


def without_first_words(answer: str) -> str:
    """An answer without its docstring, which says how it is judged."""
    body = ast.parse(answer).body
    return "\n".join(answer.splitlines()[body[1].lineno - 1 :])


def test_the_first_cells_of_lesson_4_run_in_the_browser(tab, lab, screenshots):
    path = f"notebooks/{STEM}.ipynb"
    notebook = Notebook(tab, lab, path)
    outputs = [notebook.run(position) for position in code_positions(path)[:FIRST_CELLS]]
    notebook.shot(code_positions(path)[FIRST_CELLS - 1], screenshots / "lesson_4.png")
    assert "4 ranks on this machine" in outputs[0]
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
    assert "○" in notebook.run(check)
    for folder, sign, file in (("wrong", "✗", "exercise_wrong.png"), ("right", "✓", "exercise_right.png")):
        answer = sorted((ROOT / "tests" / "answers" / name / folder).glob("*.py"))[0]
        notebook.run(check - 1, without_first_words(answer.read_text(encoding="utf-8")))
        verdict = notebook.run(check)
        notebook.shot(check, screenshots / file)
        assert f"{sign} {name}" in verdict, f"{answer.name}: {verdict}"
    last = code_positions(path)[-1]
    assert "stop" in notebook.sources[last]
    notebook.run(last)
