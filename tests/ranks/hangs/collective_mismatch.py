"""Collectives that do not match: another call, order, root, operation or count, or a rank that does not come.

The class is called "Call ordering" and "Parameter matching" in the MPI Bugs Initiative, "mismatched collectives" in
MPI-BugBench and MPI-CorrBench. The programs are written from these ideas; none is copied.
"""

import numpy as np
from mpi4py import MPI


def barrier_only_where_the_log_is_written(comm):
    """Only rank 0 writes the log, and the Barrier slipped into its branch.

    Finding: deadlock
    Words: Barrier, 0
    """
    steps = comm.reduce(comm.rank + 10, root=0)
    if comm.rank == 0:
        log = [f"{steps} steps"]
        log.append("all done")
        comm.Barrier()  # here


def allgather_and_allreduce_in_opposite_orders(comm):
    """Rank 0 sums first and collects the names second, the others do it the other way round.

    Finding: deadlock
    Words: Allreduce, Allgather, 0
    Ranks: 3
    """
    mine = np.array([comm.rank + 1.0])
    total = np.zeros(1)
    everyone = np.zeros(comm.size)
    if comm.rank == 0:
        comm.Allreduce(mine, total)  # here
        comm.Allgather(mine, everyone)
    else:
        comm.Allgather(mine, everyone)  # here
        comm.Allreduce(mine, total)


def every_rank_thinks_it_is_the_root_of_gather(comm):
    """Each rank gives its own number as the root, so each waits for the part of the other.

    Finding: deadlock
    Words: gather, 0, 1
    Ranks: 3
    """
    me = comm.Get_rank()
    squares = [n * n for n in range(me, me + 3)]
    parts = comm.gather(squares, root=me)  # here
    if me == 0:
        sum(map(sum, parts))


def every_rank_broadcasts_its_own_seed(comm):
    """Each rank is the root of its own bcast: nobody receives, and the seeds stay different.

    Finding: luck
    Words: bcast, 0, 1
    """
    seed = 1000 + comm.rank
    seed = comm.bcast(seed, root=comm.rank)  # here
    np.random.default_rng(seed).random(3)


def rank_1_wants_the_maximum_the_others_the_sum(comm):
    """The operation of Allreduce depends on the rank; every rank gets some number.

    Finding: luck
    Words: Allreduce, 1
    Ranks: 3
    """
    op = MPI.MAX if comm.rank == 1 else MPI.SUM
    load = np.array([3, 5, 7], dtype="i4") * comm.rank
    answer = np.empty(3, dtype="i4")
    comm.Allreduce(load, answer, op=op)  # here


def buffer_of_bcast_too_short_on_rank_1(comm):
    """The root sends twelve numbers, the other rank has room for eight.

    Finding: error
    Words: Bcast, 1
    """
    if comm.rank == 0:
        table = np.arange(12, dtype="d")
    else:
        table = np.empty(8, dtype="d")
    comm.Bcast(table, root=0)  # here


def gather_with_a_short_part_from_rank_2(comm):
    """Rank 2 dropped a reading and gives three numbers where the root expects four of each rank.

    Finding: luck
    Words: Gather, 2
    Ranks: 3
    """
    readings = np.arange(4.0) + 10 * comm.rank
    if comm.rank == 2:
        readings = readings[readings != 22]
    table = np.zeros((comm.size, 4)) if comm.rank == 0 else None
    comm.Gather(readings, table, root=0)  # here


