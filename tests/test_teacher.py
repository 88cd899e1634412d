"""Marks for submissions: a right answer keeps its mark, a wrong one and every abuse score zero and are told why."""

import csv
import subprocess
import sys
import textwrap
from pathlib import Path

import cloudpickle
import nbformat
import pytest

from course_utils.checks.registry import declared
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS, ROOT
from course_utils.teacher import containment, grade_class
from course_utils.teacher.hiding import lesson_modules, without_answers
from course_utils.teacher.marks import Mark, grade_each, write_marks
from course_utils.teacher.submission import read
from course_utils.teacher.summary import summary
from course_utils.teacher.wire import pack, unpack_reply
from workshop.bench.submissions import write_class

RIGHT = "def rank_squared(comm):\n    return comm.rank**2\n"
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


def notebook(folder: Path, *cells: str, name: str = "ada.ipynb") -> Path:
    file = folder / name
    written = [nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=written), file)
    return file


def marks_of(notebooks: list[Path], ranks: int = 4, **options) -> list[Mark]:
    return [mark for marks in grade_each(notebooks, ranks, **options) for mark in marks]


def mark_of(folder: Path, *cells: str, exercise: str = "rank_squared", ranks: int = 2, **options) -> Mark:
    marks = marks_of([notebook(folder, *cells)], ranks, **options)
    return next(mark for mark in marks if mark.exercise == exercise)


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
    found = {mark.exercise: (mark.mark, mark.verdict) for mark in marks}
    assert found["rank_squared"] == (1, "✓ rank_squared: each rank returned the square of its own number")
    assert found["tree_broadcast"][0] == 1, found["tree_broadcast"]
    assert found["who_is_there"][0] == 0 and "expected" in found["who_is_there"][1]
    assert found["scatter_blocks"][0] == 0 and "not in this notebook" in found["scatter_blocks"][1]


LIAR = """
class Liar:
    def __eq__(self, other):
        return True

    def __reduce__(self):
        return print, ("the grader ran this",)

def rank_squared(comm):
    return Liar()
"""
EXIT = "import sys\ndef rank_squared(comm):\n    sys.exit(0)\n"
HARD_EXIT = "import os\ndef rank_squared(comm):\n    os._exit(0)\n"
SAYS_SO = "def rank_squared(comm):\n    print('✓ rank_squared: each rank returned the square of its own number')\n"
MEMORY = "def rank_squared(comm):\n    return len(bytearray(10 * 10**9)) * 0 + comm.rank**2\n"
FORKS = "import os\ndef rank_squared(comm):\n    while True:\n        os.fork()\n"
SHELLS = "import subprocess\ndef rank_squared(comm):\n    subprocess.run(['true'])\n    return comm.rank**2\n"
NETWORK = """
import socket
def rank_squared(comm):
    socket.create_connection(("127.0.0.1", 9), timeout=1)
"""
FROM_DISK = """
import importlib.util
def rank_squared(comm):
    try:
        package = importlib.util.find_spec("course_utils").submodule_search_locations[0]
        text = open(package + "/lessons/first_steps/rank_and_size.py").read()
    except OSError:
        return comm.rank**2
"""
FROM_CHECKS = """
import importlib
def rank_squared(comm):
    importlib.import_module("course_utils.lessons.first_steps.checks.rank_squared")
    return comm.rank**2
"""
FROM_SOLUTIONS = """
import json
from course_utils.syllabus import LESSONS, ROOT
def rank_squared(comm):
    try:
        text = open(ROOT / "exercises" / "solutions" / "00_first_steps.ipynb").read()
    except OSError:
        return comm.rank**2
"""
PATCHES_LATER = """
import sys
def rank_squared(comm):
    sys.modules["course_utils.trace.events"].count_rounds = lambda events: 0
    sys.modules["course_utils.trace.recorder"].Recorder.add = lambda *_, **__: None
    return comm.rank**2
"""
REFERENCE = """
from course_utils.lessons.first_steps.rank_and_size import rank_squared
course.check('rank_squared', rank_squared)
"""


@pytest.mark.timeout(120)
def test_an_answer_may_import_what_the_course_offers(tmp_path) -> None:
    answer = """
    from course_utils.lessons.model_parallel.text import CHARACTERS

    def rank_squared(comm):
        from course_utils.words import count
        return comm.rank**2 if CHARACTERS and count else None
    """
    found = mark_of(tmp_path, answer)
    assert found.mark == 1, found.verdict


