"""Bytes between the ranks of a submission: what a trace tells is held to what the cables have carried."""

import os
import socket
from pathlib import Path

import pytest

from course_utils.syllabus import ROOT
from course_utils.teacher import counted_links
from course_utils.teacher.pmi import LONGEST_LINE, JobBoard
from course_utils.trace.events import Event
from tests.teacher.submissions import collection, marks_of, needs_a_box, notebook

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
