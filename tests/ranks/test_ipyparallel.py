"""ipyparallel's own client and view of the ranks, beside the course's own calls."""

import signal
import socket
import subprocess
import sys
import time

import ipyparallel as ipp
import numpy as np
import pytest
from stop_button import stop_button

import course_utils as course
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.ranks.ending import Ending
from course_utils.trace.activity import IDLE


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


def test_calls_use_one_communicator_and_the_client_another(four_ranks) -> None:
    def current_number() -> str:
        return (four_ranks.connection.folder.path / "call-lock").read_text()

    four_ranks.run(send_to_the_right)
    before = current_number()
    four_ranks.run(send_to_the_right)
    assert current_number() == before
    four_ranks.view.apply_sync(number)
    four_ranks.run(send_to_the_right)
    assert current_number() == before


# --- requests of ipyparallel's own are told as calls are --------------------------------------------------------------


def all_receive() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.recv(source=(world.rank + 1) % world.size, tag=3)


def pass_on(seconds: float = 0.0) -> int:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if world.rank == 0:
        time.sleep(seconds)
    world.send(world.rank, dest=(world.rank + 1) % world.size)
    return world.recv(source=(world.rank - 1) % world.size)


def raises_on_one() -> None:
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("told when?")
    MPI.COMM_WORLD.recv(source=1)


def never_ends() -> None:
    while True:
        pass


@pytest.fixture(params=["of the ranks", "of one's own", "broadcast"])
def view(request, four_ranks):
    """A view of all ranks: ours, one of another client in this process, and one that broadcasts."""
    if request.param == "of the ranks":
        yield four_ranks.view
    elif request.param == "broadcast":
        yield four_ranks.client.broadcast_view()
    else:
        client = ipp.Client(str(four_ranks.connection.folder.connection_file))
        yield client[:]
        client.close()


def works(four_ranks, pids: list[int]) -> bool:
    """Whether views and calls work as before, on the same processes."""
    return (
        four_ranks.view.apply_sync(pass_on) == four_ranks.run(send_to_the_right).results == [3, 0, 1, 2]
        and four_ranks.pids == pids
    )


def test_a_deadlock_in_a_view_is_told_with_its_lines(view, four_ranks) -> None:
    pids = four_ranks.pids
    with pytest.raises(RankError) as caught:
        view.apply_sync(all_receive)
    text = str(caught.value)
    assert caught.value.ending == Ending.DEADLOCK
    assert "0 is waiting for 1, 1 for 2, 2 for 3, 3 for 0" in text and "recv(source=1, tag=3), line " in text
    assert four_ranks.waits().alt_text
    assert works(four_ranks, pids)


def test_an_error_in_a_view_is_told_with_rank_and_line(view, four_ranks) -> None:
    pids = four_ranks.pids
    with pytest.raises(RankError, match=r"^rank 1 raised ValueError: told when\?, line \d+ of") as caught:
        view.apply_sync(raises_on_one)
    assert "ranks 0, 2 and 3 are waiting in recv(source=1), line " in str(caught.value)
    with pytest.raises(RankError, match=r"^all 4 ranks raised ZeroDivisionError: division by zero, line \d+ of"):
        view.apply_async(lambda: 1 / 0).get()
    with pytest.raises(ipp.error.CompositeError, match="ZeroDivisionError"):
        view.apply_sync(lambda: 1 / 0)
    assert works(four_ranks, pids)


@pytest.mark.parametrize("wait", ["sync", "get", "wait", "execute"])
def test_the_stop_button_keeps_the_ranks_of_a_view(wait, four_ranks) -> None:
    pids, view = four_ranks.pids, four_ranks.view
    waits = {
        "sync": lambda: view.apply_sync(never_ends),
        "get": lambda: view.apply_async(never_ends).get(),
        "wait": lambda: view.apply_async(never_ends).wait(),
        "execute": lambda: view.execute("while True:\n    pass"),
    }
    with stop_button(), pytest.raises(RankError, match=r"^stopped by you\. All 4 ranks were computing at line"):
        waits[wait]()
    assert works(four_ranks, pids)


