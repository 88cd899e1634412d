"""A class's tables: who is who, what counts, what is late, and what learning platforms import."""

import csv
import io
import json
import time
import zipfile
from pathlib import Path

import pytest

from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.teacher import grade_class
from course_utils.teacher.grade_class import ClassOptions, seconds_of
from course_utils.teacher.grading import Mark
from course_utils.teacher.handed_in.class_list import match, read_class_list
from course_utils.teacher.handed_in.hand_in_sentences import matching_lines
from course_utils.teacher.handed_in.hand_ins import Learner
from course_utils.teacher.handed_in.portal_names import Portal
from course_utils.teacher.handed_in.submission_times import seconds_of_date
from course_utils.teacher.marks import read_marks
from course_utils.teacher.similar_answers import FEWEST_STATEMENTS, alike_answers, known_shapes, shapes_in
from course_utils.teacher.summary import alike_lines
from tests.teacher.submissions import notebook

PEOPLE = """id;E-Mail;Name
4711;ada.l@example.org;Ada Lovelace
12;jm@example.org;Jörg Müller
13;am@example.org;Anna Müller
14;g@example.org;"Hopper, Grace"
15;jvn@example.org;John von Neumann
"""
FITTING = {
    "Ada Lovelace": "Ada Lovelace",
    "lovelace_ada": "Ada Lovelace",
    "lovelaceada": "Ada Lovelace",
    "ada": "Ada Lovelace",
    "ada.l": "Ada Lovelace",
    "4711": "Ada Lovelace",
    "Group B-Ada Lovelace": "Ada Lovelace",
    "joerg mueller": "Jörg Müller",
    "Muller_Jorg": "Jörg Müller",
    "müllerjörg": "Jörg Müller",
    "Grace Hopper": "Grace Hopper",
    "vonneumannjohn": "John von Neumann",
}


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="cp1252")
    return read_class_list(tmp_path / "people.csv")


@pytest.mark.parametrize("name", FITTING)
def test_a_learner_is_found_in_the_class_list(name, people) -> None:
    found = match([Learner(name)], people.people)
    assert [person.name for person in found.people.values()] == [FITTING[name]]


def test_who_fits_nobody_or_several_and_who_is_absent_is_said(people) -> None:
    found = match([Learner("müller"), Learner("zed"), Learner("grace"), Learner("x", "4711")], people.people)
    assert matching_lines(found, "people.csv") == [
        "Not in people.csv: zed.",
        "müller could be Jörg Müller (jm@example.org) and Anna Müller (am@example.org), "
        "so no row of people.csv was given to this learner.",
        "Handed in nothing: John von Neumann.",
    ]


def test_a_table_without_people_is_no_class_list(tmp_path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CourseError, match="no column for names"):
        read_class_list(tmp_path / "x.csv")


RESULTS = {"right": Result.RIGHT, "wrong": Result.WRONG}


def judged(notebooks, ranks, boxed, names, *_):
    """Stands in for the grader: a notebook's first cell says what its two answers are."""
    for file, name in zip(notebooks, names, strict=True):
        words = "".join(json.loads(file.read_text())["cells"][0]["source"]).removeprefix("#").split()
        yield [
            Mark(name, exercise, RESULTS[word], f"{RESULTS[word]} {exercise}", "Why?" if word == "wrong" else "")
            for exercise, word in zip(("rank_squared", "who_is_there"), words, strict=False)
        ]


