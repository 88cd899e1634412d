"""What ranks record of their messages: a count that one end forges is found, and an empty record earns nothing."""

from pathlib import Path

import pytest

from course_utils.checks.finding import Finding, Kind
from course_utils.checks.finding_text import text_of
from course_utils.trace.events import Event, unmatched_receive
from tests.teacher.submissions import collection, mark_of, marks_of, needs_a_box, notebook

COUNTS = {title.partition(": ")[0]: (title.partition(": ")[2], cells) for title, cells in collection("counts").items()}
UNSAID = """
def tree_broadcast(comm, vector, root=0):
    import sys
    if comm.rank == root:
        for rank in set(range(comm.size)) - {root}:
            comm.Send(vector, dest=rank)
        events = sys.modules["course_utils.trace.recorder"].recorder.events
        events[:] = [event._replace(bytes=0) for event in events]
    else:
        comm.Recv(vector, source=root)
"""


@pytest.mark.long
@needs_a_box
@pytest.mark.timeout(600)
def test_no_answer_gets_a_mark_for_messages_that_were_not_recorded(tmp_path) -> None:
    files = [notebook(tmp_path, *cells, name=f"{name}.ipynb") for name, (_, cells) in COUNTS.items()]
    found = {Path(one.submission).stem: one for one in marks_of(files) if one.exercise == "ring_allreduce"}
    wrong = {name: one.verdict for name, one in found.items() if one.mark or COUNTS[name][0] not in one.verdict}
    assert wrong == {} and len(found) == len(files)


@needs_a_box
@pytest.mark.timeout(120)
def test_a_sender_that_makes_its_count_smaller_is_found(tmp_path) -> None:
    mark = mark_of(tmp_path, UNSAID, exercise="tree_broadcast", ranks=2)
    assert mark.mark == 0 and "rank 0 used a changed record of its messages" in mark.verdict, mark.verdict


WHOLE_VECTOR = """
def scatter_blocks(comm, vector, root=0):
    import sys, time
    import numpy as np
    from mpi4py import MPI
    recorder = sys.modules["course_utils.trace.recorder"].recorder
    length, dtype = comm.bcast((len(vector), vector.dtype) if comm.rank == root else None, root=root)
    whole = vector.copy() if comm.rank == root else np.empty(length, dtype)
    SEND
    now = time.perf_counter()
    recorder.add("Scatterv", "collective", now, now, size=whole.nbytes if comm.rank == root else 0, number=2)
    return np.array_split(whole, comm.size)[comm.rank]
"""
PLAIN = "MPI.Intracomm.Bcast(comm.inner, whole.view(np.uint8), root=root)"
OF_ITS_OWN = "MPI.Intracomm(comm).Bcast(whole.view(np.uint8), root=root)"
ORDERED = """
def exchange_without_deadlock(comm, vector, partner):
    import sys
    import numpy as np
    incoming = np.empty_like(vector)
    if comm.rank < partner:
        comm.Send(vector, dest=partner)
        comm.Recv(incoming, source=partner)
    elif comm.rank > partner:
        comm.Recv(incoming, source=partner)
        comm.Send(vector, dest=partner)
    else:
        incoming[:] = vector
    recorder = sys.modules["course_utils.trace.recorder"].recorder
    recorder.events[:] = [event._replace(start=recorder.began, end=recorder.began + 1e-3) for event in recorder.events]
    return incoming
"""


@needs_a_box
@pytest.mark.timeout(240)
def test_an_invented_trace_is_named_and_changed_times_change_no_round(tmp_path) -> None:
    answers = {
        "plain": (WHOLE_VECTOR.replace("SEND", PLAIN), "scatter_blocks", "`Bcast` of a communicator that is not"),
        "own": (WHOLE_VECTOR.replace("SEND", OF_ITS_OWN), "scatter_blocks", "`Bcast` of a communicator that is not"),
        "added": (WHOLE_VECTOR.replace("SEND", "comm.Bcast(whole, root=root)"), "scatter_blocks", ""),
        "times": (ORDERED, "exchange_without_deadlock", "it took 2 rounds"),
    }
    files = [notebook(tmp_path, cell, name=f"{name}.ipynb") for name, (cell, _, _) in answers.items()]
    found = {(Path(one.submission).stem, one.exercise): one for one in marks_of(files, ranks=2)}
    for name, (_, exercise, says) in answers.items():
        assert found[name, exercise].mark == 0 and says in found[name, exercise].verdict, found[name, exercise]


def message(rank: int, kind: str, peer: int, size: int = 80, **more) -> Event:
    return Event(rank, kind, kind, peer, 0, size, 0.0, 1.0, comm="world")._replace(**more)


SENT, GOT = message(0, "send", 1), message(1, "recv", 0)


@pytest.mark.parametrize(
    ("events", "unmatched"),
    [
        ([], None),
        ([SENT, GOT], None),
        ([GOT, SENT], None),
        ([SENT], None),
        ([SENT, GOT, GOT], GOT),
        ([message(0, "send", 1, 8), GOT], GOT),
        ([message(0, "send", 2), GOT], GOT),
        ([SENT._replace(tag=1), GOT], GOT),
        ([SENT._replace(comm="half"), GOT], GOT),
        ([message(1, "recv", 0, end=float("inf"))], None),
        ([SENT, message(0, "send", 1, 8), message(1, "recv", 0, 8), GOT], None),
    ],
)
def test_each_message_that_was_received_must_have_been_recorded_by_its_sender(events, unmatched) -> None:
    assert unmatched_receive(events) == unmatched


def test_the_sentence_names_both_ranks() -> None:
    found = Finding(Kind.MISCOUNTED, 1, got=8000, values={"sender": 0})
    assert text_of(found) == (
        "the result is right, but rank 1 recorded a message of 8,000 bytes from rank 0, "
        "and rank 0 recorded no such message."
    )
