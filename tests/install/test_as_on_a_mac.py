"""The course as on a Mac, simulated on Linux: `mac/as_on_a_mac.py` says what is as there. No Mac has been tried."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.mac import as_on_a_mac

ROOT = as_on_a_mac.ROOT
FILES = [
    pytest.param("install/mac/ranks_session.py", 12, marks=pytest.mark.long),
    pytest.param("ground/test_system.py", 9),
    pytest.param("lessons/messages/test_messages.py", 10, marks=pytest.mark.long),
]
"""Tests that run there, and how many of them pass at least."""
LESSONS, EXERCISES = (sorted(ROOT.glob(f"{folder}/*.ipynb")) for folder in ("notebooks", "exercises"))
SOLUTIONS = sorted(ROOT.glob("exercises/solutions/*.ipynb"))
NOTEBOOKS = [
    pytest.param(path, marks=pytest.mark.long if path.parent != EXERCISES[0].parent and is_4 else pytest.mark.weekly)
    for path in (*LESSONS, *EXERCISES, *SOLUTIONS)
    for is_4 in [path.stem == "04_messages"]
]


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    done = as_on_a_mac.run(["true"], capture_output=True)
    if done.returncode:
        assert os.environ.get("CI") != "true", f"under CI=true there must be unshare, ip and bubblewrap: {done.stderr}"
        pytest.skip(f"this needs unshare, ip and bubblewrap: {done.stderr.strip()}")


def run_python(*command: str | Path) -> subprocess.CompletedProcess:
    """Run Python as on a Mac; what it prints comes in one text."""
    inside = [sys.executable, *map(str, command)]
    return as_on_a_mac.run(inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("file", "least"), FILES)
def test_these_tests_pass_there(file: str, least: int) -> None:
    done = run_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long and not weekly", ROOT / "tests" / file
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and int(passed[1]) >= least, done.stdout


@pytest.mark.timeout(900)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: str(notebook.relative_to(ROOT)))
def test_this_notebook_runs_there(notebook: Path) -> None:
    done = run_python(ROOT / "tests" / "run_notebook.py", notebook)
    assert done.returncode == 0, done.stdout


def test_the_doctor_starts_ranks_there_and_says_what_there_is_not() -> None:
    code = "from course_utils import diagnosis; print(*diagnosis.examine(), sep='\\n')"
    done = run_python("-c", code)
    assert done.returncode == 0, done.stdout
    assert {"✓ ranks", "✓ gloo"} <= {line[:7].rstrip() for line in done.stdout.splitlines()}, done.stdout
    assert re.search(r"^○ links .*only Linux can make them", done.stdout, re.MULTILINE), done.stdout


def test_submissions_are_not_marked_there(tmp_path: Path) -> None:
    done = run_python("-m", "course_utils.cli", "grade", "--trusted", tmp_path)
    assert done.returncode != 0 and done.stdout.strip().endswith("in a container of Linux this works on every system.")
    assert len(done.stdout.splitlines()) <= 2
