"""Marks for submissions: a right answer keeps its mark, a wrong one and every abuse score zero and are told why."""

import csv
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from course_utils.checks.registry import declared, find
from course_utils.checks.submission import read
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS, ROOT
from course_utils.teacher import containment, grade_class, sandbox
from course_utils.teacher.grading import Mark
from course_utils.teacher.hiding import lesson_modules, without_answers
from course_utils.teacher.marks import COLUMNS, MarkLine, read_marks, write_marks
from course_utils.teacher.submission_files import names_of
from course_utils.teacher.summary import summary, write_feedback
from tests.teacher.submissions import RIGHT, mark_of, marks_of, needs_a_box, notebook
from workshop.bench.submissions import write_class

pytestmark = needs_a_box
TREE = """
def tree_broadcast(comm, vector, root=0):
    distance, holders = (comm.rank - root) % comm.size, 1
    while holders < comm.size:
        if distance < holders and distance + holders < comm.size:
            comm.Send(vector, dest=(comm.rank + holders) % comm.size)
        elif holders <= distance < 2 * holders:
            comm.Recv(vector, source=(comm.rank - holders) % comm.size)
        holders *= 2
"""


@pytest.mark.timeout(120)
def test_right_answers_keep_their_marks_however_noisy(tmp_path) -> None:
    noisy = """
    import warnings

    def rank_squared(comm):
        print("hello " * 100)
        warnings.warn("careful")
        return comm.rank**2
    """
    wrong = "def who_is_there(comm, name):\n    return [name]\n"
    marks = marks_of([notebook(tmp_path, "ranks = course.start(4)", noisy, wrong, TREE, "1 / 0")], ranks=3)
    found = {mark.exercise: mark for mark in marks}
    assert found["rank_squared"].verdict == f"✓ rank_squared: {find('rank_squared').praise(None)}"
    assert found["rank_squared"].result == found["tree_broadcast"].result == Result.RIGHT, found["tree_broadcast"]
    assert found["who_is_there"].result == Result.WRONG and "expected" in found["who_is_there"].verdict
    assert found["scatter_blocks"].result == Result.NOT_BEGUN, found["scatter_blocks"]


@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "stems",
    [
        pytest.param(["04_messages", "15_read_the_manual"], id="some", marks=pytest.mark.long),
        pytest.param([lesson.stem for lesson in LESSONS], id="all", marks=pytest.mark.weekly),
    ],
)
def test_every_solution_of_the_course_gets_all_its_marks(stems) -> None:
    files = [ROOT / "exercises" / "solutions" / f"{stem}.ipynb" for stem in stems]
    found = marks_of(files, ranks=4)
    missed = {mark.exercise for mark in found if not mark.mark}
    again = {file for file in files if any(name in file.read_text() for name in missed)}  # the clock judges some
    twice = [mark for mark in marks_of(sorted(again), ranks=4) if mark.exercise in missed] if missed else []
    assert {mark.exercise: mark.verdict for mark in twice if not mark.mark} == {} and len(twice) == len(missed)
    assert {mark.exercise for mark in found} == {one.name for one in declared() if one.lesson in stems}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("folder", "marks"), [("exercises", {0}), ("exercises/solutions", {1})])
