"""Tools of the build: what fails or takes too long is told, and nothing of it stays behind."""

import subprocess
import sys
import time

import pytest

from course_utils.system import started_at
from workshop.publish.commands import run
from workshop.publish.sources import AuthoringError

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
open("child", "w").write(str(child.pid))
time.sleep(100)
"""


def test_what_a_tool_says_at_last_is_told(tmp_path) -> None:
    with pytest.raises(AuthoringError, match=r"painting failed:\n2\n[\s\S]*16$"):
        run([sys.executable, "-c", "print(*range(17), sep='\\n'); raise SystemExit(1)"], tmp_path, 60, "painting")


@pytest.mark.parametrize("why", [subprocess.TimeoutExpired("paint", 1), KeyboardInterrupt()], ids=["slow", "Ctrl-C"])
def test_a_tool_ends_with_all_that_it_has_started(tmp_path, monkeypatch, why) -> None:
    communicate = subprocess.Popen.communicate

    def wait(process: subprocess.Popen, timeout: float | None = None) -> tuple[str, str]:
        if timeout is None:
            return communicate(process)
        while not (tmp_path / "child").is_file() or not (tmp_path / "child").read_text():
            assert process.poll() is None
        raise why

    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    with pytest.raises(AuthoringError if isinstance(why, Exception) else KeyboardInterrupt):
        run([sys.executable, "-c", PARENT], tmp_path, 60, "painting")
    child = int((tmp_path / "child").read_text())
    for _ in range(200):  # the system ends a killed process when it gets to it
        if not started_at(child):
            return
        time.sleep(0.05)
    pytest.fail("what the tool had started still runs")
