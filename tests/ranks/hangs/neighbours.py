"""Collectives between neighbours in a grid or a graph, and messages that are sent in partitions."""

import time

import numpy as np


def _ring(comm):
    return comm.Create_cart([comm.size], periods=[True])


def one_neighbour_has_converged(comm):
    """Rank 2 has converged and leaves the loop, and its neighbours wait for its border.

    Finding: deadlock
    Ranks: 4
    Words: neighbor_allgather, 2
    Unsaid: computes, computing
    """
    ring = _ring(comm)
    for step in range(3):
        if comm.rank == 2 and step == 1:
            break
        ring.neighbor_allgather(comm.rank)  # here
    comm.barrier()  # here


def halo_begun_and_waited_for_without_rank_3(comm):
    """The halo exchange is begun with Ineighbor_alltoall, by all but rank 3.

    Finding: deadlock
    Ranks: 4
    Words: Ineighbor_alltoall, 3
    Unsaid: computes, computing
    """
    ring = _ring(comm)
    halo = np.empty(2)
    if comm.rank < 3:
        request = ring.Ineighbor_alltoall(np.full(2, float(comm.rank)), halo)
        request.Wait()  # here


def edge_known_at_one_end_only(comm):
    """Rank 1 expects something from rank 2, which has no such edge.

    Finding: deadlock
    Ranks: 3
    Words: neighbor_allgather, 1
    """
    sources = {0: [], 1: [0, 2], 2: []}[comm.rank]
    destinations = {0: [1], 1: [], 2: []}[comm.rank]
    graph = comm.Create_dist_graph_adjacent(sources, destinations)
    graph.neighbor_allgather(comm.rank)  # here


def last_partition_never_ready(comm):
    """Rank 0 marks three of four partitions as ready, and rank 1 waits for the whole message.

    Finding: deadlock
    Words: 0, 1
    Unsaid: computes, computing
    """
    numbers, parts = np.zeros(40), 4
    if comm.rank == 0:
        request = comm.Psend_init(numbers, parts, dest=1, tag=2)
        request.Start()
        for part in range(parts - 1):
            numbers[10 * part : 10 * part + 10] = part
            request.Pready(part)
    else:
        request = comm.Precv_init(numbers, parts, source=0, tag=2)
        request.Start()
    request.Wait()  # here


def partitions_sent_to_a_rank_that_has_none(comm):
    """Rank 1 receives in partitions from rank 0, which sends to rank 2.

    Finding: deadlock
    Ranks: 3
    Words: 1
    """
    numbers = np.zeros(8)
    if comm.rank == 0:
        request = comm.Psend_init(numbers, 2, dest=2, tag=5)
        request.Start()
        request.Pready_range(0, 1)
        request.Wait()
    elif comm.rank == 1:
        request = comm.Precv_init(numbers, 2, source=0, tag=5)
        request.Start()
        request.Wait()  # here


def all_neighbours_take_three_steps(comm):
    """A ring of neighbours, of which rank 2 is slow in each of three steps.

    Finding: correct
    Ranks: 4
    """
    ring = _ring(comm)
    for _ in range(3):
        if comm.rank == 2:
            time.sleep(0.5)
        assert sorted(ring.neighbor_allgather(comm.rank)) == sorted([(comm.rank - 1) % 4, (comm.rank + 1) % 4])
    ring.Free()


def halo_begun_and_waited_for_by_all(comm):
    """The halo exchange is under way while each rank computes, rank 3 for longer.

    Finding: correct
    Ranks: 4
    """
    ring, halo = _ring(comm), np.empty(2)
    request = ring.Ineighbor_alltoall(np.full(2, float(comm.rank)), halo)
    time.sleep(1.5 if comm.rank == 3 else 0.1)
    request.Wait()
    assert sorted(halo) == sorted([(comm.rank - 1) % 4, (comm.rank + 1) % 4])
    ring.Free()


def grid_with_open_ends(comm):
    """A row of ranks without a circle: the first and the last have one neighbour only.

    Finding: correct
    Ranks: 4
    """
    row = comm.Create_cart([comm.size])
    got = row.neighbor_alltoall([comm.rank, comm.rank])
    assert (got[0] is None) == (comm.rank == 0) and (got[1] is None) == (comm.rank == 3)
    row.Free()


def edges_known_at_both_ends(comm):
    """Ranks 0 and 2 tell rank 1 something, rank 2 a second later.

    Finding: correct
    Ranks: 3
    """
    sources, destinations = {0: ([], [1]), 1: ([0, 2], []), 2: ([], [1])}[comm.rank]
    graph = comm.Create_dist_graph_adjacent(sources, destinations)
    if comm.rank == 2:
        time.sleep(1.0)
    assert graph.neighbor_allgather(comm.rank) == sources
    graph.Free()


def partitions_ready_as_they_are_computed(comm):
    """Rank 0 marks each partition as ready when it is computed, and rank 1 waits for all of them; twice.

    Finding: correct
    """
    numbers, parts = np.zeros(40), 4
    if comm.rank == 0:
        request = comm.Psend_init(numbers, parts, dest=1, tag=2)
    else:
        request = comm.Precv_init(numbers, parts, source=0, tag=2)
    for step in (1.0, 2.0):
        request.Start()
        for part in range(parts if comm.rank == 0 else 0):
            time.sleep(0.2)
            numbers[10 * part : 10 * part + 10] = step
            request.Pready(part)
        request.Wait()
        assert (numbers == step).all()
    request.Free()


def partition_used_when_it_has_arrived(comm):
    """Rank 1 asks for the first partition until it is there, and waits for the rest later.

    Finding: correct
    """
    numbers = np.zeros(8)
    if comm.rank == 0:
        request = comm.Psend_init(numbers, 2, dest=1, tag=0)
        request.Start()
        for part in (0, 1):
            time.sleep(0.7)
            numbers[4 * part : 4 * part + 4] = 3.0
            request.Pready(part)
    else:
        request = comm.Precv_init(numbers, 2, source=0, tag=0)
        request.Start()
        while not request.Parrived(0):
            time.sleep(0.01)
        assert (numbers[:4] == 3.0).all()
    request.Wait()
    request.Free()
