"""Honest notebooks keep their marks, however they are written."""

import json

import pytest

from course_utils.checks.notebook import in_python
from course_utils.checks.submission import read
from course_utils.syllabus import ROOT
from tests.teacher.submissions import NAMES, RIGHT, collection, mark_of, marks_of, needs_a_box, notebook

pytestmark = needs_a_box


HONEST = collection("honest")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names",
    [pytest.param(list(HONEST)[::6], id="some"), pytest.param(list(HONEST), id="all", marks=pytest.mark.weekly)],
)
def test_an_honest_notebook_keeps_its_mark(names, tmp_path) -> None:
    files = [notebook(tmp_path, *HONEST[name], name=f"{name}.ipynb") for name in names]
    found = {mark.submission: mark for mark in marks_of(files, ranks=2) if mark.exercise == "rank_squared"}
    assert len(found) == len(names)
    assert {name: mark.verdict for name, mark in found.items() if not mark.mark} == {}


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_cell_that_never_ends_costs_its_own_time_and_nothing_else(tmp_path) -> None:
    mark = mark_of(tmp_path, RIGHT, "while True:\n    pass", NAMES, exercise="who_is_there")
    assert mark.mark == 1, mark.verdict


def test_what_editors_leave_in_a_notebook_costs_no_mark(tmp_path) -> None:
    """Cells with one id, another kernel's name, outputs in HTML and JavaScript, no word of a language."""
    file = notebook(tmp_path, RIGHT, NAMES, "x <- c(1, 2)")
    told = json.loads(file.read_text())
    told["metadata"] = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}
    shown = {"text/html": ["<script>alert(1)</script>"], "application/javascript": ["alert(1)"]}
    for cell in told["cells"]:
        cell["id"] = "twice"
        cell["outputs"] = [{"output_type": "display_data", "data": shown, "metadata": {}}]
    file.write_text(json.dumps(told))
    assert [mark.mark for mark in marks_of([file], ranks=2)] == [1, 1]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_exercise_that_fails_costs_the_others_nothing_in_the_lesson_of_races(tmp_path) -> None:
    told = json.loads((ROOT / "exercises" / "solutions" / "14_profiling.ipynb").read_text())
    for cell in told["cells"]:
        for name in ("overlap_share", "idle_share", "speed_up_1"):
            if cell["source"] and cell["source"][0].startswith(f"def {name}("):
                cell["source"] = [
                    f"def {name}(*_):\n",
                    f"    {'import os; os._exit(1)' if name == 'speed_up_1' else '...'}",
                ]
    (tmp_path / "ada.ipynb").write_text(json.dumps(told))
    found = {mark.exercise: mark for mark in marks_of([tmp_path / "ada.ipynb"], ranks=2)}
    right = {f"speed_up_{number}" for number in (2, 3, 4, 5)}
    slow = "the results are right, but it is"  # the clock judges, on a machine that may be busy
    assert {
        name: found[name].verdict for name in right if not found[name].mark and slow not in found[name].verdict
    } == {}
    assert sum(found[name].mark for name in right) >= 2 and not any(found[name].mark for name in found.keys() - right)


def test_what_is_ipythons_becomes_python_line_by_line() -> None:
    assert in_python("%%time\nx = 1").splitlines()[1] == "x = 1"
    assert not in_python("%%bash\nls").strip()
    assert in_python("x = 1\n%matplotlib inline\ny = 2").splitlines()[2] == "y = 2"
    assert in_python("def broken(:").strip() == "def broken(:"


def test_what_an_import_brought_is_no_answer(tmp_path) -> None:
    cell = """
    from course_utils.lessons.first_steps.rank_and_size import rank_squared

    rank_squared.calls = 0
    times = {}
    times[rank_squared] = 0

    def pass_the_token(comm, token=0):
        return rank_squared(comm)
    """
    submission = read(notebook(tmp_path, cell))
    assert submission.lessons == {"04_messages"} and "rank_squared" not in submission.expected


@pytest.mark.timeout(120)
def test_right_answers_are_marked_right_beside_wrong_and_missing_ones(tmp_path) -> None:
    wrong = "def who_is_there(comm, name):\n    return [name]\n"
    found = {mark.exercise: mark for mark in marks_of([notebook(tmp_path, RIGHT, wrong)], ranks=3)}
    assert found["rank_squared"].verdict == "✓ rank_squared: each rank returned the square of its own number"
    assert found["who_is_there"].mark == 0 and "expected" in found["who_is_there"].verdict
