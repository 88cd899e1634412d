"""`course check` and `course grade` say the same of a notebook: the same exercises, marks and findings."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils.checks import judge_submission
from course_utils.checks.judge_submission import check_notebook
from course_utils.checks.submission import read
from course_utils.ranks.start import start_separate_ranks
from course_utils.teacher.grading import LONGEST, printable
from tests.teacher.submissions import collection, marks_of, needs_a_box, notebook

ODD = collection("odd")


@pytest.fixture(scope="module")
def two_ranks() -> Iterator:
    ranks = start_separate_ranks(2)
    yield ranks
    ranks.stop()


def disagreements(files: list[Path], ranks, monkeypatch) -> dict[str, list]:
    """Of each notebook whose verdicts are not the same: those of `course check`, then those of `course grade`."""
    monkeypatch.setenv("COURSE_SEED", str(int.from_bytes(os.urandom(4), "little")))
    monkeypatch.setattr(judge_submission, "_own_ranks", lambda _: contextlib.nullcontext(ranks))
    graded: dict[str, list[str]] = {file.name: [] for file in files}
    for mark in marks_of(files, ranks=2):
        if mark.exercise in read(next(file for file in files if file.name == mark.submission)).answered:
            graded[mark.submission].append(mark.verdict)
    checked = {file.name: [printable(judged.line[:LONGEST]) for judged in check_notebook(file, 2)] for file in files}
    assert all(checked.values())
    return {name: [checked[name], graded[name]] for name in graded if checked[name] != graded[name]}


@needs_a_box
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names", [pytest.param(list(ODD)[::20], id="some"), pytest.param(list(ODD), id="all", marks=pytest.mark.weekly)]
)
def test_check_and_grade_agree_on_odd_notebooks(names, two_ranks, tmp_path, monkeypatch) -> None:
    files = [notebook(tmp_path, *ODD[name], name=f"{name}.ipynb") for name in names]
    assert disagreements(files, two_ranks, monkeypatch) == {}


@needs_a_box
@pytest.mark.weekly  # odd ones differ first; these say the same at length
@pytest.mark.timeout(1800)
def test_check_and_grade_agree_on_honest_notebooks(two_ranks, tmp_path, monkeypatch) -> None:
    files = [notebook(tmp_path, *cells, name=f"{name}.ipynb") for name, cells in collection("honest").items()]
    assert disagreements(files, two_ranks, monkeypatch) == {}
