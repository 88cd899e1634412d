"""One-sided communication: windows, fences, locks and post/start/complete/wait that do not fit together.

In the MPI Bugs Initiative: "Epoch life cycle", "Local concurrency" and "Global concurrency" of remote memory access;
in MPI-BugBench and MPI-CorrBench the classes on RMA. Written from the ideas; none is copied.
"""

import numpy as np
from mpi4py import MPI


def closing_fence_only_where_put_is(comm):
    """Rank 0 closes the epoch in its own branch; rank 1 goes straight on to the Barrier.

    Finding: deadlock
    Words: Fence, Barrier, 0, 1
    """
    board = np.zeros(4)
    win = MPI.Win.Create(board, comm=comm)
    win.Fence()
    if comm.rank == 0:
        win.Put(np.ones(4), 1)
        win.Fence()  # here
    comm.Barrier()  # here
    win.Free()


def window_made_by_the_owner_only(comm):
    """Only rank 0 has memory to offer, and only rank 0 calls Create; it is a collective call.

    Finding: deadlock
    Words: Create, 0
    """
    if comm.rank == 0:
        counters = np.zeros(8, dtype="i8")
        win = MPI.Win.Create(counters, counters.itemsize, comm=comm)  # here
        win.Free()


def lock_kept_through_a_barrier(comm):
    """Rank 0 keeps the exclusive lock while it waits in Barrier, rank 1 wants the lock before it comes there.

    Finding: deadlock
    Words: Barrier, Unlock, 0, 1
    """
    win = MPI.Win.Allocate(8, 8, comm=comm)
    old = np.zeros(1)
    if comm.rank == 0:
        win.Lock(0, MPI.LOCK_EXCLUSIVE)
        win.Get(old, 0)
        win.Flush(0)
    comm.Barrier()
    if comm.rank == 1:
        win.Lock(0, MPI.LOCK_EXCLUSIVE)  # here
        win.Put(np.array([6.0]), 0)
        win.Unlock(0)  # here
    comm.Barrier()  # here
    if comm.rank == 0:
        win.Unlock(0)
    win.Free()


def two_locks_in_opposite_orders(comm):
    """Each rank holds the lock of its own memory and wants that of the other as well.

    Finding: deadlock
    Words: Flush, 0, 1
    """
    win = MPI.Win.Allocate(16, 8, comm=comm)
    value = np.array([float(comm.rank)])
    win.Lock(comm.rank, MPI.LOCK_EXCLUSIVE)
    win.Put(value, comm.rank)
    win.Flush(comm.rank)
    comm.Barrier()
    win.Lock(1 - comm.rank, MPI.LOCK_EXCLUSIVE)  # here
    win.Put(value, 1 - comm.rank)
    win.Flush(1 - comm.rank)  # here
    win.Unlock(1 - comm.rank)
    win.Unlock(comm.rank)
    win.Free()


def origin_wants_an_answer_before_complete(comm):
    """Rank 0 waits for an answer before it calls Complete; rank 1 gives it only after Wait, which waits for Complete.

    Finding: deadlock
    Words: Wait, recv, 0, 1
    """
    cells = np.zeros(3)
    win = MPI.Win.Create(cells, cells.itemsize, comm=comm)
    other = comm.group.Incl([1 - comm.rank])
    if comm.rank == 1:
        win.Post(other)
        win.Wait()  # here
        comm.send("got it", dest=0)
    else:
        win.Start(other)
        win.Put(np.full(3, 2.5), 1)
        comm.recv(source=1)  # here
        win.Complete()


def post_names_the_wrong_rank(comm):
    """Rank 0 opens its window for rank 2, but rank 1 is the one that wants to put.

    Finding: deadlock
    Words: Post, Complete, 1
    Ranks: 3
    """
    cells = np.zeros(3)
    win = MPI.Win.Create(cells, cells.itemsize, comm=comm)
    if comm.rank == 0:
        win.Post(comm.group.Incl([2]))  # here
        win.Wait()  # here
    elif comm.rank == 1:
        win.Start(comm.group.Incl([0]))  # here
        win.Put(cells, 0)
        win.Complete()  # here
    win.Free()


def one_more_fence_per_step_on_rank_2(comm):
    """Rank 2 takes four steps, the others three; each step ends with Fence, and then comes Free.

    Finding: deadlock
    Words: Fence, 2
    Ranks: 3
    """
    win = MPI.Win.Allocate(8, comm=comm)
    win.Fence()
    for step in range(4 if comm.rank == 2 else 3):
        win.Accumulate(np.array([step], dtype="i8"), 0)
        win.Fence()  # here
    comm.Barrier()  # here
    win.Free()


def result_of_get_read_before_the_fence(comm):
    """The buffer of Get is read while the epoch is still open.

    Finding: luck
    Words: Get, 1
    """
    table = np.arange(5.0) if comm.rank == 0 else np.empty(0)
    win = MPI.Win.Create(table, 8, comm=comm)
    copy = np.zeros(5)
    win.Fence()
    if comm.rank == 1:
        win.Get(copy, 0)  # here
        copy.sum()  # here
    win.Fence()
    win.Free()


