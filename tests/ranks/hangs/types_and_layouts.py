"""Data that one rank sends as one thing and another receives as a different one: other types, counts, memory orders.

The class is "parameter matching" in the MPI Bugs Initiative, and "argument mismatch" in MPI-CorrBench. The programs
that are correct do the same with the types, counts and orders that MPI wants. None is copied.
"""

from array import array

import numpy as np
from mpi4py import MPI


def whole_numbers_scattered_into_floats(comm):
    """The root's array came from np.arange, which makes whole numbers; the parts are made by np.empty.

    Finding: luck
    Words: Scatter, int64, float64, 0
    Ranks: 4
    """
    whole = np.arange(8) if comm.rank == 0 else None
    mine = np.empty(2)
    comm.Scatter(whole, mine, root=0)  # here


def floats_gathered_into_whole_numbers(comm):
    """Each rank gives a float, and the root makes room for whole numbers of the same size.

    Finding: luck
    Words: Gather, int64, float64, 0
    Ranks: 3
    """
    out = np.zeros(comm.size, int) if comm.rank == 0 else None
    comm.Gather(np.array([comm.rank + 0.5]), out, root=0)  # here


def allgather_into_whole_numbers(comm):
    """Every rank sends floats and makes room for whole numbers.

    Finding: luck
    Words: Allgather, int64, float64
    Ranks: 4
    """
    out = np.zeros(comm.size, int)
    comm.Allgather(np.array([comm.rank + 0.5]), out)  # here


def alltoall_into_whole_numbers(comm):
    """The same, of an exchange.

    Finding: luck
    Words: Alltoall, int64, float64
    Ranks: 4
    """
    out = np.zeros(comm.size, int)
    comm.Alltoall(np.arange(float(comm.size)), out)  # here


def scatterv_of_floats_into_whole_numbers(comm):
    """Parts of unequal lengths, of a type that the receivers do not expect.

    Finding: luck
    Words: Scatterv, int64, float64, 0
    Ranks: 3
    """
    counts = [1, 2, 3]
    whole = [np.arange(6.0), counts] if comm.rank == 0 else None
    comm.Scatterv(whole, np.empty(counts[comm.rank], int), root=0)  # here


def gatherv_of_halves_into_floats(comm):
    """Numbers of four bytes are collected where numbers of eight are expected, and half of the room stays empty.

    Finding: luck
    Words: Gatherv, float32, float64, 1
    Ranks: 3
    """
    mine = np.full(2 * comm.rank + 2, comm.rank, dtype=np.float32)
    out = [np.zeros(6), [1, 2, 3]] if comm.rank == 1 else None
    comm.Gatherv(mine, out, root=1)  # here


def allgatherv_of_other_types(comm):
    """Parts of unequal lengths are collected by every rank, as whole numbers.

    Finding: luck
    Words: Allgatherv, int64, float64
    Ranks: 3
    """
    out = np.zeros(6, int)
    comm.Allgatherv(np.ones(comm.rank + 1), [out, [1, 2, 3]])  # here


def alltoallv_of_other_types(comm):
    """Unequal parts are exchanged, and received as whole numbers.

    Finding: luck
    Words: Alltoallv, int64, float64
    """
    counts = [1, 2]
    out = np.zeros(2 * counts[comm.rank], int)
    comm.Alltoallv([np.ones(3), counts], [out, [counts[comm.rank]] * 2])  # here


def started_gather_of_other_types(comm):
    """The nonblocking form makes the same mistake.

    Finding: luck
    Words: Igather, int64, float64, 0
    """
    out = np.zeros(comm.size, int) if comm.rank == 0 else None
    comm.Igather(np.array([0.5]), out, root=0).Wait()  # here


def persistent_gather_of_other_types(comm):
    """So does the persistent form.

    Finding: luck
    Words: Gather_init, int64, float64, 0
    """
    out = np.zeros(comm.size, int) if comm.rank == 0 else None
    request = comm.Gather_init(np.array([0.5]), out, root=0)
    request.Start()  # here
    request.Wait()
    request.Free()


