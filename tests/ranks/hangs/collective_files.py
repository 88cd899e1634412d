"""Files that all ranks read and write together (MPI-IO): most of its calls are collective, and some are not."""

import contextlib
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

NEW = MPI.MODE_CREATE | MPI.MODE_RDWR


@contextlib.contextmanager
def _shared_name(comm):
    folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
    try:
        yield str(Path(folder, "data.bin"))
    finally:
        if comm.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)


def opened_by_rank_0_only(comm):
    """Rank 0 writes the header and opens the file alone, but on the communicator of all.

    Finding: deadlock
    Words: Open, 0
    """
    with _shared_name(comm) as name:
        if comm.rank == 0:
            file = MPI.File.Open(comm, name, NEW)  # here
            file.Write(np.zeros(4))
            file.Close()
        comm.barrier()  # here


def rank_without_numbers_does_not_write(comm):
    """Rank 1 has nothing to write and leaves out the collective call.

    Finding: deadlock
    Ranks: 4
    Words: Write_at_all, 1
    Unsaid: computes, computing
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank != 1:
            file.Write_at_all(800 * comm.rank, np.ones(100))  # here
        file.Close()  # here


def last_line_not_written_in_order(comm):
    """Each rank writes its line in order, and the last rank has no line.

    Finding: deadlock
    Ranks: 3
    Words: Write_ordered, 2
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank < comm.size - 1:
            file.Write_ordered(f"rank {comm.rank}\n".encode())  # here
        comm.barrier()  # here
        file.Close()


def rank_0_leaves_the_file_open(comm):
    """All but rank 0 close the file, and rank 0 waits for them to say that they are done.

    Finding: deadlock
    Words: Close, 1, recv, 0
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        file.Write_at_all(8 * comm.rank, np.ones(1))
        if comm.rank == 0:
            comm.recv(source=1)  # here
            file.Close()
        else:
            file.Close()  # here
            comm.send("done", dest=0)


def view_set_by_the_reader_only(comm):
    """Only rank 1 needs another view of the file, and a view is set by all ranks together.

    Finding: deadlock
    Words: Set_view, 1
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank == 1:
            file.Set_view(16, MPI.DOUBLE, MPI.DOUBLE)  # here
        comm.barrier()  # here
        file.Close()


def rank_0_synchronises_alone(comm):
    """Rank 0 makes its numbers visible alone, with a call that all ranks have to make; this MPI does not wait for them.

    Finding: luck
    Words: Sync, 0
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank == 0:
            file.Write_at(0, np.arange(3.0))
            file.Sync()  # here
        comm.barrier()  # here
        file.Close()


def each_writes_a_block_and_reads_the_next(comm):
    """All write their blocks together, rank 1 a second and a half later, and read that of the next rank.

    Finding: correct
    Ranks: 4
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank == 1:
            time.sleep(1.5)
        file.Write_at_all(800 * comm.rank, np.full(100, float(comm.rank)))
        file.Sync()
        comm.barrier()
        following, block = (comm.rank + 1) % comm.size, np.empty(100)
        file.Read_at_all(800 * following, block)
        file.Close()
        assert (block == following).all()


def rank_without_numbers_writes_none(comm):
    """Rank 1 has nothing to write, and takes part with an empty array.

    Finding: correct
    Ranks: 4
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        mine = np.ones(0 if comm.rank == 1 else 100)
        file.Write_at_all(800 * comm.rank, mine)
        file.Close()


def lines_written_in_order(comm):
    """Each rank writes its line in the order of ranks, and the last one is late.

    Finding: correct
    Ranks: 3
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank == comm.size - 1:
            time.sleep(1.0)
        file.Write_ordered(f"rank {comm.rank}\n".encode())
        file.Close()
        if comm.rank == 0:
            assert Path(name).read_text() == "rank 0\nrank 1\nrank 2\n"


def header_written_on_comm_self(comm):
    """Rank 0 opens the file alone, on MPI.COMM_SELF, and the others after the barrier.

    Finding: correct
    Ranks: 3
    """
    with _shared_name(comm) as name:
        if comm.rank == 0:
            alone = MPI.File.Open(MPI.COMM_SELF, name, NEW)
            alone.Write_at_all(0, np.array([7.0]))
            alone.Close()
        comm.barrier()
        file, header = MPI.File.Open(comm, name, MPI.MODE_RDONLY), np.empty(1)
        file.Read_at_all(0, header)
        file.Close()
        assert header[0] == 7.0


def one_rank_writes_on_its_own(comm):
    """Write_at is not collective, so rank 2 may write alone, and so may whoever asks for the size.

    Finding: correct
    Ranks: 3
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        if comm.rank == 2:
            file.Write_at(0, np.arange(5.0))
            assert file.Get_size() == 40
        file.Close()


def rows_through_a_view_begun_early(comm):
    """Each rank sets a view of its rows, begins to write, computes, and waits for the end of writing.

    Finding: correct
    """
    with _shared_name(comm) as name:
        file = MPI.File.Open(comm, name, NEW)
        file.Set_view(24 * comm.rank, MPI.DOUBLE, MPI.DOUBLE.Create_vector(2, 3, 6).Commit())
        request = file.Iwrite_all(np.full(6, float(comm.rank)))
        time.sleep(0.3 * comm.rank)
        request.Wait()
        file.Close()
        if comm.rank == 0:
            assert np.fromfile(name)[:12].tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0] * 2
