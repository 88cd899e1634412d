"""What is kept of a learner's work: lines that are only appended, private, and never in the way of an exercise."""

import datetime
import errno
import html
import json
import os
import stat
import subprocess
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import course_utils as course
from course_utils.checks import progress_records
from course_utils.checks.overview import overview
from course_utils.checks.prediction_scores import asked_on
from course_utils.checks.progress_records import Session, read, read_all
from course_utils.syllabus import LESSONS


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def files(home) -> list:
    return sorted((home / "progress").glob("*.jsonl"))


def solved(name: str, mark: str = "✓", **more) -> dict:
    return {"exercise": name, "mark": mark, **more}


def at(minute: float, **record) -> dict:
    """A record written some minutes after nine o'clock."""
    time = datetime.datetime(2026, 3, 2, 9, tzinfo=datetime.UTC) + datetime.timedelta(minutes=minute)
    return {"time": time.isoformat(timespec="seconds"), **record}


def marks_of(table) -> dict[str, str]:
    return dict(mark for row in table.rows for mark in row.marks)


def row_of(table, stem: str):
    return next(row for row in table.rows if row.stem == stem)


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
    monkeypatch.setattr(progress_records.os, "fsync", synced.append)
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
    def reject(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(progress_records.os, "write", reject)
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
    monkeypatch.delenv("COURSE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user whom the system does not know
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
        "import os; from course_utils.checks.progress_records import Session\n"
        "s = Session(); s.write(a=1)\n"
        "if os.fork() == 0:\n    s.write(a=2); os._exit(0)\n"
        "os.wait(); s.write(a=3)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert len(files(home)) == 2 and len(list(read_all())) == 3


WRITE_MANY = """
import sys
from course_utils.checks.progress_records import Session
session = Session()
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    session.write(exercise="rank_squared", mark="✗", writer=int(sys.argv[1]), number=number, text="é" * 700)
"""


def test_two_kernels_that_write_at_once_and_one_that_reads_lose_nothing(home):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE_MANY, str(writer)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for writer in range(3)
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.close()
    seen = 0
    while any(writer.poll() is None for writer in writers):
        now = len(list(read_all()))
        assert now >= seen, "what was there stays there"
        seen = now
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = [(record["writer"], record["number"]) for record in read_all()]
    assert sorted(found) == [(writer, number) for writer in range(3) for number in range(200)]
    for writer in range(3):
        assert [number for who, number in found if who == writer] == list(range(200)), "each in its own order"


def test_a_kernel_that_is_killed_while_it_writes_leaves_its_whole_lines(home):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_MANY, "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    writer.stdin.write("go\n")
    writer.stdin.close()
    while len(list(read_all())) < 5 and writer.poll() is None:
        pass
    writer.kill()
    writer.wait()
    numbers = [record["number"] for record in read_all()]
    assert len(numbers) >= 5 and numbers == list(range(len(numbers)))
    Session().write(number=-1)
    assert [record["number"] for record in read_all()] == [*numbers, -1]


def test_a_character_cut_in_half_and_a_line_without_end_cost_that_line_alone(home):
    Session().write(number=1)
    (home / "progress" / "0.jsonl").write_bytes(b'{"number": 2}\n{"number": 3, "text": "\xc3')
    (home / "progress" / "1.jsonl").write_bytes(b"[" * 100_000 + b'\n{"number": 4}\n')
    assert sorted(record["number"] for record in read_all()) == [1, 2, 4]


def test_what_cannot_be_written_is_kept_shown_and_written_later(home, monkeypatch, capsys):
    session, write = Session(), os.write
    monkeypatch.setattr(progress_records, "SESSION", session)

    def reject(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(progress_records.os, "write", reject)
    session.write(exercise="rank_squared", mark="✓")
    session.write(exercise="who_is_there", mark="✗")
    assert marks_of(overview())["rank_squared"] == "✓"
    monkeypatch.setattr(progress_records.os, "write", write)
    session.write(exercise="who_is_there", mark="✓")
    monkeypatch.setattr(progress_records, "SESSION", Session())
    assert [record["mark"] for record in read_all()] == ["✓", "✗", "✓"]


def test_every_record_has_a_schema_and_an_order_over_all_kernels(home):
    for number in range(3):
        Session().write(number=number)
    found = list(read_all())
    assert [record["schema"] for record in found] == [progress_records.SCHEMA] * 3
    assert [record["order"] for record in found] == [1, 2, 3]


@pytest.mark.parametrize("year", [1970, 2100])
def test_a_clock_that_jumps_changes_neither_order_nor_minutes_nor_marks(home, year):
    Session().write(exercise="rank_squared", mark="✗", number=1)
    jumped = progress_records.datetime

    class Clock(jumped.datetime):
        @classmethod
        def now(cls, zone=None):
            return jumped.datetime(year, 1, 1, 12, tzinfo=zone)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress_records, "datetime", types.SimpleNamespace(datetime=Clock, UTC=jumped.UTC))
        Session().write(exercise="rank_squared", mark="✓", number=2)
    Session().write(exercise="rank_squared", mark="✗", number=3)
    assert [record["number"] for record in read_all()] == [1, 2, 3]
    row = row_of(overview(), "00_first_steps")
    assert row.done == 1 and 0 <= row.spent < 1


def test_a_prediction_made_under_a_wrong_clock_is_still_the_earlier_one(home):
    folder = home / "progress"
    folder.mkdir(parents=True)
    for name, order, guess in (("20990101-1-a", 1, 60), ("20260101-1-b", 2, 63)):
        record = {"schema": 2, "order": order, "time": f"{name[:4]}-01-01T00:00:00+00:00"}
        (folder / f"{name}.jsonl").write_text(json.dumps({**record, "prediction": "p", "answers": {"n": guess}}))
    from course_utils.checks.predictions import known

    assert known("p").answers == {"n": 63}


def test_records_without_a_schema_are_read_as_they_were_written(home):
    folder = home / "progress"
    folder.mkdir(parents=True)
    old = [
        at(0, exercise="rank_squared", lesson="00_first_steps", mark="✗", text="wrong."),
        at(2, exercise="rank_squared", lesson="00_first_steps", mark="✓", text="right."),
        at(3, prediction="processes", answers={"answer": 4}),
        at(4, measured="processes", values={"answer": 5}),
        at(5, prediction="whose_x", answers={"answer": "a"}),
        at(6, measured="whose_x", values={"answer": "a"}),
        at(7, hint="who_is_there", step=1),
    ]
    (folder / "20260302-1-a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in old))
    Session().write(exercise="who_is_there", mark="✓")
    row = row_of(overview(), "00_first_steps")
    assert row.done == 2 and (row.hit, row.compared) == (1, 2) and round(row.spent) == 7


def test_a_newer_schema_and_unknown_fields_are_read_as_far_as_they_are_known(home):
    folder = home / "progress"
    folder.mkdir(parents=True)
    newer = [
        {"schema": 9, "order": 3, "exercise": "rank_squared", "mark": "✓", "mood": {"a": [1]}},
        {"schema": 9, "order": "later", "exercise": "who_is_there", "mark": "✓✓"},
        {"schema": 9, "order": 10**300, "measured": "processes", "values": [1], "hits": {"answer": "yes", "b": True}},
        {"schema": {}, "order": -1, "prediction": ["x"], "answers": 3, "page": 7, "time": 12},
        {"order": True, "measured": "whose_x", "values": {"answer": "a"}, "time": "yesterday"},
    ]
    (folder / "20990101-1-a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in newer))
    before = (folder / "20990101-1-a.jsonl").read_bytes()
    Session().write(exercise="pass_the_token", mark="✗")
    table = overview()
    assert marks_of(table)["rank_squared"] == "✓" and marks_of(table)["who_is_there"] == "○"
    assert marks_of(table)["pass_the_token"] == "✗" and str(table) and table._repr_html_()
    assert (folder / "20990101-1-a.jsonl").read_bytes() == before
    assert max(record["order"] for record in read_all() if record.get("exercise") == "pass_the_token") == 4


def test_a_file_of_another_user_is_not_believed_and_the_table_says_so(home, monkeypatch):
    Session().write(exercise="rank_squared", mark="✓")
    monkeypatch.setattr(progress_records.os, "geteuid", lambda: files(home)[0].stat().st_uid + 1)
    table = overview()
    assert table.rows[0].done == 0
    assert "A file of your progress is another user's and not in this table." in str(table)
    assert "another user's" in html.unescape(table._repr_html_())


def test_a_file_that_cannot_be_read_hides_no_other_and_the_table_says_so(home, monkeypatch):
    for name in ("rank_squared", "who_is_there"):
        Session().write(exercise=name, mark="✓")
    secret, opened = files(home)[0], os.open

    def careful(path, *arguments, **options):
        if str(path) == str(secret):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(progress_records.os, "open", careful)
    kept = read()
    assert (len(kept.records), kept.unreadable, kept.foreign) == (1, 1, 0)
    assert kept.notes == ["A file of your progress cannot be read and is not in this table."]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_not_disturbed_by_roots_files(monkeypatch):
    code = (
        "import os; from course_utils.checks.progress_records import read\n"
        "os.setgid(65534); os.setuid(65534); kept = read(); print(len(kept.records), kept.unreadable, kept.foreign)"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        monkeypatch.setenv("COURSE_HOME", folder)
        Session().write(exercise="rank_squared", mark="✓")
        progress = Path(folder) / "progress"
        progress.chmod(0o755)
        (progress / "readable.jsonl").write_text(json.dumps(solved("who_is_there")))
        (progress / "readable.jsonl").chmod(0o644)
        reader = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert reader.stdout.split() == ["0", "1", "1"]


def test_under_nbgrader_nothing_is_kept(home, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    Session().write(exercise="rank_squared", mark="✓")
    assert not (home / "progress").exists()


def test_minutes_leave_out_pauses_and_count_two_notebooks_once():
    work = [
        at(0, exercise="rank_squared", mark="✗"),
        at(4, exercise="rank_squared", mark="✓"),
        at(10, exercise="pass_the_token", mark="✗"),
        at(13, exercise="who_is_there", mark="✗"),  # in the other notebook, meanwhile
        at(100, exercise="who_is_there", mark="✓"),  # after a long pause
        at(101, hint="who_is_there"),
        {"exercise": "who_is_there", "mark": "✓"},  # without a time
    ]
    table = overview(work)
    assert row_of(table, "00_first_steps").spent == pytest.approx(4 + 3 + 1)
    assert row_of(table, "04_messages").spent == pytest.approx(6)
    assert ", about 14 minutes" in table.summary()


def test_the_first_comparison_of_a_prediction_counts():
    again = [
        {"measured": "processes", "values": {"answer": 5}, "hits": {"answer": False}},
        {"measured": "processes", "values": {"answer": 5}, "hits": {"answer": True}},
        {"measured": "whose_x", "values": {"answer": "a"}, "hits": {"answer": True}},
        {"measured": "nobody_asks_this", "values": {"answer": "a"}, "hits": {"answer": True}},
    ]
    table = overview(again)
    row = row_of(table, "00_first_steps")
    assert (row.hit, row.compared) == (1, 2) and row.asked >= 4
    assert "1 of 2 predictions hit" in str(table) and ">1 of 2<" in table._repr_html_()


def test_a_prediction_of_a_further_notebook_is_one_of_its_lesson():
    lesson = next(lesson for lesson in LESSONS if lesson.further)
    name, question = min(asked_on(lesson.further))
    hit = {"measured": name, "values": {question: 5}, "hits": {question: True}, "page": lesson.further.stem}
    row = row_of(overview([hit, hit | {"measured": "nobody_asks_this"}]), lesson.stem)
    assert (row.hit, row.compared, row.begun) == (2, 2, True)
    assert row.asked == sum(len(asked_on(notebook)) for notebook in lesson.notebooks)


def test_a_lesson_that_is_not_begun_starts_with_its_page():
    table = overview([])
    what, file, _ = table.what_is_next()
    assert (what, file) == (f"lesson 0, {table.rows[0].title}", "notebooks/00_first_steps.ipynb")
    assert f"Next: {what}, in {file} (" in str(table)


def test_dots_have_names_and_links_lead_from_where_the_notebook_is(monkeypatch):
    from course_utils.syllabus import ROOT

    monkeypatch.chdir(ROOT / "exercises" / "solutions")
    page = overview([solved("rank_squared"), solved("who_is_there", "✗")])._repr_html_()
    assert 'role="img" title="who_is_there (' in page and ": tried" in page and ": solved" in page
    assert 'href="../00_first_steps.ipynb"' in page and 'href="../../notebooks/00_first_steps.ipynb"' in page
    assert "<script" not in page
    monkeypatch.chdir("/")
    assert "href" not in overview([])._repr_html_()


def test_what_was_once_right_stays_solved():
    table = overview([solved("rank_squared"), solved("rank_squared", "✗"), solved("who_is_there", "✗")])
    marks = dict(mark for row in table.rows for mark in row.marks)
    assert marks["rank_squared"] == "✓" and marks["who_is_there"] == "✗"
    assert table.rows[0].done == 1


def test_the_table_names_every_lesson_and_what_is_next():
    from course_utils.checks.registry import names_of

    table = overview([solved("rank_squared")])
    text, page = str(table), table._repr_html_()
    for lesson in LESSONS:
        assert lesson.title in text
        assert (names_of(lesson)[0] in text) == lesson.written
    assert table.what_is_next()[:2] == ("who_is_there", "exercises/00_first_steps.ipynb")
    assert "Next: " in page and 'href="' in page and page.count("<tr ") == len(LESSONS) + 1


def test_the_table_says_when_all_is_done():
    from course_utils.checks.registry import names_of

    table = overview(solved(name) for lesson in LESSONS for name in names_of(lesson))
    assert table.next is None and "That is all of them" in str(table)


def test_strange_records_do_not_break_the_table():
    table = overview([{}, {"exercise": 3, "mark": "✓"}, {"exercise": "rank_squared", "mark": "?"}, {"mark": "✓"}])
    assert table.rows[0].done == 0


def test_check_hint_and_progress_work_together(home, monkeypatch, capsys):
    from fake_ranks import FakeRanks

    monkeypatch.setattr("course_utils.ranks.start.current", FakeRanks, raising=False)
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
