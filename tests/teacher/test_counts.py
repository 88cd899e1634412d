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
def test_a_sender_that_makes_its_count_smaller_is_found_by_what_its_receivers_recorded(tmp_path) -> None:
    mark = mark_of(tmp_path, UNSAID, exercise="tree_broadcast", ranks=2)
    assert mark.mark == 0 and "from rank 0, and rank 0 recorded no such message" in mark.verdict, mark.verdict


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
