"""Calls in an order that makes ranks wait for each other.

The class is "call ordering" of the MPI Bugs Initiative and MPI-BugBench, and "misplaced call" of MPI-CorrBench: every
call has its partner somewhere in the program, but a rank reaches its own call only after one that waits for another
rank, which waits too.
"""

import time

import numpy as np
from mpi4py import MPI


def both_receive_arrays_first(comm):
    """Both ranks want the border row of the other before they hand out their own.

    Finding: deadlock
    Words: Recv, 0, 1
    """
    other = 1 - comm.rank
    mine = np.full(8, comm.rank, dtype="d")
    theirs = np.empty(8)
    comm.Recv(theirs, source=other, tag=17)  # here
    comm.Send(mine, dest=other, tag=17)


def three_wait_in_a_circle(comm):
    """Each of three ranks receives from its left before it sends to its right, so nobody starts.

    Finding: deadlock
    Ranks: 3
    Words: recv, 0, 1, 2
    """
    left = (comm.rank - 1) % comm.size
    right = (comm.rank + 1) % comm.size
    token = comm.recv(source=left)  # here
    token.append(comm.rank)
    comm.send(token, dest=right)


def four_swap_with_the_right_neighbour(comm):
    """Each of four ranks first swaps with its right neighbour, which is busy with its own right neighbour.

    Finding: deadlock
    Ranks: 4
    Words: ssend, recv, 0, 3
    """

    def swap(other):
        if comm.rank < other:
            comm.ssend({"from": comm.rank}, dest=other)  # here
            return comm.recv(source=other)
        got = comm.recv(source=other)  # here
        comm.ssend({"from": comm.rank}, dest=other)
        return got

    swap((comm.rank + 1) % 4)
    swap((comm.rank - 1) % 4)


def large_objects_meet(comm):
    """Both ranks send a big object before they receive one, and neither fits in a buffer of MPI.

    Finding: deadlock
    Words: send, 0, 1
    """
    samples = np.random.default_rng(comm.rank).random(600_000)
    comm.send({"owner": comm.rank, "samples": samples}, dest=1 - comm.rank)  # here
    comm.recv(source=1 - comm.rank)


def ring_of_large_sends(comm):
    """Each of three ranks sends two megabytes to the right before it receives from the left.

    Finding: deadlock
    Ranks: 3
    Words: Send, 0, 1, 2
    """
    block = np.full(250_000, float(comm.rank))
    incoming = np.empty_like(block)
    comm.Send(block, dest=(comm.rank + 1) % comm.size, tag=4)  # here
    comm.Recv(incoming, source=(comm.rank - 1) % comm.size, tag=4)


def ring_of_small_sends(comm):
    """Each of four ranks sends to the right before it receives: it ends only because the messages are small.

    Finding: luck
    Ranks: 4
    Words: Send
    """
    value = np.array([comm.rank], dtype="i")
    total = 0
    for _ in range(comm.size):
        comm.Send(value, dest=(comm.rank + 1) % comm.size)  # here
        comm.Recv(value, source=(comm.rank - 1) % comm.size)
        total += int(value[0])
    assert total == 6


def ssend_ring(comm):
    """Every rank of the ring hands its token on with a synchronous send before it takes one.

    Finding: deadlock
    Ranks: 4
    Words: Ssend, 0, 1, 3
    """
    token = np.array([10 * comm.rank])
    taken = np.zeros_like(token)
    comm.Ssend(token, dest=(comm.rank - 1) % comm.size)  # here
    comm.Recv(taken, source=(comm.rank + 1) % comm.size)


def names_and_ages_in_another_order(comm):
    """Rank 0 waits for the ages first, rank 1 insists on handing over the names first.

    Finding: deadlock
    Words: recv, ssend, 0, 1
    """
    names, ages = 21, 22
    if comm.rank == 0:
        comm.recv(source=1, tag=ages)  # here
        comm.recv(source=1, tag=names)
    else:
        comm.ssend(["Ada", "Bob"], dest=0, tag=names)  # here
        comm.ssend([36, 41], dest=0, tag=ages)


def both_probe_first(comm):
    """Both ranks ask how long the message of the other is before either has sent one.

    Finding: deadlock
    Words: Probe, 0, 1
    """
    other = 1 - comm.rank
    status = MPI.Status()
    comm.Probe(source=other, tag=3, status=status)  # here
    comm.Send(np.arange(comm.rank + 2), dest=other, tag=3)
    buffer = np.empty(status.Get_count(MPI.INT64_T), dtype="int64")
    comm.Recv(buffer, source=other, tag=3)


def turns_out_of_step(comm):
    """The ranks take turns with sending, but rank 1 begins to count at one and so both send in the same turn.

    Finding: deadlock
    Words: Ssend, 0, 1
    """
    ball = np.zeros(1)
    first = 0 if comm.rank == 0 else 1
    for step in range(first, first + 4):
        if step % 2 == comm.rank:
            comm.Ssend(ball, dest=1 - comm.rank)  # here
        else:
            comm.Recv(ball, source=1 - comm.rank)


