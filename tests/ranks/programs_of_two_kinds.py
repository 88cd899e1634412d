"""Programs that run on real and on virtual ranks, and must give the same on both. Each is called with `comm` alone."""

import numpy as np

PROGRAMS: dict = {}
"""All of them, by name."""


def program(function):
    """Note a program."""
    PROGRAMS[function.__name__] = function
    return function


def neighbours(comm):
    """The rank to the right, and the one to the left."""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def pair(comm):
    """The other rank of a pair: 0 and 1, 2 and 3."""
    return comm.rank ^ 1


def of(comm, n=3):
    """Numbers that tell their rank."""
    return np.arange(n) + 10.0 * comm.rank


# --- sends and receives -----------------------------------------------------------------------------------------------


@program
def send_and_recv(comm):
    right, left = neighbours(comm)
    got = np.empty(3)
    if comm.rank % 2 == 0:
        comm.Send(of(comm), dest=right)
        comm.Recv(got, source=left)
    else:
        comm.Recv(got, source=left)
        comm.Send(of(comm), dest=right)
    return got


@program
def ssend_to_a_posted_irecv(comm):
    got = np.empty(3)
    request = comm.Irecv(got, source=pair(comm))
    comm.Ssend(of(comm), dest=pair(comm))
    request.Wait()
    return got


@program
def ssend_to_a_posted_irecv_from_anybody(comm):
    from mpi4py import MPI

    got = np.empty(3)
    request = comm.Irecv(got, source=MPI.ANY_SOURCE)
    comm.Ssend(of(comm), dest=pair(comm))
    request.Wait()
    return got


@program
def ssend_to_a_posted_irecv_and_tests(comm):
    got = np.empty(3)
    request = comm.Irecv(got, source=pair(comm))
    comm.Ssend(of(comm), dest=pair(comm))
    while not request.Test():
        pass
    return got


@program
def ssend_of_objects_to_a_posted_irecv(comm):
    request = comm.irecv(source=pair(comm))
    comm.ssend({"from": comm.rank}, dest=pair(comm))
    return request.wait()


@program
def ssend_of_objects_to_an_irecv_from_anybody(comm):
    request = comm.irecv()
    comm.ssend({"from": comm.rank}, dest=pair(comm))
    return request.wait()


@program
def issend_then_recv(comm):
    got = np.empty(3)
    request = comm.Issend(of(comm), dest=pair(comm))
    comm.Recv(got, source=pair(comm))
    request.Wait()
    return got


@program
def issend_of_objects_then_recv(comm):
    request = comm.issend(comm.rank, dest=pair(comm))
    got = comm.recv(source=pair(comm))
    return got, request.wait()


@program
def issend_before_irecv_then_waitall(comm):
    from mpi4py import MPI

    got = np.empty(3)
    MPI.Request.Waitall([comm.Issend(of(comm), dest=pair(comm)), comm.Irecv(got, source=pair(comm))])
    return got


@program
def ssend_to_the_second_of_two_tags(comm):
    if comm.rank == 0:
        comm.Ssend(of(comm), dest=1, tag=5)
        comm.Ssend(of(comm) + 1, dest=1, tag=4)
    elif comm.rank == 1:
        first, second = np.empty(3), np.empty(3)
        requests = [comm.Irecv(first, source=0, tag=4), comm.Irecv(second, source=0, tag=5)]
        for request in requests:
            request.Wait()
        return first, second


@program
def rsend_to_a_posted_irecv(comm):
    got = np.empty(3)
    request = comm.Irecv(got, source=pair(comm))
    comm.Barrier()
    comm.Rsend(of(comm), dest=pair(comm))
    request.Wait()
    return got


@program
def bsend_with_an_attached_buffer(comm):
    from mpi4py import MPI

    MPI.Attach_buffer(bytearray(1000 + MPI.BSEND_OVERHEAD))
    comm.Bsend(of(comm), dest=pair(comm))
    got = np.empty(3)
    comm.Recv(got, source=pair(comm))
    MPI.Detach_buffer()
    return got


@program
def isend_and_irecv_then_wait(comm):
    right, left = neighbours(comm)
    got = np.empty(3)
    receive, send = comm.Irecv(got, source=left), comm.Isend(of(comm), dest=right)
    return send.Wait(), receive.Wait(), got


@program
def sendrecv_around(comm):
    right, left = neighbours(comm)
    got = np.empty(3)
    comm.Sendrecv(of(comm), right, 3, got, left, 3)
    return got, comm.sendrecv(comm.rank, dest=right, source=left)


@program
def sendrecv_replaces(comm):
    right, left = neighbours(comm)
    mine = of(comm)
    comm.Sendrecv_replace(mine, dest=right, source=left)
    return mine


@program
def isendrecv_around(comm):
    right, left = neighbours(comm)
    got = np.empty(3)
    comm.Isendrecv(of(comm), right, 0, got, left, 0).Wait()
    return got


