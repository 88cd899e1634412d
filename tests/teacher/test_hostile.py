"""Notebooks that reach for what no answer needs: they get nothing, harm nobody, and leave nothing behind."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from course_utils.checks import judge_submission
from course_utils.checks.submission import read
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.ranks.engine.reply import Reply
from course_utils.syllabus import ROOT
from course_utils.teacher import containment, grading, started_ranks
from course_utils.teacher.wire import MOST_VALUES, pack, unpack_reply
from course_utils.trace.events import Event
from tests.teacher.submissions import NAMES, RIGHT, collection, mark_of, marks_of, needs_a_box, notebook

HELD = "held"
HOSTILE = {
    title.partition(": ")[0]: (title.partition(": ")[2], cells) for title, cells in collection("hostile").items()
}
EVERY = 9
"""In `make test-all`, each ninth of them is handed in; in `make test`, each twenty-seventh."""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """What the hostile reach for: a file, a socket with a name, one with an abstract name, a port, a variable."""
    monkeypatch.setenv("COURSE_SECRET", "a password")
    (tmp_path / "secret").write_text("last week's marks")
    lines = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    for line, place in zip(lines, (str(tmp_path / "socket"), "\0course-hostile", ("127.0.0.1", 0))):
        line.bind(place)
        line.listen()
    yield tmp_path, lines[2].getsockname()[1]
    for line in lines:
        line.close()


@needs_a_box
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(list(HOSTILE)[:: 3 * EVERY], id="few"),
        pytest.param(list(HOSTILE)[EVERY::EVERY], id="some", marks=pytest.mark.long),
        pytest.param(list(HOSTILE), id="all", marks=pytest.mark.weekly),
    ],
)
def test_nothing_hostile_gets_a_mark_or_harms_the_next(names, outside, tmp_path, capfd) -> None:
    place, port = outside
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    files = []
    for number, name in enumerate(names):
        cells = [_filled(cell, outside=str(place), port=str(port), root=str(ROOT)) for cell in HOSTILE[name][1]]
        files += [notebook(handed_in, *cells, NAMES, name=f"{name}.ipynb")]
        if number % 10 == 9:
            files += [notebook(handed_in, RIGHT, name=f"honest {number}.ipynb")]
    contents = {file: file.read_bytes() for file in files}
    found = {
        mark.submission.removesuffix(".ipynb"): mark for mark in marks_of(files, 2) if mark.exercise != "who_is_there"
    }
    wrong = {}
    for name, mark in found.items():
        due = HELD if name.startswith("honest") else HOSTILE[name][0]
        says = due.partition(" ")[2]
        if mark.mark != (due == HELD) or says not in mark.verdict or not mark.verdict.isprintable():
            wrong[name] = mark.verdict
    assert wrong == {} and len(found) == len(files)
    assert {file: file.read_bytes() for file in files} == contents
    assert not (place / "ran").exists() and (place / "secret").read_text() == "last week's marks"
    assert not Path("/dev/shm/course-hostile").exists()
    assert f" {0x4711} " not in Path("/proc/sysvipc/shm").read_text()
    assert "sleep 4711" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "the grader ran this" not in capfd.readouterr().out


BEHIND_TORCH = """
import torch
import torch.distributed as dist
def average_gradients(model):
    from torch.distributed import distributed_c10d
    group, size, rank = distributed_c10d._get_default_group(), dist.get_world_size(), dist.get_rank()
    for parameter in filter(lambda one: one.requires_grad, model.parameters()):
        own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        options = distributed_c10d.GatherOptions()
        options.rootRank = 0
        all_of_them = [torch.zeros_like(own) for _ in range(size)]
        group.gather([all_of_them] if rank == 0 else [], [own], options).wait()
        mean = torch.stack(all_of_them).double().mean(0).to(own.dtype)
        dist.broadcast(mean, 0)
        parameter.grad = mean
"""
IN_THE_RACE = """
import sys
def speed_up_1(paths, labels, epochs):
    frame = sys._getframe()
    while frame:
        for name in ("results", "result"):
            for key in ("slow", "wanted"):
                if key in (frame.f_locals.get(name) or {}):
                    return frame.f_locals[name][key]
        frame = frame.f_back
