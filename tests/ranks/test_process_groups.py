"""Process groups of torch.distributed on ranks: those of a learner's own, their meetings, and what is left of them."""

import socket

import pytest
from stop_button import stop_button

from course_utils.errors import CourseError, RankError
from course_utils.ranks.px_magic import show

INIT = """
from mpi4py import MPI
import torch, torch.distributed as dist
comm = MPI.COMM_WORLD
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=comm.rank, world_size={size})
"""
ADD_UP = "x = torch.ones(3); dist.all_reduce(x); x.tolist()"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def cell(four_ranks):
    """Runs a cell on four ranks as `%%px` does, and gives back what each shows."""

    def run(text: str) -> list[str]:
        replies = four_ranks.execute(text, show)
        return [shown["data"]["text/plain"] for reply in replies for shown in reply.value]

    yield run
    four_ranks.execute("import torch.distributed as dist; dist.destroy_process_group()")


def stopped_after(seconds: float, work, ready=None) -> str:
    """The report of a call during which the stop button is pressed, so long after `ready`."""
    with pytest.raises(RankError) as error, stop_button(seconds, ready):
        work()
    return str(error.value)


def all_wait_in(ranks, call: str) -> bool:
    """Whether all ranks are seen to wait in this call."""
    return all(call in (ranks.connection.control.activity(rank).text or "") for rank in range(ranks.world_size))


def add_up() -> list[float]:
    import torch
    import torch.distributed as dist

    x = torch.ones(3)
    dist.all_reduce(x)
    return x.tolist()


SUM = [[4.0] * 3] * 4


# --- a hang in a learner's own group ---------------------------------------------------------------------------------


def test_a_hang_is_told_and_the_group_makes_room_for_a_new_one(four_ranks, cell, port, capsys) -> None:
    for _ in range(3):
        cell(INIT.format(port=port, size=4))
        assert cell(ADD_UP) == ["[4.0, 4.0, 4.0]"] * 4
        with pytest.raises(
            RankError, match=r"deadlock: .*Ranks 1, 2 and 3 are waiting in all_reduce, line 1.*rank 0 has"
        ):
            cell("if comm.rank: dist.all_reduce(torch.ones(3))")
        with pytest.raises(RankError, match="Default process group has not been initialized"):
            cell(ADD_UP)
        assert "was closed on all ranks, because an operation in it was not finished" in capsys.readouterr().out


def test_a_message_may_wait_for_the_next_cell(cell, port) -> None:
    cell(INIT.format(port=port, size=4))
    cell("x = torch.full((3,), 7.0)\nif comm.rank == 0: work = dist.isend(x, dst=1)")
    cell("if comm.rank == 1: dist.recv(x := torch.ones(3), src=0)")
    assert cell("work.wait() if comm.rank == 0 else x.tolist() if comm.rank == 1 else None") == [
        "True",
        "[7.0, 7.0, 7.0]",
    ]


def test_a_part_of_a_group_that_hangs_is_told(cell, port) -> None:
    cell(INIT.format(port=port, size=4))
    with pytest.raises(RankError, match=r"Ranks 0 and 1 are waiting in new_group"):
        cell("if comm.rank != 2: dist.new_group([0, 1, 2])")
    cell(INIT.format(port=port, size=4))
    with pytest.raises(RankError, match=r"Rank 0 is waiting in all_reduce"):
        cell("pair = dist.new_group([0, 1])\nif comm.rank == 0: dist.all_reduce(torch.ones(2), group=pair)")
    cell(INIT.format(port=port, size=4))


