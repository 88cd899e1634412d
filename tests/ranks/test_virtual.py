"""Virtual ranks: what comes out, and is counted, is what real ranks give; what they cannot do is said."""

import _thread
import concurrent.futures
import math
import multiprocessing
import sys
import threading
import time
import types

import numpy as np
import pytest

import course_utils as course
from course_utils.checks.judge import verdict_on_these
from course_utils.checks.registry import declared, find
from course_utils.errors import CourseError, RankError
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.cost_model import Network, allreduce_time, bytes_per_rank, rounds
from course_utils.lessons.allreduce.network_topology import switch
from course_utils.ranks.offline.stand_ins import WorkerVirtualRanks
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks

WITH_COMM = [
    (exercise.name, program)
    for exercise in declared()
    if exercise.lesson in ("04_messages", "05_allreduce", "08_parameter_server") and not exercise.needs_torch
    for program in exercise.written.right
]
TWO = Network(alpha=2e-3, beta=1e-6)


def sums(comm, allreduce, length=1001):
    vector = np.random.default_rng(comm.rank).normal(size=length)
    allreduce(comm, vector)
    return vector


@pytest.mark.parametrize(("name", "program"), WITH_COMM, ids=lambda given: getattr(given, "name", given))
@pytest.mark.parametrize("size", [4, 5])
def test_every_right_answer_passes(name, program, size):
    verdict = verdict_on_these(find(name), program.function(), VirtualRanks(size))
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_results_are_bit_equal_and_counts_equal_to_those_of_real_ranks(algorithm, size, four_ranks):
    real = four_ranks.run(sums, ALGORITHMS[algorithm], ranks=size)
    virtual = VirtualRanks(size).run(sums, ALGORITHMS[algorithm])
    assert [result.tobytes() for result in virtual.results] == [result.tobytes() for result in real.results]
    assert virtual.rounds == real.rounds and virtual.messages == real.messages
    assert virtual.bytes_per_rank == real.bytes_per_rank and virtual.collectives == real.collectives


def every_call(comm):
    from mpi4py import MPI

    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    own, got = np.full(3, rank + 0.1), np.empty(3)
    found = [comm.allreduce(rank), comm.allreduce(rank, op=MPI.MAX), comm.bcast({"a": rank}, root=size - 1)]
    found += [comm.scatter(list(range(size)) if rank == 0 else None), comm.gather(rank * rank, root=1), comm.scan(rank)]
    found += [comm.allgather("x" * rank), comm.alltoall([(rank, other) for other in range(size)]), comm.exscan(rank)]
    comm.Sendrecv(own, dest=right, recvbuf=got, source=left)
    found.append(got.copy())
    whole = np.empty(3 * size)
    comm.Allgather(own, whole)
    comm.Allreduce(MPI.IN_PLACE, got, op=MPI.MAX)
    found += [whole, got.copy()]
    part = np.empty(3)
    comm.Reduce_scatter_block(np.arange(3.0 * size), part)
    found.append(part.copy())
    comm.Alltoall(np.arange(2.0 * size) + rank, whole[: 2 * size])
    found.append(whole.copy())
    comm.Bcast(part, root=0)
    rows = comm.Split(rank % 2, rank)
    found += [rows.rank, rows.size, rows.allreduce(rank)]
    status = MPI.Status()
    requests = [comm.isend(rank, dest=right, tag=5), comm.irecv(source=left, tag=5)]
    found.append(MPI.Request.waitall(requests)[1])
    comm.send("for you", dest=right, tag=7)
    comm.Probe(source=left, tag=7, status=status)
    found += [status.Get_source(), status.Get_tag(), comm.recv(source=MPI.ANY_SOURCE, tag=7)]
    request = comm.Iallreduce(own, part)
    while not request.Test():
        pass
    comm.Barrier()
    return [*found, part]


def test_the_calls_that_the_course_teaches_give_what_mpi_gives(four_ranks):
    real, virtual = four_ranks.run(every_call), VirtualRanks(4).run(every_call)
    for rank in range(4):
        for number, (ours, theirs) in enumerate(zip(virtual.results[rank], real.results[rank], strict=True)):
            assert np.allclose(ours, theirs, rtol=1e-15) if isinstance(ours, np.ndarray) else ours == theirs, number
    assert virtual.messages == real.messages and virtual.bytes_per_rank == real.bytes_per_rank


