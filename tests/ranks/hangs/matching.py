"""A send and a receive that were meant for each other and do not match.

The class is "call matching" and "parameter matching" of the MPI Bugs Initiative and MPI-BugBench, and "argument
mismatch" and "argument error" of MPI-CorrBench: another tag, another rank, another communicator, another type or
length, or a rank that does not exist.
"""

import numpy as np
from mpi4py import MPI

TAG_WORK = 10
TAG_DONE = 11


def tag_of_the_other_direction(comm):
    """Rank 0 sends work under the tag for work, and rank 1 listens for the tag that says all is done.

    Finding: deadlock
    Words: recv, 1, 0, tag
    """
    if comm.rank == 0:
        comm.send([1, 2, 3], dest=1, tag=TAG_WORK)
    else:
        work = comm.recv(source=0, tag=TAG_DONE)  # here
        assert sum(work) == 6


def tags_one_step_apart(comm):
    """The sender counts tags from zero, the receiver from one: all but the last message fit.

    Finding: deadlock
    Words: Recv, 0, 1, tag
    """
    line = np.zeros(4)
    for step in range(3):
        if comm.rank == 1:
            comm.Send(line, dest=0, tag=step)
        else:
            comm.Recv(line, source=1, tag=step + 1)  # here


def expects_it_from_the_boss(comm):
    """Rank 2 expects its part from rank 0, but rank 0 gave everything to rank 1, which hands it on.

    Finding: deadlock
    Ranks: 3
    Words: recv, 2, 0
    """
    if comm.rank == 0:
        comm.send(["left", "right"], dest=1)
    elif comm.rank == 1:
        parts = comm.recv(source=0)
        comm.send(parts[1], dest=2)
    else:
        part = comm.recv(source=0)  # here
        assert part == "right"


def sent_on_a_duplicate(comm):
    """The library sends on its own copy of the communicator, and the caller receives on the original.

    Finding: deadlock
    Words: recv, 0, 1, communicator
    """
    private = comm.Dup()

    def library_send(value, dest):
        private.send(value, dest=dest, tag=1)

    if comm.rank == 1:
        library_send(3.14, 0)
    else:
        comm.recv(source=1, tag=1)  # here


def split_turns_the_ranks_round(comm):
    """The team numbers its ranks backwards, and the leader is still chosen by the number in the world.

    Finding: deadlock
    Ranks: 3
    Words: recv, 1, 2
    """
    team = comm.Split(0, key=-comm.rank)
    if comm.rank == 0:
        for member in range(1, team.size):
            team.send("begin", dest=member)
    else:
        team.recv(source=0)  # here
    team.Free()


def message_longer_than_its_buffer(comm):
    """Rank 0 sends ten numbers and rank 1 has room for eight.

    Finding: error
    Words: Recv, 1
    """
    if comm.rank == 0:
        comm.Send(np.arange(10.0), dest=1)
    else:
        comm.Recv(np.empty(8), source=0)  # here


def integers_read_as_floats(comm):
    """Rank 1 sends whole numbers and rank 0 takes their bits for floating point ones of the same size.

    Finding: luck
    Words: Recv, 0, 1
    """
    if comm.rank == 1:
        comm.Send(np.array([1, 2, 3], dtype="int64"), dest=0)
    else:
        values = np.zeros(3, dtype="float64")
        comm.Recv(values, source=1)  # here
        assert values[2] < 1e-300


def object_into_a_buffer(comm):
    """A pickled text is received straight into a buffer for letters, which then holds the bytes of the pickle.

    Finding: luck
    Words: Recv, 1, 0
    """
    if comm.rank == 0:
        comm.send("Monday", dest=1)
    else:
        letters = bytearray(64)
        comm.Recv([letters, MPI.CHAR], source=0)  # here
        assert not letters.startswith(b"Monday")


def array_taken_for_an_object(comm):
    """The numbers of an array are received as an object, but they are no pickle.

    Finding: error
    Words: recv, 0
    """
    if comm.rank == 1:
        comm.Send(np.arange(4.0), dest=0, tag=6)
    else:
        comm.recv(source=1, tag=6)  # here


def last_rank_sends_beyond_the_end(comm):
    """Every rank sends to the next, and the last one has no next.

    Finding: error
    Ranks: 3
    Words: send, 2
    """
    comm.send(comm.rank, dest=comm.rank + 1)  # here
    if comm.rank > 0:
        comm.recv(source=comm.rank - 1)


def rank_minus_one_is_nobody(comm):
    """Rank 0 receives from rank minus one: in one MPI that is nobody, in another it is anybody.

    Finding: luck
    Ranks: 3
    Words: recv, 0
    """
    if comm.rank < comm.size - 1:
        comm.send("from the left", dest=comm.rank + 1)
    text = comm.recv(source=comm.rank - 1)  # here
    assert text is None or comm.rank > 0


