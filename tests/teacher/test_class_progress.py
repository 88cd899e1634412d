"""A class's progress: the file that learners write, and the page that sums up thirty of them."""

import json
import zipfile
from pathlib import Path

import pytest

from course_utils.checks import overview
from course_utils.checks.progress_file import FORMAT, read_progress
from course_utils.checks.progress_records import Kept
from course_utils.errors import CourseError
from course_utils.teacher.class_progress import page_of, read_class, sentences, write_class_page

RECORDS = [
    {"order": 1, "time": "2026-11-03T10:00:00+00:00", "exercise": "rank_squared", "mark": "✓"},
    {"order": 2, "time": "2026-11-03T10:10:00+00:00", "exercise": "who_is_there", "mark": "✗", "answer": "secret"},
    {"order": 3, "time": "2026-11-03T10:11:00+00:00", "measured": "first", "hits": {"answer": False}},
]


def test_a_learner_writes_a_file_without_answers(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(overview, "read", lambda: Kept(RECORDS))
    file = tmp_path / "progress.json"
    assert "rank_squared" in str(overview.progress(file))
    assert "none of your answers" in capsys.readouterr().out and "secret" not in file.read_text()
    found = read_progress(file, "ada")
    assert (found.solved, found.tried) == ({"rank_squared"}, {"who_is_there"})
    assert found.hit == {"first: answer": False} and found.minutes == {"00_first_steps": 10}
    overview.progress(file)
    other = tmp_path / "mine.json"
    other.write_text("{}")
    with pytest.raises(CourseError, match="holds no progress"):
        overview.progress(other)


def sent(solved: list[str], tried: list[str], lessons: list[str], hit: bool = True) -> str:
    found = {"format": FORMAT, "solved": solved, "tried": tried, "begun": lessons, "minutes": {lessons[0]: 30}}
    return json.dumps({**found, "predictions": {"whose_x: answer": hit}})


FIRST, LAST = "00_first_steps", "05_allreduce"


def test_a_page_says_who_is_where_what_is_hard_and_what_surprises(tmp_path, capsys) -> None:
    for name in ("ada", "bob", "eve"):
        text = sent(["rank_squared"], ["who_is_there"], [FIRST, LAST] if name != "eve" else [FIRST], hit=False)
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "dan.json").write_text('{"format": 7, "solved": 5}')
    (tmp_path / "zed.txt").write_text("I could not.")
    found = write_class_page([tmp_path], tmp_path / "class.html")
    assert [learner.name for learner in found.learners] == ["ada", "bob", "eve"]
    assert sentences(found) == [
        "3 learners. Half of them have reached lesson 5. More than a lesson behind: eve.",
        "The hardest exercise is who_is_there in lesson 0: of the 3 who tried it, none solved it.",
        "The biggest surprise is whose_x: answer: 0 of 3 predicted it right.",
    ]
    printed = capsys.readouterr().out
    assert "dan sent a file that holds no progress" in printed and "zed sent zed.txt" in printed
    page = (tmp_path / "class.html").read_text(encoding="utf-8")
    assert "who_is_there" in page and "0 solved, 3 tried, of 3" in page
    write_class_page([tmp_path], tmp_path / "class.html")  # its own page is replaced
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(CourseError, match="is no page of a class"):
        write_class_page([tmp_path], tmp_path / "mine.html")


def test_a_platforms_zip_is_read_and_hostile_files_do_no_harm(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "sent.zip", "w") as archive:
        archive.writestr("Ada Lovelace_7_assignsubmission_file/progress.json", sent(["rank_squared"], [], [FIRST]))
        name = "<script>alert(1)</script>"
        archive.writestr(
            "Eve_8_assignsubmission_file/progress.json", sent([name, "rank_squared"], [name], [FIRST, name])
        )
        archive.writestr("Bob_9_assignsubmission_file/progress.json", "[" * 100_000)
        odd = {"format": FORMAT, "solved": "abc", "tried": [1, None], "minutes": {"x": "y"}, "predictions": {"a": 3}}
        archive.writestr("Odd_10_assignsubmission_file/progress.json", json.dumps(odd))
    found = read_class([tmp_path / "sent.zip"])
    assert [learner.name for learner in found.learners] == ["Ada Lovelace", "Eve", "Odd"]
    assert len(found.unread) == 1 and "<script>" not in page_of(found)


def test_nothing_to_sum_up_is_said(tmp_path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(CourseError, match="There is no progress"):
        write_class_page([tmp_path], Path("class.html"))