def mpi_types_of_other_sizes(comm):
    """The datatypes are given by hand, and they are not the same on both sides.

    Finding: luck
    Words: Send, float64, float32, 0
    """
    numbers = np.ones(4)
    if comm.rank == 0:
        comm.Send([numbers, 4, MPI.DOUBLE], dest=1)  # here
    else:
        comm.Recv([np.zeros(8, np.float32), 8, MPI.FLOAT], source=0)  # here


def scan_of_other_types(comm):
    """Rank 1 brings whole numbers to a sum of floats.

    Finding: luck
    Words: Scan, int64, float64, 1
    """
    kind = int if comm.rank == 1 else float
    comm.Scan(np.ones(2, kind), np.zeros(2, kind))  # here


def gather_with_too_much_room(comm):
    """The root has room for ten numbers of each rank, and they lie at the beginning of each ten.

    Finding: luck
    Words: Gather, 0
    Ranks: 3
    """
    out = np.zeros(30) if comm.rank == 0 else None
    comm.Gather(np.full(4, 1.0 * comm.rank), out, root=0)  # here


def gatherv_with_counts_of_an_old_run(comm):
    """The root expects one number less of rank 2 than it sends.

    Finding: luck
    Words: Gatherv, 2, 0
    Ranks: 3
    """
    out = [np.zeros(7), [2, 2, 1]] if comm.rank == 0 else None
    comm.Gatherv(np.ones(2), out, root=0)  # here


def alltoallv_that_sends_less(comm):
    """Rank 0 sends a number less than the others have room for, which stays as it was.

    Finding: luck
    Words: Alltoallv, 0, 1
    """
    gives = [1, 1] if comm.rank == 0 else [2, 2]
    comm.Alltoallv([np.ones(4), gives], [np.zeros(4), [2, 2] if comm.rank else [1, 2]])  # here


def transposed_array_sent(comm):
    """Rank 0 sends a transposed array, of which MPI sends the memory: it arrives as it was before.

    Finding: luck
    Words: Send, column, 0, 1
    """
    if comm.rank == 0:
        comm.Send(np.arange(6.0).reshape(2, 3).T, dest=1)  # here
    else:
        got = np.empty((3, 2))
        comm.Recv(got, source=0)  # here
        assert got[0, 1] == 1


def received_into_a_transposed_array(comm):
    """Rank 1 receives into a transposed array.

    Finding: luck
    Words: Send, Recv, column, 0, 1
    """
    square = np.arange(9.0).reshape(3, 3)
    if comm.rank == 0:
        comm.Isend(square, dest=1).Wait()  # here
    else:
        comm.Irecv(square.T, source=0).Wait()  # here


def transposed_array_broadcast(comm):
    """The root's array is transposed, those of the others are not: they differ after the broadcast.

    Finding: luck
    Words: Bcast, column, 0
    Ranks: 3
    """
    table = np.arange(6.0).reshape(2, 3).T if comm.rank == 0 else np.empty((3, 2))
    comm.Bcast(table, root=0)  # here


def rows_of_a_transposed_array_scattered(comm):
    """Each rank expects a row of the transposed array, and gets a part of a column.

    Finding: luck
    Words: Scatter, column, 0
    Ranks: 4
    """
    table = np.arange(16.0).reshape(4, 4).T if comm.rank == 0 else None
    comm.Scatter(table, np.empty(4), root=0)  # here


def rows_gathered_into_a_transposed_array(comm):
    """The root puts rows together in an array that lies by columns.

    Finding: luck
    Words: Gather, column, 0
    Ranks: 3
    """
    table = np.empty((2, 3)).T if comm.rank == 0 else None
    comm.Gather(np.ones(2), table, root=0)  # here


def transposed_array_summed(comm):
    """Each rank adds its transposed array to a sum that lies by rows.

    Finding: luck
    Words: Allreduce, column, 0
    """
    total = np.empty((3, 3))
    comm.Allreduce(np.arange(9.0).reshape(3, 3).T, total)  # here


