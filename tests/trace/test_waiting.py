"""Who is stuck for good: the graph of waits, drawn by hand; and what ranks tell of their messages."""

import threading
import time
from types import SimpleNamespace

import pytest

from course_utils.ranks.hang_detector import HangDetector, Situation, mismatched_call_text
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, Activity, ActivityFile
from course_utils.trace.events import BYTES, Agreement, Event
from course_utils.trace.latent_errors import latent_errors
from course_utils.trace.ledger import Ledger, read_snapshot, threads_left
from course_utils.trace.recorder import Recorder
from course_utils.trace.wait_graph import (
    ACTING_THREADS,
    IS_DONE,
    NO_THREADS,
    WAITS,
    WORKS,
    Collective,
    CombinedNeed,
    Lock,
    Message,
    Receive,
    Send,
    Snapshot,
    WaitGraph,
    cycle_text,
    differ,
    waits_in_vain_text,
)

W = "world"


def waits(need, **more) -> Snapshot:
    return Snapshot(WAITS, need, **more)


def from_(peer, tag=None) -> Receive:
    return Receive(Message(W, peer, tag))


def to(peer, tag=0) -> Send:
    return Send(Message(W, peer, tag))


def graph(*snapshots: Snapshot) -> WaitGraph:
    return WaitGraph(dict(enumerate(snapshots)), {W: list(range(len(snapshots)))})


def meets(number: int, *names: str, root: int | None = None) -> Snapshot:
    begun = [Agreement(name, root if name == "Bcast" else None) for name in names]
    return waits(Collective(W, number, begun[-1]), collectives={W: (number, begun)})


def done_after(number: int, *names: str) -> Snapshot:
    return Snapshot(IS_DONE, collectives={W: (number, list(map(Agreement, names)))})


ROOTED = Agreement("Bcast", 0)
LOCK, OTHER_LOCK = Lock("window", 0, True), Lock("window", 1, True)
DONE, BUSY = Snapshot(IS_DONE), Snapshot(WORKS)
SENT = Snapshot(IS_DONE, sent={Message(W, 0, 3): 1})


@pytest.mark.parametrize(
    ("snapshots", "stuck"),
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
        ([waits(to(1), sent={Message(W, 1, 0): 1}), Snapshot(IS_DONE, received={Message(W, 0, 0): 1})], []),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), waits(from_(2), posted=[Message(W, None, 0)]), BUSY], []),
        ([meets(1, "Barrier"), meets(1, "Barrier")], []),
        ([meets(2, "Barrier", "Barrier"), done_after(1, "Barrier")], [0]),
        ([meets(2, "Bcast", "Barrier", root=0), meets(1, "Bcast", root=0)], []),
        ([meets(1, "Barrier"), waits(from_(0))], [0, 1]),
        ([meets(1, "Barrier"), meets(1, "Allreduce")], [0, 1]),
        ([meets(1, "Bcast", root=0), meets(1, "Bcast", root=1), BUSY], [0, 1]),
        ([meets(40, *["Barrier"] * 32), done_after(90, *["Scan"] * 32)], []),
        ([waits(CombinedNeed((from_(1), from_(2)), all=False)), DONE, BUSY], []),
        ([waits(CombinedNeed((from_(1), from_(2)), all=True)), DONE, BUSY], [0]),
        ([waits(None), DONE], []),
        ([waits(from_(0)), BUSY], [0]),
        ([waits(LOCK), Snapshot(WORKS, locks=[LOCK])], []),
        ([waits(LOCK), Snapshot(IS_DONE, locks=[LOCK])], [0]),
        ([waits(LOCK), Snapshot(IS_DONE, locks=[Lock("window", 2, True)])], []),
        ([waits(Lock("window", 0, False)), Snapshot(IS_DONE, locks=[Lock("window", 0, False)])], []),
        ([waits(LOCK, locks=[OTHER_LOCK]), waits(OTHER_LOCK, locks=[LOCK])], [0, 1]),
    ],
)
def test_stuck_is_who_waits_for_what_nobody_can_do(snapshots, stuck) -> None:
    assert graph(*snapshots).stuck() == stuck


def test_a_cycle_is_found_and_told() -> None:
    found = graph(waits(from_(1)), waits(from_(2)), waits(from_(0)), waits(from_(0)))
    assert found.cycle() == [0, 1, 2] and found.stuck() == [0, 1, 2, 3]
    assert cycle_text(found.cycle()) == "0 is waiting for 1, 1 for 2, 2 for 0"