def permuted(comm, port: int, hangs: bool) -> list[float]:
    """Rank r of the run is rank 3 - r of the group."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=3 - comm.rank, world_size=4)
    x = torch.full((1,), float(dist.get_rank()))
    if comm.rank == 0:
        dist.send(x, dst=0)
    elif comm.rank == 3:
        dist.recv(x, src=2 if hangs else 3)
    if not hangs:
        dist.destroy_process_group()
    return x.tolist()


def test_the_ranks_of_a_group_need_not_be_those_of_the_run(four_ranks, port) -> None:
    assert four_ranks.run(permuted, port, False).results == [[3.0], [2.0], [1.0], [3.0]]
    with pytest.raises(RankError, match=r"rank 3 is waiting in recv\(src=2\)"):
        four_ranks.run(permuted, port, True)
    assert four_ranks.run(permuted, port, False).results == [[3.0], [2.0], [1.0], [3.0]]


# --- meetings --------------------------------------------------------------------------------------------------------


def own(comm, port: int | list[int], size: int = 4, missing: int | None = None) -> list[float] | None:
    import torch
    import torch.distributed as dist

    if comm.rank == missing:
        return None
    own_port = port[comm.rank] if isinstance(port, list) else port
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{own_port}", rank=comm.rank, world_size=size)
    x = torch.ones(3)
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x.tolist()


@pytest.mark.parametrize("missing", [0, 1])
def test_a_rank_that_does_not_come_to_the_meeting_is_named(four_ranks, port, missing) -> None:
    with pytest.raises(RankError, match=rf"deadlock: .* in init_process_group, line .*; rank {missing} has returned"):
        four_ranks.run(own, port, missing=missing)
    assert four_ranks.run(own, port).results == SUM


def test_a_world_that_is_too_large_can_be_left(four_ranks, port) -> None:
    pids = four_ranks.pids
    work, ready = lambda: four_ranks.run(own, port, size=5), lambda: all_wait_in(four_ranks, "init_process_group")
    report = stopped_after(0.5, work, ready)
    assert "All 4 ranks are waiting in init_process_group(world_size=5)" in report
    assert four_ranks.run(own, port).results == SUM and four_ranks.pids == pids


def test_different_ports_are_told(four_ranks, port) -> None:
    with pytest.raises(RankError, match=rf"not the same on all ranks .*init_process_group at port {port}"):
        four_ranks.run(own, [port, port, port, 1])
    assert four_ranks.run(own, port).results == SUM


def same_rank_twice(comm, port: int) -> None:
    import torch.distributed as dist

    rank = [0, 1, 1, 3][comm.rank]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4)


def test_a_rank_that_is_given_twice_is_told(four_ranks, port) -> None:
    with pytest.raises(RankError, match="rank=1 is given to the group by rank 1 and by rank 2|by rank 2 and by rank 1"):
        four_ranks.run(same_rank_twice, port)
    assert four_ranks.run(own, port).results == SUM


def with_a_process_of_its_own(comm, port: int) -> list[float]:
    """Rank 0 makes a group with a process that it has started, and that the course knows nothing of."""
    import subprocess
    import sys

    import torch
    import torch.distributed as dist

    if comm.rank:
        return []
    text = (
        "import torch, torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method='tcp://127.0.0.1:{port}', rank=1, world_size=2)\n"
        "dist.all_reduce(torch.ones(1))"
    )
    with subprocess.Popen([sys.executable, "-c", text]):
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=2)
        x = torch.ones(1)
        dist.all_reduce(x)
    dist.destroy_process_group()
    return x.tolist()


def test_a_group_may_have_processes_that_are_no_ranks(four_ranks, port) -> None:
    assert four_ranks.run(with_a_process_of_its_own, port).results == [[2.0], [], [], []]


STORE = "import torch.distributed as dist\nfrom mpi4py import MPI\nfrom datetime import timedelta\n"


def test_waits_for_a_store_can_be_seen_and_left(four_ranks, cell, port) -> None:
    pids, rank = four_ranks.pids, "MPI.COMM_WORLD.rank"
    make = f"store = dist.TCPStore('127.0.0.1', {port}, 4, {rank} == 0)"
    report = stopped_after(1.5, lambda: cell(f"{STORE}if {rank}: {make}"))
    assert f"Ranks 1, 2 and 3 are waiting in TCPStore('127.0.0.1', {port}), line 4" in report
    report = stopped_after(1.5, lambda: cell(f"{STORE}if not {rank}: {make}"))
    assert f"Rank 0 is waiting in TCPStore('127.0.0.1', {port}), line 4" in report
    cell(f"{STORE}{make}\nif {rank} == 1: store.set('key', 'value')")
    assert cell("store.get('key')") == ["b'value'"] * 4
    report = stopped_after(1.5, lambda: cell("if MPI.COMM_WORLD.rank == 2: store.get('never')"))
    assert "Rank 2 is waiting in TCPStore.get('never'), line 1" in report
    with pytest.raises(RankError, match=r"TCPStore.wait\(\['never'\]\) was given up after 0.5 s: no process has set"):
        cell("store.wait(['never'], timedelta(seconds=0.5))")
    assert cell("store.get('key')") == ["b'value'"] * 4 and four_ranks.pids == pids


# --- the course's group ----------------------------------------------------------------------------------------------


def one_fails(comm, port: int) -> None:
    """The mistake of a tutorial that was copied: on rank 0 another address than on the others."""
    import torch.distributed as dist

    if comm.rank == 0:
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0x", rank=0, world_size=1)


def test_what_failed_on_one_rank_is_no_matter_to_the_next_group(four_ranks, port) -> None:
    for _ in range(2):
        with pytest.raises(RankError, match="rank 0 raised ValueError"):
            four_ranks.run(one_fails, port)
    assert four_ranks.run(own, port).results == SUM
    assert four_ranks.run(add_up, backend="gloo").results == SUM


def change_the_counter(comm) -> None:
    from torch.distributed import distributed_c10d

    distributed_c10d._world.group_count = comm.rank


def test_a_counter_of_torchs_that_differs_is_no_matter(four_ranks) -> None:
    four_ranks.run(change_the_counter)
    assert four_ranks.run(add_up, backend="gloo").results == SUM


def test_a_tutorial_runs_after_a_call_with_backend_and_before_one(four_ranks, cell, port) -> None:
    assert four_ranks.run(add_up, backend="gloo").results == SUM
    assert four_ranks.run(own, port).results == SUM
    assert four_ranks.run(add_up, backend="gloo").results == SUM
    cell(INIT.format(port=port, size=4))
    with pytest.raises(RankError, match=r"twice: the first one was made before.*destroy_process_group\(\) closes it"):
        cell(INIT.format(port=port, size=4))
    assert four_ranks.run(add_up, backend="gloo").results == SUM


def break_torch(comm) -> None:
    from course_utils.ranks.engine import torch_group

    def fail(*_, **__):
        raise OSError("no device")

    if comm.rank == 1:
        torch_group.plain_init, torch_group.kept_init = fail, torch_group.plain_init


def mend_torch(comm) -> None:
    from course_utils.ranks.engine import torch_group

    if comm.rank == 1:
        torch_group.plain_init = torch_group.kept_init


def test_a_group_that_cannot_be_made_is_told_at_once_with_the_next_step(four_ranks, port) -> None:
    four_ranks.run(own, port)  # the course's group makes room
    four_ranks.run(break_torch)
    try:
        with pytest.raises(RankError, match=r"(?s)rank 1 raised GroupsBroken: .*OSError: no device.*ranks.restart\(\)"):
            four_ranks.run(change_nothing, backend="gloo")
    finally:
        four_ranks.run(mend_torch)
    assert four_ranks.run(add_up, backend="gloo").results == SUM


def change_nothing() -> None: ...


def set_default_dtype(comm, name: str) -> None:
    import torch

    if comm.rank == 1:
        torch.set_default_dtype(getattr(torch, name))


def test_a_setting_of_torchs_that_differs_is_told(four_ranks, capsys) -> None:
    four_ranks.run(set_default_dtype, "float64")
    try:
        four_ranks.run(change_nothing, backend="gloo")
    finally:
        four_ranks.run(set_default_dtype, "float32")
    said = capsys.readouterr().out
    assert "[rank 1] Torch's default dtype is float64 on this rank, and float32 on ranks 0, 2 and 3." in said


def test_a_function_that_wants_a_communicator_is_told_that_there_is_none(four_ranks) -> None:
    with pytest.raises(CourseError, match="own has a parameter 'comm' more than it gets.*backend='gloo' gets no comm"):
        four_ranks.run(own, 1, backend="gloo")


def ignore_interrupts(comm) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def compute_for_ever(comm) -> None:
    while True:
        pass


def test_the_stop_button_works_whatever_a_call_before_has_done(four_ranks) -> None:
    pids = four_ranks.pids
    four_ranks.run(ignore_interrupts)
    assert "computing" in stopped_after(1.0, lambda: four_ranks.run(compute_for_ever))
    assert four_ranks.pids == pids


# --- time ------------------------------------------------------------------------------------------------------------


def late(how: str) -> list[float]:
    """Rank 1 computes, writes or sleeps for a while before it comes; with torch's own timeout that may take long."""
    import threading
    import time

    import torch
    import torch.distributed as dist
    from torch.distributed.constants import default_pg_timeout

    own_timeout = dist.group.WORLD._plain._get_backend(torch.device("cpu")).options._timeout
    assert own_timeout == default_pg_timeout
    x = torch.ones(3)
    if dist.get_rank() == 1:
        time.sleep(2)
    if how == "waits":
        dist.all_reduce(x)
    elif how == "in a thread":
        thread = threading.Thread(target=dist.all_reduce, args=(x,))
        thread.start()
        thread.join()
    else:
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            pass
    return x.tolist()


