"""Requests that are never completed, completed too late, or completed in the wrong order.

The class is "request lifecycle" and "local concurrency" of the MPI Bugs Initiative and MPI-BugBench, and "data race" of
MPI-CorrBench: a nonblocking or persistent operation whose request or whose buffer is not treated as it must be.
"""

import threading
import time

import numpy as np
from mpi4py import MPI


def isend_never_waited_for(comm):
    """Rank 0 starts a send and forgets its request.

    Finding: luck
    Words: isend, 0
    """
    if comm.rank == 0:
        comm.isend({"status": "ok"}, dest=1)  # here
    else:
        assert comm.recv(source=0)["status"] == "ok"


def irecv_read_too_early(comm):
    """Rank 1 uses the numbers before it waits for them; they have not come.

    Finding: luck
    Words: Irecv, 1
    """
    if comm.rank == 0:
        comm.barrier()
        comm.Send(np.ones(4), dest=1, tag=2)
    else:
        field = np.zeros(4)
        request = comm.Irecv(field, source=0, tag=2)
        comm.barrier()
        total = field.sum()  # here
        request.Wait()
        assert total in (0, 4)


def waits_for_the_large_send_first(comm):
    """Both ranks wait for the end of their own large send before they post the receive of the other's.

    Finding: deadlock
    Words: Wait, 0, 1
    """
    other = 1 - comm.rank
    block = np.full((500, 500), float(comm.rank))
    request = comm.Isend(block, dest=other)
    request.Wait()  # here
    comm.Recv(np.empty_like(block), source=other)


def irecv_waited_for_before_the_send(comm):
    """Each rank posts its receive in good time, but waits for it before it sends.

    Finding: deadlock
    Ranks: 3
    Words: wait, 0, 1, 2
    """
    request = comm.irecv(source=(comm.rank - 1) % comm.size, tag=1)
    token = request.wait()  # here
    comm.send(token, dest=(comm.rank + 1) % comm.size, tag=1)


def waitall_with_a_receive_from_itself(comm):
    """Rank 0 posts a receive from every rank, itself too, and sends nothing to itself.

    Finding: deadlock
    Ranks: 3
    Words: Waitall, 0
    """
    if comm.rank > 0:
        comm.Send(np.array([comm.rank]), dest=0)
        return
    parts = np.zeros((comm.size, 1), dtype=int)
    requests = [comm.Irecv(parts[r], source=r) for r in range(comm.size)]
    MPI.Request.Waitall(requests)  # here


def waitany_for_a_third_message(comm):
    """Rank 1 takes three answers in any order, and rank 0 gives two.

    Finding: deadlock
    Words: Waitany, 1, 0
    """
    if comm.rank == 0:
        for tag in (2, 0):
            comm.Send(np.array([tag]), dest=1, tag=tag)
        return
    answers = np.zeros((3, 1), dtype=int)
    requests = [comm.Irecv(answers[tag], source=0, tag=tag) for tag in range(3)]
    for _ in requests:
        MPI.Request.Waitany(requests)  # here


def waitsome_until_all_are_there(comm):
    """Rank 0 collects until it has one message of each helper, and the last helper had nothing to say.

    Finding: deadlock
    Ranks: 4
    Words: Waitsome, 0, 3
    """
    if comm.rank in (1, 2):
        comm.Send(np.array([comm.rank]), dest=0)
    if comm.rank == 0:
        parts = np.zeros((3, 1), dtype=int)
        requests = [comm.Irecv(parts[r - 1], source=r) for r in range(1, 4)]
        done = 0
        while done < 3:
            done += len(MPI.Request.Waitsome(requests))  # here


def polls_under_the_wrong_tag(comm):
    """Rank 0 asks again and again for a message under a tag that rank 1 does not use.

    Finding: deadlock
    Words: Test, 0, 1
    """
    if comm.rank == 1:
        comm.Send(np.ones(2), dest=0, tag=5)
    else:
        halo = np.zeros(2)
        request = comm.Irecv(halo, source=1, tag=6)
        while not request.Test():  # here
            time.sleep(0.01)


def iprobe_on_the_wrong_rank(comm):
    """Rank 2 looks for news from rank 1 until some is there, but rank 0 is the one that sends.

    Finding: deadlock
    Ranks: 3
    Words: iprobe, 2, 1
    """
    if comm.rank == 0:
        comm.send("news", dest=2)
    if comm.rank == 2:
        while not comm.iprobe(source=1):  # here
            pass
        comm.recv(source=1)


def buffer_cleared_while_it_is_sent(comm):
    """Rank 0 sets its buffer to zero after it has started the send and before it has waited.

    Finding: luck
    Words: Isend, 0
    """
    data = np.arange(6.0)
    if comm.rank == 0:
        request = comm.Isend(data, dest=1)
        data[:] = 0  # here
        request.Wait()
    else:
        comm.Recv(data, source=0)


