"""What a learner is told of a call that goes on, or was stopped: who raised, who computes, who waits in which call."""

import asyncio
import os
import queue
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from course_utils.errors import RankError
from course_utils.ranks import quiet_notice
from course_utils.ranks.processor_use import ProcessorUse
from course_utils.trace.standing import Standing, standing_of_error, standing_of_rank


def waits_in_a_queue(comm):
    if comm.rank == 1:
        queue.Queue().get()


def sleeps(comm):
    if comm.rank == 1:
        time.sleep(60.0)


def waits_for_an_event_loop(comm):
    if comm.rank == 1:
        asyncio.run(asyncio.sleep(60.0))


def pauses(comm):
    if comm.rank == 1:
        signal.pause()


def computes(comm):
    while comm.rank == 1:
        pass


def stop_after(seconds: float) -> threading.Timer:
    press = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    press.start()
    return press


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (waits_in_a_queue, r"waiting in Queue\.get, line \d+"),
        (sleeps, r"waiting in time\.sleep, line \d+"),
        (waits_for_an_event_loop, r"waiting in asyncio\.run, line \d+"),
        (pauses, r"waiting in signal\.pause, line \d+"),
        (computes, r"computing at line \d+"),
    ],
)
def test_who_uses_no_processor_is_said_to_wait_and_where(four_ranks, function, words, monkeypatch, capsys) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 1.0)
    stop_after(4.0)
    with pytest.raises(RankError, match=rf"^stopped by you\. Rank 1 was {words} of .*; ranks 0, 2 and 3 have returned"):
        four_ranks.run(function)
    told = " ".join(capsys.readouterr().out.split())
    if function is not computes:
        assert "rank 1 is waiting in " in told and "ranks 0, 2 and 3 have returned" in told and "free" not in told
    else:
        assert told == ""


def alarm_ends_the_pause(comm):
    if comm.rank != 1:
        return 0.0
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 4.0)
    begun = time.monotonic()
    signal.pause()
    return time.monotonic() - begun


def test_to_see_where_a_rank_is_disturbs_nothing(four_ranks, monkeypatch, capsys) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 1.0)
    assert four_ranks.run(alarm_ends_the_pause).results[1] > 3.9
    assert "rank 1 is waiting in signal.pause, line " in " ".join(capsys.readouterr().out.split())


def raises_while_another_sleeps(comm):
    if comm.rank == 1:
        raise ValueError("told when?")
    if comm.rank == 0:
        time.sleep(4.0)


def test_an_error_is_told_while_another_rank_goes_on(four_ranks, monkeypatch, capsys) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 1.0)
    with pytest.raises(RankError, match="^rank 1 raised ValueError: told when"):
        four_ranks.run(raises_while_another_sleeps)
    first, _, notice = " ".join(capsys.readouterr().out.split()).partition(" Nothing has moved ")
    line = raises_while_another_sleeps.__code__.co_firstlineno + 2
    assert first.startswith(f"Rank 1 raised ValueError: told when?, line {line} of ")
    assert first.endswith("rank 0 has not returned yet, so the call goes on.")
    assert "rank 1 raised ValueError: told when?" in notice and "rank 0 is waiting in time.sleep" in notice


def imports_something_slow(comm):
    import slow_to_import_for_a_test

    return slow_to_import_for_a_test.__name__


def test_a_rank_that_imports_is_said_to_import(four_ranks, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 1.0)
    (tmp_path / "slow_to_import_for_a_test.py").write_text("import time\ntime.sleep(4.0)\n")
    four_ranks.run(lambda comm, path: __import__("sys").path.append(path), str(tmp_path))
    four_ranks.run(imports_something_slow)
    told = " ".join(capsys.readouterr().out.split())
    assert "ranks 0, 1, 2 and 3 are importing slow_to_import_for_a_test" in told
    four_ranks.run(lambda comm, path: __import__("sys").path.remove(path), str(tmp_path))


def standing_inside(work) -> Standing:
    found: list[Standing] = []
    look = threading.Timer(0.1, lambda: found.append(standing_of_rank()))
    look.start()
    work()
    look.join()
    return found[0]


def test_a_call_is_named_as_it_is_written_or_by_its_class() -> None:
    locks = [threading.Lock()]
    locks[0].acquire()
    waits = queue.Queue()
    assert standing_inside(lambda: time.sleep(0.3)).call == "time.sleep"
    assert standing_inside(lambda: locks[0].acquire(timeout=0.3)).call == "acquire"
    assert standing_inside(lambda: threading.Event().wait(0.3)).call == "Event.wait"
    assert standing_inside(lambda: pytest.raises(queue.Empty, waits.get, timeout=0.3)).call.endswith("raises")


def test_an_error_tells_the_learners_line_and_its_call() -> None:
    def learner():
        queue.Queue().get(timeout=0.01)

    with pytest.raises(queue.Empty) as error:
        learner()
    standing = standing_of_error(error.value.__traceback__)
    assert standing.call == "Queue.get" and standing.line.startswith(f"line {learner.__code__.co_firstlineno + 1} of ")


def test_a_rank_computes_if_it_uses_the_processor_or_would_like_to(monkeypatch) -> None:
    now, used = [0.0], {0: 0.0, 1: 0.0, 2: 0.0}
    monkeypatch.setattr("course_utils.ranks.processor_use.time.monotonic", lambda: now[0])
    use = ProcessorUse(SimpleNamespace(computed=used.get, wants_to_run=lambda rank: rank == 2), [0, 1, 2])
    use.measure()
    now[0], used[0], used[1] = 2.0, 1.0, 0.02
    assert use.measure() and use.shares == {0: 0.5, 1: 0.01, 2: 0.0}
    assert [use.computes(rank) for rank in range(3)] == [True, False, True]