def several_requests(comm):
    from mpi4py import MPI

    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    found, sends = [], [comm.isend((comm.rank, number), dest=right, tag=number) for number in range(6)]
    requests = [comm.irecv(source=left, tag=number) for number in range(6)]
    place, value = MPI.Request.waitany(requests[:1])
    found += [place, value, MPI.Request.Waitany(requests[:1]) == MPI.UNDEFINED]
    places = []
    while (done := MPI.Request.testsome(requests[1:4])[0]) is not None:
        places += done
    found += [sorted(places), MPI.Request.Testany(requests[:4]), MPI.Request.waitsome(requests[:4])]
    while not (last := MPI.Request.testall(requests[4:]))[0]:
        pass
    found += [last[1], MPI.Request.waitall(sends) == [None] * 6]
    return found


def test_several_requests_are_waited_for_as_mpi_does(four_ranks):
    assert VirtualRanks(4).run(several_requests).results == four_ranks.run(several_requests).results


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "recursive doubling", "tree"])
def test_on_a_textbooks_network_the_time_is_that_of_the_formula(algorithm):
    run = VirtualRanks(8, network=TWO).run(sums, ALGORITHMS[algorithm], 800)
    assert math.isclose(run.seconds, allreduce_time(algorithm, 8, 6400, TWO), rel_tol=1e-6)
    assert run.rounds == rounds(algorithm, 8)


def test_the_same_run_twice_is_the_same_in_every_number():
    runs = [VirtualRanks(32, network=TWO).run(sums, ALGORITHMS["ring"]) for _ in range(2)]
    assert runs[0].events == runs[1].events and runs[0].seconds == runs[1].seconds


def test_each_number_can_stand_for_many():
    run = VirtualRanks(256, scale=1000).run(sums, ALGORITHMS["halving-doubling"], 1024)
    assert run.bytes_per_rank == bytes_per_rank("halving-doubling", 256, 1_024_000, 8) and not run.events
    with pytest.raises(CourseError, match="kept up to 64 ranks"):
        _ = run.rounds


def test_who_receives_from_anybody_gets_what_came_first():
    def in_order(comm):
        if comm.rank:
            comm.compute(0.1 * (comm.size - comm.rank))
            comm.send(comm.rank, dest=0)
            return None
        return [comm.recv() for _ in range(comm.size - 1)]

    assert VirtualRanks(6).run(in_order).results[0] == [5, 4, 3, 2, 1]


def test_two_hundred_workers_meet_a_server():
    def server(comm):
        from mpi4py import MPI

        if comm.rank:
            for _ in range(3):
                comm.compute(1e-3 * comm.rank)
                comm.send(comm.rank, dest=0)
                comm.recv(source=0)
            return None
        served, status = [], MPI.Status()
        while len(served) < 3 * (comm.size - 1):
            served.append(comm.recv(source=MPI.ANY_SOURCE, status=status))
            comm.send("weights", dest=status.Get_source())
        return served

    run = VirtualRanks(201).run(server)
    assert run.results[0][0] == 1 and len(run.results[0]) == 600 and run.seconds > 0.6


def waits_for_the_next(comm):
    comm.recv(source=(comm.rank + 1) % comm.size)


def unlike_calls(comm):
    comm.barrier() if comm.rank else comm.bcast(1)


def asks_in_vain(comm):
    while comm.rank == 0 and not comm.Iprobe(source=1):
        pass


def synchronous(comm):
    comm.Ssend(np.zeros(1), dest=1 - comm.rank)
    comm.Recv(np.zeros(1), source=1 - comm.rank)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (waits_for_the_next, "deadlock: rank 0 is waiting for 1, 1 for 0. Rank 0 is waiting in recv(source=1), line "),
        (unlike_calls, "deadlock: collective number 1 is not the same on all ranks"),
        (synchronous, "deadlock: rank 0 is waiting for 1, 1 for 0. Rank 0 is waiting in Ssend(dest=1), line "),
        (asks_in_vain, "Iprobe"),
    ],
)
def test_a_deadlock_is_known_at_once(function, told):
    ranks = VirtualRanks(2)
    with pytest.raises(RankError) as caught:
        ranks.run(function)
    assert told in str(caught.value) and "test_virtual.py" in str(caught.value)


