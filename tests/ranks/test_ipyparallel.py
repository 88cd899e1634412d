"""ipyparallel's own client and view of the ranks, beside the course's own calls."""

import socket
import threading
import time

import ipyparallel as ipp
import numpy as np
import pytest

import course_utils as course
from course_utils.errors import CourseError, RankError, RanksGone


def number() -> int:
    """Return the rank's own number, in a rank."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


def send_to_the_right(comm) -> int:
    """Return what the left neighbour has sent with this tag."""
    comm.send(comm.rank, dest=(comm.rank + 1) % comm.size, tag=5)
    return comm.recv(source=(comm.rank - 1) % comm.size, tag=5)


def test_the_view_is_ipyparallels_own_and_in_rank_order(four_ranks) -> None:
    assert type(four_ranks.client) is ipp.Client and isinstance(four_ranks.view, ipp.DirectView)
    assert four_ranks.client.ids == four_ranks.view.targets == [0, 1, 2, 3]
    assert four_ranks.view.apply_sync(number) == [0, 1, 2, 3]
    assert four_ranks.client[2].apply_sync(number) == 2


def test_the_controller_listens_where_it_says(four_ranks) -> None:
    host, _, port = four_ranks.controller.rpartition(":")
    assert host == "127.0.0.1"
    with socket.create_connection((host, int(port)), timeout=5):
        pass


def test_everything_that_a_view_can_do(four_ranks) -> None:
    view = four_ranks.view
    view.push({"rate": 0.5})
    assert view.pull("rate") == [0.5] * 4
    view.scatter("part", np.arange(10))
    assert [list(part) for part in view.pull("part")] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    view.execute("total = part.sum()")
    assert view.pull("total") == [3, 12, 13, 17]
    assert list(view.gather("part")) == list(range(10))
    assert view.map_sync(lambda x: x * x, range(6)) == [0, 1, 4, 9, 16, 25]
    balanced = four_ranks.client.load_balanced_view()
    assert balanced.map_sync(lambda x: x + 1, range(9)) == list(range(1, 10))
    with pytest.raises(ipp.error.CompositeError):
        view.apply_sync(lambda: 1 / 0)


def test_variables_are_those_of_the_cells(four_ranks) -> None:
    four_ranks.view.push({"seven": 7})
    four_ranks.execute("eight = seven + 1")
    assert four_ranks.view["eight"] == [8] * 4


def test_a_run_waits_for_work_of_the_view_and_is_not_taken_for_lost(four_ranks, monkeypatch) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr("course_utils.ranks.connection._UNDELIVERED", 1.0)
        at_work = four_ranks.view.apply_async(time.sleep, 2.5)
        assert four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]
    assert at_work.ready()
    four_ranks.client.load_balanced_view().map_async(time.sleep, [0.1] * 8)
    assert four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]


def test_a_message_that_was_left_over_meets_no_run(four_ranks) -> None:
    def leave() -> None:
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        world.send("left over", dest=(world.rank + 1) % world.size, tag=5)

    four_ranks.run(send_to_the_right)
    four_ranks.view.apply_sync(leave)
    assert four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]
    four_ranks.view.apply_sync(number)
    events = four_ranks.run(send_to_the_right).events
    assert {event.kind for event in events} == {"send", "recv"} and len(events) == 8, "and none is in its trace"


def test_calls_use_one_communicator_until_the_client_is_used(four_ranks) -> None:
    def current_number() -> str:
        return (four_ranks.connection.folder.path / "call-lock").read_text()

    four_ranks.run(send_to_the_right)
    before = current_number()
    four_ranks.run(send_to_the_right)
    assert current_number() == before
    four_ranks.view.apply_sync(number)
    four_ranks.run(send_to_the_right)
    assert current_number() != before


def test_ranks_that_wait_for_ever_in_the_view_are_freed_by_the_next_call(four_ranks) -> None:
    def wait_in_vain() -> None:
        from mpi4py import MPI

        MPI.COMM_WORLD.recv(source=0, tag=9)

    waiting = four_ranks.view.apply_async(wait_in_vain)
    time.sleep(0.5)
    with pytest.raises(RankError):
        four_ranks.run(send_to_the_right)
    waiting.wait(10)
    assert waiting.ready() and not waiting.successful()
    assert four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]


def test_the_stop_button_reaches_work_of_the_view(four_ranks) -> None:
    import _thread

    def never() -> None:
        while True:
            pass

    pids = four_ranks.pids
    endless = four_ranks.view.apply_async(never)
    time.sleep(0.3)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(RankError):
        four_ranks.run(send_to_the_right)
    timer.join()
    endless.wait(10)
    assert endless.ready() and not endless.successful()
    assert four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]
    assert four_ranks.pids == pids, "no rank had to be ended"


def test_after_a_restart_there_are_others_and_after_a_stop_none(capsys) -> None:
    from course_utils.ranks.start import start_separate_ranks

    ranks = start_separate_ranks(2)
    try:
        client, view = ranks.client, ranks.view
        ranks.restart()
        assert ranks.client is not client and ranks.view is not view
        assert ranks.view.apply_sync(number) == [0, 1] and ranks.view is ranks.view
    finally:
        ranks.stop()
    for name in ("client", "view"):
        with pytest.raises(RanksGone, match="stopped"):
            getattr(ranks, name)


def test_virtual_ranks_have_no_engines() -> None:
    virtual = course.start(3, where="nowhere")
    for name in ("client", "view", "controller"):
        with pytest.raises(CourseError, match="no engines"):
            getattr(virtual, name)