def request_overwritten_in_a_loop(comm):
    """Each turn of the loop throws away the request of the turn before; only the last send is waited for.

    Finding: luck
    Words: isend, 1
    """
    if comm.rank == 1:
        for step in range(4):
            request = comm.isend(step, dest=0, tag=step)  # here
        request.wait()
    else:
        assert [comm.recv(source=1, tag=step) for step in range(4)] == [0, 1, 2, 3]


def persistent_receive_never_started(comm):
    """Rank 1 prepares a receive and waits for it without a start: the wait returns at once, with nothing.

    Finding: luck
    Words: Recv_init, 1
    """
    field = np.full(3, float(comm.rank))
    if comm.rank == 0:
        comm.Send(field, dest=1)
    else:
        request = comm.Recv_init(field, source=0)
        request.Wait()  # here
        assert field[0] == 1
        request.Free()


def persistent_send_started_once_less(comm):
    """The receiver starts its request in each of four rounds, the sender skips the first.

    Finding: deadlock
    Words: Wait, 0, 1
    """
    field = np.zeros(3)
    request = comm.Send_init(field, dest=0) if comm.rank == 1 else comm.Recv_init(field, source=1)
    for step in range(4):
        if comm.rank == 1 and step == 0:
            continue
        request.Start()
        request.Wait()  # here
    request.Free()


def startall_only_on_one_side(comm):
    """Both ranks prepare a send and a receive, but rank 1 starts only its receive.

    Finding: deadlock
    Words: Waitall, 0, 1
    """
    out, back = np.full(4, float(comm.rank)), np.empty(4)
    requests = [comm.Send_init(out, dest=1 - comm.rank), comm.Recv_init(back, source=1 - comm.rank)]
    MPI.Prequest.Startall(requests if comm.rank == 0 else requests[1:])
    MPI.Request.Waitall(requests)  # here


def receive_cancelled_before_the_send(comm):
    """Rank 0 takes back its only receive and tells rank 1 to go on, which then waits to be heard.

    Finding: deadlock
    Words: Ssend, 1, 0
    """
    data = np.zeros(2)
    if comm.rank == 0:
        request = comm.Irecv(data, source=1, tag=9)
        request.Cancel()
        request.Wait()
        comm.send("go on", dest=1)
    else:
        comm.recv(source=0)
        comm.Ssend(data, dest=0, tag=9)  # here


def thread_joined_before_the_send(comm):
    """A thread receives, and both main programs wait for the end of their thread before they send.

    Finding: deadlock
    Words: recv, 0, 1
    """
    other = 1 - comm.rank
    box = []
    listener = threading.Thread(target=lambda: box.append(comm.recv(source=other)), daemon=True)  # here
    listener.start()
    listener.join()  # here
    comm.send("mail", dest=other)


def halo_exchange_with_waitall(comm):
    """All receives and sends are started first, both are large, and one call waits for all.

    Finding: correct
    Ranks: 3
    """
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    mine = np.full(200_000, float(comm.rank))
    from_left, from_right = np.empty_like(mine), np.empty_like(mine)
    requests = [comm.Irecv(from_left, source=left, tag=1), comm.Irecv(from_right, source=right, tag=2)]
    requests += [comm.Isend(mine, dest=right, tag=1), comm.Isend(mine, dest=left, tag=2)]
    MPI.Request.Waitall(requests)
    assert from_left[0] == left and from_right[-1] == right


def polling_that_ends(comm):
    """Rank 0 asks again and again until the message comes, about a second later.

    Finding: correct
    """
    if comm.rank == 1:
        time.sleep(1.0)
        comm.Send(np.ones(2), dest=0, tag=6)
    else:
        halo = np.zeros(2)
        request = comm.Irecv(halo, source=1, tag=6)
        while not request.Test():
            time.sleep(0.01)
        assert halo.sum() == 2


def iprobe_loop_that_ends(comm):
    """Rank 2 works while it looks for news from rank 1, which come after a second and a half.

    Finding: correct
    Ranks: 3
    """
    if comm.rank == 1:
        time.sleep(1.5)
        comm.send("news", dest=2)
    if comm.rank == 2:
        while not comm.iprobe(source=1):
            np.sin(np.arange(1000)).sum()
        assert comm.recv(source=1) == "news"


def improbe_loop_that_ends(comm):
    """Rank 0 asks for a matched message of either helper, and gets both after a while.

    Finding: correct
    Ranks: 3
    """
    if comm.rank > 0:
        time.sleep(0.5 * comm.rank)
        comm.Send(np.full(comm.rank, 2.0), dest=0)
        return
    sizes = []
    while len(sizes) < 2:
        status = MPI.Status()
        message = comm.Improbe(source=MPI.ANY_SOURCE, status=status)
        if message is None:
            time.sleep(0.02)
            continue
        room = np.empty(status.Get_count(MPI.DOUBLE))
        message.Recv(room)
        sizes.append(len(room))
    assert sorted(sizes) == [1, 2]