def test_an_error_on_a_rank_is_told_with_its_line():
    def divides(comm):
        return 1 / comm.rank

    with pytest.raises(RankError, match="rank 0 raised ZeroDivisionError: division by zero, line"):
        VirtualRanks(3).run(divides)
    with pytest.raises(RankError, match="there is no rank 9; the ranks are 0 to 2"):
        VirtualRanks(3).run(lambda comm: comm.send(1, dest=9))


def starts_a_thread(comm):
    threading.Thread(target=print).start()


def starts_a_process(comm):
    import subprocess

    subprocess.run(["true"])


def sleeps(comm):
    time.sleep(1)


def reads_a_clock(comm):
    return time.perf_counter()


def calls_the_world(comm):
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()


def sends_in_parts(comm):
    comm.Psend_init(np.zeros(1), 1, dest=0)


def opens_a_window(comm):
    from mpi4py import MPI

    MPI.Win.Allocate(8, comm=comm)


def makes_a_datatype(comm):
    from mpi4py import MPI

    MPI.DOUBLE.Create_contiguous(2).Commit()


def makes_a_datatype_of_others(comm):
    from mpi4py import MPI

    MPI.Datatype.Create_struct([1], [0], [MPI.INT])


def asks_a_request_for_its_number(comm):
    comm.Isend(np.zeros(1), dest=comm.rank).Get_status_any()


def writes_an_error_into_a_status(comm):
    from mpi4py import MPI

    MPI.Status().Set_error(1)


def starts_a_thread_below(comm):
    _thread.start_new_thread(print, ())


def asks_a_pool(comm):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pool.submit(print)


def starts_another_python(comm):
    multiprocessing.get_context("fork").Process(target=print).start()


def looks_at_its_thread(comm):
    return time.thread_time()


def reads_the_date(comm):
    return time.ctime()


def asks_at_the_keyboard(comm):
    return input()


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (starts_a_thread_below, "cannot start a thread"),
        (asks_a_pool, "cannot start a thread"),
        (starts_another_python, "cannot start a process"),
        (looks_at_its_thread, "cannot read a clock"),
        (reads_the_date, "cannot read a clock"),
        (asks_at_the_keyboard, "cannot ask at the keyboard"),
        (starts_a_thread, "cannot start a thread"),
        (starts_a_process, "cannot start a process"),
        (sleeps, "cannot sleep: `comm.compute"),
        (reads_a_clock, "cannot read a clock"),
        (calls_the_world, "have no MPI.COMM_WORLD"),
        (sends_in_parts, "have no comm.Psend_init (line "),
        (opens_a_window, "have no MPI.Win"),
        (makes_a_datatype, "have no MPI.Datatype.Create_contiguous"),
        (makes_a_datatype_of_others, "have no MPI.Datatype.Create_struct"),
        (asks_a_request_for_its_number, "have no MPI.Request.Get_status_any"),
        (writes_an_error_into_a_status, "have no MPI.Status.Set_error"),
    ],
)
def test_what_virtual_ranks_cannot_do_is_said_in_a_line(function, told):
    with pytest.raises(CourseError) as caught:
        VirtualRanks(2).run(function)
    assert told in str(caught.value) and "\n" not in str(caught.value)
    assert time.perf_counter() > 0 and "virtual" not in repr(time.sleep)


def test_what_no_datatype_has_is_an_error_of_the_function():
    def misspells(comm):
        from mpi4py import MPI

        return MPI.DOUBLE.sizze

    with pytest.raises(RankError, match="both ranks .* MPI.Datatype has no attribute 'sizze'. Did you mean"):
        VirtualRanks(2).run(misspells)


def test_what_no_communicator_has_is_an_error_of_the_function():
    with pytest.raises(
        RankError, match="both ranks raised AttributeError: comm has no attribute 'sned'. Did you mean 'send'"
    ):
        VirtualRanks(2).run(lambda comm: comm.sned(1))


@pytest.mark.parametrize("ranks", [VirtualRanks(2), WorkerVirtualRanks(2)])
def test_a_group_of_torch_is_rejected(ranks):
    with pytest.raises(CourseError, match="have no group of torch.distributed"):
        ranks.attempt(print, [(), ()], backend="gloo")