def test_the_built_notebooks_get_the_marks_that_they_deserve(folder, marks) -> None:
    found = marks_of([ROOT / folder / "00_first_steps.ipynb"], ranks=2)
    assert {mark.mark for mark in found} == marks and len(found) == 2, found


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_result_too_large_to_send_costs_its_own_exercise_and_no_other(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(containment, "LARGEST_REPLY", 1 << 20)
    large = "def rank_squared(comm):\n    return bytes(8 << 20) if comm.rank else 0\n"
    names = "def who_is_there(comm, name):\n    return comm.allgather(name)\n"
    first, second = marks_of([notebook(tmp_path, large, names)], ranks=2)
    assert first.mark == 0 and "too large to send" in first.verdict, first.verdict
    assert second.mark == 1, second.verdict


@pytest.mark.timeout(120)
def test_no_answer_of_the_course_can_be_imported_or_read() -> None:
    places = {place for one in declared() for place in (one.library, *one.also_hidden)}
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with containment.contained_ranks(1) as ranks:
        reply = ranks.attempt(_sees, [(sorted(places),)], with_comm=False, patience=60.0, limit=90.0).replies[0]
    assert reply.value == [], reply.error or reply.value


def _sees(places: list[str]) -> list[str]:
    """Runs on a contained rank: which answers it found whole, as functions or as what Python has compiled."""
    import importlib
    import inspect
    import pathlib

    import course_utils

    root, found = pathlib.Path(course_utils.__file__).parents[1], []
    for place in places:
        module, _, name = place.partition(":")
        package, face = module.rpartition(".")[0], ".".join(module.split(".")[:3])
        for holder in dict.fromkeys((module, package, face)):
            function = getattr(importlib.import_module(holder), name, None)
            if not inspect.isfunction(function):  # a module may have its function's name
                continue
            code = inspect.unwrap(function).__code__  # a decorator's wrapper has another
            if not any("is hidden while" in str(one) for one in code.co_consts):
                found.append(f"{holder}:{name}")
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        found += map(str, file.parent.glob(f"__pycache__/{file.stem}.*"))
    return found + [str(folder) for folder in root.rglob("checks")]


ONLY_UP_TO_FOUR = """
def tree_broadcast(comm, vector, root=0):
    distance = (comm.rank - root) % comm.size
    for holders in (1, 2):
        if distance < holders and distance + holders < comm.size:
            comm.Send(vector, dest=(comm.rank + holders) % comm.size)
        elif holders <= distance < 2 * holders:
            comm.Recv(vector, source=(comm.rank - holders) % comm.size)
"""


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("answer", "number", "mark"), [(TREE, 8, 1), (ONLY_UP_TO_FOUR, 4, 1), (ONLY_UP_TO_FOUR, 8, 0)])
def test_eight_ranks_show_what_four_do_not(answer, number, mark, tmp_path) -> None:
    found = mark_of(tmp_path, answer, exercise="tree_broadcast", ranks=number)
    assert found.mark == mark and ("8 ranks" in found.verdict) == (number == 8), found.verdict


def test_a_module_without_its_answers_keeps_the_rest() -> None:
    source = "X = 1\n\ndef a(n):\n    return n\n\ndef b(n):\n    return a(n)\n"
    hidden: dict = {}
    exec(without_answers(source, ("a",)), hidden)
    assert hidden["X"] == 1
    with pytest.raises(NotImplementedError, match="own a is hidden"):
        hidden["b"](1)


def test_what_an_earlier_lesson_taught_may_be_imported_and_is_not_asked_for(tmp_path) -> None:
    cell = """
    from course_utils.lessons.first_steps.rank_and_size import rank_squared

    def pass_the_token(comm, token=0):
        return rank_squared(comm)
    """
    submission = read(notebook(tmp_path, cell))
    assert submission.lessons == {"04_messages"} and "rank_squared" not in submission.expected
    [(module, functions)] = [(k, v) for k, v in lesson_modules("04_messages").items() if k.endswith(".point_to_point")]
    assert "pass_the_token" in functions and "course_utils.lessons.first_steps.rank_and_size" not in lesson_modules(
        "04_messages"
    )
    assert "course_utils.lessons.first_steps.rank_and_size" in lesson_modules()