def barrier_before_the_send(comm):
    """Rank 0 goes into the barrier before it sends, rank 1 wants the message before it goes in.

    Finding: deadlock
    Words: barrier, recv, 0, 1
    """
    if comm.rank == 0:
        comm.barrier()  # here
        comm.send("start", dest=1)
    else:
        comm.recv(source=0)  # here
        comm.barrier()


def sendrecv_with_one_neighbour_only(comm):
    """Each rank sends to its right and receives from its right too, but its right neighbour sends the other way.

    Finding: deadlock
    Ranks: 3
    Words: sendrecv, 0, 1, 2
    """
    right = (comm.rank + 1) % comm.size
    comm.sendrecv(comm.rank, dest=right, source=right)  # here


def odd_ranks_send_first(comm):
    """Large messages go round a ring; odd ranks send first and even ranks receive first, so each send meets a receive.

    Finding: correct
    Ranks: 4
    """
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    block, incoming = np.full(300_000, float(comm.rank)), np.empty(300_000)
    if comm.rank % 2:
        comm.Send(block, dest=right)
        comm.Recv(incoming, source=left)
    else:
        comm.Recv(incoming, source=left)
        comm.Send(block, dest=right)
    assert incoming[-1] == left


def sendrecv_ring(comm):
    """Each of three ranks sends two megabytes to the right and receives from the left in one call.

    Finding: correct
    Ranks: 3
    """
    block, incoming = np.full(250_000, float(comm.rank)), np.empty(250_000)
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    for _ in range(3):
        comm.Sendrecv(block, dest=right, sendtag=4, recvbuf=incoming, source=left, recvtag=4)
        block, incoming = incoming, block
    assert block[0] == comm.rank


def pipeline_of_three(comm):
    """Chunks move through three ranks; the first only sends, the last only receives, and each takes its time.

    Finding: correct
    Ranks: 3
    """
    total = 0
    for chunk in range(5):
        data = chunk if comm.rank == 0 else comm.recv(source=comm.rank - 1, tag=chunk)
        time.sleep(0.1)
        if comm.rank + 1 < comm.size:
            comm.ssend(data * 2, dest=comm.rank + 1, tag=chunk)
        total += data
    assert total == 10 * 2**comm.rank


def partner_is_late(comm):
    """Rank 0 waits in a large send and then in a receive while rank 1 works for a while: slow, but it goes on.

    Finding: correct
    """
    field = np.ones(500_000)
    if comm.rank == 0:
        comm.Send(field, dest=1)
        comm.Recv(field, source=1)
        assert field.max() == 3
    else:
        time.sleep(0.7)
        comm.Recv(field, source=0)
        time.sleep(0.8)
        comm.Send(3 * field, dest=0)


def greetings_cross(comm):
    """Both ranks send a short greeting first: nothing promises that the sends return before a receive is there.

    Finding: luck
    Words: send, 0, 1
    """
    other = 1 - comm.rank
    comm.send(f"hello from {comm.rank}", dest=other, tag=other)  # here
    assert comm.recv(source=other, tag=comm.rank).endswith(str(other))


def receives_again_in_round_three(comm):
    """In the third round rank 1 wants a new time step from rank 0 before it has sent the result rank 0 waits for.

    Finding: deadlock
    Words: recv, 0, 1
    """
    for step in range(6):
        if comm.rank == 0:
            comm.send(0.1 * step, dest=1)
            comm.recv(source=1)  # here
        else:
            dt = comm.recv(source=0)
            if step == 3:
                dt = comm.recv(source=0)  # here
            comm.send(dt**2, dest=0)


def rank_0_starts_the_circle(comm):
    """Each rank receives from its left before it sends on, but rank 0 sends first and closes the circle at the end.

    Finding: correct
    Ranks: 3
    """
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.rank == 0:
        comm.ssend([0], dest=right)
        assert comm.recv(source=left) == [0, 1, 2]
    else:
        token = comm.recv(source=left)
        comm.ssend(token + [comm.rank], dest=right)


def probe_then_answer(comm):
    """Only rank 1 asks for the length before it receives, and rank 0 sends before it asks itself.

    Finding: correct
    """
    status = MPI.Status()
    if comm.rank == 0:
        comm.Send(np.arange(7.0), dest=1, tag=3)
    comm.Probe(source=1 - comm.rank, tag=3, status=status)
    buffer = np.empty(status.Get_count(MPI.DOUBLE))
    comm.Recv(buffer, source=1 - comm.rank, tag=3)
    if comm.rank == 1:
        comm.Send(buffer[::2].copy(), dest=0, tag=3)
    assert len(buffer) == (4 if comm.rank == 0 else 7)
