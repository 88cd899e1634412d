"""Programs that mean the same on virtual ranks as on real ones; they are run on both."""

import numpy as np
from mpi4py import MPI


def both_use_ssend_before_they_receive(comm):
    """Both ranks insist on an answer before they receive.

    Finding: deadlock
    Words: Ssend, 0, 1
    Where: both
    """
    other = 1 - comm.rank
    comm.Ssend(np.ones(3), dest=other)  # here
    comm.Recv(np.empty(3), source=other)


def waitall_for_a_tag_that_nobody_sends(comm):
    """Rank 0 posts receives for tags 70 and 71, and rank 1 sends 70 twice.

    Finding: deadlock
    Words: irecv, 0, tag=71
    Where: both
    """
    if comm.rank == 1:
        comm.send("first", dest=0, tag=70)
        comm.send("second", dest=0, tag=70)
    else:
        requests = [comm.irecv(source=1, tag=tag) for tag in (70, 71)]  # here
        MPI.Request.waitall(requests)  # here


def receive_posted_before_ssend(comm):
    """Both ranks post their receive, and then insist on an answer.

    Finding: correct
    Where: both
    """
    other, got = 1 - comm.rank, np.empty(3)
    request = comm.Irecv(got, source=other)
    comm.Ssend(np.full(3, comm.rank + 1.0), dest=other)
    request.Wait()
    assert got[0] == other + 1.0


def ring_begun_with_isendrecv(comm):
    """Each rank begins to exchange with its neighbours in one call, and waits.

    Finding: correct
    Ranks: 4
    Where: both
    """
    got = np.empty(2)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.Isendrecv(np.full(2, float(comm.rank)), dest=right, recvbuf=got, source=left).Wait()
    assert got[0] == left


def buffers_with_count_and_type(comm):
    """The count and the datatype are written out, and half of the array travels.

    Finding: correct
    Where: both
    """
    numbers = np.full(6, comm.rank + 1.0)
    if comm.rank == 0:
        comm.Send([numbers, 3, MPI.DOUBLE], dest=1)
    else:
        comm.Recv([numbers, 3, MPI.DOUBLE], source=0)
        assert numbers.tolist() == [1.0] * 3 + [2.0] * 3


def taken_with_waitany_as_they_come(comm):
    """Rank 0 takes the results in the order in which they arrive.

    Finding: correct
    Ranks: 4
    Where: both
    """
    if comm.rank:
        comm.Send(np.full(2, float(comm.rank)), dest=0)
        return
    rooms = np.empty((3, 2))
    requests = [comm.Irecv(rooms[source - 1], source=source) for source in (1, 2, 3)]
    for _ in requests:
        MPI.Request.Waitany(requests)
    assert rooms[:, 0].tolist() == [1.0, 2.0, 3.0]