@pytest.fixture
def grade(tmp_path, monkeypatch, capsys):
    """Grade a zip with these files in a folder of its own; gives what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grade_class, "grade_each", judged)
    monkeypatch.setattr(grade_class, "obstacle", lambda: None)
    monkeypatch.setattr(grade_class, "alike_answers", lambda files: [])

    def run(
        files: dict[str, str],
        out: str | None = "marks.csv",
        name: str = "class.zip",
        texts: Path | None = None,
        **options,
    ) -> str:
        with zipfile.ZipFile(name, "w") as archive:
            for file, words in files.items():
                cell = {"cell_type": "code", "source": f"#{words}", "metadata": {}, "outputs": []}
                archive.writestr(file, json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
        capsys.readouterr()
        grade_class.grade_class([Path(name)], out and Path(out), texts, 2, options=ClassOptions(**options))
        return capsys.readouterr().out

    return run


def rows_of(file: str) -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8-sig") as table:
        return list(csv.DictReader(table))


MOODLE = "{}_assignsubmission_file/04_messages.ipynb"
CLASS = {MOODLE.format("Ada Lovelace_101"): "right right", MOODLE.format("Grace Hopper_102"): "right wrong"}


def test_the_table_that_moodle_imports_is_made_from_the_names_of_files(grade) -> None:
    printed = grade(CLASS)
    assert "For the import into Moodle: marks_moodle.csv" in printed
    rows = {row["Identifier"]: row for row in rows_of("marks_moodle.csv")}
    assert {name: row["Grade"] for name, row in rows.items()} == {"Participant 101": "2", "Participant 102": "1"}
    assert rows["Participant 102"]["Feedback comments"] == "1 of 2. Not right yet: who_is_there"
    assert {"Last modified (grade)", "Maximum grade"} <= rows["Participant 101"].keys()
    assert not Path("marks_moodle.csv").read_bytes().startswith(b"\xef\xbb\xbf")


WORKSHEET = """Identifier,"Full name","Email address",Status,Grade,"Maximum grade","Grade can be changed",\
"Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 101","Ada Lovelace",a@x.org,"Submitted",,10.00,Yes,"Tuesday, 3 November 2026, 11:58 PM",-,
"Participant 102","Grace Hopper",g@x.org,"Submitted",,10.00,Yes,"Wednesday, 4 November 2026, 12:01 AM",-,
"Participant 103","Alan Turing",t@x.org,"No submission",,10.00,Yes,-,-,
"""


def test_moodles_worksheet_is_filled_in_on_its_scale_and_says_who_was_late(grade) -> None:
    Path("sheet.csv").write_text(WORKSHEET, encoding="utf-8")
    printed = grade(CLASS, class_list=Path("sheet.csv"), due=seconds_of("2026-11-03T23:59"))
    rows = rows_of("marks_moodle.csv")
    assert list(rows[0]) == next(csv.reader(io.StringIO(WORKSHEET)))
    assert [row["Grade"] for row in rows] == ["10", "5", ""]
    assert [row["late"] for row in rows_of("marks_learners.csv")] == ["no", "", "yes"]
    assert [row["note"] for row in rows_of("marks_learners.csv")] == ["", "handed in nothing", ""]
    assert "Handed in nothing: Alan Turing." in printed and "out of 10" in printed


GRADEBOOK = """Student,ID,SIS User ID,SIS Login ID,Section,04_messages (77),Final Score
    Points Possible,,,,,10,(read only)
