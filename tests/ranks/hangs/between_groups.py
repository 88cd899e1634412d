"""Inter-communicators: collectives of two groups, for which both groups have to come.

MPI 4.1, section 6.2.2. Written from the ideas; none is copied.
"""

import numpy as np
from mpi4py import MPI


def bridge_between_halves(comm):
    """The ranks of the lower and those of the upper half of a communicator, bound together."""
    half = comm.size // 2
    low = comm.rank < half
    own = comm.Split(0 if low else 1, comm.rank)
    return low, own, own.Create_intercomm(0, comm, half if low else 0, tag=5)


def only_the_left_half_sums(comm):
    """Each half gets the other's sum, and the right half does not come.

    Finding: deadlock
    Words: allreduce, 0, 1
    Ranks: 4
    """
    low, _, bridge = bridge_between_halves(comm)
    if low:
        bridge.allreduce(comm.rank)  # here


def one_rank_stays_away_from_the_barrier(comm):
    """Rank 3 does not come to the barrier of both halves.

    Finding: deadlock
    Words: Barrier, 3
    Ranks: 4
    """
    _, _, bridge = bridge_between_halves(comm)
    if comm.rank != 3:
        bridge.Barrier()  # here


def one_half_sums_and_the_other_gathers(comm):
    """The halves call different collectives.

    Finding: deadlock
    Words: Allreduce, Allgather
    Ranks: 4
    """
    low, _, bridge = bridge_between_halves(comm)
    numbers = np.zeros(2)
    if low:
        bridge.Allreduce(np.ones(2), numbers)  # here
    else:
        bridge.Allgather(np.ones(1), numbers)  # here


def nobody_is_the_root(comm):
    """On the sender's side too root=0 is given in place of MPI.ROOT.

    Finding: deadlock
    Words: bcast, 0, 2
    Ranks: 4
    """
    _, _, bridge = bridge_between_halves(comm)
    bridge.bcast("news" if comm.rank == 0 else None, root=0)  # here


def the_right_half_receives_first_and_the_left_half_too(comm):
    """Pairs over the bridge, and both ends receive.

    Finding: deadlock
    Words: recv, 0, 2
    Ranks: 4
    """
    _, own, bridge = bridge_between_halves(comm)
    bridge.recv(source=own.rank)  # here
    bridge.send("late", dest=own.rank)


def wait_for_a_sum_that_one_half_did_not_begin(comm):
    """The nonblocking form: the left half waits.

    Finding: deadlock
    Words: Iallreduce, 0, 1
    Ranks: 4
    """
    low, _, bridge = bridge_between_halves(comm)
    total = np.zeros(1)
    if low:
        bridge.Iallreduce(np.ones(1), total).Wait()  # here
    else:
        comm.recv(source=0)  # here


def copy_of_the_bridge_made_by_one_half(comm):
    """Dup needs both halves.

    Finding: deadlock
    Words: Dup, 2, 3
    Ranks: 4
    """
    low, _, bridge = bridge_between_halves(comm)
    if not low:
        bridge.Dup().Free()  # here


def workers_wait_for_their_executor(comm):
    """Rank 3 does not enter the executor's block, for which all ranks are needed.

    Finding: deadlock
    Words: Create, 3
    Ranks: 4
    """
    from mpi4py.futures import MPICommExecutor

    if comm.rank == 3:
        return
    with MPICommExecutor(comm, root=0) as executor:  # here
        if executor is not None:
            list(executor.map(abs, range(3)))


def all_collectives_of_two_halves(comm):
    """Both halves come to each.

    Finding: correct
    Ranks: 4
    """
    low, own, bridge = bridge_between_halves(comm)
    other = 2 if low else 0
    bridge.Barrier()
    bridge.barrier()
    assert bridge.allreduce(comm.rank) == 2 * other + 1
    assert bridge.allgather(comm.rank) == [other, other + 1]
    assert bridge.alltoall([f"{comm.rank} to 0", f"{comm.rank} to 1"]) == [
        f"{other + rank} to {own.rank}" for rank in range(2)
    ]
    numbers = np.empty(2, dtype=int)
    bridge.Allgather(np.array([comm.rank]), numbers)
    assert list(numbers) == [other, other + 1]
    total = np.empty(1, dtype=int)
    bridge.Iallreduce(np.array([comm.rank]), total).Wait()
    assert total[0] == 2 * other + 1
    if low:
        root = MPI.ROOT if comm.rank == 1 else MPI.PROC_NULL
        bridge.bcast({"from": 1}, root=root)
        bridge.scatter(["a", "b"] if comm.rank == 1 else None, root=root)
        gathered = bridge.gather(None, root=root)
        assert gathered == ([2, 3] if comm.rank == 1 else None)
        summed = bridge.reduce(None, root=root)
        assert summed == (5 if comm.rank == 1 else None)
        bridge.Bcast(np.arange(3), root=root)
        bridge.Reduce(None, total, root=root)
        assert comm.rank == 0 or total[0] == 5
    else:
        assert bridge.bcast(None, root=1) == {"from": 1}
        assert bridge.scatter(None, root=1) == "ab"[own.rank]
        bridge.gather(comm.rank, root=1)
        bridge.reduce(comm.rank, root=1)
        three = np.zeros(3, dtype=int)
        bridge.Bcast(three, root=1)
        assert list(three) == [0, 1, 2]
        bridge.Reduce(np.array([comm.rank]), None, root=1)
    copy = bridge.Dup()
    copy.Barrier()
    copy.Free()
    bridge.Free()


def work_is_shared_out_by_an_executor(comm):
    """Two executors, one after the other; an error of a worker arrives where its result is asked for.

    Finding: correct
    Ranks: 4
    """
    from mpi4py.futures import MPICommExecutor

    for _ in range(2):
        with MPICommExecutor(comm, root=0) as executor:
            if executor is not None:
                assert list(executor.map(abs, range(-9, 0))) == list(range(9, 0, -1))
                failed = executor.submit(divmod, 1, 0)
                assert isinstance(failed.exception(), ZeroDivisionError)
    assert comm.allreduce(1) == 4


def executor_with_its_root_in_the_middle(comm):
    """The executor's root is rank 2, and its tasks take a while.

    Finding: correct
    Ranks: 4
    """
    import time

    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor(comm, root=2) as executor:
        if executor is not None:
            for future in [executor.submit(time.sleep, 0.5) for _ in range(6)]:
                future.result()


def pieces_of_a_communicator_come_home(comm):
    """A communicator is copied without waiting, and is used after the wait; then it is split by machine.

    Finding: correct
    Ranks: 3
    """
    copy, request = comm.Idup()
    total = comm.allreduce(comm.rank)
    request.Wait()
    assert copy.allreduce(comm.rank) == total
    node = copy.Split_type(MPI.COMM_TYPE_SHARED)
    assert node.size == 3
    node.Disconnect()
    copy.Free()