def two_ranks_put_into_the_same_place(comm):
    """Ranks 1 and 2 put different values into the same place in one epoch; which one stays is open.

    Finding: luck
    Words: Put, 1, 2
    Ranks: 3
    """
    best = np.zeros(1)
    win = MPI.Win.Create(best, 8, comm=comm)
    win.Fence()
    if comm.rank > 0:
        win.Put(np.array([comm.rank * 1.5]), 0)  # here
    win.Fence()
    win.Free()


def counter_read_and_written_in_two_steps(comm):
    """Get under one lock, Put under another: between the two another rank may have counted.

    Finding: luck
    Words: Put, Get
    """
    win = MPI.Win.Allocate(8, 8, comm=comm)
    if comm.rank == 0:
        win.tomemory().cast("B")[:] = bytes(8)
    comm.Barrier()
    count = np.zeros(1, dtype="i8")
    for _ in range(5):
        win.Lock(0, MPI.LOCK_SHARED)
        win.Get(count, 0)  # here
        win.Unlock(0)
        count += 1
        win.Lock(0, MPI.LOCK_SHARED)
        win.Put(count, 0)  # here
        win.Unlock(0)
    win.Free()


def put_outside_of_any_epoch(comm):
    """Put is called before the first Fence and without a lock.

    Finding: error
    Words: Put, 0
    """
    win = MPI.Win.Create(np.zeros(2), 8, comm=comm)
    if comm.rank == 0:
        win.Put(np.ones(2), 1)  # here
    win.Fence()
    win.Free()


def locked_twice_without_unlock(comm):
    """Rank 1 locks the memory of rank 0 in each step, but unlocks it only after the loop.

    Finding: error
    Words: Lock, 1
    """
    win = MPI.Win.Allocate(32, 8, comm=comm)
    if comm.rank == 1:
        for step in range(2):
            win.Lock(0)  # here
            win.Put(np.full(4, float(step)), 0)
        win.Unlock(0)
    win.Free()


def ring_of_puts_between_fences(comm):
    """Each rank puts into its right neighbour and reads its own memory after the closing Fence.

    Finding: correct
    Ranks: 3
    """
    mine = np.full(2, -1.0)
    win = MPI.Win.Create(mine, mine.itemsize, comm=comm)
    win.Fence()
    win.Put(np.full(2, float(comm.rank)), (comm.rank + 1) % comm.size)
    win.Fence()
    assert mine[0] == (comm.rank - 1) % comm.size
    win.Free()


def all_ranks_accumulate_into_the_same_place(comm):
    """Accumulate, other than Put, may meet others in the same place; the sum is whole after the Fence.

    Finding: correct
    Ranks: 3
    """
    histogram = np.zeros(3, dtype="i4")
    win = MPI.Win.Create(histogram, 4, comm=comm)
    win.Fence()
    win.Accumulate(np.array([1, comm.rank, 2], dtype="i4"), 0, op=MPI.SUM)
    win.Fence()
    if comm.rank == 0:
        assert list(histogram) == [3, 3, 6]
    win.Free()


def shared_counter_with_fetch_and_op(comm):
    """The next task comes from Fetch_and_op under a lock: each number is given once; a Barrier ends it.

    Finding: correct
    """
    win = MPI.Win.Allocate(8, 8, comm=comm)
    if comm.rank == 0:
        win.Lock(0)
        win.Put(np.zeros(1, dtype="i8"), 0)
        win.Unlock(0)
    comm.Barrier()
    one, task = np.ones(1, dtype="i8"), np.zeros(1, dtype="i8")
    while task[0] < 6:
        win.Lock(0, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, task, 0)
        win.Unlock(0)
    win.Free()


def both_post_and_start(comm):
    """Each rank posts for the other, starts, puts, completes and waits: the order is the same on both.

    Finding: correct
    """
    edge, ghost = np.full(2, 5.0 + comm.rank), np.zeros(2)
    win = MPI.Win.Create(ghost, 8, comm=comm)
    other = comm.group.Incl([1 - comm.rank])
    win.Post(other)
    win.Start(other)
    win.Put(edge, 1 - comm.rank)
    win.Complete()
    win.Wait()
    assert ghost[1] == 6 - comm.rank
    win.Free()


def lock_released_before_the_barrier(comm):
    """Rank 0 unlocks before the Barrier, rank 1 locks after it and reads what was put.

    Finding: correct
    """
    win = MPI.Win.Allocate(8, 8, comm=comm)
    if comm.rank == 0:
        win.Lock(1, MPI.LOCK_EXCLUSIVE)
        win.Put(np.array([6.5]), 1)
        win.Unlock(1)
    comm.Barrier()
    if comm.rank == 1:
        value = np.zeros(1)
        win.Lock(1, MPI.LOCK_SHARED)
        win.Get(value, 1)
        win.Unlock(1)
        assert value[0] == 6.5
    win.Free()


def barrier_begun_before_the_fence_on_one_rank_and_after_it_on_the_other(comm):
    """A nonblocking barrier and a fence may begin in any order: the window is not the communicator.

    Finding: correct
    """
    win = MPI.Win.Create(np.zeros(2), 8, comm=comm)
    if comm.rank == 0:
        request = comm.Ibarrier()
        win.Fence()
    else:
        win.Fence()
        request = comm.Ibarrier()
    request.Wait()
    win.Free()
