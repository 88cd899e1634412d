"""Takes the README's picture of a page: lesson 5 in JupyterLab, with a prediction that has been judged. Run it so:

    .venv/bin/python -m docs.screenshot

It runs the beginning of the lesson with the prediction filled in, opens the result in JupyterLab in Chromium, and
writes screenshot.png beside itself. It needs Chromium, and Linux, because the lesson's links are emulated.
"""

import contextlib
import io
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

from workshop.publish.notebooks import assemble, run_all
from workshop.publish.paper import CHROMIUM_OPTIONS
from workshop.publish.sources import ROOT, pages

STEM, QUESTION, PREDICTION = "05_allreduce", 'course.predict("through_one"', "ms=454"
"""The page, its question, and the answer that the text before the question leads to."""
FIRST_SHOWN, LAST_SHOWN = "Could we have predicted this?", "one.blocks()"
"""The cells at the top and at the bottom of the picture, by what they hold."""
WIDTH, EDGE = 930, 12  # pixels of the browser's window, and around the cells
SHARPNESS = 1.5  # pixels of the picture for each pixel of the window
CELL_SECONDS, START_SECONDS = 300, 60


def executed() -> NotebookNode:
    """The page up to the last cell shown, with the prediction filled in, and the outputs of a run."""
    page = next(page for page in pages(ROOT) if page.stem == STEM)
    notebook = assemble(page, ROOT)
    last = next(at for at, cell in enumerate(notebook.cells) if LAST_SHOWN in cell.source)
    notebook.cells = notebook.cells[: last + 1]
    for cell in notebook.cells:
        if cell.source.startswith(QUESTION):
            cell.source = cell.source.replace("ms=...", PREDICTION)
    return run_all(notebook, page, ROOT, CELL_SECONDS)


@contextlib.contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Serve a folder with a JupyterLab that has settings of its own; yields the address, which opens it."""
    settings = {
        "notebook-extension/tracker": {"windowingMode": "none"},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for name, chosen in settings.items():
        file = folder / ".settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(chosen), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_urlsafe()
    variables = {"JUPYTER_CONFIG_DIR": "config", "JUPYTERLAB_SETTINGS_DIR": ".settings", "JUPYTER_RUNTIME_DIR": "run"}
    variables["JUPYTERLAB_WORKSPACES_DIR"] = "workspaces"
    environment = {**os.environ, **{name: str(folder / place) for name, place in variables.items()}}
    options = [f"--ServerApp.root_dir={folder}", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    options += [f"--IdentityProvider.token={token}", "--no-browser", "--allow-root"]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status?token={token}")
        yield f"http://127.0.0.1:{port}/lab/tree/{STEM}.ipynb?reset&token={token}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def wait_for(address: str) -> None:
    """Wait until a server answers.

    Raises:
        TimeoutError: it does not.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(address).close()
            return
        time.sleep(0.3)
    raise TimeoutError(f"JupyterLab does not answer at {address.partition('?')[0]}")


def photograph(address: str) -> bytes:
    """Return the picture of the cells shown, as PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_OPTIONS)
        tab = browser.new_page(viewport={"width": WIDTH, "height": 5000}, device_scale_factor=SHARPNESS)
        tab.goto(address)
        tab.locator(".jp-Notebook .jp-Cell img").first.wait_for()
        tab.locator(".jp-SideBar.jp-mod-left .lm-mod-current").click()  # closes the list of files
        first, last = (tab.locator(".jp-Cell", has_text=text).first for text in (FIRST_SHOWN, LAST_SHOWN))
        tab.evaluate("document.activeElement.blur()")
        tab.wait_for_timeout(1000)  # until the list of files has gone from the screen
        top, bottom = first.bounding_box(), last.bounding_box()
        shown = {"x": top["x"], "y": top["y"] - EDGE, "width": top["width"]}
        shown["height"] = bottom["y"] + bottom["height"] + EDGE - shown["y"]
        taken = tab.screenshot(clip=shown)
        browser.close()
    return taken


def main() -> None:
    """Run the page, open it, take the picture, and write it with few colours, so that it is small."""
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(executed(), Path(folder) / f"{STEM}.ipynb")
        with jupyterlab(Path(folder)) as address:
            picture = Image.open(io.BytesIO(photograph(address))).convert("RGB")
    target = Path(__file__).with_suffix(".png")
    picture.quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.name}: {picture.width} × {picture.height} pixels, {target.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