def count_beyond_the_end(comm):
    """The count is larger than the array: MPI would read what lies behind it.

    Finding: error
    Words: Bcast, 5, 2
    """
    comm.Bcast([np.zeros(2), 5, MPI.DOUBLE], root=0)  # here


def count_of_all_ranks_in_gather(comm):
    """The root gives the count of all ranks together, where MPI asks for that of one: it would write behind the array.

    Finding: error
    Words: Gather, 4, 0
    """
    out = [np.zeros(4), 4, MPI.DOUBLE] if comm.rank == 0 else None
    comm.Gather([np.ones(2), 2, MPI.DOUBLE], out, root=0)  # here


# --- correct ----------------------------------------------------------------------------------------------------------


def every_form_with_the_right_types(comm):
    """Each collective once, with types and counts that fit, on numbers of several kinds.

    Finding: correct
    Ranks: 4
    """
    P, rank = comm.size, comm.rank
    for kind in ("float64", "int32", "complex128", "bool", "uint8", "float32"):
        mine = np.ones(2, kind)
        many = np.ones(2 * P, kind)
        root = rank == 1
        comm.Bcast(mine, root=1)
        comm.Scatter(many if root else None, mine, root=1)
        comm.Gather(mine, many if root else None, root=1)
        comm.Allgather(mine, many)
        comm.Alltoall(many, np.empty_like(many))
        comm.Iallgather(mine, many).Wait()
        if kind != "bool":
            comm.Allreduce(mine, np.empty_like(mine), op=MPI.PROD)
            comm.Scan(mine, np.empty_like(mine))
            comm.Exscan(mine, np.empty_like(mine))
            comm.Reduce(mine, np.empty_like(mine) if root else None, root=1)
            comm.Reduce_scatter_block(many, mine)
            comm.Reduce_scatter(many, mine, [2] * P)


def vector_forms_with_the_right_counts(comm):
    """Parts of unequal lengths, some of them empty, with and without displacements.

    Finding: correct
    Ranks: 4
    """
    P, rank = comm.size, comm.rank
    counts = np.arange(P)
    starts = np.array([0, 1, 3, 6])
    mine = np.full(rank, rank, dtype="f4")
    whole = np.zeros(10, "f4")
    comm.Gatherv(mine, [whole, counts, starts, MPI.FLOAT] if rank == 2 else None, root=2)
    comm.Scatterv([whole, (counts, starts)] if rank == 2 else None, mine, root=2)
    comm.Allgatherv(mine, [whole, counts, starts, MPI.FLOAT])
    comm.Allgatherv([mine, rank], [whole, list(counts)])
    gives = np.arange(12.0)
    comm.Alltoallv([gives, [rank] * P], [np.empty(6), counts])
    comm.Ialltoallv([gives, ([rank] * P, [0] * P), MPI.DOUBLE], [np.empty(6), (counts, None), MPI.DOUBLE]).Wait()
    even = np.zeros(9)
    comm.Gatherv(np.ones([3, 2, 2, 2][rank]), even if rank == 0 else None)


def more_room_than_comes(comm):
    """A receive, and the root of a Gatherv, may have more room than they need.

    Finding: correct
    Ranks: 3
    """
    rank = comm.rank
    out = [np.zeros(15), [5, 5, 5]] if rank == 0 else None
    comm.Gatherv(np.ones(rank + 1), out, root=0)
    comm.Scatterv([np.zeros(6), [1, 2, 3]] if rank == 0 else None, np.zeros(5), root=0)
    if rank == 0:
        comm.Send(np.ones(3), dest=1)
    elif rank == 1:
        comm.Recv(np.ones(30), source=0)