"""


@needs_a_box
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("answer", "exercise", "says"),
    [(BEHIND_TORCH, "average_gradients", "gather"), (IN_THE_RACE, "speed_up_1", "returned nothing")],
    ids=["a group of torch's", "the slow program's results"],
)
def test_what_torch_or_a_race_has_below_is_no_way_around(answer, exercise, says, tmp_path) -> None:
    mark = mark_of(tmp_path, answer, exercise=exercise, ranks=4 if exercise == "average_gradients" else 1)
    assert mark.mark == 0 and says in mark.verdict, mark.verdict


def _filled(cell: str, **values: str) -> str:
    for name, value in values.items():
        cell = cell.replace(f"{{{name}}}", value)
    return cell


@needs_a_box
@pytest.mark.timeout(120)
def test_what_is_no_plain_file_is_not_read_and_the_class_goes_on(tmp_path) -> None:
    os.mkfifo(tmp_path / "fifo.ipynb")
    os.symlink("/dev/zero", tmp_path / "zero.ipynb")
    notebook(tmp_path, RIGHT, name="grace.ipynb")
    os.symlink(tmp_path / "grace.ipynb", tmp_path / "copied.ipynb")
    (tmp_path / "deep.ipynb").write_text("[" * 200_000)
    (tmp_path / "odd.ipynb").write_text('{"cells": [{"cell_type": "code", "source": 5}]}')
    (tmp_path / "folder.ipynb").mkdir()
    notebook(tmp_path, "x = " + "-" * 10_000 + "1", RIGHT, name="minus.ipynb")
    notebook(tmp_path, "def helper(a, a):\n    pass", RIGHT, name="twice.ipynb")
    marks = marks_of(sorted(tmp_path.glob("*.ipynb")), ranks=2)
    found = {mark.submission: mark.mark for mark in marks if mark.exercise in ("", "rank_squared")}
    right = {"grace.ipynb", "minus.ipynb", "twice.ipynb"}
    assert {name for name, mark in found.items() if mark} == right and len(found) == 9
    [copied] = [mark.verdict for mark in marks if mark.submission == "copied.ipynb"]
    assert copied == "✗ copied.ipynb is a link; hand in the file itself."


ODD_FILES = {
    "nothing at all": b"",
    "null": b"null",
    "a list": b"[]",
    "no cells": b'{"metadata": {}}',
    "a number of cells": b'{"cells": 3}',
    "a dictionary for a source": b'{"cells": [{"cell_type": "code", "source": {"a": 1}}]}',
    "numbers for a source": b'{"cells": [{"cell_type": "code", "source": [1, null]}]}',
    "brackets": b"[" * 500_000,
    "brackets in the metadata": b'{"cells": [], "metadata": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "a number of a million digits": b'{"cells": [], "nbformat": ' + b"9" * 1_000_000 + b"}",
    "no numbers": b'{"cells": [NaN, Infinity]}',
    "every byte": bytes(range(256)),
    "Latin-1": '{"cells": [{"cell_type": "code", "source": "é"}]}'.encode("latin-1"),
    "UTF-16": '{"cells": []}'.encode("utf-16"),
    "version 3": b'{"worksheets": [{"cells": []}], "nbformat": 3}',
    "no answers": b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}',
}


@pytest.mark.parametrize("content", ODD_FILES.values(), ids=ODD_FILES.keys())
def test_a_file_that_is_no_notebook_is_rejected_in_a_line(content, tmp_path) -> None:
    file = tmp_path / "ada.ipynb"
    file.write_bytes(content)
    with pytest.raises(CourseError) as told:
        read(file)
    assert str(told.value).isprintable() and "ada.ipynb" in str(told.value)


def test_a_file_of_gigabytes_is_rejected_before_it_is_read(tmp_path) -> None:
    with (tmp_path / "ada.ipynb").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(CourseError, match="too many for a notebook"):
        read(tmp_path / "ada.ipynb")


def test_odd_letters_and_thousands_of_cells_are_read(tmp_path) -> None:
    odd = ["# nothing", RIGHT, "x = 1  # \0", "y = '\ud800'", "z = " + "(" * 3000 + ")" * 3000, *["x = 1"] * 5000]
    cells = [{"cell_type": "code", "source": cell} for cell in odd]
    (tmp_path / "ada.ipynb").write_text("\ufeff" + json.dumps({"cells": cells}))
    assert "rank_squared" in read(tmp_path / "ada.ipynb").answers


@needs_a_box
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL], ids=["terminal closed", "killed"])
def test_a_grader_that_is_killed_leaves_nothing(number, tmp_path) -> None:
    file = notebook(tmp_path, "import time; time.sleep(600)", RIGHT)
    command = [sys.executable, "-m", "course_utils.cli", "grade", str(file), "--out", str(tmp_path / "marks.csv")]
    with tempfile.TemporaryDirectory() as given:  # with a short name
        folder = Path(given)
        with subprocess.Popen(command, env=os.environ | {"TMPDIR": given}, start_new_session=True) as grader:
            _until(lambda: _boxes(folder))
            (os.killpg if number == signal.SIGHUP else os.kill)(grader.pid, number)
        _until(lambda: not _boxes(folder) and not any(folder.iterdir()))


def _boxes(folder: Path) -> list[str]:
    """The boxes of ranks that a grader with its temporary files in this folder has started."""
    running = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in running.splitlines() if "bwrap" in line and f"{folder}/course-grade-" in line]


def _until(true: Callable[[], object], seconds: float = 150.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@needs_a_box
@pytest.mark.timeout(120)
def test_a_submission_that_takes_the_machines_memory_ends_alone(tmp_path, monkeypatch) -> None:
    eaten = tmp_path / "eaten"
    greedy = "def rank_squared(comm):\n    import time; time.sleep(30)\n"

    def left() -> float:
        """As if the first submission ate, while its answer runs; it is given back when it ends."""
        return 0.0 if eaten.exists() else 1e12

    def run_then_eat(submission, running, plain=judge_submission._run_all_cells):
        trouble = plain(submission, running)
        if "greedy" in submission.name:
            eaten.touch()
            monkeypatch.setattr(started_ranks, "_wait_for_memory", lambda: eaten.unlink(missing_ok=True))
        return trouble

    monkeypatch.setattr(started_ranks, "memory_left", left)
    monkeypatch.setattr(judge_submission, "_run_all_cells", run_then_eat)
    files = [
        notebook(tmp_path, *cells, name=name) for name, cells in {"greedy.ipynb": [greedy], "a.ipynb": [RIGHT]}.items()
    ]
    first, _, second, _ = marks_of(files, ranks=2)
    assert first.mark == 0 and "he machine had less than" in first.verdict, first.verdict
    assert second.mark == 1, second.verdict


@needs_a_box
@pytest.mark.timeout(120)
def test_a_submission_that_breaks_the_judging_process_costs_its_own_marks(tmp_path, monkeypatch) -> None:
    plain = judge_submission._run_all_cells

    def dies(submission, running):
        if "breaks" in submission.name:
            os.kill(os.getpid(), 9)
        return plain(submission, running)

    monkeypatch.setattr(judge_submission, "_run_all_cells", dies)
    files = [notebook(tmp_path, RIGHT, NAMES, name=name) for name in ("a.ipynb", "breaks.ipynb", "c.ipynb")]
    marks = marks_of(files, ranks=2)
    assert [mark.mark for mark in marks] == [1, 1, 0, 0, 1, 1]
    assert all("a person must look at it" in mark.verdict for mark in marks[2:4])


@pytest.mark.long
@needs_a_box
@pytest.mark.timeout(120)
def test_a_submission_that_takes_all_its_time_is_ended_and_the_class_goes_on(tmp_path, monkeypatch) -> None:
    for module in (grading, containment):
        monkeypatch.setattr(module, "SECONDS", 12.0)
    slow = "def rank_squared(comm):\n    import time; time.sleep(600)\n"
    files = [
        notebook(tmp_path, *cells, name=name) for name, cells in {"a.ipynb": [slow, NAMES], "b.ipynb": [RIGHT]}.items()
    ]
    late, later, right, _ = marks_of(files, ranks=2)
    assert late.mark == later.mark == 0 and "more than 12 s" in later.verdict, (late.verdict, later.verdict)
    assert right.mark == 1, right.verdict


# --- replies, as bytes that anybody may have written ------------------------------------------------------------------


def a_reply() -> Reply:
    event = Event(0, "Send", "send", 1, 0, 8, 0.1, 0.2, 3, "world", 0, "float64", True)
    value = {
        "a": [1, 2.5, None, (True, "x")],
        3: {1, 2},
        "b": b"bytes",
        "big": 1 << 80,
        "z": 1 + 2j,
        "nan": float("inf"),
    }
    return Reply(0, "returned", value=value, events=[event], output="hello", notes=("note",), uncounted=("Join",))


def test_replies_come_back_as_they_were() -> None:
    import numpy as np
    import torch

    reply = a_reply()
    assert unpack_reply(0, pack(reply)) == reply
    weights = torch.nn.Linear(3, 2)
    arrays = [np.arange(6.0).reshape(2, 3), np.float32(1.5), np.array(["ab", "c"]), np.empty((0, 2), np.int8)]
    tensors = [torch.arange(3).to(torch.bfloat16), weights.weight, weights.weight, torch.float16, torch.Size([1, 2])]
    back = unpack_reply(
        0, pack(Reply(0, "returned", value=[arrays, tensors, weights, np.array([print], object)]))
    ).value
    for one, other in zip(back[0], arrays, strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype
    assert torch.equal(back[1][0], tensors[0]) and back[1][1] is back[1][2] and back[1][3:] == tensors[3:]
    assert back[2](torch.ones(3)).tolist() == weights(torch.ones(3)).tolist()
    assert type(back[3][0]).__name__ == "builtin_function_or_method"
    assert unpack_reply(0, pack(Reply(0, "returned", value=Result.WRONG))).value is Result.WRONG


def test_a_reply_that_is_none_is_told_and_runs_nothing() -> None:
    class Hostile:
        def __reduce__(self):
            return exec, ("raise SystemExit('the grader ran this')",)

    for data in (b"", b"nonsense", pickle.dumps(Hostile()), pack(a_reply())[:-3], b"\xff" * 100):
        assert unpack_reply(0, data).error.message == "its reply cannot be read"
    forged = pack(a_reply())
    for old, new in ((b'"returned"', b'"lost"'), (b'"send"', b'["se"]'), (b'"hello"', b"[1]"), (b"0.1", b'"x"')):
        text = forged[8:].replace(old, new)
        assert unpack_reply(0, len(text).to_bytes(8, "little") + text).kind == "raised", (old, new)
    assert unpack_reply(1, forged).kind == "raised", "an event of another rank"
    with pytest.raises(ValueError, match="too much"):
        pack(Reply(0, "returned", value=[0] * (MOST_VALUES + 1)))
