"""nbgrader itself, on the course's own notebooks: assignments are made, and marks come out that answers deserve.

nbgrader stands in an environment of its own, which tools/set-up-nbgrader makes, or beside the course.
"""

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_utils.checks import under_nbgrader
from course_utils.checks.finding import own
from course_utils.checks.verdict import Result, Verdict
from course_utils.cli import app
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT
from course_utils.teacher.nbgrader_course import is_answer, write_course

LESSON = "00_first_steps"
BESIDE = ROOT / ".venv" / "nbgrader"
NOISY = """
import sys, warnings

def rank_squared(comm):
    warnings.warn("careful")
    print("to stderr", file=sys.stderr)
    return comm.rank**2
"""
WRONG = "def rank_squared(comm):\n    return 2 * comm.rank\n"
HANGS = "def who_is_there(comm, name):\n    return comm.recv(source=comm.rank)\n"


def run(folder: Path, *command: str) -> str:
    """Run a command of nbgrader in its course's folder; what it said."""
    packages = next(iter(BESIDE.glob("lib/python3*/site-packages")), None)
    if packages is None and not importlib.util.find_spec("nbgrader"):
        pytest.skip("nbgrader is not installed: tools/set-up-nbgrader puts it beside the course")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(part) for part in (ROOT, packages) if part),
        "PATH": os.pathsep.join(map(str, (BESIDE / "bin", Path(sys.executable).parent, os.environ["PATH"]))),  # alembic
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def answer(notebook: Path, *answers: str) -> Path:
    """Put these in the place of the notebook's answers, in order."""
    written = nbformat.read(notebook, as_version=4)
    cells = [cell for cell in written.cells if is_answer(cell)]
    for cell, source in zip(cells, answers, strict=True):
        cell.source = source
    nbformat.write(written, notebook)
    return notebook


def solutions() -> list[str]:
    cells = nbformat.read(ROOT / "exercises" / "solutions" / f"{LESSON}.ipynb", as_version=4).cells
    return [cell.source for cell in cells if is_answer(cell)]


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course with the assignment of lesson 0, as nbgrader releases it."""
    folder = tmp_path_factory.mktemp("nbgrader")
    write_course(folder, ["00"])
    run(folder, "generate_assignment", LESSON)
    return folder


def marks(folder: Path, student: str) -> list[float]:
    """What nbgrader's gradebook holds for each exercise, in order."""
    rows = sqlite3.connect(folder / "gradebook.db").execute(
        """select base_cell.name, grade.auto_score from grade
        join base_cell on base_cell.id = grade.cell_id
        join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
        where submitted_assignment.student_id = ?""",
        [student],
    )
    found = dict(rows.fetchall())
    return [found["check_rank_squared"], found["check_who_is_there"]]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_released_assignment_asks_for_the_function_and_keeps_its_docstring(course) -> None:
    cells = nbformat.read(course / "release" / LESSON / f"{LESSON}.ipynb", as_version=4).cells
    first = next(cell for cell in cells if is_answer(cell))
    head, _, body = solutions()[0].rpartition('"""')
    assert first.source.startswith(head) and body.strip() not in first.source
    assert first.source.endswith("    # YOUR CODE HERE\n    raise NotImplementedError()")
    checks = [cell for cell in cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert [cell.metadata.nbgrader.points for cell in checks] == [1, 1]
    assert not any(cell.metadata.editable for cell in checks)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_right_answers_get_their_points_and_wrong_ones_none(course) -> None:
    released = course / "release" / LESSON / f"{LESSON}.ipynb"
    handed_in = {
        "right": (ROOT / "exercises" / f"{LESSON}.ipynb", [NOISY, solutions()[1]]),  # the course's own, never released
        "wrong": (released, [WRONG, HANGS]),
        "untouched": (released, None),
    }
    for student, (notebook, answers) in handed_in.items():
        place = course / "submitted" / student / LESSON
        place.mkdir(parents=True)
        shutil.copy(notebook, place)
        if answers:
            answer(place / notebook.name, *answers)
    run(course, "autograde", LESSON)
    assert {student: marks(course, student) for student in handed_in} == {
        "right": [1, 1],
        "wrong": [0, 0],
        "untouched": [0, 0],
    }
    graded = (course / "autograded" / "wrong" / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8")
    assert "Did you double the number instead of squaring it?" in json.loads(graded)["cells"].__repr__()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_learner_can_validate_before_handing_in(course, tmp_path) -> None:
    notebook = shutil.copy(ROOT / "exercises" / f"{LESSON}.ipynb", tmp_path)
    said = run(course, "validate", str(answer(Path(notebook), WRONG, solutions()[1])))
    assert "FAILED ON 1 CELL" in said.upper() and "double the number" in said


def test_a_check_raises_under_nbgrader_only(monkeypatch, capsys) -> None:
    wrong, right = Verdict(Result.WRONG, "f", own("no", "no")), Verdict(Result.RIGHT, "f", praise="yes")
    under_nbgrader.insist(wrong)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    under_nbgrader.insist(right)
    with pytest.raises(under_nbgrader.NotRight, match="✗ f: no"):
        under_nbgrader.insist(wrong)
    with under_nbgrader.stderr_to_stdout():
        print("warning", file=sys.stderr)
    assert capsys.readouterr() == ("warning\n", "")


def test_the_command_writes_assignments_and_leaves_settings_alone_that_are_there(tmp_path, capsys) -> None:
    (tmp_path / "nbgrader_config.py").write_text("mine")
    app(["nbgrader", str(tmp_path), "00"], standalone_mode=False)
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'source' / LESSON / LESSON}.ipynb\nNext, in {tmp_path}: ")
    assert [file.name for file in (tmp_path / "source").rglob("*.ipynb")] == [f"{LESSON}.ipynb"]
    assert (tmp_path / "nbgrader_config.py").read_text() == "mine"
    with pytest.raises(CourseError, match="No lesson is called 99"):
        write_course(tmp_path, ["99"])
