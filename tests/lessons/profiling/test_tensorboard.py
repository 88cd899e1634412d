"""TensorBoard on traces of the course: its plugin reads them, and its Trace view draws them in Chromium.

The tab PYTORCH_PROFILER fetches two scripts from the network, Google's chart loader and a polyfill that the Trace view
needs. The test serves the first one empty (there are no charts in a trace), and the second one from its npm package.
"""

import functools
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import course_utils as course
from course_utils import settings
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.profiling.record_profiles import profile_ranks, training_step
from course_utils.syllabus import ROOT
from tests.pages.test_browser import CHROMIUM, free_port
from workshop.publish.npm import package_file
from workshop.publish.sources import AuthoringError

BESIDE = ROOT / ".venv" / "tensorboard" / "bin" / "tensorboard"
PLUGIN = "/data/plugin/pytorch_profiler"
POLYFILL = "webcomponents.js", "0.7.24", "package/webcomponents.min.js"
POLYFILL_SHA256 = "3858273ab39b299e7c2227f0830534afafaabf4a572c9ea73c2076fecbd8978c"
WAIT = 90_000  # ms: two busy cores
NO_CHARTS = """
const nothing = new Proxy(function () {}, {
  get: (_, name) => name === "then" ? undefined : name === Symbol.toPrimitive ? () => 0 : nothing,
  apply: () => nothing, construct: () => nothing,
});
const charts = {load: () => Promise.resolve(), setOnLoadCallback: call => call()};
window.google = {charts, visualization: nothing};
"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def command() -> Path:
    """TensorBoard's, beside the course or in it."""
    for place in (BESIDE, Path(sys.executable).with_name("tensorboard")):
        if place.exists():
            return place
    pytest.skip("TensorBoard is not installed: tools/set-up-tensorboard puts it beside the course")


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory) -> Iterator[str]:
    """The address of a TensorBoard with two runs: the traces of two ranks, and their merged trace."""
    program, folder, port = command(), tmp_path_factory.mktemp("profiles"), free_port()
    way = functools.partial(overlapped, bucket_bytes=1 << 19)
    ranks = course.start(2)
    found = profile_ranks(ranks, training_step, way, batch=4, steps=2)
    ranks.stop()
    found.write_for_tensorboard(folder / "ranks")
    found.write(folder / "merged" / "all_ranks.pt.trace.json.gz")
    log = folder / "tensorboard.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [program, "--logdir", folder, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_loaded(f"http://127.0.0.1:{port}", server, log)
        yield f"http://127.0.0.1:{port}"
        assert "Error in input data" not in log.read_text(), log.read_text()
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)


def wait_until_loaded(address: str, server: subprocess.Popen, log: Path) -> None:
    """Ask until the plugin has read both runs."""
    for _ in range(WAIT // 500):
        assert server.poll() is None, log.read_text()
        try:
            answer = asked(address, "/runs")
        except (OSError, ValueError):  # not up yet
            answer = {"runs": []}
        if len(answer["runs"]) == 2 and not answer["loading"]:
            return
        time.sleep(0.5)
    pytest.fail(f"TensorBoard has not read the traces: {log.read_text()}")


def asked(address: str, question: str) -> dict | list:
    """What the plugin answers."""
    with urllib.request.urlopen(f"{address}{PLUGIN}{question}", timeout=20) as answer:
        data = answer.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def test_the_plugin_reads_our_traces(tensorboard) -> None:
    assert sorted(asked(tensorboard, "/runs")["runs"]) == ["merged", "ranks"]
    views = asked(tensorboard, "/views?run=ranks")
    assert {"Overview", "Operator", "Trace", "Distributed"} <= set(views)
    assert asked(tensorboard, "/workers?run=ranks&view=Trace") == ["rank0", "rank1"]
    for run, worker in (("ranks", "rank1"), ("merged", "all_ranks")):
        (span,) = asked(tensorboard, f"/spans?run={run}&worker={worker}")
        events = asked(tensorboard, f"/trace?run={run}&worker={worker}&span={span}")["traceEvents"]
        names = {event.get("name") for event in events}
        assert {"gloo:all_reduce", "aten::convolution_backward", "backward", "ProfilerStep#1"} <= names
    assert {"rank 0", "rank 1"} <= {event["args"]["name"] for event in events if event["name"] == "process_name"}


def test_the_plugin_finds_communication_and_overlap(tensorboard) -> None:
    (span,) = asked(tensorboard, "/spans?run=ranks&worker=All")
    text = json.dumps(asked(tensorboard, f"/distributed/overlap?run=ranks&worker=All&span={span}"))
    assert "rank0" in text and "rank1" in text and "Communication" in text


def polyfill() -> bytes:
    """The script that the Trace view would fetch from the network."""
    try:
        return package_file(*POLYFILL, POLYFILL_SHA256)
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def page(tensorboard):
    """A page of Chromium on TensorBoard, without a network."""
    if not CHROMIUM:
        assert os.environ.get("CI") != "true", "under CI=true Chromium must be there: apt install chromium"
        pytest.skip("no Chromium: install it (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    served = {"loader.js": NO_CHARTS.encode(), "webcomponents.min.js": polyfill()}

    def answer(route) -> None:
        address = route.request.url
        if address.startswith((tensorboard, "data:", "blob:")):
            return route.continue_()
        body = served.get(address.rpartition("/")[2])
        return route.abort() if body is None else route.fulfill(body=body, content_type="text/javascript")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(WAIT)
        opened.route("**/*", answer)
        opened.goto(f"{tensorboard}/#pytorch_profiler", wait_until="commit")
        yield opened
        browser.close()


@pytest.mark.browser
def test_the_trace_view_draws_all_ranks(page) -> None:
    tab = page.frame_locator("iframe").first
    choose(tab, 0, "merged")
    choose(tab, 1, "Trace")
    trace = tab.frame_locator("iframe")
    for rank in (0, 1):
        trace.get_by_text(re.compile(rf"\brank {rank}\b")).locator("visible=true").first.wait_for()
    drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB").crop((620, 130, 1200, 590))  # right of the names
    if folder := settings.SCREENSHOTS.value():
        folder.mkdir(parents=True, exist_ok=True)
        drawn.save(folder / "tensorboard_trace.png")
    assert coloured_share(drawn) > 0.02, "the rows of the trace are empty"


def choose(tab, place: int, name: str) -> None:
    """Choose one of the tab's lists: 0 the run, 1 the view."""
    tab.get_by_role("button").filter(has_text=re.compile(r"^(merged|ranks|Overview|Trace)$")).nth(place).click()
    tab.get_by_role("option", name=name, exact=True).click()


def coloured_share(picture: Image.Image) -> float:
    """Which share of the pixels is no grey."""
    pixels = np.asarray(picture, dtype=int)
    return float(np.mean(pixels.max(axis=2) - pixels.min(axis=2) > 30))
