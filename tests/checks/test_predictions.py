"""Predictions: asked before, noted, and printed beside the measurement."""

import ast
import os
import subprocess
import sys

import nbformat
import numpy as np
import pytest

import course_utils as course
from course_utils.checks import executed_cells, panel, predictions
from course_utils.checks.executed_cells import ExecutedCell
from course_utils.checks.notebook import code_cells
from course_utils.checks.prediction_scores import asked_on, is_hit, measured_in
from course_utils.checks.progress_records import read_all
from course_utils.measuring import BUSY
from course_utils.syllabus import ROOT


@pytest.fixture(autouse=True)
def own_home(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr(predictions, "_predictions", {})


def test_dots_are_a_question_that_is_not_answered_yet(capsys):
    course.predict("rounds", plain=63, doubling=...)
    said = capsys.readouterr().out
    assert said.startswith("○ rounds: not answered yet (doubling).")
    assert list(read_all()) == []


def test_a_prediction_stands_beside_the_measurement(capsys):
    course.predict("rounds", plain=60, doubling=6)
    assert capsys.readouterr().out == "Noted. rounds: plain = 60, doubling = 6\n"
    course.measured("rounds", plain=63, doubling=6)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["predicted", "measured"]
    assert lines[1].split() == ["plain", "60", "63", "close"]
    assert lines[2].split() == ["doubling", "6", "6", "as", "predicted"]


def test_an_answer_is_not_called_measured_and_counts_all_the_same(capsys):
    course.predict("hours", gpu=80, energy=3)
    course.answer("hours", gpu=82, energy=5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["predicted", "answer"]
    assert lines[2].split() == ["gpu", "80", "82", "close"]
    (kept,) = [record for record in read_all() if "hits" in record]
    assert kept["measured"] == "hours" and kept["hits"] == {"gpu": True, "energy": False}


def test_a_measurement_without_prediction_is_shown_all_the_same(capsys):
    course.measured("never_asked", seconds=0.12345)
    assert capsys.readouterr().out.splitlines()[1].split() == ["seconds", "–", "0.123"]


def test_dots_take_an_earlier_prediction_back(capsys):
    course.predict("rounds", plain=60)
    course.predict("rounds", plain=...)
    course.measured("rounds", plain=63)
    assert "–" in capsys.readouterr().out


@pytest.mark.parametrize("choices", [{"a": "the first", "b": "the second"}, ["the first", "the second"]])
def test_choices_are_printed_and_an_answer_must_be_one_of_them(capsys, choices):
    course.predict("which", choices=choices)
    assert capsys.readouterr().out.splitlines()[:2] == ["  a) the first", "  b) the second"]
    course.predict("which", answer="e", choices=choices)
    assert "'e' is not one of a, b" in capsys.readouterr().out
    course.predict("which", answer="b", choices=choices)
    course.measured("which", answer="b")
    assert "as predicted" in capsys.readouterr().out
    course.predict("which", answer="a", choices=choices)
    course.measured("which", answer="b")
    assert "not as predicted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("guess", "value", "said"),
    [
        (10, 25, "2.5 times the prediction"),
        (10, 1, "0.1 times the prediction"),
        (3, 4, "1 more than predicted"),
        (14, 12, "2 fewer than predicted"),
        (0, 5, "not as predicted"),
        (-1, 5, "not as predicted"),
        (2.0, np.float32(2.0), "as predicted"),
        (True, True, "as predicted"),
        (True, np.True_, "as predicted"),
        (5, float("nan"), "not as predicted"),
    ],
)
def test_how_far_off_it_was(capsys, guess, value, said):
    course.predict("x", answer=guess)
    course.measured("x", answer=value)
    assert capsys.readouterr().out.rstrip().endswith(f"  {said}")


@pytest.mark.parametrize(
    "value", ["five", "5", [5], (5,), None, float("nan"), {"a": 5}, 5j, np.array([1, 2]), "x" * 99]
)
def test_what_cannot_be_compared_with_a_number_is_not_noted(capsys, value):
    course.predict("processes", answer=4)
    course.predict("processes", answer=value)
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("○ processes: not noted. ") and len(said) < 140
    assert said.endswith(" cannot be compared with a number. Write one: answer=5.")
    course.measured("processes", answer=4)
    assert "–" in capsys.readouterr().out
    course.predict("which", answer=value, choices=["the first", "the second"])
    assert " is not one of a, b." in capsys.readouterr().out


def test_one_value_needs_no_name(capsys):
    course.predict("processes", 5)
    assert capsys.readouterr().out == "Noted. processes: 5\n"
    course.predict("which", "b", choices=["the first", "the second"])
    assert "Noted. which: b" in capsys.readouterr().out
    for wrong in (lambda: course.predict("two", 5, 6), lambda: course.predict("two", 5, loop=6)):
        with pytest.raises(course.CourseError, match="Say which question each number answers"):
            wrong()


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A notebook that measures three predictions; the kernel is its own."""
    cells = [
        "%%time\ncourse.measured('processes', answer=len(found))",
        "course.answer('broadcast_rounds', loop=63, tree=6)\nnot python",
        "course.answer('broadcast_rounds', loop=63, tree=6)",
        "course.measured('megabytes', busy=busy, sent=3)",
        "course.measured('many', **found)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, tmp_path / "copy of mine.ipynb")
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "copy of mine.ipynb"))
    monkeypatch.setattr(executed_cells, "_cells", [])
    return tmp_path / "copy of mine.ipynb"


def test_a_name_that_this_notebook_does_not_measure_is_rejected(page, capsys, monkeypatch):
    with pytest.raises(course.CourseError, match=r'measures "proceses"\. Did you mean \'processes\'\?$'):
        course.predict("proceses", answer=5)
    with pytest.raises(course.CourseError, match=r'measures "bandwidth"\. If you want to measure it, write'):
        course.predict("bandwidth", answer=5)
    assert list(read_all()) == []
    monkeypatch.setattr(executed_cells, "_cells", [ExecutedCell('course.measured("bandwidth", answer=5)')])
    course.predict("bandwidth", answer=5)
    course.predict("many", anything=5)
    page.unlink()  # it has been renamed meanwhile
    course.predict("proceses", answer=5)
    assert capsys.readouterr().out.count("Noted.") == 3


def test_a_question_that_this_notebook_does_not_measure_is_rejected(page, capsys):
    with pytest.raises(
        course.CourseError, match=r"no question 'lop'\. Write course\.predict\(\"broadcast_rounds\", loop"
    ):
        course.predict("broadcast_rounds", lop=63, tree=6)
    with pytest.raises(course.CourseError, match=r'course\.predict\("broadcast_rounds", loop=\.\.\., tree=\.\.\.\)'):
        course.predict("broadcast_rounds", 63)
    course.predict("megabytes", 3)
    assert capsys.readouterr().out == "Noted. megabytes: sent = 3\n"


def test_predictions_are_kept(capsys):
    course.predict("x", answer=np.int64(3))
    course.measured("x", answer=np.float64(4))
    assert [record.get("answers", record.get("values")) for record in read_all()] == [{"answer": 3}, {"answer": 4.0}]
    assert [record.get("hits") for record in read_all()] == [None, {"answer": False}]


@pytest.mark.parametrize(
    ("guess", "value", "within", "hit"),
    [
        (10, 10, None, True),
        (60, 63, None, True),
        (3, 4, None, False),
        (10, 20, 2, True),
        (10, 5, 2, True),
        (10, 20.1, 2, False),
        (10, 4.9, 2, False),
        (10, 10.8, 1.05, False),
        (-4, -8, 2, True),
        (-4, 8, 2, False),
        (0, 0.0, 2, True),
        (0, 1e-9, 2, False),
        (10**400, 10**400, 2, True),
        (10**400, 1.0, 2, False),
        (1, float("inf"), 2, False),
        ("b", "b", None, True),
        ("b", "a", 2, False),
        (np.float32(3), np.int64(6), 2, True),
    ],
)
def test_a_number_is_hit_within_a_factor_and_a_word_when_it_is_the_same(guess, value, within, hit):
    assert is_hit(guess, value, within) is hit


def test_a_factor_is_kept_with_the_prediction_and_said(capsys):
    course.predict("seconds", within=3, small=1, large=10)
    course.measured("seconds", small=2.5, large=31)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("2.5 times the prediction, within the factor 3")
    assert lines[3].endswith("3.1 times the prediction")
    asked, compared = read_all()
    assert asked["within"] == 3 and compared["hits"] == {"small": True, "large": False}


@pytest.mark.parametrize("within", [0.5, 0, -1, float("nan"), float("inf"), "2", True])
def test_a_factor_that_is_none_gets_a_plain_line(within):
    with pytest.raises(course.CourseError, match="is not a factor"):
        course.predict("seconds", within=within, answer=1)


def in_another_kernel(code: str, **environment: str) -> str:
    """What another process prints that runs the code on the same home."""
    return subprocess.run(
        [sys.executable, "-c", f"import course_utils as course; {code}"],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout


def test_a_prediction_survives_a_restart_of_the_kernel():
    in_another_kernel('course.predict("rounds", plain=60, doubling=9); course.predict("swap", "b", choices=["x", "y"])')
    in_another_kernel('course.predict("rounds", within=2, plain=70, doubling=9)')
    said = in_another_kernel('course.measured("rounds", plain=63, doubling=6); course.measured("swap", answer="b")')
    lines = [line.split() for line in said.splitlines()]
    assert lines[1][:3] == ["plain", "70", "63"] and lines[2][:3] == ["doubling", "9", "6"]
    assert lines[4] == ["answer", "b", "b", "as", "predicted"]
    assert [record["hits"] for record in read_all() if "hits" in record] == [
        {"plain": True, "doubling": True},
        {"answer": True},
    ]


def test_what_was_taken_back_stays_so_after_a_restart():
    in_another_kernel('course.predict("rounds", plain=60); course.predict("rounds", plain=...)')
    assert "–" in in_another_kernel('course.measured("rounds", plain=63)')


def test_the_same_name_on_another_page_is_another_prediction():
    in_another_kernel('course.predict("rounds", plain=60)', JPY_SESSION_NAME="/a/notebooks/04_messages.ipynb")
    code = 'course.measured("rounds", plain=63)'
    assert "–" in in_another_kernel(code, JPY_SESSION_NAME="/a/notebooks/05_allreduce.ipynb")
    assert "60" in in_another_kernel(code, JPY_SESSION_NAME="/a/notebooks/04_messages.ipynb")


def test_a_notebook_shows_panels_whose_text_is_that_of_a_terminal(capsys, monkeypatch):
    def everything():
        course.predict("which", choices=["the <first>", "the second"])
        course.predict("which", answer="a", choices=["the <first>", "the second"])
        course.measured("which", answer="b")
        course.predict("rounds", plain=63, doubling=9)
        course.measured("rounds", plain=63, doubling=6, third=1)

    everything()
    printed = capsys.readouterr().out
    shown = []
    monkeypatch.setattr(panel, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", shown.append)
    everything()
    assert "".join(f"{one}\n" for one in shown) == printed
    assert "the &lt;first&gt;" in shown[1].html and "yours" in shown[1].html
    assert 'aria-label="Prediction which: 0 of 1 hit"' in shown[2].html and "b) the second" in shown[2].html
    assert 'aria-label="Prediction rounds: 1 of 2 hit"' in shown[4].html
    assert all(words in shown[4].html for words in (" hit<", " missed<", " no prediction<", 'role="table"'))


def test_on_a_busy_machine_nothing_is_compared_and_one_line_says_so(capsys):
    course.predict("times", times=2)
    capsys.readouterr()
    before = list(read_all())
    course.measured("times", busy=True, times=9)
    assert capsys.readouterr().out == f"○ times: not compared. {BUSY}.\n"
    assert list(read_all()) == before


@pytest.mark.parametrize(
    "call", [lambda: course.predict(5), lambda: course.measured(5, x=1), lambda: course.answer(5, x=1)]
)
def test_a_name_that_is_none_gets_a_plain_line(call):
    with pytest.raises(course.CourseError, match="in quotes"):
        call()


@pytest.mark.parametrize(
    "call", [lambda: course.predict("x"), lambda: course.measured("x"), lambda: course.answer("x")]
)
def test_nothing_to_note_gets_a_plain_line(call):
    with pytest.raises(course.CourseError, match="Give"):
        call()


SOURCES = sorted(path for folder in ("notebooks", "exercises") for path in (ROOT / folder / "src").glob("*.py"))


def literal_measurements(source: str) -> list[str]:
    """The names of calls `course.measured` all of whose values are written out: they are answers."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(ast.Attribute(ast.Name("course"), "measured"), [ast.Constant(name)], keywords):
                values = [word.value for word in keywords if word.arg != "busy"]
                if all(isinstance(value, ast.Constant) for value in values):
                    found.append(name)
    return found


def test_a_value_that_is_written_out_is_found():
    assert literal_measurements('course.measured("hang", answer="b", busy=busy)') == ["hang"]
    assert literal_measurements('course.measured("both", one=1, other=run.rounds)') == []
    assert literal_measurements('course.measured("many", **found)') == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_what_a_page_calls_measured_is_not_written_out(source):
    assert literal_measurements(source.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_what_a_page_asks_it_measures(source):
    page = source.parents[1] / f"{source.stem}.ipynb"
    measured = measured_in(code_cells(page))
    assert measured is not None
    missing = {(name, asked) for name, asked in asked_on(page) if measured.get(name) != set()}
    assert missing <= {(name, question) for name, questions in measured.items() for question in questions}


def test_no_two_pages_ask_for_a_prediction_of_the_same_name():
    from course_utils.syllabus import LESSONS

    notebooks = [notebook for lesson in LESSONS if lesson.written for notebook in lesson.notebooks]
    asked = {notebook: {name for name, _ in asked_on(notebook)} for notebook in notebooks}
    assert all(asked[lesson.notebook] for lesson in LESSONS), "every lesson that is written asks for predictions"
    names = [name for on_page in asked.values() for name in on_page]
    assert sorted(set(names)) == sorted(names)
