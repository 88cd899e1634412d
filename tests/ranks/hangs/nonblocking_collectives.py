"""Nonblocking collectives: never waited for, started in another order, or read and changed too early.

In the MPI Bugs Initiative: "Request life cycle", "Local concurrency" and "Call ordering" of nonblocking collectives;
the same classes are in MPI-BugBench and MPI-CorrBench. Written from the ideas; none is copied.
"""

import time

import numpy as np
from mpi4py import MPI


def ibarrier_never_waited_for(comm):
    """The Barrier is started, the program goes on as if it had passed it, and nobody waits for the request.

    Finding: luck
    Words: Ibarrier
    """
    comm.Ibarrier()  # here
    comm.allgather(comm.rank)


def sum_read_before_wait(comm):
    """The mean is computed from the result of Iallreduce before Wait.

    Finding: luck
    Words: Iallreduce
    Ranks: 3
    """
    total = np.zeros(1)
    request = comm.Iallreduce(np.array([comm.rank + 1.0]), total)  # here
    mean = total[0] / comm.size  # here
    request.Wait()
    return mean


def started_in_opposite_orders(comm):
    """Rank 0 starts the sum and then the gather, rank 1 the gather and then the sum: the numbers get mixed up.

    Finding: luck
    Words: Iallreduce, Iallgather, 0, 1
    """
    mine, total, table = np.ones(2), np.zeros(2), np.zeros((2, 2))
    if comm.rank == 0:
        requests = [comm.Iallreduce(mine, total), comm.Iallgather(mine, table)]  # here
    else:
        requests = [comm.Iallgather(mine, table), comm.Iallreduce(mine, total)]  # here
    MPI.Request.Waitall(requests)


def wait_for_a_barrier_nobody_else_starts(comm):
    """Only the ranks that have finished start Ibarrier, and rank 2 never calls itself finished.

    Finding: deadlock
    Words: Wait, Ibarrier, 2
    Ranks: 3
    """
    finished = [True, True, False]
    if finished[comm.rank]:
        request = comm.Ibarrier()  # here
        time.sleep(0.05)
        request.Wait()  # here


def polling_for_a_rank_that_does_not_come(comm):
    """Rank 1 asks again and again whether all are there; rank 0 went on without Ibarrier.

    Finding: deadlock
    Words: Ibarrier, 1
    """
    steps = 0
    if comm.rank == 1:
        request = comm.Ibarrier()  # here
        while not request.Test():  # here
            steps += 1
            time.sleep(0.01)  # here


def iallreduce_meets_allreduce(comm):
    """Rank 0 was made faster with Iallreduce, rank 1 still has Allreduce; MPI does not match the two.

    Finding: deadlock
    Words: Iallreduce, Allreduce
    """
    part, total = np.full(4, comm.rank + 1.0), np.zeros(4)
    if comm.rank == 0:
        request = comm.Iallreduce(part, total)
        part_of_the_inside = sum(range(1000))
        request.Wait()  # here
        return part_of_the_inside
    comm.Allreduce(part, total)  # here


def barrier_waited_for_before_the_message_is_sent(comm):
    """Rank 0 waits for Ibarrier before it sends; rank 1 wants the message before it starts Ibarrier.

    Finding: deadlock
    Words: Wait, Recv, 0, 1
    """
    note = np.zeros(3, dtype="i4")
    if comm.rank == 0:
        comm.Ibarrier().Wait()  # here
        comm.Send(note, dest=1, tag=2)
    else:
        comm.Recv(note, source=0, tag=2)  # here
        comm.Ibarrier().Wait()


def root_changes_the_buffer_under_way(comm):
    """The root writes the next step into the buffer while Ibcast may still read it.

    Finding: luck
    Words: Ibcast, 0
    Ranks: 3
    """
    state = np.zeros(4)
    for step in range(3):
        if comm.rank == 0:
            state[:] = step
        request = comm.Ibcast(state, root=0)  # here
        if comm.rank == 0:
            state += 1  # here
        request.Wait()


def two_sums_into_one_buffer(comm):
    """Two Iallreduce are under way at once and both write into the same array.

    Finding: luck
    Words: Iallreduce
    """
    result = np.zeros(1)
    requests = [comm.Iallreduce(np.array([float(n)]), result) for n in (comm.rank, 10)]  # here
    MPI.Request.Waitall(requests)


def gather_and_ibarrier_in_opposite_orders(comm):
    """Rank 0 gathers before it starts Ibarrier, rank 1 starts Ibarrier and waits for it at once.

    Finding: deadlock
    Words: Ibarrier, allgather
    """
    if comm.rank == 0:
        comm.allgather("a")  # here
        comm.Ibarrier().Wait()
    else:
        comm.Ibarrier().wait()  # here
        comm.allgather("b")


def work_while_the_sum_is_under_way(comm):
    """The inside is computed between Iallreduce and Wait, and the result is read after Wait.

    Finding: correct
    Ranks: 3
    """
    norm, total = np.array([comm.rank + 0.5]), np.zeros(1)
    request = comm.Iallreduce(norm, total)
    inside = np.arange(100.0).sum()
    request.Wait()
    assert total[0] == 4.5 and inside == 4950


def waited_for_in_opposite_orders(comm):
    """Both ranks start the sum and then the gather; the order of waiting is free, as nonblocking calls go on.

    Finding: correct
    """
    mine, total, table = np.ones(2), np.zeros(2), np.zeros((2, 2))
    requests = [comm.Iallreduce(mine, total), comm.Iallgather(mine, table)]
    for request in requests if comm.rank == 0 else reversed(requests):
        request.Wait()
    assert total.sum() == 4 and table.sum() == 4


def messages_of_unknown_number_until_all_are_done(comm):
    """Messages are taken with Iprobe until Ibarrier says that every synchronous send has arrived.

    Finding: correct
    Ranks: 3
    """
    sends = [comm.issend(comm.rank, dest=other, tag=5) for other in range(comm.rank)]
    barrier, got = None, []
    while barrier is None or not barrier.Test():
        if comm.Iprobe(tag=5):
            got.append(comm.recv(tag=5))
        if barrier is None and MPI.Request.testall(sends)[0]:
            barrier = comm.Ibarrier()
    assert sorted(got) == list(range(comm.rank + 1, comm.size))


def two_buffers_in_turn(comm):
    """Step n is broadcast from one buffer while the root fills the other; each is waited for before it is used again.

    Finding: correct
    """
    buffers, requests = [np.zeros(3), np.zeros(3)], [MPI.REQUEST_NULL, MPI.REQUEST_NULL]
    for step in range(5):
        slot = step % 2
        requests[slot].Wait()
        if comm.rank == 0:
            buffers[slot][:] = step
        requests[slot] = comm.Ibcast(buffers[slot], root=0)
    MPI.Request.Waitall(requests)
    assert buffers[0][0] == 4 and buffers[1][0] == 3
