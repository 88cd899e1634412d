"""Collectives whose buffers do not fit together: another dtype, another count, another order in memory.

MPI moves bytes and does not look; what arrives is garbage, and the program ends as if all were well.
"""

import numpy as np
from mpi4py import MPI


def integers_scattered_into_floats(comm):
    """The root scatters integers, and each rank makes room for a float.

    Finding: luck
    Words: Scatter, int64, float64
    """
    whole = np.arange(comm.size) + 1 if comm.rank == 0 else None
    mine = np.zeros(1)
    comm.Scatter(whole, mine, root=0)  # here
    return mine.tolist()


def floats_gathered_into_integers(comm):
    """np.zeros(n, int) on the root, floats on all ranks.

    Finding: luck
    Ranks: 4
    Words: Gather, float64, int64
    """
    out = np.zeros(comm.size, int) if comm.rank == 0 else None
    comm.Gather(np.array([comm.rank + 0.5]), out, root=0)  # here
    return out


def floats_of_all_gathered_into_integers(comm):
    """As many integers as there are ranks, and a float from each.

    Finding: luck
    Words: Allgather, float64, int64
    """
    out = np.zeros(comm.size, int)
    comm.Allgather(np.array([comm.rank + 0.5]), out)  # here
    return out


def exchange_of_floats_for_integers(comm):
    """Each rank gives each a float, and takes them for integers.

    Finding: luck
    Ranks: 3
    Words: Alltoall, float64, int64
    """
    out = np.zeros(comm.size, int)
    comm.Alltoall(np.arange(float(comm.size)), out)  # here
    return out


def parts_of_another_precision_scattered(comm):
    """The root scatters single precision in uneven parts, and rank 1 makes room for double precision.

    Finding: luck
    Words: Scatterv, float32, float64
    """
    whole = [np.arange(6, dtype="f"), [2, 4]] if comm.rank == 0 else None
    mine = np.zeros(2, dtype="f") if comm.rank == 0 else np.zeros(2)
    comm.Scatterv(whole, mine, root=0)  # here
    return mine


def one_rank_sums_in_single_precision(comm):
    """Rank 1 keeps its gradient in single precision, with twice as many numbers so that the bytes agree.

    Finding: luck
    Words: Reduce, float32, float64
    """
    mine = np.ones(4, dtype="f") if comm.rank == 1 else np.ones(2)
    total = np.zeros(2) if comm.rank == 0 else None
    comm.Reduce(mine, total, root=0)  # here
    return total


def counts_of_an_exchange_do_not_agree(comm):
    """Rank 0 sends two numbers to rank 1, which expects three, so that the last one is never written.

    Finding: luck
    Words: Alltoallv
    """
    given = [1, 2] if comm.rank == 0 else [1, 1]
    taken = [1, 1] if comm.rank == 0 else [3, 1]
    out = np.zeros(sum(taken))
    comm.Alltoallv([np.ones(sum(given)), given], [out, taken])  # here
    return out


def same_array_given_twice_to_allreduce(comm):
    """The sum is to replace the numbers, and both arguments are the same array; MPI wants MPI.IN_PLACE.

    Finding: error
    Words: Allreduce, IN_PLACE
    Unsaid: Iallreduce
    """
    gradient = np.ones(3)
    comm.Allreduce(gradient, gradient)  # here


def transposed_matrix_scattered(comm):
    """The columns are to be scattered, so the root transposes; in memory nothing has moved.

    Finding: luck
    Words: Scatter
    """
    matrix = np.arange(4.0).reshape(2, 2).T if comm.rank == 0 else None
    column = np.zeros(2)
    comm.Scatter(matrix, column, root=0)  # here
    return column


def transposed_matrix_broadcast(comm):
    """The root broadcasts a transposed matrix into matrices that are not.

    Finding: luck
    Words: Bcast
    """
    matrix = np.arange(6.0).reshape(3, 2).T if comm.rank == 0 else np.zeros((2, 3))
    comm.Bcast(matrix, root=0)  # here
    return matrix