@pytest.mark.parametrize(
    ("snapshots", "text"),
    [
        ([waits(from_(1)), DONE], "rank 0 is waiting for a message that can never arrive"),
        ([waits(from_(2)), waits(from_(2)), DONE], "ranks 0 and 1 are waiting for messages that can never arrive"),
        ([waits(to(1), sent={Message(W, 1, 0): 1}), DONE], "its message to be received, which can never happen"),
        (
            [meets(2, "Barrier", "Barrier"), done_after(1, "Barrier")],
            "rank 0 is waiting for other ranks to make the same",
        ),
        ([waits(LOCK), Snapshot(IS_DONE, locks=[LOCK])], "rank 0 is waiting for something that can never happen"),
    ],
)
def test_what_stuck_ranks_wait_for_in_words(snapshots, text) -> None:
    assert text in waits_in_vain_text(graph(*snapshots))
    assert graph(waits(from_(1)), DONE).cycle() == []


def test_who_was_not_looked_at_may_do_anything() -> None:
    assert WaitGraph({0: waits(from_(1))}, {W: [0, 1]}).stuck() == []


def test_what_a_rank_tells_is_read_as_it_was_meant() -> None:
    ledger = Ledger()
    ledger.begin()
    ledger.sent[Message(W, 1, 5)] += 2
    meeting = ledger.add_collective(W, [0, 1], ROOTED)
    need = CombinedNeed((meeting, to(1), from_(None)), all=False)
    snapshot, members = read_snapshot(WAITS, ledger.snapshot(need, []))
    assert snapshot == Snapshot(WAITS, need, {Message(W, 1, 5): 2}, {}, [], 0, {W: (1, [ROOTED])}) and members == {
        W: [0, 1]
    }


@pytest.mark.parametrize(
    ("agreements", "expected"),
    [
        ([Agreement("Barrier"), Agreement("Barrier")], False),
        ([ROOTED, Agreement("Bcast", 1)], True),
        ([Agreement("Allreduce", op="SUM"), Agreement("Allreduce", op="MAX")], True),
        ([Agreement("Scan", amount=4, unit="float64"), Agreement("Scan", amount=5, unit="float64")], True),
        ([Agreement("Scan", amount=4, unit="float64"), Agreement("Scan", amount=4, unit="float32")], True),
        ([ROOTED._replace(amount=32, unit=BYTES), ROOTED._replace(amount=4, unit="float64")], False),
        ([ROOTED._replace(amount=32, unit=BYTES), ROOTED._replace(amount=40, unit=BYTES)], True),
        ([ROOTED, ROOTED._replace(amount=4, unit="float64")], False),
    ],
)
def test_collectives_are_compared_as_far_as_they_are_known(agreements, expected) -> None:
    assert differ(agreements) == expected


@pytest.mark.parametrize(
    ("agreement", "words"),
    [
        (Agreement("Barrier"), "Barrier"),
        (Agreement("Bcast", 0, "", 10, "float64"), "Bcast(root=0) of 10 float64"),
        (Agreement("Reduce", 1, "MAX", 80, BYTES), "Reduce(root=1, op=MAX) of 80 bytes"),
        (Agreement("allreduce", op="SUM"), "allreduce"),
    ],
)
def test_what_ranks_agree_on_in_words(agreement, words) -> None:
    assert str(agreement) == words


def event(rank, kind, start, end, peer=None, name="", **more) -> Event:
    name = name or {"send": "Send", "recv": "Recv", "collective": "Bcast"}[kind]
    return Event(rank, name, kind, peer, None if kind == "collective" else 0, 8, start, end, line=3, comm=W, **more)