def test_the_table_of_marks(tmp_path) -> None:
    file = tmp_path / "marks.csv"
    file.write_text("forged")
    marks = [
        Mark("ada.ipynb", "rank_squared", Result.RIGHT, "✓ fine,\nwith a comma"),
        Mark("ada.ipynb", "read_sample", Result.WRONG, "✗ wrong"),
        Mark("=1+1.ipynb", "", Result.WRONG, "✗ nothing", boxed=False),
    ]
    lines = [MarkLine(mark, "ada", file="12ab") for mark in marks[:2]] + [MarkLine(marks[2], "=1+1", True)]
    write_marks(lines, file)
    with file.open(newline="", encoding="utf-8-sig") as table:
        assert list(csv.reader(table)) == [
            list(COLUMNS),
            ["ada.ipynb", "rank_squared", "1", "✓ fine, with a comma", "in a box"]
            + ["ada", "right", "", "", "yes", "", "", "12ab"],
            ["ada.ipynb", "read_sample", "0", "✗ wrong", "in a box", "ada", "not yet", "", "", "yes", "", "", "12ab"],
            ["'=1+1.ipynb", "", "0", "✗ nothing", "without a box: --trusted"]
            + ["'=1+1", "", "yes", "", "yes", "", "", ""],
        ]
    plain = Mark("ada.ipynb", "rank_squared", Result.RIGHT, "✓ fine, with a comma")
    assert read_marks(file) == [MarkLine(plain, "ada", file="12ab"), *lines[1:]]


def a_path_without(tool: str, folder: Path) -> str:
    """A $PATH with all programs but one."""
    programs = {file.name: file for place in os.environ["PATH"].split(os.pathsep) for file in Path(place).glob("*")}
    for name, file in programs.items():
        if name != tool:
            (folder / name).symlink_to(file)
    return str(folder)


@pytest.mark.parametrize(("tool", "package"), [("bwrap", "bubblewrap"), ("setpriv", "util-linux")])
def test_a_missing_tool_is_named_with_its_package(tool, package, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", a_path_without(tool, tmp_path))
    assert sandbox.obstacle.__wrapped__() == f"`{tool}` is missing: `apt install {package}` brings it."


def test_a_missing_library_is_named_with_its_package(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "pyseccomp", raising=False)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None if name == "seccomp" else "libc.so.6")
    assert sandbox.obstacle.__wrapped__() == "libseccomp is missing: `apt install libseccomp2` brings it."


