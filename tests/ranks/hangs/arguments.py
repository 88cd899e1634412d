"""Messages that do not meet because of one argument: a tag, a destination, a communicator.

A good report has both values: the one that is waited for, and that of the message that is there.
"""

import time

import numpy as np
from mpi4py import MPI


def tag_is_the_number_of_the_sender(comm):
    """Rank 1 marks its sum with its own number, and rank 0 asks for the tag of the first worker.

    Finding: deadlock
    Words: recv, tag=10, 11
    """
    if comm.rank == 1:
        comm.send(3.5, dest=0, tag=10 + comm.rank)
    else:
        return comm.recv(source=1, tag=10)  # here


def array_of_the_step_before(comm):
    """Rank 0 numbers its steps from 41 and rank 1 from 42.

    Finding: deadlock
    Words: Recv, tag=42, 41
    """
    field = np.zeros(4)
    if comm.rank == 0:
        comm.Send(field, dest=1, tag=41)
    else:
        comm.Recv(field, source=0, tag=42)  # here


def probed_under_another_tag(comm):
    """Rank 0 asks with Probe how long the message of kind 5 is, but it is of kind 6.

    Finding: deadlock
    Words: Probe, tag=5, 6
    """
    if comm.rank == 1:
        comm.Send(np.ones(7), dest=0, tag=6)
        return
    status = MPI.Status()
    comm.Probe(source=1, tag=5, status=status)  # here
    room = np.empty(status.Get_count(MPI.DOUBLE))
    comm.Recv(room, source=1, tag=5)


def digits_of_the_tag_exchanged(comm):
    """One side has 21 for the tag and the other 12, and the sender insists on an answer.

    Finding: deadlock
    Words: Ssend, Recv, tag=21, tag=12
    """
    numbers = np.arange(3)
    if comm.rank == 0:
        comm.Ssend(numbers, dest=1, tag=21)  # here
    else:
        comm.Recv(numbers, source=0, tag=12)  # here


def irecv_under_the_tag_of_the_other_direction(comm):
    """The message to the left has tag 31, and the receive that is posted for it has 13.

    Finding: deadlock
    Words: irecv, tag=13, 31
    """
    if comm.rank == 1:
        comm.send("border", dest=0, tag=31)
    else:
        request = comm.irecv(source=1, tag=13)  # here
        return request.wait()  # here


def sendrecv_with_the_same_two_tags(comm):
    """Both ranks send with tag 1 and receive with tag 2: what one sends, the other does not take.

    Finding: deadlock
    Words: sendrecv, tag=2, 1
    """
    other = 1 - comm.rank
    return comm.sendrecv(comm.rank, dest=other, sendtag=1, source=other, recvtag=2)  # here


def persistent_receive_of_another_tag(comm):
    """The persistent receive is made with tag 80, and the persistent send with 81.

    Finding: deadlock
    Words: Recv_init, tag=80, 81
    """
    numbers = np.zeros(3)
    if comm.rank == 0:
        request = comm.Send_init(numbers, dest=1, tag=81)
    else:
        request = comm.Recv_init(numbers, source=0, tag=80)  # here
    request.Start()
    request.Wait()  # here
    request.Free()


def result_sent_to_the_next_rank_instead(comm):
    """Rank 3 sends the last result to rank 1, and rank 0 waits for it.

    Finding: deadlock
    Ranks: 4
    Words: recv, 0, 3
    """
    if comm.rank == 3:
        comm.send("last result", dest=1, tag=4)
    elif comm.rank == 0:
        return comm.recv(source=3, tag=4)  # here


def received_on_the_communicator_of_the_row(comm):
    """Rank 2 sends on the communicator of all, and rank 0 receives on that of its row.

    Finding: deadlock
    Ranks: 4
    Words: Recv, 0
    """
    row, total = comm.Split(comm.rank % 2, comm.rank), np.zeros(1)
    if comm.rank == 2:
        comm.Send(total, dest=0)
    elif comm.rank == 0:
        row.Recv(total, source=1)  # here


def tags_that_are_the_numbers_of_the_senders(comm):
    """Each worker marks its sum with its own number, and rank 0 asks for these tags in another order.

    Finding: correct
    Ranks: 4
    """
    if comm.rank:
        comm.send(comm.rank / 2, dest=0, tag=10 + comm.rank)
    else:
        assert [comm.recv(tag=tag) for tag in (13, 11, 12)] == [1.5, 0.5, 1.0]


def probed_with_any_tag(comm):
    """Rank 0 takes what is there, and learns its tag and length from the status; rank 1 is late.

    Finding: correct
    """
    if comm.rank == 1:
        time.sleep(1.0)
        comm.Send(np.ones(7), dest=0, tag=6)
        return
    status = MPI.Status()
    comm.Probe(source=1, tag=MPI.ANY_TAG, status=status)
    room = np.empty(status.Get_count(MPI.DOUBLE))
    comm.Recv(room, source=1, tag=status.Get_tag())
    assert room.sum() == 7.0


def ssend_under_the_same_tag(comm):
    """The sender insists on an answer, and the receiver comes a second later, with the same tag.

    Finding: correct
    """
    numbers = np.arange(3)
    if comm.rank == 0:
        comm.Ssend(numbers, dest=1, tag=21)
    else:
        time.sleep(1.0)
        comm.Recv(numbers, source=0, tag=21)


def sendrecv_with_the_two_tags_exchanged(comm):
    """What rank 0 sends has tag 1 and what rank 1 sends has tag 2, and each asks for that of the other.

    Finding: correct
    """
    other = 1 - comm.rank
    assert comm.sendrecv(comm.rank, dest=other, sendtag=1 + comm.rank, source=other, recvtag=1 + other) == other


def persistent_requests_with_one_tag(comm):
    """Persistent requests with the same tag on both sides, started three times.

    Finding: correct
    """
    numbers = np.zeros(3)
    if comm.rank == 0:
        request = comm.Send_init(numbers, dest=1, tag=80)
    else:
        request = comm.Recv_init(numbers, source=0, tag=80)
    for step in range(3):
        if comm.rank == 0:
            numbers[:] = step
        request.Start()
        request.Wait()
        assert numbers[0] == step
    request.Free()


def received_on_the_row_where_it_was_sent(comm):
    """The second rank of each row sends on the communicator of the row.

    Finding: correct
    Ranks: 4
    """
    row, total = comm.Split(comm.rank % 2, comm.rank), np.full(1, float(comm.rank))
    if row.rank == 1:
        row.Send(total, dest=0)
    else:
        row.Recv(total, source=1)
        assert total[0] == comm.rank + 2
    row.Free()
