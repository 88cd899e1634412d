"""Files that all ranks open together: a collective call of MPI-IO that some rank leaves out, or makes differently.

MPI-IO's collective calls synchronise as others do (MPI 4.1, section 14.4). Written from the ideas; none is copied.
"""

import os
import tempfile

import numpy as np
from mpi4py import MPI

WRITE = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE


def shared_name(comm):
    """A file name on which all ranks agree, which is free."""
    return comm.bcast(os.path.join(tempfile.mkdtemp(), "out.bin") if comm.rank == 0 else None)


def rank_without_a_block_does_not_write(comm):
    """Rank 1 has nothing to write and skips Write_at_all; it is in Close while the others write.

    Finding: deadlock
    Words: Write_at_all, Close, 1
    Ranks: 4
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    if comm.rank != 1:
        file.Write_at_all(800 * comm.rank, np.ones(100))  # here
    file.Close()  # here


def only_rank_0_opens_the_file(comm):
    """Rank 0 opens the file of all ranks alone.

    Finding: deadlock
    Words: Open, 0
    Ranks: 3
    """
    name = shared_name(comm)
    if comm.rank == 0:
        MPI.File.Open(comm, name, WRITE).Close()  # here


def file_closed_by_the_writer_only(comm):
    """Only rank 2 closes; the others think that the end of the program does it.

    Finding: deadlock
    Words: Close, 2
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    file.Write_at(8 * comm.rank, np.ones(1))
    if comm.rank == 2:
        file.Close()  # here


def one_rank_reads_alone_what_the_others_read_together(comm):
    """Rank 1 calls Read_at and goes on to the Barrier, the others are in Read_at_all.

    Finding: deadlock
    Words: Read_at_all, Barrier, 1
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    file.Write_at_all(80 * comm.rank, np.ones(10))
    numbers = np.empty(10)
    if comm.rank == 1:
        file.Read_at(80, numbers)
    else:
        file.Read_at_all(80 * comm.rank, numbers)  # here
    comm.Barrier()  # here
    file.Close()


def last_line_of_the_log_by_some_ranks(comm):
    """Ranks write in their order, and only the even ranks have a last line.

    Finding: deadlock
    Words: Write_ordered, Sync, 1
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    for step in range(3):
        if step < 2 or comm.rank == 0:
            file.Write_ordered(f"rank {comm.rank} step {step}\n".encode())  # here
    file.Sync()  # here
    file.Close()


def two_files_closed_in_opposite_orders(comm):
    """Two files; rank 0 closes the first one first and rank 1 the second one.

    Finding: deadlock
    Words: Close, 0, 1
    """
    files = [MPI.File.Open(comm, shared_name(comm), WRITE) for _ in range(2)]
    for file in files if comm.rank == 0 else reversed(files):
        file.Close()  # here


def view_set_where_there_is_data(comm):
    """Set_view is collective, and the rank without data leaves it out.

    Finding: deadlock
    Words: Set_view, Write_all, 2
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    if comm.rank < 2:
        file.Set_view(400 * comm.rank, MPI.DOUBLE)  # here
    file.Write_all(np.ones(50 if comm.rank < 2 else 0))  # here
    file.Close()


def wait_for_a_write_that_one_rank_did_not_begin(comm):
    """Iwrite_at_all is collective, too: rank 0 waits for a write which rank 1 has not begun.

    Finding: deadlock
    Words: Iwrite_at_all, Close, 0, 1
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    if comm.rank == 0:
        file.Iwrite_at_all(0, np.ones(1000)).Wait()  # here
    file.Close()  # here


def split_write_begun_by_one_rank(comm):
    """Rank 1 writes in one call, rank 0 in two halves: these do not meet.

    Finding: deadlock
    Words: Write_all_begin, Write_all, 0, 1
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    numbers = np.ones(100)
    file.Seek(800 * comm.rank)
    if comm.rank == 0:
        file.Write_all_begin(numbers)  # here
        file.Write_all_end(numbers)
    else:
        file.Write_all(numbers)  # here
    file.Close()


def read_mode_without_a_file(comm):
    """The file is opened for reading and does not exist.

    Finding: error
    Words: does not exist
    """
    MPI.File.Open(comm, shared_name(comm), MPI.MODE_RDONLY)  # here


def one_rank_writes_what_is_no_buffer(comm):
    """Rank 1 writes a list, which is no buffer; the others are in Write_at_all.

    Finding: error
    Words: Write_at_all, 1
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    numbers = [1.0, 2.0] if comm.rank == 1 else np.ones(2)
    file.Write_at_all(16 * comm.rank, numbers)  # here
    file.Close()


def every_rank_writes_its_block_and_reads_its_neighbours(comm):
    """Collective calls by all ranks; who has no block writes none.

    Finding: correct
    Ranks: 4
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    file.Set_size(0)
    file.Preallocate(3 * 80)
    file.Write_at_all(80 * comm.rank, np.full(10 if comm.rank < 3 else 0, float(comm.rank)))
    file.Sync()
    numbers = np.empty(10)
    other = (comm.rank + 1) % 3
    file.Read_at_all(80 * other, numbers)
    assert np.all(numbers == other)
    file.Set_view(80 * other, MPI.DOUBLE)
    file.Read_all(numbers)
    assert np.all(numbers == other)
    file.Close()


def lines_in_the_order_of_ranks(comm):
    """Write_ordered and Read_ordered, with the shared pointer put back by all; Read_shared is for some.

    Finding: correct
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    file.Write_ordered(np.full(2, comm.rank))
    file.Sync()
    file.Seek_shared(0)
    numbers = np.empty(2, dtype=int)
    file.Read_ordered(numbers)
    assert numbers[0] == comm.rank
    file.Seek_shared(0)
    if comm.rank == 1:
        file.Read_shared(numbers)
        assert numbers[0] == 0
    file.Close()


def nonblocking_and_split_writes(comm):
    """Writes of both kinds begin, something else meets, and they end.

    Finding: correct
    Ranks: 3
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    numbers = np.full(1000, comm.rank)
    request = file.Iwrite_at_all(8000 * comm.rank, numbers)
    assert comm.allreduce(1) == 3
    request.Wait()
    file.Write_at_all_begin(8000 * (3 + comm.rank), numbers)
    comm.Barrier()
    file.Write_at_all_end(numbers)
    file.Sync()
    got = np.empty(1000, dtype=int)
    file.Iread_at_all(8000 * (3 + comm.rank), got).Wait()
    assert np.all(got == comm.rank)
    file.Close()


def a_file_of_ones_own(comm):
    """On COMM_SELF each rank opens a file of its own, as often as it likes.

    Finding: correct
    Ranks: 3
    """
    for _ in range(comm.rank + 1):
        name = os.path.join(tempfile.mkdtemp(), "own.bin")
        file = MPI.File.Open(MPI.COMM_SELF, name, WRITE)
        file.Write_all(np.ones(3))
        file.Close()
    comm.Barrier()


def barrier_begun_before_the_write_on_one_rank_and_after_it_on_the_other(comm):
    """A nonblocking barrier and a collective write may begin in any order: they are on communicators of their own.

    Finding: correct
    """
    file = MPI.File.Open(comm, shared_name(comm), WRITE)
    if comm.rank == 0:
        request = comm.Ibarrier()
        file.Write_at_all(0, np.ones(5))
    else:
        file.Write_at_all(40, np.ones(5))
        request = comm.Ibarrier()
    request.Wait()
    file.Close()