def test_a_system_without_namespaces_is_told_how_to_allow_them(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", a_path_without("bwrap", tmp_path))
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    told = sandbox.obstacle.__wrapped__()
    assert told.startswith("bubblewrap cannot make a box: this system forbids namespaces")
    assert "sysctl" in told or "(bwrap: setting up uid map: Permission denied)" in told and "--security-opt" in told


def test_root_runs_nothing_of_others_without_a_box(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grade_class, "is_root", lambda: True)
    with pytest.raises(CourseError, match="as root. Grade as an ordinary user"):
        run_command(notebook(tmp_path, RIGHT), "--out", tmp_path / "marks.csv", "--trusted")
    assert not (tmp_path / "marks.csv").exists()


@pytest.mark.timeout(300)
def test_without_a_box_it_rejects_and_trusted_says_so_in_every_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grade_class, "obstacle", lambda: "bubblewrap is missing.")
    file, out, texts = notebook(tmp_path, RIGHT), tmp_path / "marks.csv", tmp_path / "texts"
    with pytest.raises(CourseError, match="bubblewrap is missing. `--trusted`"):
        run_command(file, "--out", out)
    assert not out.exists()
    user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if sandbox.is_root() else []
    grade_as(user, file, "--out", out, "--feedback", texts, "--ranks", "2", "--trusted")
    assert "ada.ipynb,rank_squared,1,✓" in out.read_text(encoding="utf-8-sig")
    assert all("without a box: --trusted" in line for line in out.read_text().splitlines()[1:])
    assert "--trusted" in (texts / "ada.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("other", ["x.txt/y.ipynb", "long" * 63 + ".ipynb"], ids=["a folder", "too long a name"])
def test_a_text_that_cannot_be_called_as_its_notebook_costs_nobody_theirs(other, tmp_path) -> None:
    names = ("x.ipynb", other)
    files = write_feedback([Mark(name, "", Result.WRONG, "✗ nothing") for name in names[::-1]], tmp_path)
    assert len({file.read_text(encoding="utf-8") for file in files}) == 2


def test_every_notebook_is_called_by_a_name_of_its_own_that_can_be_shown(tmp_path) -> None:
    names = [b"2 a?.ipynb", b"a\x1b.ipynb", b"a\x07.ipynb", b"a\xff.ipynb", "漢字 é.ipynb".encode()]
    made = [tmp_path / os.fsdecode(name) for name in names]
    for file in made:
        file.touch()
    found = names_of(made)
    assert len(set(found)) == len(made) and all(name.isprintable() for name in found)
    assert found[:2] == ["2 a?.ipynb", "a?.ipynb"] and found[-1] == "漢字 é.ipynb"


def test_what_is_no_submission_gets_a_line_too(tmp_path) -> None:
    (tmp_path / "text.ipynb").write_text("hello")
    [mark] = marks_of([tmp_path / "text.ipynb"])
    assert (mark.mark, mark.exercise) == (0, "") and "is not a notebook" in mark.verdict


def run_command(*arguments: object) -> None:
    from course_utils.cli import app

    app(["grade", *map(str, arguments)], standalone_mode=False)


def test_the_command_writes_the_table_and_a_text_for_each_learner(tmp_path, capsys) -> None:
    handed_in, out, texts = tmp_path / "handed in", tmp_path / "marks.csv", tmp_path / "texts"
    for learner in ("ada", "grace"):
        (handed_in / learner).mkdir(parents=True)
        (handed_in / learner / "04.ipynb").write_text("hello")
    run_command(handed_in, "--out", out, "--feedback", texts)
    said = capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines()))
    assert [(row["submission"], row["exercise"], row["mark"]) for row in rows] == [
        (f"{learner}/04.ipynb", "", "0") for learner in ("ada", "grace")
    ]
    assert f"0  ada/04.ipynb  {rows[0]['verdict']}" in said and f"Marks: {out}" in said
    assert (texts / "grace" / "04.txt").read_text(encoding="utf-8").startswith("grace/04.ipynb\n\n✗ ")


