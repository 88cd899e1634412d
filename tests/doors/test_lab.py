"""`make lab`: JupyterLab on the loopback address, landing on the first lesson, without questions."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.manager import KernelManager

from course_utils import lab
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS, ROOT


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind((lab.ADDRESS, 0))
        listener.listen()
        yield listener.getsockname()[1]


@contextlib.contextmanager
def serving(folder: Path, port: int, *options: str) -> Iterator[tuple[subprocess.Popen, list[str]]]:
    """JupyterLab, with the lines it printed until it said how to stop it."""
    own = {name: str(folder / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    other = folder / "JUPYTER_DATA_DIR" / "kernels" / "python3" / "kernel.json"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({"argv": ["another-python"], "display_name": "Another Python", "language": "python"}))
    environment = {**os.environ, **own}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "course_utils.lab", "--port", str(port), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    lines = []
    try:
        for line in server.stdout:
            lines.append(line.rstrip())
            if "Ctrl+C" in line:
                break
        yield server, lines
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture
def served(taken_port: int, tmp_path) -> Iterator[tuple[subprocess.Popen, list[str], int]]:
    """JupyterLab asked for a port that is taken."""
    with serving(tmp_path, taken_port) as (server, lines):
        yield server, lines, taken_port


def test_lab_serves_the_first_lesson_on_the_loopback_address(served) -> None:
    server, lines, taken = served
    address = next(line.strip() for line in lines if "http://" in line)
    port = int(re.search(r":(\d+)/", address)[1])
    assert lines[0] == f"Port {taken} is in use, so JupyterLab takes port {port}."
    assert len(lines) == 4, lines
    assert "/lab/tree/notebooks/00_first_steps.ipynb?token=" in address
    assert urllib.request.urlopen(address, timeout=60).status == 200
    listening = {one.laddr.ip for one in psutil.Process(server.pid).net_connections("tcp") if one.status == "LISTEN"}
    assert listening == {"127.0.0.1"}

    def answer(path: str) -> dict:
        token = address.partition("token=")[2]
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}?token={token}", timeout=60))

    assert answer("api/kernelspecs")["kernelspecs"]["python3"]["spec"]["argv"][0] != "another-python"
    news = answer("lab/api/settings/@jupyterlab/apputils-extension:notification")
    defaults = {name: value["default"] for name, value in news["schema"]["properties"].items()}
    assert defaults["fetchNews"] == "false"
    assert defaults["checkForUpdates"] is False

    server.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 60
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert server.poll() is not None, "one Ctrl+C ends it, without a question"


def test_the_terminal_stays_quiet_when_a_kernel_starts_and_pages_get_the_style(served) -> None:
    server, lines, _ = served
    base, token = re.search(r"(http://[^/]+)/.*token=(\w+)", "\n".join(lines)).groups()

    def ask(path: str, method: str = "GET", **content: object) -> bytes:
        data = json.dumps(content).encode() if content else None
        request = urllib.request.Request(f"{base}/{path}?token={token}", method=method, data=data)
        return urllib.request.urlopen(request, timeout=60).read()

    assert b"custom/custom.css" in ask("lab")
    assert b"word-break: normal" in ask("custom/custom.css")
    kernel = json.loads(ask("api/kernels", "POST", name="python3"))["id"]
    process = psutil.Process(server.pid)
    while not any(child.net_connections("tcp") for child in process.children()):  # it listens, and has not warned
        time.sleep(0.1)
    time.sleep(1)
    ask(f"api/kernels/{kernel}", "DELETE")
    server.send_signal(signal.SIGINT)
    rest = server.stdout.read()
    assert "eavesdropping" not in rest and "Traceback" not in rest, rest


def test_a_kernel_that_is_restarted_while_a_cell_runs_says_nothing(tmp_path) -> None:
    log = tmp_path / "log"
    manager = KernelManager(kernel_name="python3")
    with log.open("w") as file:
        manager.start_kernel(stdout=file, stderr=file)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            client.execute("import course_utils, time; print('begun', flush=True); time.sleep(60)")
            while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
                pass
            manager.restart_kernel(now=False)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    assert "Traceback" not in log.read_text()


def test_a_copy_that_is_named_is_made_and_served(taken_port: int, tmp_path) -> None:
    copy = tmp_path / "mine"
    with serving(tmp_path, taken_port, "--copy", str(copy)) as (_, lines):
        assert re.fullmatch(rf"Your copy of the course is {copy}: \d+ new files\. See UPDATES\.md\.", lines[0])
        base, token = re.search(r"(http://[^/]+)/.*token=(\w+)", "\n".join(lines)).groups()
        page = "api/contents/notebooks/00_first_steps.ipynb"
        request = urllib.request.Request(f"{base}/{page}?token={token}", method="DELETE")
        urllib.request.urlopen(request, timeout=60)
    assert not (copy / "notebooks/00_first_steps.ipynb").exists() and LESSONS[0].notebook.exists()
    assert (copy / ".course" / "delivered.json").exists() and not list(copy.glob("**/src"))


@pytest.fixture
def opened(monkeypatch, tmp_path) -> list[Path | None]:
    """The folders that `lab.main` opens; no server is started, and the home folder is an empty one."""
    folders = []
    monkeypatch.setattr(lab, "serve", lambda port, address, copy, browser: folders.append(copy))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COURSE_COPY", raising=False)
    return folders


def test_a_course_that_one_may_not_write_to_is_opened_as_a_copy(opened, monkeypatch, tmp_path) -> None:
    assert lab.main([]) == 0
    monkeypatch.setattr(lab, "may_write", lambda: False)
    assert lab.main([]) == 0
    monkeypatch.setenv("COURSE_COPY", str(tmp_path / "setting"))
    assert lab.main([]) == 0
    assert lab.main(["--copy", str(tmp_path / "option")]) == 0
    assert opened == [None, tmp_path / "course", tmp_path / "setting", tmp_path / "option"]
    assert (tmp_path / "course" / "notebooks" / "00_first_steps.ipynb").exists()


def test_a_folder_that_can_be_no_copy_is_named(opened, tmp_path, capsys) -> None:
    assert lab.main(["--copy", str(ROOT)]) == 2
    (tmp_path / "file").write_text("")
    assert lab.main(["--copy", str(tmp_path / "file")]) == 2
    assert opened == []
    clone, file = capsys.readouterr().err.splitlines()
    assert f"{ROOT} is a clone of the course" in clone and "export COURSE_COPY=" in clone
    assert f"{tmp_path / 'file'} could not be brought up to date" in file


def test_a_home_without_room_for_jupyterlab_is_named(opened, monkeypatch, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    assert lab.main([]) == 2 and opened == []
    (line,) = capsys.readouterr().err.splitlines()
    assert f"JupyterLab cannot write to {tmp_path / 'file' / 'runtime'} (Not a directory)" in line


def test_a_port_whose_connections_fade_out_is_free(taken_port: int) -> None:
    assert lab.free_port(taken_port) > taken_port


@pytest.mark.parametrize("text", ["abc", "", "-1", "0", "70000", "88.5", "٣"])
def test_what_is_no_port_is_rejected_in_one_line(text: str, capsys) -> None:
    assert lab.main([f"--port={text}"]) == 2
    assert "Choose a number" in capsys.readouterr().err


def test_no_port_left_is_said_plainly(monkeypatch, taken_port: int) -> None:
    monkeypatch.setattr(lab, "PORTS_TO_TRY", 1)
    with pytest.raises(CourseError, match="are in use"):
        lab.free_port(taken_port)


def test_a_terminal_has_no_browser(monkeypatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not lab.has_browser()


def test_the_landing_page_is_there() -> None:
    assert lab.landing() == "/lab/tree/notebooks/00_first_steps.ipynb"
    assert (ROOT / lab.landing().removeprefix("/lab/tree/")).exists()
