"""Threads that learners start on ranks: what a living one may still do, and what a waiting one can never get."""

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_utils.errors import RankError
from course_utils.ranks import quiet_notice


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 3.0)


# --- programs that are right ------------------------------------------------------------------------------------------


def timer_sends_after_the_return(comm):
    if comm.rank == 0:
        threading.Timer(1.0, comm.send, ("late", 1)).start()
    return comm.recv(source=0) if comm.rank == 1 else None


def daemon_answers_after_the_return(comm):
    def serve():
        while True:
            comm.send("answer", dest=comm.recv(tag=1), tag=2)

    if comm.rank == 0:
        threading.Thread(target=serve, daemon=True).start()
        return None
    time.sleep(0.3)
    comm.send(comm.rank, dest=0, tag=1)
    return comm.recv(source=0, tag=2)


def executor_receives(comm):
    if comm.rank == 0:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda source: comm.recv(source=source), [1, 2]))
    if comm.rank == 1:
        time.sleep(0.5)
    return comm.send(comm.rank, dest=0) if comm.rank < 3 else None


def joined_thread_is_slow(comm):
    def work():
        time.sleep(1.0)
        comm.send("slow", dest=1)

    if comm.rank == 0:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    return comm.recv(source=0) if comm.rank == 1 else None


def one_thread_wakes_the_other(comm):
    """Rank 0's main thread and one thread wait for the second thread, which sleeps before it does its part."""
    if comm.rank == 0:
        ready = threading.Event()

        def wait_and_send():
            ready.wait()
            comm.send("woken", dest=1)

        thread = threading.Thread(target=wait_and_send)
        thread.start()
        threading.Timer(1.0, ready.set).start()
        thread.join()
    return comm.recv(source=0) if comm.rank == 1 else None


def awaits_a_thread(comm):
    if comm.rank == 0:
        return asyncio.run(asyncio.to_thread(comm.recv, source=1))
    if comm.rank == 1:
        time.sleep(0.5)
        comm.send("awaited", dest=0)
    return None


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (timer_sends_after_the_return, [None, "late", None, None]),
        (daemon_answers_after_the_return, [None, "answer", "answer", "answer"]),
        (executor_receives, [[1, 2], None, None, None]),
        (joined_thread_is_slow, [None, "slow", None, None]),
        (one_thread_wakes_the_other, [None, "woken", None, None]),
        (awaits_a_thread, ["awaited", None, None, None]),
    ],
)
def test_a_living_thread_may_still_do_what_others_wait_for(four_ranks, function, results, capsys) -> None:
    run = four_ranks.run(function)
    assert run.results == results and run.notes == []
    assert capsys.readouterr().out == ""


BEGIN = """
import threading
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    threading.Timer(1.5, comm.send, ("from the cell before", 1)).start()
"""


def test_a_thread_of_the_cell_before_may_still_send(four_ranks) -> None:
    four_ranks.execute(BEGIN)
    replies = four_ranks.execute("if comm.rank == 1: print(comm.recv(source=0))")
    assert replies[1].output.strip() == "from the cell before"


def test_what_a_late_thread_sends_is_no_part_of_the_next_run(four_ranks) -> None:
    def leaves_a_timer(comm):
        if comm.rank == 0:
            threading.Timer(0.5, comm.send, ("nobody wants it", 1)).start()

    four_ranks.run(leaves_a_timer)
    run = four_ranks.run(lambda comm: time.sleep(1.0))
    assert run.notes == [] and run.messages == 0


# --- programs that hang -----------------------------------------------------------------------------------------------


def thread_is_joined(comm):
    if comm.rank == 0:
        thread = threading.Thread(target=lambda: comm.recv(source=1))
        thread.start()
        thread.join()


def executor_is_left(comm):
    if comm.rank == 0:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda source: comm.recv(source=source), [1, 2]))


def future_is_waited_for(comm):
    if comm.rank == 0:
        ThreadPoolExecutor(2).submit(lambda: comm.recv(source=1)).result()


def queue_is_waited_for(comm):
    if comm.rank == 0:
        results: queue.Queue = queue.Queue()
        threading.Thread(target=lambda: results.put(comm.recv(source=1)), daemon=True).start()
        results.get()


def thread_is_awaited(comm):
    if comm.rank == 0:
        asyncio.run(asyncio.to_thread(lambda: comm.recv(source=1)))


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (thread_is_joined, "Thread.join"),
        (executor_is_left, "Executor.map"),
        (future_is_waited_for, "Future.result"),
        (queue_is_waited_for, "Queue.get"),
        (thread_is_awaited, "asyncio.run"),
    ],
)
def test_a_hopeless_thread_that_is_waited_for_is_a_deadlock(four_ranks, function, call, capsys) -> None:
    words = rf"^deadlock: .* Rank 0 is waiting in {call}, line \d+ .*, for recv\(source=1\) in a thread, line \d+ "
    with pytest.raises(RankError, match=words):
        four_ranks.run(function)
    assert "Traceback" not in capsys.readouterr().out
    assert four_ranks.healthy and four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4


def timer_sends_nothing(comm):
    if comm.rank == 0:
        threading.Timer(1.0, int).start()
    if comm.rank == 1:
        comm.recv(source=0)


def executor_is_idle(comm):
    if comm.rank == 0:
        globals()["kept_by_a_test"] = pool = ThreadPoolExecutor(2)
        pool.submit(int).result()
    if comm.rank == 1:
        comm.recv(source=0)


@pytest.mark.parametrize("function", [timer_sends_nothing, executor_is_idle])
def test_a_thread_that_can_do_nothing_more_keeps_no_deadlock_back(four_ranks, function) -> None:
    with pytest.raises(RankError, match=r"^deadlock: rank 1 .* ranks 0, 2 and 3 have returned"):
        four_ranks.run(function)


def test_a_server_that_an_earlier_run_left_keeps_no_deadlock_back(four_ranks) -> None:
    four_ranks.run(daemon_answers_after_the_return)
    with pytest.raises(RankError, match=r"^deadlock: .* for recv\(source=1\) in a thread, "):
        four_ranks.run(thread_is_joined)


def sleeping_thread_keeps_it_open(comm):
    if comm.rank == 0:
        threading.Timer(5.0, int).start()
    if comm.rank == 1:
        comm.recv(source=0)


def test_while_a_thread_lives_there_is_a_note_first(four_ranks, capsys) -> None:
    with pytest.raises(RankError, match="^deadlock"):
        four_ranks.run(sleeping_thread_keeps_it_open)
    told = " ".join(capsys.readouterr().out.split())
    assert "rank 0 has returned, and a thread that its code started is still running" in told
    assert "rank 1 is waiting in recv(source=0), line " in told


def test_what_a_thread_raises_is_told_in_a_line(four_ranks, capsys) -> None:
    def raises_in_a_thread(comm):
        if comm.rank == 1:
            thread = threading.Thread(target=lambda: 1 // 0)
            thread.start()
            thread.join()

    four_ranks.run(raises_in_a_thread)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("[rank 1] In a thread: ZeroDivisionError: ") and ", line " in line
