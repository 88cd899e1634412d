"""Predictions: asked before, noted, and printed beside the measurement."""

import numpy as np
import pytest

import course_utils as course
from course_utils.checks import predictions
from course_utils.checks.records import read_all


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
        (0, 5, "not as predicted"),
        (-1, 5, "not as predicted"),
        (2.0, np.float32(2.0), "as predicted"),
        ("ten", 10, "not as predicted"),
        (True, True, "as predicted"),
        (5, float("nan"), "not as predicted"),
    ],
)
def test_how_far_off_it_was(capsys, guess, value, said):
    course.predict("x", answer=guess)
    course.measured("x", answer=value)
    assert capsys.readouterr().out.rstrip().endswith(f"  {said}")


def test_predictions_are_kept(capsys):
    course.predict("x", answer=np.int64(3))
    course.measured("x", answer=np.float64(4))
    assert [record.get("answers", record.get("values")) for record in read_all()] == [{"answer": 3}, {"answer": 4.0}]


@pytest.mark.parametrize("call", [lambda: course.predict(5), lambda: course.measured(5, x=1)])
def test_a_name_that_is_none_gets_a_plain_line(call):
    with pytest.raises(course.CourseError, match="in quotes"):
        call()


@pytest.mark.parametrize("call", [lambda: course.predict("x"), lambda: course.measured("x")])
def test_nothing_to_note_gets_a_plain_line(call):
    with pytest.raises(course.CourseError, match="Give"):
        call()