@pytest.mark.parametrize("how", ["waits", "in a thread", "tests again and again"])
def test_no_timeout_of_the_course_ends_what_takes_long(four_ranks, how) -> None:
    assert four_ranks.run(late, how, backend="gloo").results == SUM


def ask_in_vain(kind: str) -> None:
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        x = torch.ones(3)
        work = dist.all_reduce(x, async_op=True) if kind == "all_reduce" else dist.irecv(x, src=1)
        while not work.is_completed():
            pass


@pytest.mark.parametrize(("kind", "text"), [("all_reduce", "all_reduce"), ("irecv", "irecv(src=1)")])
def test_who_ask_in_vain_is_told_softly(four_ranks, capsys, kind, text) -> None:
    stopped_after(4.0, lambda: four_ranks.run(ask_in_vain, kind, backend="gloo"))
    assert f"rank 0 keeps testing: is_completed() of {text}" in " ".join(capsys.readouterr().out.split())
    assert four_ranks.run(add_up, backend="gloo").results == SUM


def with_a_timeout(comm, port: int, catches: bool) -> str | None:
    import time
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    address, short = f"tcp://127.0.0.1:{port}", timedelta(seconds=1)
    dist.init_process_group("gloo", init_method=address, rank=comm.rank, world_size=4, timeout=short)
    if comm.rank == 1:
        return time.sleep(2)
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        if not catches:
            raise
        return str(error)