@program
def isendrecv_by_test(comm):
    right, left = neighbours(comm)
    got = np.empty(3)
    request = comm.Isendrecv(of(comm), dest=right, recvbuf=got, source=left)
    while not request.Test():
        pass
    return got


@program
def isendrecvs_in_waitall(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    first, second = np.empty(3), np.empty(2)
    requests = [
        comm.Isendrecv(of(comm), right, 1, first, left, 1),
        comm.Isendrecv(of(comm, 2), left, 2, second, right, 2),
    ]
    MPI.Request.Waitall(requests)
    return first, second


@program
def isendrecv_replaces(comm):
    right, left = neighbours(comm)
    mine = of(comm)
    comm.Isendrecv_replace(mine, dest=right, source=left).Wait()
    return mine


@program
def to_oneself(comm):
    got = np.empty(3)
    request = comm.Isend(of(comm), dest=comm.rank, tag=1)
    comm.Recv(got, source=comm.rank, tag=1)
    request.Wait()
    return got


@program
def messages_overtake_by_tag(comm):
    if comm.rank == 0:
        for tag in (1, 2, 3):
            comm.send(tag * 10, dest=1, tag=tag)
    if comm.rank == 1:
        return [comm.recv(source=0, tag=tag) for tag in (3, 1, 2)]


@program
def messages_of_one_tag_stay_in_order(comm):
    if comm.rank == 0:
        requests = [comm.isend(number, dest=1) for number in range(8)]
        return [request.wait() for request in requests]
    if comm.rank == 1:
        return [comm.recv(source=0) for _ in range(8)]


@program
def receives_are_matched_as_posted(comm):
    from mpi4py import MPI

    if comm.rank == 0:
        first, second = np.empty(1), np.empty(1)
        requests = [comm.Irecv(first, source=MPI.ANY_SOURCE), comm.Irecv(second, source=1)]
        comm.Barrier()
        MPI.Request.Waitall(requests)
        return first, second
    comm.Barrier()
    if comm.rank == 1:
        comm.Send(np.array([1.0]), dest=0)
        comm.Send(np.array([2.0]), dest=0)


@program
def receives_of_any_tag_are_matched_as_posted(comm):

    if comm.rank == 0:
        first, second = np.empty(1), np.empty(1)
        requests = [comm.Irecv(first, source=1), comm.Irecv(second, source=1, tag=7)]
        comm.Barrier()
        requests[1].Wait()
        requests[0].Wait()
        return first, second
    comm.Barrier()
    if comm.rank == 1:
        comm.Send(np.array([1.0]), dest=0, tag=7)
        comm.Send(np.array([2.0]), dest=0, tag=7)


@program
def objects_are_matched_as_posted(comm):
    if comm.rank == 0:
        requests = [comm.irecv(source=1), comm.irecv(source=1)]
        comm.Barrier()
        return [requests[1].wait(), requests[0].wait()]
    comm.Barrier()
    if comm.rank == 1:
        comm.send("first", dest=0)
        comm.send("second", dest=0)


@program
def a_buffer_is_received_as_it_was_when_sent(comm):
    if comm.rank == 0:
        numbers = of(comm)
        comm.Send(numbers, dest=1)
        numbers[:] = -1
    if comm.rank == 1:
        got = np.empty(3)
        comm.Recv(got, source=0)
        return got


# --- shapes, sizes and types of buffers -------------------------------------------------------------------------------


def swap(comm, send, receive):
    """Swap buffers with the other of the pair."""
    comm.Sendrecv(send, dest=pair(comm), recvbuf=receive, source=pair(comm))


@program
def empty_messages(comm):
    got = np.empty(0)
    swap(comm, np.empty(0), got)
    comm.Send(np.empty(0, np.int32), dest=pair(comm)) if comm.rank % 2 else comm.Recv(np.empty(4), source=pair(comm))
    return got


@program
def a_short_message_in_a_long_place(comm):
    got = np.full(5, -1.0)
    swap(comm, of(comm), got)
    return got


@program
def matrices(comm):
    got = np.empty((2, 3), np.float32)
    swap(comm, np.full((2, 3), comm.rank, np.float32), got)
    return got


@program
def columns_first(comm):
    got = np.empty((2, 3))
    swap(comm, np.asfortranarray(np.arange(6.0).reshape(2, 3) + comm.rank), got)
    return got


@program
def a_strided_array(comm):
    swap(comm, np.arange(6.0)[::2], np.empty(3))


@program
def bytes_and_bytearrays(comm):
    got = bytearray(4)
    swap(comm, b"abcd", got)
    return bytes(got)


@program
def with_a_datatype(comm):
    from mpi4py import MPI

    got = np.empty(3)
    swap(comm, [of(comm), MPI.DOUBLE], [got, MPI.DOUBLE])
    return got


@program
def with_a_count_and_a_datatype(comm):
    from mpi4py import MPI

    got = np.full(3, -1.0)
    swap(comm, [of(comm), 2, MPI.DOUBLE], (got, 2, MPI.DOUBLE))
    return got


@program
def with_a_count_and_an_offset(comm):
    from mpi4py import MPI

    got = np.full(5, -1.0)
    swap(comm, [of(comm, 5), (2, 1), MPI.DOUBLE], [got, 2, 3, MPI.DOUBLE])
    return got


@program
def with_an_integer_type(comm):
    from mpi4py import MPI

    got = np.empty(3, np.int32)
    swap(comm, (np.arange(3, dtype="i") + comm.rank, MPI.INT), (got, MPI.INT32_T))
    return got


@program
def with_a_letter_for_a_type(comm):
    got = np.empty(3)
    swap(comm, [of(comm), 3, "d"], [got, "d"])
    return got


@program
def as_bytes(comm):
    from mpi4py import MPI

    got = np.empty(3)
    swap(comm, [of(comm), MPI.BYTE], [got, 24, MPI.BYTE])
    return got


@program
def with_another_type_than_the_arrays(comm):
    from mpi4py import MPI

    got = np.empty(3)
    swap(comm, [of(comm), 6, MPI.FLOAT], [got, 6, MPI.FLOAT])
    return got


@program
def with_a_type_that_does_not_divide_the_array(comm):
    from mpi4py import MPI

    swap(comm, [np.ones(13, bool), MPI.DOUBLE], np.empty(13, bool))


@program
def with_a_count_beyond_the_array(comm):
    from mpi4py import MPI

    swap(comm, [of(comm), 5, MPI.DOUBLE], np.empty(5))


@program
def with_dtlib(comm):
    from mpi4py.util.dtlib import from_numpy_dtype

    kind = from_numpy_dtype(np.dtype("f8"))
    got = np.empty(3)
    swap(comm, [of(comm), 3, kind], [got, 3, kind])
    return got


@program
def with_a_type_by_its_code(comm):
    from mpi4py import MPI

    kind = MPI.Datatype.fromcode("i")
    got = np.empty(2, "i")
    swap(comm, [np.full(2, comm.rank, "i"), kind], [got, kind])
    return got, kind.Get_size(), kind.size, kind.extent, kind.Get_extent(), kind.tocode(), kind == MPI.INT


@program
def bcast_with_a_datatype(comm):
    from mpi4py import MPI

    numbers = of(comm) if comm.rank == 1 else np.empty(3)
    comm.Bcast([numbers, 2, MPI.DOUBLE], root=1)
    return numbers[:2]


@program
def allreduce_with_a_datatype(comm):
    from mpi4py import MPI

    total = np.zeros(3)
    comm.Allreduce([of(comm), MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.MAX)
    return total


@program
def reduce_of_a_part(comm):
    from mpi4py import MPI

    total = np.full(3, -1.0)
    comm.Reduce([of(comm), 2, MPI.DOUBLE], [total, 2, MPI.DOUBLE], root=0)
    return total


@program
def scatterv_with_displacements_and_a_datatype(comm):
    from mpi4py import MPI

    counts, begins = [1, 2, 0, 3], [5, 3, 0, 0]
    block = np.empty(counts[comm.rank])
    whole = [np.arange(6.0), counts, begins, MPI.DOUBLE] if comm.rank == 0 else None
    comm.Scatterv(whole, block, root=0)
    return block


@program
def scatterv_with_a_pair_and_a_datatype(comm):
    from mpi4py import MPI

    counts, begins = (1, 2, 0, 3), (0, 1, 3, 3)
    block = np.empty(counts[comm.rank], np.float32)
    whole = [np.arange(6, dtype="f"), (counts, begins), MPI.FLOAT] if comm.rank == 0 else None
    comm.Scatterv(whole, [block, MPI.FLOAT], root=0)
    return block


@program
def gatherv_with_counts(comm):
    from mpi4py import MPI

    counts = np.array([1, 2, 3, 4])
    whole = np.full(10, -1.0) if comm.rank == 0 else None
    comm.Gatherv(of(comm, comm.rank + 1), [whole, counts, MPI.DOUBLE] if comm.rank == 0 else None, root=0)
    return whole


@program
def allgatherv_with_displacements(comm):
    from mpi4py import MPI

    whole = np.full(10, -1.0)
    comm.Allgatherv([of(comm, 2), MPI.DOUBLE], [whole, [2] * 4, [6, 4, 2, 0], MPI.DOUBLE])
    return whole


@program
def alltoallv_with_counts(comm):
    from mpi4py import MPI

    size, rank = comm.size, comm.rank
    counts, begins = [rank + 1] * size, [(rank + 1) * other for other in range(size)]
    from_each = [other + 1 for other in range(size)]
    starts = [sum(from_each[:other]) for other in range(size)]
    got = np.empty(sum(from_each))
    comm.Alltoallv([of(comm, sum(counts)), (counts, begins), MPI.DOUBLE], [got, (from_each, starts), MPI.DOUBLE])
    return got


@program
def reduce_scatter_with_counts(comm):
    part = np.empty([1, 2, 3, 0][comm.rank])
    comm.Reduce_scatter(of(comm, 6), part, [1, 2, 3, 0])
    return part


@program
def a_larger_message_than_the_place(comm):
    swap(comm, of(comm, 4), np.empty(3))


@program
def recv_of_a_larger_message(comm):
    if comm.rank == 0:
        comm.Send(of(comm, 4), dest=1)
    if comm.rank == 1:
        comm.Recv(np.empty(3), source=0)


@program
def a_message_that_ends_in_a_number(comm):
    if comm.rank == 0:
        comm.Send(np.zeros(3, "f"), dest=1)
    if comm.rank == 1:
        comm.Recv(np.empty(3), source=0)


@program
def floats_received_as_integers(comm):
    if comm.rank == 0:
        comm.Send(np.arange(3.0), dest=1)
    if comm.rank == 1:
        got = np.empty(3, np.int64)
        comm.Recv(got, source=0)
        return got


@program
def send_of_what_is_no_buffer(comm):
    comm.Send([1, 2, 3], dest=pair(comm))


@program
def send_of_objects_as_a_buffer(comm):
    comm.Send(np.array([None, {}]), dest=pair(comm))


@program
def recv_of_a_buffer(comm):
    if comm.rank == 0:
        comm.Send(of(comm), dest=1)
    if comm.rank == 1:
        comm.recv(source=0)


@program
def recv_into_a_read_only_array(comm):
    got = np.empty(3)
    got.flags.writeable = False
    swap(comm, of(comm), got)


# --- many requests ----------------------------------------------------------------------------------------------------


@program
def ring_with_waitany(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    steps = 2 * (comm.size - 1)
    places = [np.empty(3) for _ in range(steps)]
    requests = [comm.Irecv(place, source=left, tag=step) for step, place in enumerate(places)]
    sends = [comm.Isend(of(comm), dest=right, tag=0)]
    order = []
    for _ in range(steps):
        step = MPI.Request.Waitany(requests)
        order.append(step)
        if step + 1 < steps:
            sends.append(comm.Isend(places[step] + 1, dest=right, tag=step + 1))
    MPI.Request.Waitall(sends)
    return places, order


@program
def ring_with_testany(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    steps = 2 * (comm.size - 1)
    places = [np.empty(3) for _ in range(steps)]
    requests = [comm.Irecv(place, source=left, tag=step) for step, place in enumerate(places)]
    comm.Send(of(comm), dest=right, tag=0)
    for _ in range(steps):
        while not (found := MPI.Request.Testany(requests))[1]:
            pass
        if found[0] + 1 < steps:
            comm.Send(places[found[0]] + 1, dest=right, tag=found[0] + 1)
    return places


@program
def ring_with_waitsome(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    steps = 2 * (comm.size - 1)
    places = [np.empty(3) for _ in range(steps)]
    requests = [comm.Irecv(place, source=left, tag=step) for step, place in enumerate(places)]
    comm.Send(of(comm), dest=right, tag=0)
    done = 0
    while done < steps:
        for step in MPI.Request.Waitsome(requests):
            done += 1
            if step + 1 < steps:
                comm.Send(places[step] + 1, dest=right, tag=step + 1)
    return places


@program
def waitall_with_statuses(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    got, statuses = np.empty(3), [MPI.Status(), MPI.Status()]
    MPI.Request.Waitall([comm.Irecv(got, source=left, tag=comm.rank), comm.Isend(of(comm), right, tag=right)], statuses)
    return statuses[0].Get_source(), statuses[0].Get_tag(), statuses[0].Get_count(MPI.DOUBLE)


@program
def waitall_of_objects_with_statuses(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    statuses = [MPI.Status(), MPI.Status()]
    requests = [comm.irecv(source=left, tag=comm.rank), comm.isend(comm.rank, right, tag=right)]
    return MPI.Request.waitall(requests, statuses), statuses[0].source, statuses[0].tag


@program
def waitany_with_a_status(comm):
    from mpi4py import MPI

    if comm.rank == 0:
        places = [np.empty(1) for _ in range(3)]
        requests = [comm.Irecv(place, source=rank + 1, tag=rank) for rank, place in enumerate(places)]
        seen = []
        for _ in requests:
            status = MPI.Status()
            MPI.Request.Waitany(requests, status)
            seen.append((status.source, status.tag, status.Get_count(MPI.DOUBLE)))
        return sorted(seen), MPI.Request.Waitany(requests) == MPI.UNDEFINED
    comm.Send(np.ones(1), dest=0, tag=comm.rank - 1)


@program
def nothing_to_wait_for(comm):
    from mpi4py import MPI

    return (
        MPI.Request.Waitall([]), MPI.Request.Waitany([]) == MPI.UNDEFINED, MPI.Request.Waitsome([]),
        MPI.Request.Testall([]), MPI.Request.Testany([]), MPI.Request.Testsome([]),
        MPI.Request.waitall([MPI.REQUEST_NULL]),
    )  # fmt: skip


@program
def wait_twice(comm):
    request = comm.Irecv(got := np.empty(3), source=pair(comm))
    comm.Send(of(comm), dest=pair(comm))
    return request.Wait(), request.Wait(), request.Test(), got


@program
def a_cancelled_receive(comm):
    from mpi4py import MPI

    request = comm.Irecv(np.empty(3), source=pair(comm), tag=9)
    request.Cancel()
    status = MPI.Status()
    request.Wait(status)
    return status.Is_cancelled()


@program
def persistent_requests(comm):
    from mpi4py import MPI

    right, left = neighbours(comm)
    mine, got, seen = of(comm), np.empty(3), []
    send, receive = comm.Send_init(mine, right), comm.Recv_init(got, left)
    for _ in range(3):
        MPI.Prequest.Startall([receive, send])
        MPI.Request.Waitall([receive, send])
        seen.append(got.copy())
        mine[:] = got
    send.Free()
    receive.Free()
    return seen


@program
def a_persistent_synchronous_send(comm):
    got = np.empty(3)
    send, receive = comm.Ssend_init(of(comm), pair(comm)), comm.Recv_init(got, pair(comm))
    receive.Start()
    send.Start()
    send.Wait()
    receive.Wait()
    send.Free()
    receive.Free()
    return got


@program
def request_null_and_get_status(comm):
    from mpi4py import MPI

    request = comm.Irecv(got := np.empty(3), source=pair(comm))
    comm.Send(of(comm), dest=pair(comm))
    while not request.Get_status():
        pass
    request.Wait()
    return got, MPI.REQUEST_NULL == MPI.REQUEST_NULL


# --- statuses and probes ----------------------------------------------------------------------------------------------


@program
def a_status_in_full(comm):
    from mpi4py import MPI

    if comm.rank == 1:
        comm.Send(of(comm, 5), dest=0, tag=42)
    if comm.rank == 0:
        status = MPI.Status()
        comm.Recv(np.empty(8), source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        return (
            status.source, status.tag, status.count, status.Get_source(), status.Get_tag(), status.Get_count(),
            status.Get_count(MPI.DOUBLE), status.Get_elements(MPI.DOUBLE), status.Is_cancelled(), status.error,
            status.cancelled, status.Get_count(MPI.INT), status.Get_count(MPI.BYTE),
        )  # fmt: skip


@program
def a_count_that_is_no_whole_number(comm):
    from mpi4py import MPI

    if comm.rank == 1:
        comm.Send(np.zeros(3, "f"), dest=0)
    if comm.rank == 0:
        status = MPI.Status()
        comm.Recv(np.empty(3, "f"), source=1, status=status)
        return status.Get_count(MPI.DOUBLE) == MPI.UNDEFINED


@program
def a_status_of_an_object(comm):
    from mpi4py import MPI

    if comm.rank == 3:
        comm.send("text", dest=0, tag=6)
    if comm.rank == 0:
        status = MPI.Status()
        return comm.recv(status=status), status.source, status.tag, status.Get_count() > 0


@program
def probe_then_recv(comm):
    from mpi4py import MPI

    if comm.rank == 2:
        comm.Send(of(comm, 7), dest=0, tag=3)
    if comm.rank == 0:
        status = MPI.Status()
        comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        got = np.empty(status.Get_count(MPI.DOUBLE))
        comm.Recv(got, source=status.Get_source(), tag=status.Get_tag())
        return got


@program
def iprobe_until_it_is_there(comm):
    if comm.rank == 2:
        comm.send("here", dest=0, tag=3)
    if comm.rank == 0:
        while not comm.iprobe(source=2, tag=3):
            pass
        return comm.recv(source=2, tag=3)


@program
def mprobe_then_recv(comm):
    from mpi4py import MPI

    if comm.rank == 2:
        comm.Send(of(comm, 7), dest=0, tag=3)
        comm.send("an object", dest=0, tag=4)
    if comm.rank == 0:
        status = MPI.Status()
        message = comm.Mprobe(status=status, tag=3)
        got = np.empty(status.Get_count(MPI.DOUBLE))
        message.Recv(got)
        return got, comm.mprobe(tag=4).recv()


@program
def improbe_then_recv(comm):
    if comm.rank == 2:
        comm.send("an object", dest=0, tag=4)
    if comm.rank == 0:
        while (message := comm.improbe(source=2)) is None:
            pass
        return message.recv()


@program
def from_nobody_and_to_nobody(comm):
    from mpi4py import MPI

    got, status = np.full(2, -1.0), MPI.Status()
    comm.Send(of(comm), dest=MPI.PROC_NULL)
    comm.Recv(got, source=MPI.PROC_NULL, status=status)
    comm.Sendrecv(of(comm), MPI.PROC_NULL, recvbuf=got, source=MPI.PROC_NULL)
    comm.Isend(of(comm), MPI.PROC_NULL).Wait()
    comm.Irecv(got, MPI.PROC_NULL).Wait()
    comm.send(1, dest=MPI.PROC_NULL)
    return got, comm.recv(source=MPI.PROC_NULL), comm.sendrecv(1, MPI.PROC_NULL, source=MPI.PROC_NULL)


@program
def probes_of_nobody(comm):
    from mpi4py import MPI

    status = MPI.Status()
    comm.Probe(MPI.PROC_NULL, status=status)
    return comm.Iprobe(MPI.PROC_NULL), status.source == MPI.PROC_NULL, status.Get_count()


@program
def a_line_with_ends(comm):
    from mpi4py import MPI

    up = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    down = comm.rank - 1 if comm.rank else MPI.PROC_NULL
    halo = np.full(2, -1.0)
    comm.Sendrecv(of(comm, 1), up, recvbuf=halo[:1], source=down)
    comm.Sendrecv(of(comm, 1), down, recvbuf=halo[1:], source=up)
    return halo


@program
def to_a_rank_that_is_not_there(comm):
    comm.Send(of(comm), dest=comm.size)


@program
def from_a_rank_that_is_not_there(comm):
    comm.Recv(of(comm), source=comm.size)


@program
def irecv_from_a_rank_that_is_not_there(comm):
    comm.irecv(source=-7).wait()


@program
def a_tag_below_zero(comm):
    comm.send(1, dest=pair(comm), tag=-5)


@program
def a_tag_that_is_no_number(comm):
    comm.send(1, dest=pair(comm), tag="a")


@program
def a_root_that_is_not_there(comm):
    comm.Bcast(of(comm), root=comm.size)


@program
def a_root_of_objects_that_is_not_there(comm):
    comm.bcast(1, root=-1)


@program
def an_argument_too_many(comm):
    comm.Barrier(1)


@program
def a_lambda_as_an_object(comm):
    import threading

    comm.send(threading.Lock(), dest=pair(comm))


# --- collectives ------------------------------------------------------------------------------------------------------


@program
def collectives_of_buffers(comm):
    from mpi4py import MPI

    size, mine = comm.size, of(comm, 2)
    whole, part, found = np.empty(2 * size), np.empty(2), []
    comm.Bcast(mine, root=1)
    comm.Allgather(mine, whole)
    found.append(whole.copy())
    comm.Gather(mine, whole if comm.rank == 2 else None, root=2)
    comm.Scatter(whole if comm.rank == 2 else None, part, root=2)
    found.append(part.copy())
    comm.Alltoall(whole, np.empty_like(whole))
    for op in (MPI.SUM, MPI.PROD, MPI.MAX, MPI.MIN):
        comm.Allreduce(mine, part, op=op)
        found.append(part.copy())
    comm.Reduce(mine, part, root=3)
    comm.Scan(mine, part)
    found.append(part.copy())
    comm.Barrier()
    return found


@program
def collectives_begun_and_waited_for(comm):
    from mpi4py import MPI

    size, mine = comm.size, of(comm, 2)
    whole, part, total = np.empty(2 * size), np.empty(2), np.empty(2)
    requests = [comm.Iallreduce(mine, total), comm.Iallgather(mine, whole), comm.Ibarrier()]
    MPI.Request.Waitall(requests)
    comm.Iscatter(whole if comm.rank == 0 else None, part, root=0).Wait()
    comm.Ibcast(mine, root=2).Wait()
    return whole, part, total, mine


@program
def exscan_leaves_rank_0(comm):
    part = np.full(2, -1.0)
    comm.Exscan(of(comm, 2), part)
    return part, comm.exscan(comm.rank)


@program
def in_place(comm):
    from mpi4py import MPI

    size, rank = comm.size, comm.rank
    total, whole = of(comm), np.full(2 * size, -1.0)
    comm.Allreduce(MPI.IN_PLACE, total)
    whole[2 * rank : 2 * rank + 2] = rank
    comm.Allgather(MPI.IN_PLACE, whole)
    mine = of(comm)
    comm.Reduce(MPI.IN_PLACE if rank == 0 else mine, mine if rank == 0 else None, root=0)
    block = np.empty(2)
    comm.Scatter(whole if rank == 0 else None, MPI.IN_PLACE if rank == 0 else block, root=0)
    scanned = of(comm)
    comm.Scan(MPI.IN_PLACE, scanned)
    swapped = of(comm, size)
    comm.Alltoall(MPI.IN_PLACE, swapped)
    gathered = np.full(size, float(rank))
    comm.Gather(MPI.IN_PLACE if rank == 1 else gathered[:1], gathered if rank == 1 else None, root=1)
    return total, whole, mine, scanned, swapped, gathered


@program
def logical_and_bitwise_operations(comm):
    from mpi4py import MPI

    numbers, got = np.array([comm.rank, 1, 6], np.int32), np.empty(3, np.int32)
    found = []
    for op in (MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BOR, MPI.BXOR):
        comm.Allreduce(numbers, got, op=op)
        found += [got.copy(), comm.allreduce(comm.rank, op=op)]
    return found


@program
def where_the_largest_is(comm):
    from mpi4py import MPI

    value = [3, 7, 7, 1][comm.rank]
    return comm.allreduce((value, comm.rank), op=MPI.MAXLOC), comm.allreduce((value, comm.rank), op=MPI.MINLOC)


@program
def bitwise_and_of_floats(comm):
    from mpi4py import MPI

    comm.Allreduce(of(comm), np.empty(3), op=MPI.BAND)


@program
def sum_of_truth_values(comm):
    got = np.empty(3, bool)
    comm.Allreduce(np.array([True, False, comm.rank == 1]), got)
    return got


@program
def small_integers_overflow(comm):
    got = np.empty(2, np.int8)
    comm.Allreduce(np.full(2, 100, np.int8), got)
    return got


@program
def an_operation_of_ones_own(comm):
    from mpi4py import MPI

    op = MPI.Op.Create(lambda one, two, kind: None, commute=True)
    name = op.is_predefined
    op.Free()
    larger = MPI.Op.Create(lambda one, other, _: max(one, other, key=abs), commute=True)
    result = comm.allreduce(-comm.rank, op=larger)
    larger.Free()
    return name, result


@program
def collectives_of_objects(comm):
    return [
        comm.bcast({"a": comm.rank}, root=2),
        comm.scatter([str(rank) for rank in range(comm.size)] if comm.rank == 1 else None, root=1),
        comm.gather(comm.rank, root=3), comm.allgather([comm.rank]),
        comm.alltoall([(comm.rank, other) for other in range(comm.size)]), comm.allreduce([comm.rank]),
        comm.reduce(comm.rank, root=1), comm.scan(comm.rank), comm.barrier(),
    ]  # fmt: skip


@program
def scatter_of_too_few(comm):
    comm.scatter([1, 2] if comm.rank == 0 else None, root=0)


@program
def unlike_buffers_in_allreduce(comm):
    comm.Allreduce(of(comm), np.empty(3, np.float32))


@program
def a_result_that_is_too_short(comm):
    comm.Allreduce(of(comm), np.empty(2))


@program
def the_same_array_twice_in_allreduce(comm):
    mine = of(comm)
    comm.Allreduce(mine, mine)


@program
def a_gather_into_a_place_that_is_too_short(comm):
    comm.Gather(of(comm), np.empty(4) if comm.rank == 0 else None, root=0)


@program
def an_allgather_into_a_place_that_is_too_short(comm):
    comm.Allgather(of(comm), np.empty(5))


@program
def a_scatter_that_does_not_divide(comm):
    block = np.empty(2)
    comm.Scatter(np.arange(9.0) if comm.rank == 0 else None, block, root=0)
    return block


@program
def counts_beyond_the_array(comm):
    block = np.empty(3)
    comm.Scatterv([np.arange(6.0), [3, 3, 3, 3]] if comm.rank == 0 else None, block, root=0)


@program
def collectives_of_two_communicators(comm):
    half = comm.Split(comm.rank % 2, -comm.rank)
    total = half.allreduce(comm.rank)
    got = np.empty(1)
    half.Allreduce(np.array([1.0 * comm.rank]), got)
    other = comm.Dup()
    if comm.rank == 0:
        other.send("on another", dest=1)
        comm.send("on the first", dest=1)
    seen = None
    if comm.rank == 1:
        seen = comm.recv(source=0), other.recv(source=0)
    found = half.rank, half.size, total, got, seen
    half.Free()
    other.Free()
    return found


@program
def split_with_undefined(comm):
    from mpi4py import MPI

    half = comm.Split(0 if comm.rank < 2 else MPI.UNDEFINED, comm.rank)
    if comm.rank < 2:
        result = half.allgather(comm.rank)
        half.Free()
        return result
    return half == MPI.COMM_NULL


@program
def groups_and_create(comm):
    group = comm.Get_group()
    first = group.Incl([1, 3])
    made = comm.Create(first)
    if comm.rank in (1, 3):
        return made.rank, made.allgather(comm.rank), first.size, first.rank


@program
def split_by_shared_memory(comm):
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    found = node.size, node.rank
    node.Free()
    return found


@program
def a_grid(comm):
    grid = comm.Create_cart([2, 2], periods=[True, False])
    up, down = grid.Shift(0, 1)
    left, right = grid.Shift(1, 1)
    got = np.full(1, -1.0)
    grid.Sendrecv(of(comm, 1), right, recvbuf=got, source=left)
    return grid.coords, grid.dims, up, down, left, right, got, grid.Get_cart_rank([1, 1])


@program
def dims_of_a_grid(comm):
    from mpi4py import MPI

    return MPI.Compute_dims(comm.size, 2)


@program
def who_and_where(comm):
    from mpi4py import MPI

    return comm.Get_rank(), comm.Get_size(), comm.is_intra, comm.Get_name() is not None, MPI.Wtime() >= 0


@program
def names_of_mpi(comm):
    from mpi4py import MPI

    return isinstance(comm, MPI.Comm), isinstance(comm, MPI.Intracomm), MPI.SUM == MPI.SUM, comm == MPI.COMM_NULL


@program
def world_of_one(comm):
    from mpi4py import MPI

    return MPI.COMM_WORLD.allreduce(comm.rank), MPI.COMM_WORLD.size


@program
def catches_an_error_of_mpi(comm):
    from mpi4py import MPI

    try:
        comm.Send(of(comm), dest=99)
    except MPI.Exception as error:
        return "MPI", error.Get_error_class() == MPI.ERR_RANK
    except Exception as error:
        return type(error).__name__


@program
def a_window(comm):
    from mpi4py import MPI

    memory = np.zeros(1)
    window = MPI.Win.Create(memory, comm=comm)
    window.Fence()
    window.Put(np.array([1.0 * comm.rank]), neighbours(comm)[0])
    window.Fence()
    window.Free()
    return memory


# --- what hangs -------------------------------------------------------------------------------------------------------


@program
def all_receive_first(comm):
    comm.recv(source=neighbours(comm)[1])


@program
def all_ssend_first(comm):
    comm.Ssend(of(comm), dest=neighbours(comm)[0])
    comm.Recv(np.empty(3), source=neighbours(comm)[1])


@program
def ssend_to_a_posted_irecv_with_another_tag(comm):
    request = comm.Irecv(np.empty(3), source=pair(comm), tag=1)
    comm.Ssend(of(comm), dest=pair(comm), tag=2)
    request.Wait()


@program
def issend_that_nobody_takes(comm):
    if comm.rank == 0:
        comm.Issend(of(comm), dest=1).Wait()


@program
def a_wrong_tag(comm):
    if comm.rank == 0:
        comm.send(1, dest=1, tag=3)
    if comm.rank == 1:
        comm.recv(source=0, tag=4)


@program
def one_rank_does_not_come_to_the_barrier(comm):
    if comm.rank:
        comm.Barrier()


@program
def a_barrier_and_a_bcast(comm):
    comm.Barrier() if comm.rank == 0 else comm.bcast(1, root=1)


@program
def another_root(comm):
    comm.bcast(1, root=comm.rank % 2)


@program
def unlike_lengths_in_allreduce(comm):
    comm.Allreduce(of(comm, 3 + comm.rank % 2), np.empty(3 + comm.rank % 2))


@program
def a_probe_in_vain(comm):
    if comm.rank == 0:
        comm.Probe(source=1)


@program
def mprobe_in_vain(comm):
    if comm.rank == 0:
        comm.Mprobe(source=1)


@program
def waitany_in_vain(comm):
    from mpi4py import MPI

    if comm.rank == 0:
        MPI.Request.Waitany([comm.Irecv(np.empty(1), source=rank) for rank in (1, 2)])


@program
def waitall_in_vain(comm):
    from mpi4py import MPI

    if comm.rank == 1:
        comm.Send(np.ones(1), dest=0)
    if comm.rank == 0:
        MPI.Request.Waitall([comm.Irecv(np.empty(1), source=rank) for rank in (1, 2)])


@program
def an_isendrecv_that_nobody_answers(comm):
    if comm.rank == 0:
        comm.Isendrecv(of(comm), 1, recvbuf=np.empty(3), source=1).Wait()


@program
def an_error_on_one_rank_while_others_wait(comm):
    if comm.rank == 2:
        raise ValueError("no")
    comm.recv(source=2)


@program
def a_message_that_nobody_receives(comm):
    if comm.rank == 0:
        comm.send("nobody", dest=1)


@program
def works_only_with_buffered_messages(comm):
    comm.Send(of(comm), dest=pair(comm))
    got = np.empty(3)
    comm.Recv(got, source=pair(comm))
    return got


@program
def an_isend_that_nobody_waits_for(comm):
    comm.Isend(of(comm), dest=pair(comm))
    got = np.empty(3)
    comm.Recv(got, source=pair(comm))
    return got