def last_rank_has_fewer_steps(comm):
    """Twenty steps do not divide by three ranks; the last rank takes two fewer, each with an Allreduce.

    Finding: deadlock
    Words: Allreduce, 2
    Ranks: 3
    """
    per_rank = -(-20 // comm.size)
    first = comm.rank * per_rank
    value = np.ones(1)
    total = np.zeros(1)
    for step in range(first, min(first + per_rank, 19)):
        value[0] = step
        comm.Allreduce(value, total)  # here


def rank_0_prints_the_mean_and_computes_it_twice(comm):
    """Rank 0 calls the helper that holds an allreduce once more, just for the print.

    Finding: deadlock
    Words: allreduce, 0
    """

    def mean(x):
        return comm.allreduce(x) / comm.size  # here

    error = abs(comm.rank - mean(comm.rank))
    if comm.rank == 0:
        f"mean {mean(error):.2f}"


def ibcast_on_the_root_bcast_elsewhere(comm):
    """The root uses the nonblocking call, the other rank the blocking one; MPI does not match these two.

    Finding: deadlock
    Words: Bcast, Ibcast, 1
    """
    settings = np.zeros(5, dtype="i4")
    if comm.rank == 0:
        settings[:] = [4, 8, 15, 16, 23]
        request = comm.Ibcast(settings, root=0)
        request.Wait()  # here
    else:
        comm.Bcast(settings, root=0)  # here


def coordinator_receives_while_workers_are_in_barrier(comm):
    """Rank 0 collects the answers before the Barrier, the workers send them after it.

    Finding: deadlock
    Words: recv, Barrier, 0
    Ranks: 3
    """
    if comm.rank == 0:
        answers = [comm.recv(source=worker, tag=9) for worker in range(1, comm.size)]  # here
        comm.Barrier()
        return answers
    comm.Barrier()  # here
    comm.send({"rank": comm.rank}, dest=0, tag=9)


def big_send_before_the_barrier_received_after_it(comm):
    """A field of 2 MB is sent before the Barrier and received after it; it is too big to be buffered.

    Finding: deadlock
    Words: Send, Barrier, 0, 1
    """
    field = np.zeros((512, 512))
    if comm.rank == 0:
        comm.Send(field, dest=1, tag=4)  # here
        comm.Barrier()
    else:
        comm.Barrier()  # here
        comm.Recv(field, source=0, tag=4)


def small_send_before_the_barrier_received_after_it(comm):
    """One number is sent before the Barrier and received after it; only a buffer inside MPI lets this pass.

    Finding: luck
    Words: Send, 1
    """
    number = np.array([float(comm.rank)])
    if comm.rank == 1:
        comm.Send(number, dest=0)  # here
        comm.Barrier()
    else:
        comm.Barrier()
        comm.Recv(number, source=1)


def rank_without_work_returns_before_the_sum(comm):
    """Three files for four ranks: the rank without a file returns before allreduce.

    Finding: deadlock
    Words: allreduce, 3
    Ranks: 4
    """
    files = ["a.csv", "bb.csv", "ccc.csv"][comm.rank :: comm.size]
    if not files:
        return None
    letters = sum(len(name) for name in files)
    return comm.allreduce(letters)  # here


def exception_makes_rank_1_skip_alltoall(comm):
    """Rank 1 divides by zero inside try, goes on to the next thing and never comes to alltoall.

    Finding: deadlock
    Words: alltoall, 1
    """
    try:
        share = 12 // (1 - comm.rank)
        comm.alltoall([share] * comm.size)  # here
    except ZeroDivisionError:
        share = 0


def or_skips_the_allreduce(comm):
    """Python's `or` does not call allreduce on the rank whose own error is already large.

    Finding: deadlock
    Words: allreduce, 0, 1
    """
    errors = [0.5, 0.001]
    bad = errors[comm.rank] > 0.1 or comm.allreduce(errors[comm.rank], op=MPI.MAX) > 0.1  # here
    if bad:
        errors[comm.rank] /= 2


def fields_summed_in_another_order(comm):
    """Rank 1 built its dictionary in another order, so speeds (3 numbers) are added to heights (2 numbers).

    Finding: error
    Words: reduce
    """
    fields = {"speed": np.ones(3), "height": np.full(2, 7.0)}
    if comm.rank == 1:
        fields = {"height": fields["height"], "speed": fields["speed"]}
    for name in fields:
        comm.reduce(fields[name], root=0)  # here


def lower_case_allgather_meets_upper_case(comm):
    """Rank 0 gathers Python objects (allgather), rank 1 a buffer (Allgather), and one of them does more steps.

    Finding: deadlock
    Words: allgather, Allgather, 0
    """
    if comm.rank == 0:
        sizes = comm.allgather(5)  # here
    else:
        sizes = np.empty(comm.size, dtype="i8")
        comm.Allgather(np.array([3]), sizes)  # here
    sum(sizes)


def scatter_of_a_list_that_is_too_short(comm):
    """The root cuts its data into three pieces for four ranks.

    Finding: error
    Words: scatter, 0
    Ranks: 4
    """
    pieces = None
    if comm.rank == 0:
        data = list(range(12))
        pieces = [data[start : start + 4] for start in range(0, 12, 4)]
    comm.scatter(pieces, root=0)  # here


def reduce_on_two_ranks_allreduce_on_one(comm):
    """Rank 2 wants the total itself and calls allreduce, the others call reduce to rank 0.

    Finding: deadlock
    Words: allreduce, reduce, 2
    Ranks: 3
    """
    hits = 10 * comm.rank
    if comm.rank == 2:
        total = comm.allreduce(hits)  # here
    else:
        total = comm.reduce(hits, root=0)
    return total


def floats_sent_doubles_expected(comm):
    """The root broadcasts six numbers of 32 bits, rank 1 reads the same bytes as three numbers of 64 bits.

    Finding: luck
    Words: Bcast, 1
    """
    if comm.rank == 0:
        part = np.ones(6, dtype=np.float32)
    else:
        part = np.zeros(3)
    comm.Bcast(part, root=0)  # here


def lower_case_bcast_meets_upper_case(comm):
    """The root sends a Python object (bcast), rank 1 takes a buffer (Bcast) and gets a number that is not 7.

    Finding: luck
    Words: bcast, Bcast
    """
    steps = np.array([7 if comm.rank == 0 else 0])
    if comm.rank == 0:
        comm.bcast(steps, root=0)  # here
    else:
        comm.Bcast(steps, root=0)  # here


def barrier_in_both_branches(comm):
    """Both branches of the if hold a Barrier: each rank comes once, from another line.

    Finding: correct
    """
    if comm.rank == 0:
        comm.bcast({"ready": True}, root=0)
        comm.Barrier()
    else:
        comm.bcast(None, root=0)
        comm.Barrier()


def stop_agreed_with_allreduce(comm):
    """The ranks need different numbers of steps, but all of them go on until the slowest is done.

    Finding: correct
    Ranks: 3
    """
    error = 1.0 + comm.rank
    while comm.allreduce(error, op=MPI.MAX) > 0.5:
        error *= 0.4 if comm.rank else 0.9


def gatherv_of_uneven_parts(comm):
    """Ranks give different counts, as Gatherv allows, and the root knows them.

    Finding: correct
    Ranks: 4
    """
    mine = np.full(comm.rank + 1, comm.rank, dtype="i4")
    counts = comm.gather(mine.size, root=2)
    if comm.rank == 2:
        whole = np.empty(sum(counts), dtype="i4")
        comm.Gatherv(mine, [whole, counts], root=2)
    else:
        comm.Gatherv(mine, None, root=2)


def reduce_in_place_on_the_root_only(comm):
    """The root gives IN_PLACE and a buffer, the others a buffer and None: so MPI wants it.

    Finding: correct
    Ranks: 3
    """
    counts = np.arange(4) + comm.rank
    if comm.rank == 0:
        comm.Reduce(MPI.IN_PLACE, counts, op=MPI.PROD, root=0)
    else:
        comm.Reduce(counts, None, op=MPI.PROD, root=0)


def column_broadcast_into_a_flat_buffer(comm):
    """The root describes a column as one vector type, the other as four doubles: the same types in the same order.

    Finding: correct
    """
    if comm.rank == 0:
        table = np.arange(12.0).reshape(4, 3)
        column = MPI.DOUBLE.Create_vector(4, 1, 3).Commit()
        comm.Bcast([table, 1, column], root=0)
        column.Free()
    else:
        flat = np.empty(4)
        comm.Bcast([flat, 4, MPI.DOUBLE], root=0)
        assert flat[1] == 3


def receive_posted_before_the_barrier(comm):
    """Rank 0 posts its receive, passes the Barrier and only then waits; rank 1 sends after the Barrier.

    Finding: correct
    """
    field = np.ones((512, 512))
    if comm.rank == 0:
        request = comm.Irecv(field, source=1, tag=4)
        comm.Barrier()
        request.Wait()
    else:
        comm.Barrier()
        comm.Send(field, dest=0, tag=4)


def failure_told_to_everybody(comm):
    """Rank 1 fails, but all ranks first agree whether somebody failed and then skip alltoall together.

    Finding: correct
    """
    try:
        share = 12 // (1 - comm.rank)
        failed = False
    except ZeroDivisionError:
        failed = True
    if not comm.allreduce(failed, op=MPI.LOR):
        comm.alltoall([share] * comm.size)
