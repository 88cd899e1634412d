"""What is kept of a learner's work: lines that are only appended, private, and never in the way of an exercise."""

import errno
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import course_utils as course
from course_utils.checks import records
from course_utils.checks.records import Session, read_all
from course_utils.checks.table import overview


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def files(home) -> list:
    return sorted((home / "progress").glob("*.jsonl"))


def solved(name: str, mark: str = "✓") -> dict:
    return {"exercise": name, "mark": mark}


def test_a_record_is_one_private_line_of_json(home):
    Session().write(exercise="rank_squared", mark="✓", text="4 ranks agree")
    (file,) = files(home)
    record = json.loads(file.read_text())
    assert record["exercise"] == "rank_squared" and record["time"].startswith("20")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_each_session_appends_to_its_own_file_and_all_are_read(home):
    one, other = Session(), Session()
    for number in range(3):
        one.write(number=number)
        other.write(number=number)
    assert len(files(home)) == 2
    assert sorted(record["number"] for record in read_all()) == [0, 0, 1, 1, 2, 2]


def test_every_line_is_synced_to_the_disk(home, monkeypatch):
    synced = []
    monkeypatch.setattr(records.os, "fsync", synced.append)
    session = Session()
    session.write(a=1)
    session.write(a=2)
    assert len(synced) == 2


def test_the_default_folder_is_in_the_home(monkeypatch, tmp_path):
    monkeypatch.delenv("COURSE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    Session().write(a=1)
    assert list((tmp_path / ".local/share/course/progress").glob("*.jsonl"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_full_or_forbidden_disk_costs_one_warning(home, monkeypatch, capsys, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(records.os, "write", refuse)
    session = Session()
    session.write(a=1)
    session.write(a=2)
    warning = capsys.readouterr().out
    assert len(warning.splitlines()) == 1 and os.strerror(code) in warning


def test_a_home_that_is_a_file_costs_one_warning_and_the_table_is_still_there(home, capsys):
    home.write_text("not a folder")
    session = Session()
    session.write(a=1)
    session.write(a=2)
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert "rank_squared" in str(course.progress())


def test_no_home_at_all_costs_one_warning(monkeypatch, capsys):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("COURSE_HOME", raising=False)
    monkeypatch.setattr(records.Path, "home", homeless)
    Session().write(a=1)
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert list(read_all()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_disk_that_is_really_full_costs_one_warning(home, monkeypatch, capsys):
    session = Session()
    session._file()
    monkeypatch.setattr(session, "_file", lambda: "/dev/full")
    session.write(a=1)
    assert "cannot be kept" in capsys.readouterr().out


def test_a_line_that_was_cut_short_does_not_spoil_the_next(home):
    session = Session()
    session.write(a=1)
    (file,) = files(home)
    with file.open("a") as handle:
        handle.write('{"a": 2, "b')
    session.write(a=3)
    assert [record["a"] for record in read_all()] == [1, 3]


def test_rubbish_in_the_folder_is_passed_over(home):
    Session().write(a=1)
    (home / "progress" / "x.jsonl").write_bytes(b"\xff\xfe\n[1]\n3\n\n")
    (home / "progress" / "folder.jsonl").mkdir()
    os.mkfifo(home / "progress" / "pipe.jsonl")
    assert [record["a"] for record in read_all()] == [1]


def test_two_threads_never_write_into_each_others_lines(home):
    session = Session()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: session.write(number=number, text="x" * 5000), range(40)))
    assert sorted(record["number"] for record in read_all()) == list(range(40))


def test_a_forked_process_writes_its_own_file(home):
    code = (
        "import os; from course_utils.checks.records import Session\n"
        "s = Session(); s.write(a=1)\n"
        "if os.fork() == 0:\n    s.write(a=2); os._exit(0)\n"
        "os.wait(); s.write(a=3)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert len(files(home)) == 2 and len(list(read_all())) == 3


def test_what_was_once_right_stays_solved():
    table = overview([solved("rank_squared"), solved("rank_squared", "✗"), solved("who_is_there", "✗")])
    marks = dict(mark for row in table.rows for mark in row.marks)
    assert marks["rank_squared"] == "✓" and marks["who_is_there"] == "✗"
    assert table.rows[0].done == 1


def test_the_table_names_every_lesson_and_what_is_next():
    from course_utils.checks.registry import names_of
    from course_utils.syllabus import LESSONS

    table = overview([solved("rank_squared")])
    text, page = str(table), table._repr_html_()
    for lesson in LESSONS:
        assert lesson.title in text
        assert (names_of(lesson)[0] in text) == lesson.written
    assert "Next: who_is_there, in exercises/00_first_steps.ipynb" in text
    assert "Next: " in page and 'href="' in page and page.count("<tr ") == len(LESSONS) + 1


def test_the_table_says_when_all_is_done():
    from course_utils.checks.registry import names_of
    from course_utils.syllabus import LESSONS

    table = overview(solved(name) for lesson in LESSONS for name in names_of(lesson))
    assert table.next is None and "That is all of them" in str(table)


def test_strange_records_do_not_break_the_table():
    table = overview([{}, {"exercise": 3, "mark": "✓"}, {"exercise": "rank_squared", "mark": "?"}, {"mark": "✓"}])
    assert table.rows[0].done == 0


def test_check_hint_and_progress_work_together(home, monkeypatch, capsys):
    from fake_ranks import FakeRanks

    monkeypatch.setattr("course_utils.cluster.current", FakeRanks, raising=False)
    course.check("rank_squared", lambda comm: comm.rank**2)
    course.check("who_is_there", lambda comm, name: None)
    course.hint("who_is_there")
    text = str(course.progress())
    assert "● rank_squared" in text and "◐ who_is_there" in text
    other_kernel = subprocess.run(
        [sys.executable, "-c", "import course_utils as course; print(course.progress())"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert other_kernel.stdout.strip() == text.strip()