def test_a_timeout_of_the_learners_is_told_in_plain_words_and_may_be_caught(four_ranks, port, capsys) -> None:
    said = "all_reduce ran into the timeout of its process group: not all ranks that it needs have called it in time"
    with pytest.raises(RankError, match=f"raised RuntimeError: {said}, line"):
        four_ranks.run(with_a_timeout, port, False)
    results = four_ranks.run(with_a_timeout, port, True).results
    assert said in results and results[1] is None
    assert "By luck" not in capsys.readouterr().out


def waits_for_a_second() -> str | None:
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        try:
            dist.irecv(torch.ones(3), src=1).wait(timedelta(seconds=0.5))
        except RuntimeError as error:
            return str(error)
    return None


def test_a_wait_with_a_timeout_ends_with_it(four_ranks, capsys) -> None:
    results = four_ranks.run(waits_for_a_second, backend="gloo").results
    assert results[0] == "irecv(src=1) was not done after the 0.5 s of wait(timeout=…)"
    assert "By luck" not in capsys.readouterr().out


def simulated(comm) -> list[float]:
    """Torch's simulator of many ranks in a process, which the course leaves alone."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=comm.rank, world_size=64)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x.tolist()


def test_torchs_own_simulator_works(four_ranks) -> None:
    assert four_ranks.run(simulated).results == [[1.0]] * 4
