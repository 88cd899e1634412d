"""Inter-communicators, which join two groups of ranks, processes that ranks spawn, and mpi4py's pool of ranks."""

import operator
import sys
import time

import numpy as np
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

CHILD = "import signal, time; signal.alarm(40); from mpi4py import MPI; parent = MPI.Comm.Get_parent(); "
"""How a spawned program begins, in one line: it knows its parent, and ends after some time whatever happens."""


def _bridge(comm):
    """The even ranks and the odd ones, and what joins the two sides."""
    side = comm.Split(comm.rank % 2, comm.rank)
    return side, side.Create_intercomm(0, comm, 1 - comm.rank % 2)


def _spawn(comm, code):
    return comm.Spawn(sys.executable, ["-c", CHILD + code], maxprocs=1)


def barrier_on_one_side_only(comm):
    """The even ranks wait for the odd ones in a barrier over both sides, and the odd ranks return.

    Finding: deadlock
    Ranks: 4
    Words: Barrier, 0, 2
    Unsaid: computes, computing
    """
    side, both = _bridge(comm)
    if comm.rank % 2 == 0:
        both.Barrier()  # here
    side.Barrier()


def sum_of_the_other_side_wanted_by_one_side(comm):
    """allreduce gives each side the sum of the other, and only the odd ranks want it.

    Finding: deadlock
    Ranks: 4
    Words: allreduce, 1, 3
    Unsaid: computes, computing
    """
    side, both = _bridge(comm)
    if comm.rank % 2 == 1:
        both.allreduce(comm.rank)  # here
    comm.barrier()  # here


def root_0_on_both_sides(comm):
    """Both sides say root=0, which means that both receive; the root itself should say MPI.ROOT.

    Finding: deadlock
    Ranks: 4
    Words: bcast
    """
    side, both = _bridge(comm)
    text = "hello" if comm.rank == 0 else None
    both.bcast(text, root=0)  # here


def number_in_the_world_used_across(comm):
    """The odd ranks send to their partners across, and rank 2 takes the wrong number for that of its partner.

    Finding: deadlock
    Ranks: 4
    Words: recv, 2
    """
    side, both = _bridge(comm)
    if comm.rank % 2 == 1:
        both.send("for my partner", dest=side.rank)
    else:
        both.recv(source=0)  # here


def child_leaves_without_an_answer(comm):
    """The spawned program disconnects at once, and its parent waits for a result.

    Finding: deadlock
    Words: recv, 0
    Unsaid: computes, computing
    """
    child = _spawn(comm, "parent.Disconnect()")
    if comm.rank == 0:
        child.recv(source=0)  # here
    comm.barrier()  # here
    child.Disconnect()


def spawned_by_rank_0_only(comm):
    """Rank 0 spawns a helper alone, on the communicator of all.

    Finding: deadlock
    Words: Spawn, 0
    """
    if comm.rank == 0:
        helper = _spawn(comm, "parent.Disconnect()")  # here
        helper.Disconnect()
    comm.barrier()  # here


def one_rank_does_not_enter_the_pool(comm):
    """Ranks lend themselves to a pool, and rank 3 returns before it gets there.

    Finding: deadlock
    Ranks: 4
    Words: 3
    """
    if comm.rank == 3:
        return
    with MPICommExecutor(comm, root=0) as pool:  # here
        if pool is not None:
            list(pool.map(abs, [-1, -2]))


def task_in_the_pool_divides_by_zero(comm):
    """A task fails, and the rank that asks for its result hears of it.

    Finding: error
    Ranks: 3
    Words: ZeroDivisionError, 0
    """
    with MPICommExecutor(comm, root=0) as pool:
        if pool is not None:
            list(pool.map(operator.truediv, [1, 1, 1], [2, 1, 0]))  # here


def barrier_with_the_late_side(comm):
    """Both sides meet in a barrier, the odd ranks a second and a half later.

    Finding: correct
    Ranks: 4
    """
    side, both = _bridge(comm)
    if comm.rank % 2:
        time.sleep(1.5)
    both.Barrier()
    both.Free()
    side.Free()


def each_side_learns_the_sum_of_the_other(comm):
    """allreduce over both sides: the sum of the even ranks goes to the odd ones, and the other way round.

    Finding: correct
    Ranks: 4
    """
    side, both = _bridge(comm)
    assert both.allreduce(comm.rank) == (2 if comm.rank % 2 else 4)
    total = np.empty(2)
    both.Allreduce(np.full(2, comm.rank + 1.0), total)
    assert total[0] == (4.0 if comm.rank % 2 else 6.0)
    both.Free()
    side.Free()


def one_rank_tells_the_other_side(comm):
    """Rank 0 is the root and says MPI.ROOT, its neighbours on its side MPI.PROC_NULL, the other side its number.

    Finding: correct
    Ranks: 4
    """
    side, both = _bridge(comm)
    if comm.rank == 0:
        both.bcast("hello", root=MPI.ROOT)
    elif comm.rank == 2:
        both.bcast(None, root=MPI.PROC_NULL)
    else:
        assert both.bcast(None, root=0) == "hello"
    both.Free()
    side.Free()


def partners_across_exchange(comm):
    """Each rank exchanges with the rank of the same number on the other side.

    Finding: correct
    Ranks: 4
    """
    side, both = _bridge(comm)
    assert both.sendrecv(comm.rank, dest=side.rank, source=side.rank) == comm.rank + (-1 if comm.rank % 2 else 1)
    both.Free()
    side.Free()


def child_answers_after_a_second(comm):
    """The spawned program takes a second for its answer, and all disconnect together.

    Finding: correct
    """
    child = _spawn(comm, "time.sleep(1); parent.send(sum(parent.recv(source=0)), dest=0); parent.Disconnect()")
    if comm.rank == 0:
        child.send([1, 2, 3], dest=0)
        assert child.recv(source=0) == 6
    child.Disconnect()


def rank_0_is_done_with_each_child_at_once(comm):
    """Four programs one after the other; each ends as soon as rank 0 has told it to, whatever rank 1 does meanwhile.

    Finding: correct
    """
    for _ in range(4):
        child = _spawn(comm, "parent.recv(source=0); parent.Disconnect()")
        if comm.rank == 0:
            child.send("end", dest=0)
        child.Disconnect()


def each_rank_spawns_a_helper(comm):
    """Each rank spawns a helper of its own, on MPI.COMM_SELF, and sums with it.

    Finding: correct
    """
    helper = _spawn(MPI.COMM_SELF, "parent.allreduce(5); parent.Disconnect()")
    assert helper.allreduce(0) == 5
    helper.Disconnect()


def pool_of_ranks_squares(comm):
    """The ranks lend themselves to a pool, which rank 0 uses; one of the tasks is slow.

    Finding: correct
    Ranks: 4
    """
    with MPICommExecutor(comm, root=0) as pool:
        if pool is not None:
            pause = pool.submit(time.sleep, 1.0)
            assert list(pool.map(operator.mul, range(6), range(6))) == [0, 1, 4, 9, 16, 25]
            pause.result()


def pool_entered_twice(comm):
    """Two pools one after the other, the second with submit, and a sum of all ranks after them.

    Finding: correct
    Ranks: 3
    """
    for _ in range(2):
        with MPICommExecutor(comm, root=0) as pool:
            if pool is not None:
                futures = [pool.submit(pow, 2, exponent) for exponent in range(4)]
                assert [future.result() for future in futures] == [1, 2, 4, 8]
        assert comm.allreduce(1) == 3