def floats_scattered_and_gathered(comm):
    """Scatter, Gather, Allgather, Alltoall and Scatterv with floats on all sides.

    Finding: correct
    Ranks: 4
    """
    size, mine = comm.size, np.zeros(1)
    comm.Scatter(np.arange(float(size)) if comm.rank == 0 else None, mine, root=0)
    out = np.zeros(size)
    comm.Gather(mine, out if comm.rank == 0 else None, root=0)
    comm.Allgather(mine, out)
    assert out.tolist() == [0.0, 1.0, 2.0, 3.0]
    comm.Alltoall(out, np.zeros(size))
    part = np.zeros(comm.rank)
    comm.Scatterv([np.arange(6.0), [0, 1, 2, 3]] if comm.rank == 0 else None, part, root=0)
    assert part.size == comm.rank


def two_names_of_one_integer(comm):
    """NumPy's "l" and "q" are both integers of 64 bits, and bytes are numbers of 8.

    Finding: correct
    """
    mine = np.zeros(1, dtype="q")
    comm.Scatter(np.arange(2, dtype="l") if comm.rank == 0 else None, mine, root=0)
    assert mine[0] == comm.rank
    text = bytearray(b"course") if comm.rank == 0 else np.zeros(6, np.uint8)
    comm.Bcast(text, root=0)
    assert bytes(text) == b"course"


def types_given_with_the_buffers(comm):
    """Count and datatype are written out, and rank 0 gives a whole row where rank 1 takes three numbers.

    Finding: correct
    """
    row = MPI.DOUBLE.Create_contiguous(3).Commit()
    numbers, out = np.full(3, comm.rank + 1.0), np.zeros(6)
    if comm.rank == 0:
        comm.Allgather([numbers, 1, row], [out, 3, MPI.DOUBLE])
    else:
        comm.Allgather([numbers, 3, MPI.DOUBLE], [out, 1, row])
    row.Free()
    assert out.tolist() == [1.0] * 3 + [2.0] * 3


def columns_taken_with_a_vector_type(comm):
    """A column leaves the matrix through a vector type and arrives as a plain array.

    Finding: correct
    """
    if comm.rank == 0:
        column = MPI.DOUBLE.Create_vector(3, 1, 4).Commit()
        comm.Send([np.arange(12.0).reshape(3, 4), 1, column], dest=1)
        column.Free()
    else:
        got = np.zeros(3)
        comm.Recv(got, source=0)
        assert got.tolist() == [0.0, 4.0, 8.0]


def matrices_in_column_order_on_all_ranks(comm):
    """All ranks keep their matrices in column order, so that they may be broadcast and summed as they are.

    Finding: correct
    """
    matrix = np.zeros((2, 3), order="F")
    if comm.rank == 0:
        matrix[:] = [[1, 2, 3], [4, 5, 6]]
    comm.Bcast(matrix, root=0)
    assert matrix[0].tolist() == [1, 2, 3]
    comm.Allreduce(MPI.IN_PLACE, matrix)
    assert matrix[1].tolist() == [8, 10, 12]


def transposed_matrix_copied_before_scatter(comm):
    """The root transposes and copies, and each rank receives a column.

    Finding: correct
    """
    matrix = np.ascontiguousarray(np.arange(4.0).reshape(2, 2).T) if comm.rank == 0 else None
    column = np.zeros(2)
    comm.Scatter(matrix, column, root=0)
    assert column.tolist() == [comm.rank, comm.rank + 2]


def sum_in_place(comm):
    """MPI.IN_PLACE on all ranks, and on the root only for Reduce.

    Finding: correct
    """
    gradient = np.ones(3)
    comm.Allreduce(MPI.IN_PLACE, gradient)
    comm.Reduce(MPI.IN_PLACE if comm.rank == 0 else gradient, gradient if comm.rank == 0 else None, root=0)
    assert gradient[0] == (4.0 if comm.rank == 0 else 2.0)