def in_place_everywhere(comm):
    """MPI.IN_PLACE on the root, or on all ranks, where MPI has it.

    Finding: correct
    Ranks: 4
    """
    P, rank = comm.size, comm.rank
    many, mine = np.arange(2.0 * P), np.ones(2)
    root = rank == 0
    comm.Scatter(many if root else None, MPI.IN_PLACE if root else mine, root=0)
    comm.Gather(MPI.IN_PLACE if root else mine, many if root else None, root=0)
    comm.Allgather(MPI.IN_PLACE, many)
    comm.Alltoall(MPI.IN_PLACE, many)
    comm.Alltoallv(MPI.IN_PLACE, [many, [2] * P])
    comm.Allreduce(MPI.IN_PLACE, many)
    comm.Scan(MPI.IN_PLACE, many)
    comm.Reduce_scatter_block(MPI.IN_PLACE, many)
    comm.Gatherv(MPI.IN_PLACE if root else mine, [many, [2] * P] if root else None, root=0)
    comm.Allgatherv(MPI.IN_PLACE, [many, [2] * P])
    comm.Scatterv([many, [2] * P] if root else None, MPI.IN_PLACE if root else mine, root=0)


def datatypes_made_of_others(comm):
    """Columns, blocks and parts of arrays by datatypes of MPI's; the other side has the numbers in a row, or as bytes.

    Finding: correct
    """
    table = np.arange(12.0).reshape(4, 3)
    column = MPI.DOUBLE.Create_vector(4, 1, 3).Commit()
    block = MPI.DOUBLE.Create_subarray([4, 3], [2, 2], [1, 1]).Commit()
    pair = MPI.DOUBLE.Create_contiguous(2).Commit()
    record = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT]).Commit()
    records = np.zeros(3, np.dtype("f8,i4"))
    if comm.rank == 0:
        comm.Send([table, 1, column], dest=1)
        comm.Send([table, 1, block], dest=1)
        comm.Send([table, 6, pair], dest=1)
        comm.Send([records, MPI.BYTE], dest=1)
        comm.Send([np.arange(4.0), 4, MPI.DOUBLE], dest=1)
    else:
        comm.Recv(np.empty(4), source=0)
        comm.Recv([np.empty(4), MPI.DOUBLE], source=0)
        comm.Recv(np.empty(12), source=0)
        comm.Recv([records, MPI.BYTE], source=0)
        comm.Recv([table, 1, column], source=0)
    comm.Gather([np.ones(4), 2, pair], [np.empty(8), 4, MPI.DOUBLE] if comm.rank == 0 else None)
    comm.Scatter([np.ones(8), 2, pair] if comm.rank == 0 else None, np.empty(4))
    comm.Allgather([table, 1, column], [np.empty(8), 4, MPI.DOUBLE])
    comm.Bcast([table, 1, column] if comm.rank == 0 else np.empty(4))
    for datatype in (column, block, pair, record):
        datatype.Free()


def types_of_a_piece_for_each_rank(comm):
    """Alltoallw: rank 0 gets floats of every rank, and rank 1 whole numbers.

    Finding: correct
    """
    gives, got = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    mine = [MPI.DOUBLE, MPI.INT][comm.rank]
    comm.Alltoallw([gives, [1, 1], [0, 8], [MPI.DOUBLE, MPI.INT]], [got, [1, 1], [0, 8], [mine, mine]])


def other_names_of_the_same_types(comm):
    """Types by their letters, of other libraries, and as bytes.

    Finding: correct
    """
    import torch

    if comm.rank == 0:
        comm.Send(np.ones(3, "q"), dest=1)
        comm.Send([np.ones(3), "d"], dest=1)
        comm.Send(array("d", [1.0, 2.0]), dest=1)
        comm.Send(torch.ones(4), dest=1)
        comm.Send(bytearray(16), dest=1)
        comm.Send([np.ones(2, np.float16), MPI.BYTE], dest=1)
        comm.Send(np.float64(3.0), dest=1)
    else:
        comm.Recv([np.empty(3, "l"), MPI.INT64_T], source=0)
        comm.Recv([np.empty(3), 3, MPI.DOUBLE], source=0)
        comm.Recv(np.empty(2), source=0)
        comm.Recv(np.empty(4, np.float32), source=0)
        comm.Recv(np.empty(2), source=0)
        comm.Recv([np.empty(2, np.float16), MPI.BYTE], source=0)
        comm.Recv(np.empty(1), source=0)