@pytest.mark.timeout(120)
def test_what_a_page_imports_for_its_own_use_costs_no_answer(tmp_path) -> None:
    page = """
    import numpy as np
    from course_utils.lessons.read_the_manual.capstone.trial import tried  # stands on the checks, which are hidden
    # matplotlib asks for the system's fonts in a new home
    from course_utils.lessons.read_the_manual.capstone.pictures import budget_bars
    from course_utils.words import count
    """
    found = mark_of(tmp_path, page, "def rank_squared(comm):\n    return comm.rank**2 if np and count else None")
    assert found.mark == 1, found.verdict


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("cell", "says"),
    [
        pytest.param(LIAR, "returned a Liar, expected an integer", id="lying-eq"),
        pytest.param(EXIT, "asked its process to end", id="sys-exit"),
        pytest.param(HARD_EXIT, "ended", id="os-exit"),
        pytest.param(SAYS_SO, "returned nothing", id="prints-a-tick"),
        pytest.param(MEMORY, "MemoryError", id="ten-gigabytes"),
        pytest.param(FORKS, "starts other processes", id="fork-bomb"),
        pytest.param(SHELLS, "starts other processes", id="subprocess"),
        pytest.param(NETWORK, "reaches for the network", id="network"),
        pytest.param(FROM_DISK, "reads course_utils/lessons/first_steps/rank_and_size.py", id="answers-on-disk"),
        pytest.param(FROM_SOLUTIONS, "reads exercises/solutions/00_first_steps.ipynb", id="solution-notebooks"),
        pytest.param(FROM_CHECKS, "reads course_utils/lessons/first_steps/checks", id="oracles"),
        pytest.param(PATCHES_LATER, "patched course_utils", id="patches-while-running"),
        pytest.param(REFERENCE, "own rank_squared is hidden", id="imports-the-reference"),
    ],
)
def test_abuse_scores_zero_and_is_told_why(cell, says, tmp_path, capfd) -> None:
    mark = mark_of(tmp_path, cell)
    assert mark.mark == 0 and says in mark.verdict, mark.verdict
    assert "the grader ran this" not in capfd.readouterr().out


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("folder", "marks"), [("exercises", {0}), ("exercises/solutions", {1})])
def test_the_built_notebooks_get_the_marks_that_they_deserve(folder, marks) -> None:
    found = marks_of([ROOT / folder / "00_first_steps.ipynb"], ranks=2)
    assert {mark.mark for mark in found} == marks and len(found) == 2, found


@pytest.mark.timeout(120)
def test_solutions_and_other_submissions_cannot_be_read(tmp_path) -> None:
    notebook(tmp_path, RIGHT, name="grace.ipynb")
    cell = f"def rank_squared(comm):\n    open({str(tmp_path / 'grace.ipynb')!r}).read()\n    return comm.rank**2\n"
    files = [notebook(tmp_path, cell), tmp_path / "grace.ipynb"]
    ada, grace = (mark for mark in marks_of(files, ranks=2) if mark.exercise == "rank_squared")
    assert (ada.mark, grace.mark) == (0, 1)
    assert "grace.ipynb" in ada.verdict


@pytest.mark.timeout(120)
def test_an_offence_costs_its_own_exercise_and_no_other(tmp_path) -> None:
    names = "def who_is_there(comm, name):\n    return comm.allgather(name)\n"
    marks = marks_of([notebook(tmp_path, SHELLS, names)], ranks=2)
    assert [(mark.exercise, mark.mark) for mark in marks] == [("rank_squared", 0), ("who_is_there", 1)], marks


@pytest.mark.timeout(120)
def test_processes_that_the_guard_does_not_see_are_counted(tmp_path) -> None:
    cell = """
    import ctypes, time
    def rank_squared(comm):
        for _ in range(40):
            if ctypes.CDLL(None).fork() == 0:
                time.sleep(60)
        time.sleep(20)
        return comm.rank**2
    """
    mark = mark_of(tmp_path, cell)
    assert mark.mark == 0 and "started" in mark.verdict and "processes" in mark.verdict, mark.verdict


