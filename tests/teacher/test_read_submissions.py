"""Which function of a notebook answers an exercise, and which cells it needs: read without running anything."""

import json
from pathlib import Path

import pytest

from course_utils.checks.submission import read
from course_utils.checks.undefined_answer import Undefined
from course_utils.checks.verdict import Result
from course_utils.ranks.engine.notebook_cells import CellFailure
from tests.teacher.submissions import RIGHT, notebook

MINE = "def mine(comm):\n    return comm.rank**2\n"
CHECKED = [
    "course.check('rank_squared', mine)",
    "course.check(name='rank_squared', function=mine)",
    "course.check('rank_squared', function=mine)",
    "from course_utils import check as judge\njudge('rank_squared', mine)",
    "for n, f in [('rank_squared', mine)]:\n    course.check(n, f)",
    "ALL = {'rank_squared': mine}\n[course.check(n, f) for n, f in ALL.items()]",
    "def test(f, name='rank_squared'):\n    course.check(name, f)\ntest(mine)",
    "import functools\nfunctools.partial(course.check, 'rank_squared')(mine)",
    "verify = course.check\nverify('rank_squared', mine)",
]


@pytest.mark.parametrize("check", CHECKED)
def test_a_check_names_its_exercise_however_it_is_called(check, tmp_path) -> None:
    assert set(read(notebook(tmp_path, MINE, check)).answers) == {"rank_squared"}


def test_cells_behind_the_last_check_are_run_if_they_define_a_helper(tmp_path) -> None:
    answer, check = "def rank_squared(comm):\n    return right(comm)\n", "course.check('rank_squared', rank_squared)"
    right = "def right(comm):\n    return power(comm.rank)"
    power, slow = "power = lambda n: n * n", "import time; time.sleep(1000)"
    assert len(read(notebook(tmp_path, RIGHT, check, slow)).cells) == 2
    assert len(read(notebook(tmp_path, answer, check, right, slow, power, slow)).cells) == 5
    assert len(read(notebook(tmp_path, RIGHT, slow)).cells) == 2, "without a check, all of them are run"


@pytest.mark.parametrize(
    ("cells", "why", "cell", "line", "result"),
    [
        (["\n" + RIGHT + "print 'old'"], Undefined.SYNTAX_ERROR, 1, 4, Result.WRONG),
        (["x = 1", "%%px\n" + RIGHT], Undefined.ON_RANKS_ONLY, 2, 0, Result.WRONG),
        (["# def rank_squared(comm): …"], Undefined.NOWHERE, 0, 0, Result.NOT_BEGUN),
        (["@nowhere\n" + RIGHT], Undefined.RAISED, 1, 2, Result.WRONG),
    ],
)
def test_it_is_known_why_there_is_no_function(cells, why, cell, line, result, tmp_path) -> None:
    names = "def who_is_there(comm, name):\n    pass"
    submission = read(notebook(tmp_path, *cells, names))
    failure = CellFailure(0, 2 if why == Undefined.RAISED else 99, "NameError: name 'nowhere' is not defined")
    found = submission.undefined("rank_squared", (failure,))
    assert (found.why, found.cell, found.line, found.result) == (why, cell, line, result)
    assert str(found)


def test_the_sentence_on_a_syntax_error_names_cell_line_and_message(tmp_path) -> None:
    found = read(notebook(tmp_path, RIGHT + "print 'old'")).undefined("rank_squared")
    assert str(found).startswith("cell 1, line 3: `print 'old'`: Missing parentheses in call to 'print'.")


def test_a_function_in_a_raw_cell_is_not_begun(tmp_path) -> None:
    file = tmp_path / "ada.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "raw", "source": RIGHT}]}))
    assert read(file).undefined("rank_squared").why == Undefined.NO_CODE


def test_a_function_that_a_text_shows_is_no_answer(tmp_path) -> None:
    cells = [{"cell_type": "markdown", "source": "def fits(x):"}, {"cell_type": "code", "source": RIGHT}]
    (tmp_path / "ada.ipynb").write_text(json.dumps({"cells": cells}))
    assert read(tmp_path / "ada.ipynb").lessons == {"00_first_steps"}


FORMAT_3 = {
    "nbformat": 3,
    "worksheets": [
        {
            "cells": [
                {"cell_type": "heading", "level": 1, "source": ["Lesson 0"]},
                {"cell_type": "code", "language": "python", "input": RIGHT.splitlines(keepends=True), "outputs": []},
            ]
        }
    ],
}
FORMAT_4 = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "# größer\n" + RIGHT}, {"cell_type": "markdown"}]}


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (FORMAT_3, "utf-8"),
        (FORMAT_4, "utf-8-sig"),
        (FORMAT_4, "utf-16"),
        (FORMAT_4, "utf-16-be"),
        (FORMAT_4, "utf-32"),
        (FORMAT_4, "latin-1"),
        ({**FORMAT_4, "nbformat": 5}, "utf-8"),
    ],
)
def test_old_formats_and_other_encodings_are_read(content, encoding, tmp_path) -> None:
    file: Path = tmp_path / "ada.ipynb"
    file.write_bytes(json.dumps(content, ensure_ascii=False).encode(encoding))
    assert "rank_squared" in read(file).answers