"Lovelace, Ada",101,S1,ada,A,,
"Hopper, Grace",102,S2,grace,A,,
"Student, Test",99,,,A,,
"""
CANVAS = {"lovelaceada_101_7001_04_messages.ipynb": "right right", "hoppergrace_LATE_102_7002_x.ipynb": "right wrong"}


def test_canvas_gets_its_own_rows_and_the_assignments_own_column(grade) -> None:
    Path("gradebook.csv").write_text(GRADEBOOK, encoding="utf-8")
    grade(CANVAS, class_list=Path("gradebook.csv"))
    rows = rows_of("marks_canvas.csv")
    assert list(rows[0]) == [*GRADEBOOK.split(",")[:5], "04_messages (77)"]
    assert [(row["Student"].strip(), row["04_messages (77)"]) for row in rows] == [
        ("Points Possible", "10"),
        ("Lovelace, Ada", "2"),
        ("Hopper, Grace", "1"),
        ("Student, Test", ""),
    ]
    assert {row["learner"]: row["late"] for row in rows_of("marks_learners.csv")} == {
        "Ada Lovelace": "no",
        "Grace Hopper": "yes",
    }


def test_canvas_without_its_export_finds_people_by_their_number(grade) -> None:
    grade(CANVAS)
    rows = rows_of("marks_canvas.csv")
    assert [(row["Student"].strip(), row["ID"]) for row in rows][1:] == [("hoppergrace", "102"), ("lovelaceada", "101")]


def test_ilias_gets_its_status_file(grade) -> None:
    grade({"Abgaben/Lovelace_Ada_ada.l_4711/04_messages.ipynb": "right wrong"})
    [row] = rows_of("marks_ilias.csv")
    titles = ["update", "usr_id", "login", "lastname", "firstname", "status", "mark", "notice", "comment"]
    assert list(row)[:9] == titles
    assert list(row.values())[:7] == ["1", "4711", "", "Lovelace", "Ada", "notgraded", "1"]


def test_a_platform_whose_numbers_are_unknown_is_said(grade) -> None:
    assert "lacks learners whose number in Moodle is unknown" in grade(
        {"ada/04_messages.ipynb": "right right"}, portal=Portal.MOODLE
    )
    assert not rows_of("marks_moodle.csv")


def test_going_on_runs_only_what_is_new_and_the_newest_counts(grade, monkeypatch) -> None:
    grade(CLASS, "week7.csv")
    runs: list[str] = []
    monkeypatch.setattr(grade_class, "grade_each", lambda *given: (runs.extend(given[3]), judged(*given))[1])
    later = {**CLASS, MOODLE.format("Grace Hopper_102"): "wrong right", MOODLE.format("Zed_9"): "right"}
    printed = grade(later, None, add=Path("week7.csv"))
    assert runs == [MOODLE.format("Grace Hopper_102"), MOODLE.format("Zed_9")]
    assert "1 of the notebooks are in week7.csv already" in printed
    lines = read_marks(Path("week7.csv"))
    grace = [(line.mark.exercise, line.mark.mark, line.counts) for line in lines if line.learner == "Grace Hopper"]
    assert grace == [
        ("rank_squared", 1, False),
        ("who_is_there", 0, False),
        ("rank_squared", 0, True),
        ("who_is_there", 1, True),
    ]
    assert {row["learner"]: row["sum"] for row in rows_of("week7_learners.csv")} == {
        "Ada Lovelace": "2",
        "Grace Hopper": "1",
        "Zed": "1",
    }
    assert {row["Identifier"] for row in rows_of("week7_moodle.csv")} == {f"Participant {n}" for n in (101, 102, 9)}


def test_who_handed_in_no_notebook_has_a_row_in_every_table(grade) -> None:
    handed_in = {"ada/04_messages.html": "", "bob/04_messages.ipynb": "right right"}
    printed = grade(handed_in, texts=Path("texts"), portal=Portal.CANVAS)
    says = "✗ ada handed in 04_messages.html, which is not a notebook. What is needed is 04_messages.ipynb."
    assert f"0  {says}" in printed and says in Path("texts/ada/04_messages.txt").read_text()
    [row] = [row for row in rows_of("marks.csv") if row["learner"] == "ada"]
    assert (row["exercise"], row["mark"]) == ("", "0") and "not a notebook" in row["verdict"]
    [row] = [row for row in rows_of("marks_learners.csv") if row["learner"] == "ada"]
    assert (row["sum"], row["of"]) == ("0", "2") and "not a notebook" in row["note"]


def test_a_date_is_read_in_two_languages_and_a_wrong_one_is_said() -> None:
    wanted = time.mktime((2026, 3, 3, 23, 59, 0, 0, 0, -1))
    for text in ("Tuesday, 3 March 2026, 11:59 PM", "Dienstag, 3. März 2026, 23:59"):
        assert seconds_of_date(text) == wanted
    assert seconds_of_date("-") is None
    assert seconds_of("2026-03-03") == seconds_of("2026-03-03T23:59") == wanted + 59
    with pytest.raises(CourseError, match="is no date"):
        seconds_of("next week")


ANSWER = '''
import numpy as np


def scatter_blocks(comm, vector, root=0):
    """Mine."""
    total = 0  # a comment
    mine = np.empty(0)
    for other in range(comm.size):
        if comm.rank == root:
            total += other * 3
            mine = np.array([total, other])
    mine = helper(mine)
    return mine


def helper(values: list) -> list:
    return values[::2]
'''
RENAMED = """
import numpy as np


def helper2(v):
    return v[::2]


def scatter_blocks(comm, data: "vector", root=0) -> "block":
    t: int = 0
    m = np.empty(0)
    for k in range(comm.size):
        if comm.rank == root:
            t += k * 3
            m = np.array([t, k])
    m = helper2(m)
    return m
"""
SHORT = "def pass_the_token(comm, token=0):\n    x = token\n    return x\n"


def test_answers_that_are_equal_after_renaming_are_a_hint(tmp_path) -> None:
    files = [
        ("ada", notebook(tmp_path, ANSWER, SHORT, name="a.ipynb")),
        ("bob", notebook(tmp_path, RENAMED, SHORT, name="b.ipynb")),
        ("eve", notebook(tmp_path, ANSWER.replace("* 3", "* 4"), SHORT, name="e.ipynb")),
        ("ada", notebook(tmp_path, ANSWER, name="a2.ipynb")),
        ("zed", tmp_path / "missing.ipynb"),
    ]
    [found] = alike_answers(files)
    assert (found.exercise, found.learners) == ("scatter_blocks", ("ada", "bob"))
    assert found.statements >= FEWEST_STATEMENTS
    assert alike_lines([found]) == [
        f"The same but for names: ada and bob in scatter_blocks ({found.statements} statements).",
        "That is a reason to ask them, and proves nothing.",
    ]


def test_a_solution_of_the_course_and_what_many_write_is_no_hint(tmp_path) -> None:
    from course_utils.syllabus import ROOT

    solutions = ROOT / "exercises" / "solutions" / "04_messages.ipynb"
    assert shapes_in(solutions)["scatter_blocks"].tree in known_shapes("scatter_blocks")
    file = notebook(tmp_path, ANSWER)
    assert alike_answers([("a", solutions), ("b", solutions)]) == []
    assert alike_answers([(name, file) for name in "abcdef"]) == []