def test_nothing_is_run_where_the_marks_cannot_be_written(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = notebook(tmp_path, RIGHT)
    with pytest.raises(CourseError, match="there is no such file"):
        run_command(tmp_path / "nobody.ipynb")
    with pytest.raises(CourseError, match="Does its folder exist"):
        run_command(file, "--out", tmp_path / "nowhere" / "marks.csv")
    (tmp_path / "marks.csv").write_text("last week's")
    with pytest.raises(CourseError, match="marks.csv exists already"):
        run_command(file)
    assert (tmp_path / "marks.csv").read_text() == "last week's"


@pytest.mark.parametrize(
    ("out", "feedback", "says"),
    [
        ("a" * 251 + ".csv", None, "cannot be written .*`--out` names"),  # a letter more, and a name is too long
        ("marks.csv", "a file", "into .*a file .*`--feedback` names"),
        ("marks.csv", "a file/inside", "into .*inside .*`--feedback` names"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_graded(out, feedback, says, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(grade_class, "grade_each", lambda *_, **__: pytest.fail("it was graded"))
    (tmp_path / "a file").write_text("mine")
    with pytest.raises(CourseError, match=says):
        grade_class.grade_class([notebook(tmp_path, RIGHT)], tmp_path / out, feedback and tmp_path / feedback, 2)
    assert (tmp_path / "a file").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


def test_the_summary_is_printed_before_texts_are_written(tmp_path, monkeypatch, capsys) -> None:
    def full(*_) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(
        grade_class, "grade_each", lambda *_, **__: [[Mark("ada.ipynb", "rank_squared", Result.RIGHT, "✓ fine")]]
    )
    monkeypatch.setattr(grade_class, "write_feedback", full)
    with pytest.raises(OSError, match="no space left"):
        grade_class.grade_class([notebook(tmp_path, RIGHT)], tmp_path / "marks.csv", tmp_path / "texts", 2)
    assert "1 of 1 mark." in capsys.readouterr().out and (tmp_path / "marks.csv").exists()


def test_what_is_marked_when_the_teacher_stops_is_kept(tmp_path, monkeypatch, capsys) -> None:
    def each(notebooks, *_, **__):
        yield [Mark("ada.ipynb", "rank_squared", Result.RIGHT, "✓ rank_squared: fine")]
        raise KeyboardInterrupt

    monkeypatch.setattr(grade_class, "grade_each", each)
    files = [notebook(tmp_path, RIGHT, name=name) for name in ("ada.ipynb", "grace.ipynb")]
    with pytest.raises(KeyboardInterrupt):
        grade_class.grade_class(files, tmp_path / "marks.csv", None, 2)
    assert "Stopped after 1 of 2 notebooks. 1 of 1 mark." in capsys.readouterr().out
    assert "ada.ipynb,rank_squared,1" in (tmp_path / "marks.csv").read_text(encoding="utf-8-sig")


def test_the_summary_names_the_hardest_exercise_and_the_commonest_question() -> None:
    def of(name: str, *results: Result) -> list[Mark]:
        return [
            Mark(name, exercise, result, "as it was", "Is it?" if result == Result.WRONG else "")
            for exercise, result in zip(("make_buckets", "fits"), results, strict=True)
        ]

    right, wrong, missing = Result.RIGHT, Result.WRONG, Result.NOT_BEGUN
    marks = [*of("a", right, wrong), *of("b", right, wrong), *of("c", wrong, missing)]
    said = summary([*marks, Mark("d", "", wrong, "d is not a notebook.")]).splitlines()
    assert said[0] == "2 of 6 marks; 1 file without answers."
    assert [line.split() for line in said[3:5]] == [["make_buckets", "2", "1", "0"], ["fits", "0", "2", "1"]]
    assert said[6:] == ["Fewest are right of fits: 0 of 3.", "Asked most often (fits, 2 times): Is it?"]
    assert summary([]) == "0 of 0 marks."


def test_a_made_up_class_is_mixed_and_can_be_made_again(tmp_path) -> None:
    lesson = next(one for one in LESSONS if one.subject == "messages")
    (tmp_path / "again").mkdir()
    files = write_class(tmp_path, lesson, 30, seed=3)
    again = write_class(tmp_path / "again", lesson, 30, seed=3)
    assert [one.read_text() for one in files] == [one.read_text() for one in again]
    odd = [files[place] for place in (6, 13, 20, 27)]
    for file in (odd[0], odd[2], odd[3]):
        with pytest.raises(CourseError, match="is not a notebook|answers no exercise"):
            read(file)
    honest = [read(file) for file in files if file not in odd]
    assert all(len(one.expected) == 5 for one in honest)
    assert len({one.cells for one in honest}) == len(honest)


@needs_a_box
@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests run as an ordinary user")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("user", [["--map-user=1000", "--map-group=1000"], ["--map-root-user"]])
def test_who_is_not_root_or_so_only_in_a_container_gets_the_same_boxes(user, tmp_path) -> None:
    file, table = notebook(tmp_path, RIGHT), tmp_path / "marks.csv"
    grade_as(["unshare", "--user", *user], file, "--out", table)
    assert "rank_squared,1" in table.read_text() and "in a box" in table.read_text()


def grade_as(user: list[str], *arguments: object) -> None:
    """The command in a process of its own, behind what makes it another user's."""
    command = [*user, sys.executable, "-m", "course_utils.cli", "grade", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.timeout(200)
def test_what_has_computed_with_threads_may_grade(tmp_path) -> None:
    import torch

    torch.set_num_threads(4)
    assert torch.ones(400_000).to(torch.float64).sum() == 400_000  # which starts OpenMP's threads
    file = ROOT / "exercises" / "solutions" / "06_data_parallel.ipynb"
    assert [(mark.mark, mark.verdict) for mark in marks_of([file]) if not mark.mark] == []
