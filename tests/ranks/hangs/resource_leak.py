"""Things of MPI that stay behind at the end, or that are used after they have been freed.

The class is "resource leak" of the MPI Bugs Initiative and MPI-BugBench: communicators, requests, types and messages
that a program makes and does not give back. Nothing is seen of it in a small program.
"""

import numpy as np
from mpi4py import MPI


def a_new_duplicate_each_round(comm):
    """The solver makes a copy of the communicator in every round and frees none.

    Finding: luck
    Words: Dup, 0, 1
    """
    for step in range(5):
        private = comm.Dup()  # here
        assert private.sendrecv(step, dest=1 - comm.rank, source=1 - comm.rank) == step


def only_rank_0_frees_in_the_end(comm):
    """All ranks make the team, but a rank that is done returns before the line that frees it.

    Finding: luck
    Ranks: 3
    Words: Free, 1, 2
    """
    team = comm.Dup()
    if comm.rank > 0:
        team.send(comm.rank, dest=0)
        return  # here
    for r in (1, 2):
        team.recv(source=r)
    team.Free()  # here


def persistent_request_kept(comm):
    """The prepared send and receive are used and waited for, but never freed.

    Finding: luck
    Words: Send_init, Recv_init
    """
    row = np.ones(3)
    request = comm.Send_init(row, dest=1) if comm.rank == 0 else comm.Recv_init(row, source=0)  # here
    for _ in range(3):
        request.Start()
        request.Wait()


def stop_message_to_a_rank_that_has_left(comm):
    """Rank 0 tells both helpers to stop, but rank 2 has gone home by itself.

    Finding: luck
    Ranks: 3
    Words: send, 2
    """
    if comm.rank == 0:
        for helper in (1, 2):
            comm.send("stop", dest=helper, tag=8)  # here
    elif comm.rank == 1:
        assert comm.recv(source=0, tag=8) == "stop"


def receive_posted_ahead_and_left(comm):
    """Rank 1 always posts the receive of the next round, and after the last round one is left over.

    Finding: luck
    Words: irecv, 1
    """
    rounds = 3
    if comm.rank == 0:
        for step in range(rounds):
            comm.send(step, dest=1, tag=step)
    else:
        request = comm.irecv(source=0, tag=0)
        for step in range(rounds):
            assert request.wait() == step
            request = comm.irecv(source=0, tag=step + 1)  # here


def request_freed_and_forgotten(comm):
    """Rank 0 frees the request at once, so it can never know when it may change its buffer, and does.

    Finding: luck
    Words: Isend, 0
    """
    data = np.arange(5.0)
    if comm.rank == 0:
        request = comm.Isend(data, dest=1)
        request.Free()
        data[:] = -1  # here
    else:
        comm.Recv(data, source=0)
    comm.barrier()


def used_after_free(comm):
    """Rank 1 sends on the copy after it has freed it.

    Finding: error
    Words: send, 1
    """
    private = comm.Dup()
    private.Free()
    if comm.rank == 1:
        private.send("late", dest=0)  # here


def bsend_without_room(comm):
    """The buffer that rank 0 gives to MPI is too small for its message.

    Finding: error
    Words: Bsend, 0
    """
    data = np.zeros(1000)
    if comm.rank == 0:
        MPI.Attach_buffer(bytearray(100 + MPI.BSEND_OVERHEAD))
        comm.Bsend(data, dest=1)  # here
    else:
        comm.Recv(data, source=0)


def duplicate_freed_each_round(comm):
    """The solver makes a copy of the communicator in every round and frees it at the end of the round.

    Finding: correct
    """
    for step in range(5):
        private = comm.Dup()
        try:
            assert private.sendrecv(step, dest=1 - comm.rank, source=1 - comm.rank) == step
        finally:
            private.Free()


def bsend_with_room(comm):
    """Both ranks send first, into a buffer that is large enough, and detach it at the end.

    Finding: correct
    """
    data = np.full(200_000, float(comm.rank))
    MPI.Attach_buffer(bytearray(data.nbytes + MPI.BSEND_OVERHEAD))
    comm.Bsend(data, dest=1 - comm.rank)
    comm.Recv(data, source=1 - comm.rank)
    MPI.Detach_buffer()
    assert data[0] == 1 - comm.rank


def receive_posted_ahead_and_cancelled(comm):
    """Rank 1 always posts the receive of the next round, and takes back the one that is left over.

    Finding: correct
    """
    row = np.zeros(2)
    if comm.rank == 0:
        for step in range(3):
            comm.Send(row + step, dest=1, tag=step)
        return
    request = comm.Irecv(row, source=0, tag=0)
    for step in range(3):
        request.Wait()
        assert row[0] == step
        request = comm.Irecv(row, source=0, tag=step + 1)
    request.Cancel()
    request.Wait()


def split_not_freed(comm):
    """The ranks of each half talk in a communicator of their own, which stays behind.

    Finding: luck
    Ranks: 4
    Words: Split
    """
    half = comm.Split(comm.rank // 2)  # here
    if half.rank == 0:
        half.send("pair", dest=1)
    else:
        half.recv(source=0)


def column_type_kept(comm):
    """The type for a column is made and committed for each message, and never freed.

    Finding: luck
    Words: Create_vector
    """
    grid = np.arange(16.0).reshape(4, 4) * (comm.rank + 1)

    def column_type():
        return MPI.DOUBLE.Create_vector(4, 1, 4).Commit()  # here

    if comm.rank == 0:
        comm.Send([grid, 1, column_type()], dest=1)
    else:
        comm.Recv([grid, 1, column_type()], source=0)
        assert grid[3, 0] == 12


def undefined_color_has_nothing_to_free(comm):
    """Rank 2 is in no team and gets the null communicator, so only the others free theirs.

    Finding: correct
    Ranks: 3
    """
    team = comm.Split(0 if comm.rank < 2 else MPI.UNDEFINED)
    if team != MPI.COMM_NULL:
        assert team.sendrecv(comm.rank, dest=1 - team.rank, source=1 - team.rank) == 1 - comm.rank
        team.Free()


def column_type_freed(comm):
    """The type for a column is made once, used by both ranks, and freed.

    Finding: correct
    """
    grid = np.arange(16.0).reshape(4, 4) * (comm.rank + 1)
    column = MPI.DOUBLE.Create_vector(4, 1, 4).Commit()
    if comm.rank == 0:
        comm.Send([grid, 1, column], dest=1)
    else:
        comm.Recv([grid, 1, column], source=0)
        assert grid[3, 0] == 12 and grid[3, 1] == 26
    column.Free()