def test_who_computes_for_long_or_waits_for_a_late_rank_is_left_alone(view, four_ranks) -> None:
    assert view.apply_sync(pass_on, 1.0) == [3, 0, 1, 2]


def test_a_request_that_waits_for_another_request_is_left_alone(four_ranks) -> None:
    def receive() -> str:
        from mpi4py import MPI

        return MPI.COMM_WORLD.recv(source=1, tag=8)

    def send_late() -> None:
        from mpi4py import MPI

        time.sleep(1)
        MPI.COMM_WORLD.send("late", dest=0, tag=8)

    client = four_ranks.client
    first = client[0].apply_async(receive)
    second = client[1].apply_async(send_late)
    assert first.get() == "late" and second.get() is None


def test_part_of_the_ranks_is_told_too(four_ranks) -> None:
    pids = four_ranks.pids
    with pytest.raises(
        RankError, match=r"^deadlock: rank 2 is waiting .* Rank 2 is waiting in recv\(source=3, tag=3\), line"
    ):
        four_ranks.client[2].apply_sync(all_receive)
    assert works(four_ranks, pids)


def test_a_cell_sent_through_a_view_is_told_too(four_ranks) -> None:
    pids, view = four_ranks.pids, four_ranks.view
    view.execute("from mpi4py import MPI")
    with pytest.raises(RankError, match=r"^deadlock: .* Ranks 1, 2 and 3 are waiting in Barrier, line 2 of your cell"):
        view.execute("if MPI.COMM_WORLD.rank:\n    MPI.COMM_WORLD.Barrier()")
    with pytest.raises(RankError, match=r"^all 4 ranks raised SyntaxError: invalid syntax, line 1 of your cell"):
        view.execute("a = = 1")
    assert works(four_ranks, pids)


def test_errors_and_the_stop_button_in_tasks_that_are_dealt_out(four_ranks) -> None:
    pids, balanced = four_ranks.pids, four_ranks.client.load_balanced_view()
    with pytest.raises(RankError, match=r"^rank \d raised ZeroDivisionError: division by zero, line \d+"):
        balanced.map_sync(lambda x: 1 / x, range(4))
    with stop_button(), pytest.raises(RankError, match=r"^stopped by you\."):
        balanced.map_sync(time.sleep, [1.0] * 40)
    assert works(four_ranks, pids)


def test_a_timer_of_the_notebooks_own_ends_tasks_and_costs_no_rank(four_ranks) -> None:
    def ring_the_bell(number, frame):
        raise TimeoutError("the learner's own")

    pids, balanced = four_ranks.pids, four_ranks.client.load_balanced_view()
    before = signal.signal(signal.SIGINT, ring_the_bell)
    try:
        with stop_button(), pytest.raises(TimeoutError):
            balanced.map_sync(time.sleep, [1.0] * 40)
    finally:
        signal.signal(signal.SIGINT, before)
    assert {four_ranks.connection.control.activity(rank).state for rank in range(4)} == {IDLE}
    assert works(four_ranks, pids)


def test_in_another_process_an_error_of_a_view_has_its_line(four_ranks) -> None:
    program = f"""
import ipyparallel as ipp
client = ipp.Client({str(four_ranks.connection.folder.connection_file)!r})
try:
    client[:].apply_sync(eval, "1 / 0")
except ipp.error.CompositeError as error:
    print(error)
try:
    client[:].execute("a = 1\\nb = a / 0", block=True)
except ipp.error.CompositeError as error:
    print("\\n".join(error.render_traceback()))
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout
    assert "[0:apply]ZeroDivisionError: division by zero" in out
    assert out.count("ZeroDivisionError: division by zero, line 2 of your cell") == 4 and "Traceback" not in out


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
    pids = four_ranks.pids
    endless = four_ranks.view.apply_async(never_ends)
    with stop_button(), pytest.raises(RankError):
        four_ranks.run(send_to_the_right)
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