def head_to_head(name: str = "Send", second: str = "recv", **more):
    """Both ranks send, and then receive."""
    sends = [event(rank, "send", 0.0, 0.1, 1 - rank, name, **more) for rank in range(2)]
    return [*sends, *(event(rank, second, 0.2, 0.3, 1 - rank) for rank in range(2))]


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        (
            head_to_head(),
            "works only as long as MPI buffers small messages. With larger ones, ranks 0 and 1 would wait in Send",
        ),
        (head_to_head("Bsend"), ""),
        ([event(0, "recv", 0.0, 0.3, 1), event(1, "recv", 0.0, 0.3, 0), *head_to_head()[:2]], ""),
        (head_to_head(awaited=False), ""),
        ([event(0, "send", 0.0, 0.1, 1), event(1, "recv", 0.2, 0.3, 0)], ""),
        ([event(0, "send", 0.0, 0.1, 1)], "No rank receives what rank 0 sends in Send(dest=1), line 3."),
        ([event(0, "send", 0.1 * n, 0.1 * n, 1) for n in range(3)], "and 2 more messages"),
        (
            [event(0, "send", 0.0, 0.1, 1, holds="float64"), event(1, "recv", 0.0, 0.3, 0, holds="int64")],
            "Rank 0 sends float64 in Send(dest=1), line 3; rank 1 receives it as int64",
        ),
        ([event(0, "send", 0.0, 0.1, 1, holds="bytes"), event(1, "recv", 0.0, 0.3, 0, holds="int64")], ""),
        ([event(0, "send", 0.0, 0.1, 1, holds="object"), event(1, "recv", 0.0, 0.3, 0, holds="bytes")], "sends object"),
        (
            [event(0, "collective", 0.0, 0.1, number=1, agreement=ROOTED)],
            "Rank 1 never called Bcast(root=0), line 3, but rank 0 did",
        ),
        (
            [event(rank, "collective", 0.0, 0.1, number=1, agreement=Agreement("Bcast", rank)) for rank in range(2)],
            "Collective number 1 is not the same on all ranks (rank 0 Bcast(root=0), rank 1 Bcast(root=1)), line 3.",
        ),
        ([event(rank, "collective", 0.0, 0.1, number=1, agreement=ROOTED) for rank in range(2)], ""),
    ],
)
def test_what_a_run_owes_to_luck(events, sentence) -> None:
    found = latent_errors(events, 2)
    assert len(found) == bool(sentence) and sentence in " ".join(found)


def reported(state, need=None, collectives=None, progress=1, text="recv", sent=()) -> Activity:
    ledger = Ledger()
    ledger.begin()
    ledger.sent.update(sent)
    if collectives:
        ledger.add_collective(W, [0, 1], Agreement(collectives))
    ledger.members[W] = [0, 1]
    return Activity(state, progress, 0.0, text, ledger.snapshot(need, []))


NOTHING = Activity(WAITING, 1, 0.0, "a call that is not recorded")


@pytest.mark.parametrize(
    ("activities", "replied", "situation"),
    [
        ({0: reported(WAITING, from_(1)), 1: reported(WAITING, from_(0))}, set(), Situation.STUCK),
        ({0: reported(WAITING, from_(1)), 1: reported(RUNNING)}, set(), Situation.MOVING),
        ({0: reported(WAITING, from_(1)), 1: reported(IDLE)}, {1}, Situation.STUCK),
        ({0: reported(WAITING, from_(1)), 1: reported(IDLE)}, set(), Situation.UNDELIVERED),
        ({0: NOTHING, 1: reported(WAITING, from_(0))}, set(), Situation.UNKNOWN),
        ({0: NOTHING, 1: reported(RUNNING)}, set(), Situation.MOVING),
        ({0: reported(TESTING, from_(1)), 1: reported(IDLE)}, {1}, Situation.IN_VAIN),
        ({0: reported(TESTING, from_(1)), 1: reported(RUNNING)}, set(), Situation.MOVING),
        ({0: reported(TESTING, from_(1)), 1: reported(WAITING, from_(0))}, set(), Situation.IN_VAIN),
    ],
)
def test_what_is_observed_of_the_ranks(activities, replied, situation) -> None:
    detector = HangDetector(lag=0.0)
    assert detector.observe(activities, replied) is not None
    observation = detector.observe(activities, replied)
    assert observation.situation is situation and observation.seconds_in(situation) > 0.0
    assert (observation.stuck is not None) == (situation is Situation.STUCK)