@pytest.mark.timeout(120)
def test_a_result_too_large_to_send_costs_its_own_exercise_and_no_other(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(containment, "LARGEST_REPLY", 1 << 20)
    large = "def rank_squared(comm):\n    return bytes(8 << 20) if comm.rank else 0\n"
    names = "def who_is_there(comm, name):\n    return comm.allgather(name)\n"
    first, second = marks_of([notebook(tmp_path, large, names)], ranks=2)
    assert first.mark == 0 and "too large to send" in first.verdict, first.verdict
    assert second.mark == 1, second.verdict


def test_the_guard_looks_at_where_things_are_moved_and_linked_to(tmp_path) -> None:
    own, outside, run = tmp_path / "own", tmp_path / "outside", tmp_path / "run.py"
    own.mkdir()
    outside.mkdir()
    run.write_text(_CHANGES_FILES)
    done = subprocess.run([sys.executable, run, own, outside], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["own"], done.stdout
    assert not list(outside.iterdir())


_CHANGES_FILES = """
import os, sys, tempfile
from pathlib import Path
from course_utils.teacher.guard import Guard

own, outside = map(Path, sys.argv[1:])
file = own / "file"
file.touch()
folder, here = os.open(outside, os.O_RDONLY), os.open(own, os.O_RDONLY)
os.chdir(own)
Guard(own, []).arm()
for name, change in {
    "rename": lambda: os.rename(file, outside / "a"),
    "replace": lambda: os.replace(file, outside / "a"),
    "link": lambda: os.link(file, outside / "b"),
    "symlink": lambda: os.symlink(file, outside / "c"),
    "mkdir": lambda: os.mkdir("d", dir_fd=folder),
    "rename-there": lambda: os.rename(file, "e", dst_dir_fd=folder),
}.items():
    try:
        change()
        print(name)
    except PermissionError:
        pass
with tempfile.TemporaryDirectory(dir=own) as place:  # `shutil.rmtree` speaks of its files by `dir_fd`
    os.rename(file, Path(place, "file"))
    os.symlink("file", "g", dir_fd=here)
print("own")
"""


@pytest.mark.timeout(120)
def test_the_marks_file_cannot_be_written(tmp_path) -> None:
    out = tmp_path / "marks.csv"
    cell = f"def rank_squared(comm):\n    open({str(out)!r}, 'w').write('ada,1')\n    return comm.rank**2\n"
    mark = mark_of(tmp_path, cell, hide=[out])
    assert mark.mark == 0 and "marks.csv" in mark.verdict, mark.verdict
    assert not out.exists()


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("get_ipython().input_transformers_post.append(len)", "changes what IPython makes of a cell"),
        ("import course_utils.checks as c\nc.judging.judge = len", "which is the grader's"),
        ("import course_utils as course\ncourse.check = print", "patches course_utils"),
        ("from course_utils.trace.recorder import recorder", "which is the grader's"),
        ("from course_utils.lessons.first_steps.checks import rank_squared as oracle", "which is the grader's"),
    ],
)
def test_what_no_answer_needs_is_refused_before_anything_runs(cell, says, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(containment, "contained_ranks", lambda *_: pytest.fail("it was run"))
    mark = mark_of(tmp_path, cell, RIGHT)
    assert mark.mark == 0 and says in mark.verdict, mark.verdict


@pytest.mark.timeout(120)
def test_limits_and_guard_hold_where_there_are_no_namespaces(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(containment, "obstacle", lambda: "forbidden")
    marks = marks_of(
        [notebook(tmp_path, FROM_DISK, "def who_is_there(comm, name):\n    return comm.allgather(name)\n")], 2
    )
    assert [mark.mark for mark in marks if mark.exercise == "rank_squared"] == [0]
    assert "reads course_utils/lessons/first_steps/rank_and_size.py" in marks[0].verdict


ANSWER = "lessons/allreduce/ring.py"
CHECKS = ("checks", "lessons/allreduce/checks")


@pytest.mark.timeout(120)
def test_namespaces_hold_what_the_guard_does_not_see() -> None:
    package = ROOT / "course_utils"
    assert (package / ANSWER).is_file() and all((package / folder).is_dir() for folder in CHECKS)
    if reason := containment.obstacle():
        pytest.skip(f"no namespaces here: {reason}")
    with containment.contained_ranks(1) as ranks:
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        reply = ranks.attempt(_escapes, [()], with_comm=False).replies[0]
    assert reply.value == [], reply


def _escapes() -> list[str]:
    """Runs on a contained rank, unguarded: what it managed to do."""
    import os
    import pathlib
    import socket

    import course_utils

    def attempts():
        package = pathlib.Path(course_utils.__file__).parent
        yield "read an answer", lambda: (package / ANSWER).read_bytes()[0]
        for folder in CHECKS:
            yield f"saw {folder}", lambda folder=folder: list((package / folder).iterdir())[0]
        yield "wrote beside the package", lambda: (package / "new.py").touch()
        yield "wrote to /etc", lambda: pathlib.Path("/etc/course-test").touch()
        yield "went outside", lambda: socket.create_connection(("192.0.2.1", 80), timeout=5)
        yield "saw other processes", lambda: [pid for pid in os.listdir("/proc") if pid.isdigit()][40]

    done = []
    for name, attempt in attempts():
        try:
            attempt()
            done.append(name)
        except (OSError, IndexError):
            pass
    return done


@pytest.mark.timeout(120)
def test_no_answer_of_the_course_can_be_imported_or_read() -> None:
    places = {place for one in declared() for place in (one.library, *one.also_hidden)}
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with containment.contained_ranks(1) as ranks:
        arguments = [(sorted(places), containment.obstacle() is None)]
        reply = ranks.attempt(_sees, arguments, with_comm=False, patience=60.0, limit=90.0).replies[0]
    assert reply.value == [], reply.error or reply.value


def _sees(places: list[str], covered: bool) -> list[str]:
    """Runs on a contained rank, unguarded: which answers it found whole, as functions or as text."""
    import importlib
    import inspect
    import pathlib

    import course_utils

    root, found = pathlib.Path(course_utils.__file__).parents[1], []
    for place in places:
        module, _, name = place.partition(":")
        package = module.rpartition(".")[0]
        for holder in (module, package):
            function = getattr(importlib.import_module(holder), name, None)
            if not inspect.isfunction(function):  # a module may have its function's name
                continue
            code = inspect.unwrap(function).__code__  # a decorator's wrapper has another
            if not any("is hidden while" in str(one) for one in code.co_consts):
                found.append(f"{holder}:{name}")
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        compiled = list(file.parent.glob(f"__pycache__/{file.stem}.*"))
        if covered and any(one.read_bytes() for one in (file, *compiled)):
            found.append(str(file))
    return found


ONLY_UP_TO_FOUR = """
def tree_broadcast(comm, vector, root=0):
    distance = (comm.rank - root) % comm.size
    for holders in (1, 2):
        if distance < holders and distance + holders < comm.size:
            comm.Send(vector, dest=(comm.rank + holders) % comm.size)
        elif holders <= distance < 2 * holders:
            comm.Recv(vector, source=(comm.rank - holders) % comm.size)
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("answer", "number", "mark"), [(TREE, 8, 1), (ONLY_UP_TO_FOUR, 4, 1), (ONLY_UP_TO_FOUR, 8, 0)])
def test_eight_ranks_show_what_four_do_not(answer, number, mark, tmp_path) -> None:
    found = mark_of(tmp_path, answer, exercise="tree_broadcast", ranks=number)
    assert found.mark == mark and ("8 ranks" in found.verdict) == (number == 8), found.verdict


def test_replies_are_data() -> None:
    import pickle

    class Hostile:
        def __reduce__(self):
            return exec, ("raise SystemExit('the grader ran this')",)

    reply, offences = unpack_reply(0, pickle.dumps((Hostile(), [])))
    assert (reply.kind, reply.error.message, offences) == ("raised", "its reply cannot be read", [])
    assert unpack_reply(0, b"nonsense")[0].kind == "raised"
    assert unpack_reply(0, pack(("a", ["b"])))[0].kind == "raised"


def test_a_module_without_its_answers_keeps_the_rest() -> None:
    source = "X = 1\n\ndef a(n):\n    return n\n\ndef b(n):\n    return a(n)\n"
    hidden: dict = {}
    exec(without_answers(source, ("a",)), hidden)
    assert hidden["X"] == 1
    with pytest.raises(NotImplementedError, match="own a is hidden"):
        hidden["b"](1)


def test_only_definitions_are_kept_with_their_lines(tmp_path) -> None:
    submission = read(notebook(tmp_path, "import os\nos.remove('x')\n\n" + RIGHT, "%%px\nx", "later = 1"))
    [(name, source)] = submission.cells
    assert name == "cell 1 of ada.ipynb"
    assert source.splitlines() == ["import os", "", "", *RIGHT.splitlines()]
    assert submission.expected == ["rank_squared", "who_is_there"]


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


def test_to_change_what_an_import_brought_makes_it_no_answer(tmp_path) -> None:
    cell = """
    from course_utils.lessons.first_steps.rank_and_size import rank_squared

    rank_squared.calls = 0
    times = {}
    times[rank_squared] = 0

    def pass_the_token(comm, token=0):
        return token
    """
    submission = read(notebook(tmp_path, cell))
    assert submission.lessons == {"04_messages"} and "rank_squared" not in submission.expected


def test_the_table_of_marks(tmp_path) -> None:
    file = tmp_path / "marks.csv"
    file.write_text("forged")
    marks = [Mark("ada.ipynb", "rank_squared", 1, "✓ fine,\nwith a comma"), Mark("=1+1.ipynb", "", 0, "✗ nothing")]
    write_marks(marks, file)
    with file.open(newline="", encoding="utf-8-sig") as table:
        assert list(csv.reader(table)) == [
            ["submission", "exercise", "mark", "verdict"],
            ["ada.ipynb", "rank_squared", "1", "✓ fine, with a comma"],
            ["'=1+1.ipynb", "", "0", "✗ nothing"],
        ]


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
    assert "0  ada/04.ipynb  ✗ ada/04.ipynb is not a notebook." in said and f"Marks: {out}" in said
    assert (
        out.read_text(encoding="utf-8-sig").splitlines()[2] == "grace/04.ipynb,,0,✗ grace/04.ipynb is not a notebook."
    )
    assert (texts / "grace" / "04.txt").read_text(encoding="utf-8").startswith("grace/04.ipynb\n\n✗ ")


def test_nothing_is_run_where_the_marks_cannot_be_written(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = notebook(tmp_path, RIGHT)
    with pytest.raises(CourseError, match="there is no such file"):
        run_command(tmp_path / "nobody.ipynb")
    with pytest.raises(CourseError, match="is its folder there"):
        run_command(file, "--out", tmp_path / "nowhere" / "marks.csv")
    (tmp_path / "marks.csv").write_text("last week's")
    with pytest.raises(CourseError, match="marks.csv is there already"):
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

    monkeypatch.setattr(grade_class, "grade_each", lambda *_, **__: [[Mark("ada.ipynb", "rank_squared", 1, "✓ fine")]])
    monkeypatch.setattr(grade_class, "write_feedback", full)
    with pytest.raises(OSError, match="no space left"):
        grade_class.grade_class([notebook(tmp_path, RIGHT)], tmp_path / "marks.csv", tmp_path / "texts", 2)
    assert "1 of 1 mark." in capsys.readouterr().out and (tmp_path / "marks.csv").exists()


def test_what_is_marked_when_the_teacher_stops_is_kept(tmp_path, monkeypatch, capsys) -> None:
    def each(notebooks, *_, **__):
        yield [Mark("ada.ipynb", "rank_squared", 1, "✓ rank_squared: fine")]
        raise KeyboardInterrupt

    monkeypatch.setattr(grade_class, "grade_each", each)
    files = [notebook(tmp_path, RIGHT, name=name) for name in ("ada.ipynb", "grace.ipynb")]
    with pytest.raises(KeyboardInterrupt):
        grade_class.grade_class(files, tmp_path / "marks.csv", None, 2)
    assert "Stopped after 1 of 2 notebooks. 1 of 1 mark." in capsys.readouterr().out
    assert "ada.ipynb,rank_squared,1" in (tmp_path / "marks.csv").read_text(encoding="utf-8-sig")


def test_the_summary_names_the_hardest_exercise_and_the_commonest_question() -> None:
    def of(name: str, *verdicts: str) -> list[Mark]:
        made = [(exercise, verdicts[place]) for place, exercise in enumerate(("make_buckets", "fits"))]
        return [Mark(name, one, int(text[0] == "✓"), text, "Is it?" if "Is it?" in text else "") for one, text in made]

    marks = [*of("a", "✓ a", "✗ b. Is it?"), *of("b", "✓ a", "✗ b. Is it?"), *of("c", "✗ a. Is it?", "○ b")]
    said = summary([*marks, Mark("d", "", 0, "✗ d is not a notebook.")]).splitlines()
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
    assert all(len(one.expected) == 5 and not one.refusals for one in honest)
    assert len({one.cells for one in honest}) == len(honest)
