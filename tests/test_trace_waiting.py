"""Who is stuck for good: the graph of waits, drawn by hand; and what ranks tell of their messages."""

from types import SimpleNamespace

import pytest

from course_utils.trace.books import Books, read_look
from course_utils.trace.waiting import (
    IS_DONE,
    WAITS,
    WORKS,
    Look,
    Meeting,
    Message,
    Receive,
    Send,
    Some,
    WaitGraph,
    in_words,
)

W = "world"


def waits(need, **more) -> Look:
    return Look(WAITS, need, **more)


def from_(peer, tag=None) -> Receive:
    return Receive(Message(W, peer, tag))


def to(peer, tag=0) -> Send:
    return Send(Message(W, peer, tag))


def graph(*looks: Look) -> WaitGraph:
    return WaitGraph(dict(enumerate(looks)), {W: list(range(len(looks)))})


def meets(number: int, *names: str) -> Look:
    return waits(Meeting(W, number, names[-1]), met={W: (number, list(names))})


DONE, BUSY = Look(IS_DONE), Look(WORKS)
SENT = Look(IS_DONE, sent={Message(W, 0, 3): 1})


@pytest.mark.parametrize(
    ("looks", "stuck"),
    [
        ([waits(from_(1)), waits(from_(0))], [0, 1]),
        ([waits(from_(1)), BUSY], []),
        ([waits(from_(1)), DONE], [0]),
        ([waits(from_(1)), SENT], []),
        ([waits(from_(1, tag=3)), SENT], []),
        ([waits(from_(1, tag=4)), SENT], [0]),
        ([waits(from_(None, tag=3)), SENT], []),
        ([waits(from_(1), received={Message(W, 1, 3): 1}), SENT], [0]),
        ([waits(from_(1, tag=3), ahead=1), SENT], [0]),
        ([waits(from_(None)), DONE, BUSY], []),
        ([waits(from_(None)), DONE, DONE], [0]),
        ([waits(from_(1)), waits(from_(2)), BUSY], []),
        ([waits(from_(1)), waits(from_(0)), BUSY], [0, 1]),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), waits(to(0), sent={Message(W, 0, 0): 1})], [0, 1]),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), waits(from_(0))], []),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), waits(from_(0, tag=7))], [0, 1]),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), Look(IS_DONE, received={Message(W, 0, 0): 1})], []),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), waits(from_(2), posted=[Message(W, None, 0)]), BUSY], []),
        ([meets(1, "Barrier"), meets(1, "Barrier")], []),
        ([meets(2, "Barrier", "Barrier"), Look(IS_DONE, met={W: (1, ["Barrier"])})], [0]),
        ([meets(2, "Bcast(root=0)", "Barrier"), meets(1, "Bcast(root=0)")], []),
        ([meets(1, "Barrier"), waits(from_(0))], [0, 1]),
        ([meets(1, "Barrier"), meets(1, "Allreduce")], [0, 1]),
        ([meets(1, "Bcast(root=0)"), meets(1, "Bcast(root=1)"), BUSY], [0, 1]),
        ([meets(40, *["Barrier"] * 32), Look(IS_DONE, met={W: (90, ["Scan"] * 32)})], []),
        ([waits(Some((from_(1), from_(2)), all=False)), DONE, BUSY], []),
        ([waits(Some((from_(1), from_(2)), all=True)), DONE, BUSY], [0]),
        ([waits(None), DONE], []),
        ([waits(from_(0)), BUSY], [0]),
    ],
)
def test_stuck_is_who_waits_for_what_nobody_can_do(looks, stuck) -> None:
    assert graph(*looks).stuck() == stuck


def test_a_cycle_is_found_and_told() -> None:
    found = graph(waits(from_(1)), waits(from_(2)), waits(from_(0)), waits(from_(0)))
    assert found.cycle() == [0, 1, 2] and found.stuck() == [0, 1, 2, 3]
    assert in_words(found.cycle()) == "0 waits for 1, 1 for 2, 2 for 0"
    assert graph(waits(from_(1)), DONE).cycle() == []


def test_who_was_not_looked_at_may_do_anything() -> None:
    assert WaitGraph({0: waits(from_(1))}, {W: [0, 1]}).stuck() == []


def test_what_a_rank_tells_is_read_as_it_was_meant() -> None:
    books = Books()
    books.begin()
    books.sent[Message(W, 1, 5)] += 2
    meeting = books.meet(W, [0, 1], "Barrier")
    need = Some((meeting, to(1), from_(None)), all=False)
    look, members = read_look(WAITS, books.look(need, []))
    assert look == Look(WAITS, need, {Message(W, 1, 5): 2}, {}, [], 0, {W: (1, ["Barrier"])}) and members == {W: [0, 1]}


def test_a_message_goes_to_the_receive_that_was_begun_first() -> None:
    first, second = SimpleNamespace(need=from_(1)), SimpleNamespace(need=from_(1))
    for need, ahead in ((first.need, 0), (second.need, 1), (from_(1), 2), (from_(2), 0)):
        books = Books()
        books.begin()
        look, _ = read_look(WAITS, books.look(need, [first, second]))
        assert look.ahead == ahead


def test_books_that_miss_something_tell_nothing() -> None:
    books = Books()
    books.complete = False
    assert books.look(from_(1), []) == b""
    for garbage in (b"", b"[]", b'{"need": ["send"]}', b"\xff"):
        with pytest.raises(ValueError):
            read_look(WAITS, garbage)


def test_what_a_cell_has_made_keeps_its_books() -> None:
    books = Books()
    books.sent.update([Message(W, 1, 0), Message(f"{W}/7/0", 1, 0)])
    books.begin()
    assert list(books.sent) == [Message(f"{W}/7/0", 1, 0)]
