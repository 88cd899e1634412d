"""Notebooks that reach for what no answer needs: they get nothing, harm nobody, and leave nothing behind."""

import os
import pickle
import random
import socket
import subprocess
from pathlib import Path

import pytest

from course_utils.ranks.engine.reply import Reply
from course_utils.syllabus import ROOT
from course_utils.teacher import counted_links
from course_utils.teacher.pmi import LONGEST_LINE, JobBoard
from course_utils.teacher.wire import MOST_VALUES, pack, unpack_reply
from course_utils.trace.events import Event
from tests.submissions import NAMES, RIGHT, collection, marks_of, needs_a_box, notebook

HELD = "held"
HOSTILE = {
    title.partition(": ")[0]: (title.partition(": ")[2], cells) for title, cells in collection("hostile").items()
}
EVERY = 6
"""In the short run, so many of them are left out between two."""


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
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names",
    [pytest.param(list(HOSTILE)[::EVERY], id="some"), pytest.param(list(HOSTILE), id="all", marks=pytest.mark.long)],
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
    assert next(one for one in marks if one.submission == "copied.ipynb").verdict.startswith(
        "✗ copied.ipynb cannot be read"
    )


@needs_a_box
@pytest.mark.timeout(120)
def test_a_submission_that_breaks_the_judging_process_costs_its_own_marks(tmp_path, monkeypatch) -> None:
    from course_utils.teacher import grading

    plain = grading._run_all_cells

    def dies(submission, running):
        if "breaks" in submission.name:
            os.kill(os.getpid(), 9)
        return plain(submission, running)

    monkeypatch.setattr(grading, "_run_all_cells", dies)
    files = [notebook(tmp_path, RIGHT, NAMES, name=name) for name in ("a.ipynb", "breaks.ipynb", "c.ipynb")]
    marks = marks_of(files, ranks=2)
    assert [mark.mark for mark in marks] == [1, 1, 0, 0, 1, 1]
    assert all("a person must look at it" in mark.verdict for mark in marks[2:4])


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
    return Reply(0, "returned", value=value, events=[event], output="hello", notes=("note",))


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


def test_bytes_at_random_do_no_harm() -> None:
    chance, whole = random.Random(1), pack(a_reply())
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        reply = unpack_reply(0, bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data))
        assert reply.kind in ("returned", "raised", "interrupted", "unusable")
        repr(reply)


COUNTS = {title.partition(": ")[0]: (title.partition(": ")[2], cells) for title, cells in collection("counts").items()}


@pytest.mark.skipif(counted_links.obstacle() is not None and os.environ.get("CI") != "true", reason="no links here")
@needs_a_box
@pytest.mark.timeout(300)
def test_no_count_can_be_forged_from_within(tmp_path) -> None:
    files = [ROOT / "exercises" / "solutions" / "05_allreduce.ipynb"]
    files += [notebook(tmp_path, *cells, name=f"{name}.ipynb") for name, (_, cells) in COUNTS.items()]
    marks = [one for one in marks_of(files) if one.exercise == "ring_allreduce"]
    found = {Path(one.submission).stem: one for one in marks}
    assert found.pop("05_allreduce").mark == 1
    wrong = {name: one.verdict for name, one in found.items() if one.mark or COUNTS[name][0] not in f"0 {one.verdict}"}
    assert wrong == {}


def carried(**bytes_by_cable: int) -> dict[tuple[int, int], int]:
    """What cables between two ranks have carried: `_01` is the one from rank 0 to rank 1."""
    return {(0, 1): 0, (1, 0): 0} | {(int(name[1]), int(name[2])): size for name, size in bytes_by_cable.items()}


def message(rank: int, kind: str, peer: int, size: int) -> Event:
    return Event(rank, "Send" if kind == "send" else "Recv", kind, peer, 0, size, 0.0, 1.0, comm="world")


def collective(rank: int, size: int) -> Event:
    return Event(rank, "Allreduce", "collective", None, None, size, 0.0, 1.0, comm="world", number=1)


A_MESSAGE = {0: [message(0, "send", 1, 100_000)], 1: [message(1, "recv", 0, 100_000)]}


@pytest.mark.parametrize(
    ("events", "after", "rank", "words"),
    [
        ({0: [], 1: []}, carried(_01=500), None, ""),
        ({0: [], 1: []}, carried(_01=5_000), 0, "0 bytes to rank 1; 5,000 left"),
        (A_MESSAGE, carried(_01=100_700, _10=600), None, ""),
        (A_MESSAGE, carried(_01=99_000, _10=600), 1, "100,000 bytes from rank 0; 99,000 came"),
        (A_MESSAGE, carried(_01=120_000, _10=600), 0, "100,000 bytes to rank 1; 120,000 left"),
        (A_MESSAGE, carried(_01=100_700, _10=100_000), 1, "0 bytes to rank 0; 100,000 left"),
        ({0: [collective(0, 80_000)], 1: [collective(1, 80_000)]}, carried(_01=81_000, _10=81_000), None, ""),
        ({0: [collective(0, 80)], 1: [collective(1, 80)]}, carried(_01=81_000, _10=1_000), 0, "0 bytes to rank 1"),
    ],
)
def test_a_trace_is_held_to_what_the_cables_have_carried(events, after, rank, words) -> None:
    found = counted_links.disagreement(events, carried(), after, joining=False)
    assert found is None if rank is None else (found[0] == rank and words in found[1])


def test_ranks_join_at_a_board_and_at_nothing_when_it_is_closed() -> None:
    board = JobBoard(2)
    lines = []
    for rank in range(2):
        told, descriptor = board.environment(rank)
        assert told == {"PMI_FD": str(descriptor), "PMI_RANK": str(rank), "PMI_SIZE": "2"}
        lines.append(socket.socket(fileno=os.dup(descriptor)))
    board.started()

    def asked(rank: int, question: str) -> None:
        lines[rank].sendall(question.encode() + b"\n")
        board.serve(rank)

    def answer(rank: int) -> str:
        lines[rank].settimeout(5)
        return lines[rank].recv(4096).decode()

    asked(0, "cmd=put kvsname=course key=address value=a=b")
    assert answer(0) == "cmd=put_result rc=0 msg=success\n"
    asked(1, "cmd=get kvsname=course key=address")
    assert answer(1) == "cmd=get_result rc=0 msg=success value=a=b\n"
    asked(1, "cmd=get kvsname=course key=nothing")
    assert "rc=-1" in answer(1)
    asked(0, "cmd=barrier_in")
    asked(1, "cmd=barrier_in")
    assert answer(0) == answer(1) == "cmd=barrier_out\n"
    asked(1, "what is this?")
    assert "rc=-1" in answer(1)
    asked(1, "cmd=put")  # without a key
    assert answer(1) == "", "who says what no library says is not answered again"
    lines[0].sendall(b"x" * (LONGEST_LINE + 1))
    for _ in range(4):
        board.serve(0)
    assert board.sockets[0].fileno() == -1
    board.close()
    for line in lines:
        line.close()