def middle_rank_is_its_own_partner(comm):
    """Ranks pair up from the outside in, and the one in the middle sends to itself before it receives.

    Finding: deadlock
    Ranks: 3
    Words: ssend, 1
    """
    partner = comm.size - 1 - comm.rank
    if comm.rank <= partner:
        comm.ssend("mine", dest=partner)  # here
        comm.recv(source=partner)
    else:
        comm.recv(source=partner)
        comm.ssend("mine", dest=partner)


def tags_taken_in_another_order(comm):
    """The receiver takes the second tag first, which is fine since the sender waits for neither.

    Finding: correct
    """
    if comm.rank == 0:
        requests = [comm.isend(f"part {tag}", dest=1, tag=tag) for tag in (TAG_WORK, TAG_DONE)]
        MPI.Request.waitall(requests)
    else:
        assert comm.recv(source=0, tag=TAG_DONE) == "part 11"
        assert comm.recv(source=0, tag=TAG_WORK) == "part 10"


def ranks_translated_into_the_team(comm):
    """The odd and the even ranks make a team each, and each team uses its own numbers for its ranks.

    Finding: correct
    Ranks: 4
    """
    team = comm.Split(comm.rank % 2, key=comm.rank)
    if team.rank == 0:
        team.send(comm.rank, dest=1)
    else:
        assert team.recv(source=0) == comm.rank - 2
    team.Free()


def buffer_longer_than_its_message(comm):
    """The buffer has room to spare, and the status says how much of it was filled.

    Finding: correct
    """
    if comm.rank == 0:
        comm.Send(np.arange(10.0), dest=1)
    else:
        buffer, status = np.zeros(1000), MPI.Status()
        comm.Recv(buffer, source=0, status=status)
        assert buffer[: status.Get_count(MPI.DOUBLE)].sum() == 45


def room_made_to_measure(comm):
    """Rank 0 takes a matched probe, makes room for what it found, and receives exactly that message.

    Finding: correct
    Ranks: 3
    """
    if comm.rank > 0:
        comm.Send(np.full(comm.rank * 3, comm.rank, dtype="i"), dest=0, tag=comm.rank)
        return
    for source in (2, 1):
        status = MPI.Status()
        message = comm.Mprobe(source=source, tag=source, status=status)
        room = np.empty(status.Get_count(MPI.INT), dtype="i")
        message.Recv(room)
        assert room.sum() == 3 * source**2


def default_tag_on_one_side(comm):
    """Rank 1 insists that its numbered message is taken, and rank 0 asks for tag zero because C programs do.

    Finding: deadlock
    Words: Ssend, Recv, 0, 1, tag
    """
    data = np.arange(3)
    if comm.rank == 1:
        comm.Ssend(data, 0, 7)  # here
    else:
        comm.Recv(data, 1, 0)  # here


def single_precision_half_fills(comm):
    """The sender's numbers have half the size of the receiver's, so that half of the buffer stays as it was.

    Finding: luck
    Words: Recv, 1, 0
    """
    if comm.rank == 0:
        comm.Send(np.ones(100, dtype="f"), dest=1, tag=2)
    else:
        field = np.zeros(100)
        comm.Recv(field, source=0, tag=2)  # here
        assert not field[50:].any()


def double_precision_overflows(comm):
    """Rank 2 keeps its numbers in single precision, and those it receives need twice the room.

    Finding: error
    Ranks: 3
    Words: Recv, 2
    """
    kind = "f" if comm.rank == 2 else "d"
    numbers = np.zeros(6, dtype=kind)
    if comm.rank == 1:
        comm.Send(numbers, dest=2)
    elif comm.rank == 2:
        comm.Recv(numbers, source=1)  # here


def negative_tag(comm):
    """The tag is the difference of two ranks, and it is below zero in one direction.

    Finding: error
    Words: Isend, 1
    """
    other = 1 - comm.rank
    value, got = np.ones(1), np.empty(1)
    if comm.rank == 1:
        request = comm.Isend(value, dest=0, tag=3 * (other - comm.rank))  # here
        request.Wait()
    else:
        comm.Recv(got, source=1, tag=MPI.ANY_TAG)


def bcast_answered_with_recv(comm):
    """Rank 0 tells everybody with a broadcast, and rank 1 waits for a message of its own.

    Finding: deadlock
    Words: recv, 1, 0
    """
    settings = {"dt": 0.1, "steps": 10}
    if comm.rank == 0:
        comm.bcast(settings, root=0)
    else:
        settings = comm.recv(source=0)  # here


def own_partner_with_sendrecv(comm):
    """Ranks pair up from the outside in, and the one in the middle may exchange with itself in one call.

    Finding: correct
    Ranks: 3
    """
    partner = comm.size - 1 - comm.rank
    assert comm.sendrecv(comm.rank, dest=partner, source=partner) == partner


def work_comes_on_a_duplicate(comm):
    """What is sent first is received last: well while so short a message is buffered, and not with a longer one.

    Finding: luck
    Words: send, 0
    """
    private = comm.Dup()
    if comm.rank == 0:
        comm.send("end", dest=1, tag=1)  # here
        private.send("work", dest=1, tag=1)
    else:
        assert private.recv(source=0, tag=1) == "work"
        assert comm.recv(source=0, tag=1) == "end"
    private.Free()