def groups_that_count_backwards(comm):
    """A part of the ranks, in the opposite order: counts belong to the ranks of the communicator.

    Finding: correct
    Ranks: 4
    """
    team = comm.Split(comm.rank == 3, key=-comm.rank)
    counts = [3, 1, 2][: team.size]
    mine = np.ones(counts[team.rank])
    team.Allgatherv(mine, [np.empty(sum(counts)), counts])
    team.Gatherv(mine, [np.empty(sum(counts)), counts] if team.rank == 0 else None, root=0)
    team.Scatterv([np.empty(sum(counts)), counts] if team.rank == 0 else None, mine, root=0)
    gives = [team.rank + 1] * team.size
    team.Alltoallv([np.ones(sum(gives)), gives], [np.empty(6), list(range(1, team.size + 1))])
    team.Free()


def what_only_the_root_is_asked_for(comm):
    """Other ranks may give anything in the place of the root's buffer.

    Finding: correct
    Ranks: 3
    """
    whole = np.arange(6.0) if comm.rank == 2 else np.zeros(5, int)
    mine = np.empty(2)
    comm.Scatter(whole if comm.rank == 2 else None, mine, root=2)
    comm.Gather(mine, whole if comm.rank == 2 else np.zeros(1, "i2"), root=2)


def nothing_at_the_edges(comm):
    """Ranks at the edges exchange with nobody, and some messages are empty.

    Finding: correct
    Ranks: 3
    """
    left = comm.rank - 1 if comm.rank else MPI.PROC_NULL
    right = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    comm.Sendrecv(np.ones(2), dest=right, recvbuf=np.zeros(2), source=left)
    comm.Sendrecv(np.ones(0, int), dest=right, recvbuf=np.zeros(0), source=left)
    comm.Scatter(np.ones(0) if comm.rank == 0 else None, np.ones(0, int))


def both_by_columns(comm):
    """Both sides have arrays that lie by columns, or the receiver asks for the array that is not transposed.

    Finding: correct
    """
    table = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    if comm.rank == 0:
        comm.Send(table, dest=1)
        comm.Send(table, dest=1)
        comm.Send(table, dest=1)
    else:
        comm.Recv(np.empty((3, 2), order="F"), source=0)
        comm.Recv(np.empty((2, 3)), source=0)
        comm.Recv(np.empty(6), source=0)
    comm.Bcast(table)
    comm.Allreduce(MPI.IN_PLACE, table)


def columns_scattered(comm):
    """An array was made to lie by columns, so that each rank gets some of them.

    Finding: correct
    Ranks: 4
    """
    table = np.asfortranarray(np.arange(24.0).reshape(3, 8)) if comm.rank == 0 else None
    mine = np.empty(6)
    comm.Scatter(table, mine)
    whole = np.empty((3, 8), order="F") if comm.rank == 0 else None
    comm.Gather(mine, whole)
    assert table is None or np.array_equal(table, whole)
    square = np.asfortranarray(np.eye(4)) if comm.rank == 0 else None
    comm.Scatter(square, np.empty(4))


def transpose_over_the_ranks(comm):
    """Blocks are exchanged, and each rank turns what it has got.

    Finding: correct
    Ranks: 4
    """
    P = comm.size
    rows = np.arange(8.0 * P).reshape(2, P, 4).swapaxes(0, 1).copy() + comm.rank
    got = np.empty_like(rows)
    comm.Alltoall(rows, got)
    flat = np.empty(rows.size * P)
    comm.Allgather(rows, flat)
    stack = np.empty((P, *rows.shape))
    comm.Allgather(rows, stack)


def a_subscript_that_is_contiguous(comm):
    """Rows of an array, and single columns of one with a single column, lie one behind the other.

    Finding: correct
    """
    table = np.arange(12.0).reshape(4, 3)
    if comm.rank == 0:
        comm.Send(table[1:3], dest=1)
        comm.Send(np.ones((4, 1)).T, dest=1)
    else:
        comm.Recv(np.empty((2, 3)), source=0)
        comm.Recv(np.empty((1, 4)), source=0)
