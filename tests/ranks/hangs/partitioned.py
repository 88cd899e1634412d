"""Partitioned messages, and processes that ranks start: what they wait for cannot always be known.

MPI 4.1, sections 4.2 and 11.8. Written from the ideas; none is copied.
"""

import pathlib
import sys
import tempfile
import textwrap

import numpy as np


def last_partition_is_never_ready(comm):
    """Rank 0 makes three of four partitions ready.

    Finding: deadlock
    Words: Psend_init, Pready(3), Precv_init, 0, 1
    """
    numbers = np.zeros(8)
    if comm.rank == 0:
        request = comm.Psend_init(numbers, 4, dest=1)
        request.Start()
        for partition in range(3):
            request.Pready(partition)
    else:
        request = comm.Precv_init(numbers, 4, source=0, tag=0)
        request.Start()
    request.Wait()  # here


def nobody_receives_the_partitions(comm):
    """Rank 1 waits for an ordinary message, with which partitions do not go.

    Finding: deadlock
    Words: recv, 1
    """
    if comm.rank == 0:
        request = comm.Psend_init(np.zeros(80_000), 2, dest=1)
        request.Start()
        request.Pready_range(0, 1)
        request.Wait()
    else:
        comm.recv(source=0)  # here


def partitions_in_any_order(comm):
    """All partitions are made ready, in each of the forms, twice.

    Finding: correct
    """
    numbers = np.arange(8.0) if comm.rank == 0 else np.zeros(8)
    if comm.rank == 0:
        request = comm.Psend_init(numbers, 4, dest=1, tag=3)
        for _ in range(2):
            request.Start()
            request.Pready(3)
            request.Pready_range(0, 1)
            request.Pready_list([2])
            request.Wait()
    else:
        request = comm.Precv_init(numbers, 4, source=0, tag=3)
        for _ in range(2):
            request.Start()
            while not request.Parrived(0):
                pass
            request.Wait()
        assert numbers[7] == 7.0
    request.Free()


def partitions_made_ready_by_threads(comm):
    """Threads make the partitions ready while the rank waits for them.

    Finding: correct
    """
    import threading
    import time

    numbers = np.full(4, 5.0 if comm.rank == 0 else 0.0)

    def fill(partition):
        time.sleep(0.3 * partition)
        request.Pready(partition)

    if comm.rank == 0:
        request = comm.Psend_init(numbers, 4, dest=1)
        request.Start()
        for partition in range(4):
            threading.Thread(target=fill, args=(partition,)).start()
    else:
        request = comm.Precv_init(numbers, 4, source=0, tag=0)
        request.Start()
    request.Wait()
    assert numbers[3] == 5.0
    request.Free()


def program_file(text):
    """A file with a program; MPICH cannot pass one that has several lines as an argument."""
    file = pathlib.Path(tempfile.mkdtemp()) / "child.py"
    file.write_text(textwrap.dedent(text))
    return str(file)


def started_process_leaves_without_an_answer(comm):
    """The ranks start a process and wait for an answer that it does not give.

    Finding: deadlock
    Words: recv, 0
    """
    file = program_file("from mpi4py import MPI; MPI.Comm.Get_parent().Disconnect()")
    child = comm.Spawn(sys.executable, [file])
    if comm.rank == 0:
        child.recv(source=0)  # here


def one_rank_does_not_come_to_spawn(comm):
    """Spawn is for all ranks, and rank 1 waits for what the new process is to send it.

    Finding: deadlock
    Words: Spawn, recv, 0, 1
    """
    if comm.rank == 0:
        comm.Spawn(sys.executable, [program_file("from mpi4py import MPI")])  # here
    else:
        comm.recv(source=0)  # here


def program_with_lines_as_an_argument(comm):
    """A program of two lines is given with -c.

    Finding: error
    Words: Spawn, line break, 0
    """
    comm.Spawn(sys.executable, ["-c", "from mpi4py import MPI\nMPI.Comm.Get_parent().Disconnect()"])  # here
