"""Receives from anybody, where it matters who comes first.

The class is "message race" of the MPI Bugs Initiative and MPI-BugBench: with ANY_SOURCE or ANY_TAG a message is taken
that another receive was waiting for, or the result depends on the order in which messages come.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mpi4py import MPI


def first_minus_second(comm):
    """Rank 0 subtracts the second message from the first, whoever sent them.

    Finding: luck
    Ranks: 3
    Words: recv, 0
    """
    if comm.rank > 0:
        comm.send(10 * comm.rank, dest=0)
    else:
        difference = comm.recv(source=MPI.ANY_SOURCE) - comm.recv(source=MPI.ANY_SOURCE)  # here
        assert abs(difference) == 10


def takes_the_one_it_needs_later(comm):
    """Rank 0 takes any message, which must be that of rank 2, and later waits for rank 2 by name.

    Finding: deadlock
    Ranks: 3
    Words: recv, 0, 2
    """
    if comm.rank == 0:
        first = comm.recv(source=MPI.ANY_SOURCE)
        comm.send(first, dest=1)
        comm.recv(source=2)  # here
    elif comm.rank == 1:
        update = comm.recv(source=0)
        comm.send(update, dest=0)
    else:
        comm.send("ready", dest=0)


def early_bird_saves_the_day(comm):
    """Rank 0 takes any message and then that of rank 2 by name: it ends only because rank 2 is the slower one.

    Finding: luck
    Ranks: 3
    Words: recv, 0, 2
    """
    comm.barrier()
    if comm.rank == 0:
        comm.recv(source=MPI.ANY_SOURCE)  # here
        comm.recv(source=2)
    else:
        time.sleep(0.5 * (comm.rank - 1))
        comm.send(comm.rank, dest=0)


def any_tag_eats_the_stop_message(comm):
    """The worker takes a message too many under any tag and then waits for the stop message it has taken.

    Finding: deadlock
    Words: recv, 1, 0
    """
    stop = 99
    if comm.rank == 0:
        for task in range(3):
            comm.send(task, dest=1, tag=task)
        comm.send(None, dest=1, tag=stop)
    else:
        tasks = [comm.recv(source=0, tag=MPI.ANY_TAG) for _ in range(4)]
        comm.recv(source=0, tag=stop)  # here
        assert tasks


def phases_share_a_tag(comm):
    """A fast helper's number of the second phase can be counted in the first, because both have the same tag.

    Finding: luck
    Ranks: 3
    Words: recv, 0
    """
    if comm.rank > 0:
        for phase in (1, 100):
            comm.send(phase * comm.rank, dest=0, tag=3)
        return
    sums = []
    for _ in range(2):
        sums.append(sum(comm.recv(source=MPI.ANY_SOURCE, tag=3) for _ in range(comm.size - 1)))  # here
    assert sum(sums) == 303


def probes_one_and_takes_another(comm):
    """Rank 0 measures one message and then receives from anybody, which may be a longer one.

    Finding: luck
    Ranks: 3
    Words: Recv, 0
    """
    if comm.rank > 0:
        time.sleep(0.4 * (comm.rank - 1))
        comm.Send(np.ones(3 * comm.rank), dest=0)
        return
    status = MPI.Status()
    for _ in range(2):
        comm.Probe(source=MPI.ANY_SOURCE, status=status)
        room = np.empty(status.Get_count(MPI.DOUBLE))
        comm.Recv(room, source=MPI.ANY_SOURCE)  # here


def status_says_who_it_was(comm):
    """The parts come in any order, and each is put where its sender belongs.

    Finding: correct
    Ranks: 4
    """
    if comm.rank > 0:
        time.sleep(0.1 * (4 - comm.rank))
        comm.send(comm.rank**2, dest=0, tag=1)
        return
    whole, status = [0] * comm.size, MPI.Status()
    for _ in range(1, comm.size):
        part = comm.recv(source=MPI.ANY_SOURCE, tag=1, status=status)
        whole[status.Get_source()] = part
    assert whole == [0, 1, 4, 9]


def master_and_workers(comm):
    """Whoever is free gets the next task, and at the end each worker gets one stop message for its last result.

    Finding: correct
    Ranks: 3
    """
    if comm.rank > 0:
        comm.send(None, dest=0)
        while (task := comm.recv(source=0)) is not None:
            time.sleep(0.05 * comm.rank)
            comm.send(task * task, dest=0)
        return
    tasks, results, working = list(range(8)), [], comm.size - 1
    status = MPI.Status()
    while working:
        result = comm.recv(source=MPI.ANY_SOURCE, status=status)
        if result is not None:
            results.append(result)
        task = tasks.pop() if tasks else None
        working -= task is None
        comm.send(task, dest=status.Get_source())
    assert sorted(results) == [n * n for n in range(8)]


def phases_with_their_own_tags(comm):
    """A fast helper's number of the second phase waits for its turn, because each phase has its tag.

    Finding: correct
    Ranks: 3
    """
    if comm.rank > 0:
        for phase in (1, 100):
            comm.send(phase * comm.rank, dest=0, tag=phase)
        return
    sums = [sum(comm.recv(source=MPI.ANY_SOURCE, tag=phase) for _ in range(2)) for phase in (1, 100)]
    assert sums == [3, 300]


def mprobe_of_an_object(comm):
    """Rank 1 finds any message with a matched probe and takes exactly that one, twice.

    Finding: correct
    """
    if comm.rank == 0:
        comm.send("short", dest=1, tag=5)
        time.sleep(0.5)
        comm.send(list(range(1000)), dest=1, tag=6)
    else:
        lengths = [len(comm.mprobe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG).recv()) for _ in range(2)]
        assert lengths == [5, 1000]


def order_of_arrival_taken_for_rank(comm):
    """The parts are put together as they come, as if they came in the order of the ranks.

    Finding: luck
    Ranks: 4
    Words: Recv, 0
    """
    if comm.rank > 0:
        comm.Send(np.full(2, comm.rank, dtype="i"), dest=0, tag=1)
        return
    whole = np.zeros((comm.size, 2), dtype="i")
    for row in range(1, comm.size):
        comm.Recv(whole[row], source=MPI.ANY_SOURCE, tag=1)  # here
    assert whole.sum() == 12


def one_receive_more_than_helpers(comm):
    """Rank 0 counts itself among the helpers it hears from.

    Finding: deadlock
    Ranks: 3
    Words: Recv, 0
    """
    part, total = np.zeros(1), 0.0
    if comm.rank > 0:
        comm.Send(part + comm.rank, dest=0)
    else:
        for _ in range(comm.size):
            comm.Recv(part, source=MPI.ANY_SOURCE)  # here
            total += part[0]


def last_writer_wins(comm):
    """Every helper proposes its setting, and the one that comes last is kept.

    Finding: luck
    Ranks: 4
    Words: irecv, 0
    """
    settings = {"dt": 0.0}
    if comm.rank == 0:
        for _ in range(3):
            settings.update(comm.irecv(source=MPI.ANY_SOURCE).wait())  # here
        assert settings["dt"] > 0
    else:
        comm.isend({"dt": 0.1 * comm.rank}, dest=0).wait()


def sum_of_any(comm):
    """The order of the messages does not matter, since whole numbers are only added up.

    Finding: correct
    Ranks: 4
    """
    if comm.rank > 0:
        comm.send(comm.rank, dest=0)
    else:
        assert sum(comm.recv(source=MPI.ANY_SOURCE) for _ in range(3)) == 6


def probes_one_and_takes_that(comm):
    """Rank 0 measures any message and then receives from the rank and under the tag that the probe found.

    Finding: correct
    Ranks: 3
    """
    if comm.rank > 0:
        comm.Send(np.ones(3 * comm.rank), dest=0, tag=comm.rank)
        return
    status, total = MPI.Status(), 0
    for _ in range(2):
        comm.Probe(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        room = np.empty(status.Get_count(MPI.DOUBLE))
        comm.Recv(room, source=status.Get_source(), tag=status.Get_tag())
        total += room.sum()
    assert total == 9


def threads_talk_each_with_its_tag(comm):
    """Each of three threads sends to one other rank and receives from it; all send first, but nobody waits for that.

    Finding: correct
    Ranks: 4
    """

    def talk(other):
        comm.send(comm.rank, dest=other, tag=comm.rank)
        return comm.recv(source=other, tag=other)

    others = [rank for rank in range(comm.size) if rank != comm.rank]
    with ThreadPoolExecutor(len(others)) as pool:
        assert list(pool.map(talk, others)) == others


def nobody_knows_how_many_messages_come(comm):
    """A sparse exchange: look for messages until all have been received everywhere, as an Ibarrier tells.

    Finding: correct
    Ranks: 4
    """
    sent = [comm.issend(comm.rank, dest=(comm.rank + step) % 4, tag=7) for step in range(1, 1 + comm.rank % 3)]
    got, all_done, status = [], None, MPI.Status()
    while all_done is None or not all_done.Test():
        if comm.Iprobe(source=MPI.ANY_SOURCE, tag=7, status=status):
            got.append(comm.recv(source=status.source, tag=7))
        if all_done is None and all([one.Test() for one in sent]):
            all_done = comm.Ibarrier()