def test_a_real_communicator_that_a_module_has_is_not_called(monkeypatch):
    real, world = types.ModuleType("mpi4py.MPI"), object()
    real.COMM_WORLD = world
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", real)
    monkeypatch.setattr(sys.modules[__name__], "loaded", real, raising=False)
    with pytest.raises(CourseError, match="have no MPI.COMM_WORLD: use the `comm`"):
        VirtualRanks(2).run(asks_the_real_world)
    assert real.COMM_WORLD is world


def asks_the_real_world(comm):
    return sys.modules[__name__].loaded.COMM_WORLD.rank


def adds(comm, way):
    vector, other = np.ones(1000), np.ones(1000)
    if way == "in place":
        vector += other
    elif way == "into":
        np.add(vector, other, out=vector)
    elif way == "anew":
        vector = vector + other
    elif way == "said":
        vector += other
        comm.compute(1e-9 * vector.nbytes)
    elif way == "by MPI":
        comm.Reduce(vector, other, root=0)


def test_adding_costs_nothing_however_it_is_written_but_what_is_said_and_what_mpi_adds():
    free, adding = (VirtualRanks(2, network=Network(0.0, 0.0, gamma=gamma)) for gamma in (0.0, 1e-9))
    times = {way: adding.run(adds, way).seconds for way in ("in place", "into", "anew", "said", "by MPI")}
    assert times["in place"] == times["into"] == times["anew"] == 0
    assert times["said"] == times["by MPI"] == pytest.approx(8e-6)
    assert free.run(adds, "by MPI").seconds == 0


def test_a_rank_has_copies_of_its_own_and_prints_with_its_number(capsys):
    given = np.zeros(3)

    def writes(comm, vector):
        vector += comm.rank
        print("here")
        return vector.sum()

    assert VirtualRanks(3).run(writes, given).results == [0, 3, 6] and not given.any()
    assert capsys.readouterr().out == "[rank 0] here\n[rank 1] here\n[rank 2] here\n"


def test_start_says_what_there_is_and_what_too_much_would_take(capsys):
    ranks = course.start(1024, where="nowhere", link="50 Mbit/s", latency="3 ms")
    out = " ".join(capsys.readouterr().out.split())
    assert "1,024 virtual ranks in this kernel, no process and no network: each behind a link of 50 Mbit/s" in out
    assert ranks.run(lambda comm: comm.rank, ranks=2).results == [0, 1]
    with pytest.raises(CourseError, match="100,000 virtual ranks would take"):
        course.start(100_000, where="nowhere")
    with pytest.raises(CourseError, match="is unknown. For virtual ranks there are: network, scale"):
        course.start(4, where="nowhere", nodes=2)
    with pytest.raises(CourseError, match="is not a network: give a Network"):
        course.start(4, where="nowhere", network=3)
    with pytest.raises(CourseError, match="make it for as many"):
        course.start(4, where="nowhere", network=switch(8, 1e-6, 1e-9))


def test_a_ring_on_links_is_drawn(tmp_path):
    ranks = VirtualRanks(4, network=switch(4, 1e-3, 1e-6))
    ranks.run(sums, ALGORITHMS["ring"])
    assert "rank" in ranks.timeline("a ring").alt_text
    assert ranks.traffic().sent == bytes_per_rank("ring", 4, 1001, 8)


# --- who does not leave, and who has not begun ------------------------------------------------------------------------


def catches_everything(comm):
    while True:
        try:
            return comm.recv(source=(comm.rank + 1) % comm.size)
        except BaseException:
            continue


def test_a_rank_that_catches_everything_does_not_hold_up_the_notebook() -> None:
    with pytest.raises(
        RankError, match=r"^deadlock: rank 0 is waiting for 1, 1 for 0\. Rank 0 is waiting in recv\(source=1\)"
    ):
        VirtualRanks(2).run(catches_everything)


def interrupts_the_first(comm):
    if comm.rank == 0:
        raise KeyboardInterrupt


def test_stop_in_the_first_rank_is_told_though_the_others_have_not_begun() -> None:
    with pytest.raises(RankError, match=r"^stopped by you\. Rank 0 was computing at line \d+"):
        VirtualRanks(3).run(interrupts_the_first)