def test_what_is_on_its_way_over_a_link_counts_as_moving() -> None:
    slow = {0: reported(WAITING, from_(1)), 1: reported(IDLE, sent=[Message(W, 0, 0)])}
    unclear, dead = {0: NOTHING}, {0: reported(WAITING, from_(1)), 1: reported(IDLE)}
    for at_rest in (0.0, 1.0):
        for activities, situation in ((slow, Situation.ALL_WAIT), (unclear, Situation.UNKNOWN)):
            detector = HangDetector(lag=0.0, links_at_rest=lambda: at_rest)  # noqa: B023 - called in this turn
            detector.observe(activities, {1})
            assert (detector.observe(activities, {1}).seconds_in(situation) > 0.0) == (at_rest > 0.0)
        detector = HangDetector(lag=0.0, links_at_rest=lambda: at_rest)  # noqa: B023 - called in this turn
        assert detector.observe(dead, {1}).stuck is not None


def test_a_message_goes_to_the_receive_that_was_begun_first() -> None:
    ledger = Ledger()
    ledger.begin()
    first, second, third, other = (ledger.add_receive("world", [0, 1, 2], source, None) for source in (1, 1, 1, 2))
    begun = [SimpleNamespace(need=first), SimpleNamespace(need=second)]
    for need, ahead in ((first, 0), (second, 1), (third, 2), (other, 0)):
        snapshot, _ = read_snapshot(WAITS, ledger.snapshot(need, begun))
        assert snapshot.ahead == ahead


def test_a_ledger_that_misses_something_tells_nothing() -> None:
    ledger = Ledger()
    ledger.complete = False
    assert ledger.snapshot(from_(1), []) == b""
    for garbage in (b"", b"[]", b'{"need": ["Send"]}', b"\xff"):
        with pytest.raises(ValueError):
            read_snapshot(WAITS, garbage)
    ledger.begin()
    with pytest.raises(ValueError):
        read_snapshot(WAITS, ledger.snapshot(Collective(W, 1, Agreement("Bcast", "0")), []))


def test_what_a_cell_has_made_keeps_its_ledger() -> None:
    ledger = Ledger()
    ledger.sent.update([Message(W, 1, 0), Message(f"{W}/7/0", 1, 0)])
    ledger.begin()
    assert list(ledger.sent) == [Message(f"{W}/7/0", 1, 0)]


def test_a_collective_of_which_a_rank_may_have_died_is_told() -> None:
    def begins(*agreements: Agreement) -> Activity:
        ledger = Ledger()
        collectives = [ledger.add_collective("gloo 0", [0, 1], agreement) for agreement in agreements]
        return Activity(RUNNING, 1, 0.0, "", ledger.collective_snapshot(collectives[-1]))

    barrier, gather = Agreement("barrier"), Agreement("all_gather", unit="numbers")
    sixteen, seven = (begins(barrier, gather._replace(amount=number)) for number in (16, 7))
    sentence = (
        "collective number 2 is not the same on all ranks (rank 0 all_gather of 16 numbers, rank 1 all_gather of 7 "
    )
    assert mismatched_call_text({0: sixteen, 1: seven}) == sentence + "numbers)."
    assert (
        mismatched_call_text({0: sixteen, 1: sixteen}) == mismatched_call_text({0: sixteen, 1: begins(barrier)}) == ""
    )
    assert mismatched_call_text({0: sixteen, 1: Activity(IDLE, 1, 0.0, "")}) == ""


def test_a_collective_whose_arguments_are_rejected_was_none() -> None:
    ledger = Ledger()
    ledger.remove_collective(ledger.add_collective("gloo 0", [0, 1], ROOTED))
    assert ledger.add_collective("gloo 0", [0, 1], Agreement("barrier")) == Collective(
        "gloo 0", 1, Agreement("barrier")
    )


def test_a_thread_that_ends_as_soon_as_it_was_told_of_is_told_of_again(tmp_path, monkeypatch) -> None:
    recorder, may_end, told = Recorder(), threading.Event(), []
    recorder.activity = ActivityFile(tmp_path / "activity")
    write = recorder.activity.write
    recorder.begin(0)
    thread = threading.Thread(target=may_end.wait, args=(60,))
    thread.start()

    def write_and_let_it_end(*what):
        number = write(*what)
        told.append(threads_left(recorder.activity.read().snapshot))
        may_end.set()
        thread.join()
        return number

    monkeypatch.setattr(recorder.activity, "write", write_and_let_it_end)
    recorder.end()
    deadline = time.monotonic() + 60
    while told[-1] != NO_THREADS and time.monotonic() < deadline:
        time.sleep(0.01)
    assert told == [ACTING_THREADS, NO_THREADS]