def persistent_requests_in_step(comm):
    """Both ranks start the same number of rounds, change the buffer between them only, and free at the end.

    Finding: correct
    """
    out, back = np.zeros(4), np.empty(4)
    requests = [comm.Send_init(out, dest=1 - comm.rank), comm.Recv_init(back, source=1 - comm.rank)]
    for step in range(5):
        out[:] = step
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        assert back[0] == step
    for request in requests:
        request.Free()


def thread_sends_for_the_main_program(comm):
    """A thread sends a large block while the main program receives, so that both move on.

    Finding: correct
    """
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    other = 1 - comm.rank
    block, incoming = np.full(200_000, float(comm.rank)), np.empty(200_000)
    sender = threading.Thread(target=comm.Send, args=(block,), kwargs={"dest": other})
    sender.start()
    comm.Recv(incoming, source=other)
    sender.join()
    assert incoming[0] == other


def irecv_never_completed(comm):
    """The halo is received into its place, but nobody ever waits for it.

    Finding: luck
    Words: Irecv, 1
    """
    cells = np.zeros(5)
    if comm.rank == 1:
        comm.Irecv(cells[:1], source=0, tag=40)  # here
    else:
        comm.Send(cells[-1:], dest=1, tag=40)
    comm.barrier()


def busy_until_all_have_answered(comm):
    """Rank 1 works until both its neighbours have answered, and rank 2 never answers.

    Finding: deadlock
    Ranks: 3
    Words: testall, 1, 2
    """
    if comm.rank == 0:
        comm.send("here", dest=1)
    elif comm.rank == 1:
        requests = [comm.irecv(source=0), comm.irecv(source=2)]
        rounds = 0
        while not MPI.Request.testall(requests)[0]:  # here
            rounds += 1


def one_buffer_for_all_sends(comm):
    """The loop fills the same buffer for every receiver while the send to the one before may still need it.

    Finding: luck
    Ranks: 4
    Words: Isend, 0
    """
    number = np.zeros(1, dtype="i")
    if comm.rank > 0:
        comm.Recv(number, source=0)
        return
    requests = []
    for r in range(1, comm.size):
        number[0] = r * r  # here
        requests.append(comm.Isend(number, dest=r))
    MPI.Request.Waitall(requests)


def two_receives_into_one_buffer(comm):
    """Both receives of rank 2 write to the same place, so that one number is lost.

    Finding: luck
    Ranks: 3
    Words: Irecv, 2
    """
    value = np.full(1, float(comm.rank))
    if comm.rank < 2:
        comm.Send(value, dest=2)
    else:
        requests = [comm.Irecv(value, source=r) for r in (0, 1)]  # here
        MPI.Request.Waitall(requests)


def same_request_waited_for_twice(comm):
    """Of two receives the first is waited for twice, because of a slip in a name, and the second never.

    Finding: luck
    Words: Irecv, 0
    """
    north, south = np.zeros(3), np.zeros(3)
    if comm.rank == 0:
        from_north = comm.Irecv(north, source=1, tag=1)
        from_south = comm.Irecv(south, source=1, tag=2)  # here
        from_north.Wait()
        from_north.Wait()
    else:
        comm.Send(north, dest=0, tag=1)
        comm.Send(south, dest=0, tag=2)


def persistent_buffer_refilled_too_early(comm):
    """Rank 1 fills the buffer for the next round before it has waited for the round before.

    Finding: luck
    Words: Start, 1
    """
    row = np.zeros(2)
    request = comm.Send_init(row, dest=0) if comm.rank == 1 else comm.Recv_init(row, source=1)
    for step in range(3):
        request.Start()
        if comm.rank == 1:
            row += 1  # here
        request.Wait()
    request.Free()


def waits_after_the_receive(comm):
    """Both ranks start a large send, receive the other's, and only then wait for their own send.

    Finding: correct
    """
    other = 1 - comm.rank
    block = np.full((500, 500), float(comm.rank))
    incoming = np.empty_like(block)
    request = comm.Isend(block, dest=other)
    comm.Recv(incoming, source=other)
    request.Wait()
    assert incoming[0, 0] == other


def waitany_as_they_come(comm):
    """Rank 0 takes the answers as they come, as many as it has posted receives for.

    Finding: correct
    Ranks: 4
    """
    if comm.rank > 0:
        time.sleep(0.2 * (4 - comm.rank))
        comm.Send(np.array([comm.rank**2]), dest=0)
        return
    answers = np.zeros((3, 1), dtype=int)
    requests = [comm.Irecv(answers[r - 1], source=r) for r in range(1, 4)]
    for _ in requests:
        index = MPI.Request.Waitany(requests)
        assert answers[index, 0] == (index + 1) ** 2


def receive_cancelled_and_done_again(comm):
    """Rank 0 takes back a receive before anybody sends, and posts another for the message that does come.

    Finding: correct
    """
    data = np.zeros(2)
    if comm.rank == 0:
        request = comm.Irecv(data, source=1, tag=9)
        request.Cancel()
        request.Wait()
        comm.send("go on", dest=1)
        comm.Recv(data, source=1, tag=10)
        assert data[1] == 1
    else:
        comm.recv(source=0)
        comm.Ssend(data + 1, dest=0, tag=10)
