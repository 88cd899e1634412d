"""Collectives of neighbours on a grid or a graph, which need the neighbours and nobody else.

MPI 4.1, section 8.6. Written from the ideas; none is copied.
"""

import numpy as np


def corner_skips_the_halo_exchange(comm):
    """Rank 3 thinks that the border needs no exchange.

    Finding: deadlock
    Words: Neighbor_alltoall, 3
    Ranks: 4
    """
    line = comm.Create_cart([4], periods=[True])
    if line.rank != 3:
        line.Neighbor_alltoall(np.full(2, float(line.rank)), np.empty(2))  # here


def one_rank_meets_all_ranks_first(comm):
    """On the ring rank 1 is in the barrier of all ranks while the others are with their neighbours.

    Finding: deadlock
    Words: neighbor_allgather, Barrier, 0, 1
    Ranks: 3
    """
    ring = comm.Create_cart([3], periods=[True])
    if ring.rank == 1:
        comm.Barrier()  # here
        ring.neighbor_allgather(ring.rank)
    else:
        ring.neighbor_allgather(ring.rank)  # here
        comm.Barrier()


def wait_for_a_neighbour_that_has_left(comm):
    """The nonblocking form; rank 0 has returned.

    Finding: deadlock
    Words: Ineighbor_allgather, 0, 1
    Ranks: 4
    """
    ring = comm.Create_cart([4], periods=[True])
    if ring.rank:
        ring.Ineighbor_allgather(np.full(1, ring.rank), np.empty(2, dtype=int)).Wait()  # here


def source_of_the_graph_does_not_send(comm):
    """Edges lead from rank 0 to all others, and rank 0 waits for an answer first.

    Finding: deadlock
    Words: neighbor_alltoall, recv, 0
    Ranks: 3
    """
    if comm.rank == 0:
        star = comm.Create_dist_graph_adjacent([], [1, 2])
        comm.recv(source=1)  # here
        star.neighbor_alltoall([1, 2])
    else:
        star = comm.Create_dist_graph_adjacent([0], [])
        star.neighbor_alltoall([])  # here
        comm.send("done", dest=0)


def one_step_more_on_rank_2(comm):
    """Rank 2 takes four steps, its neighbours three.

    Finding: deadlock
    Words: Neighbor_alltoall, 2
    Ranks: 3
    """
    line = comm.Create_cart([3], periods=[False])
    edges, ghosts = np.zeros((2, 3)), np.zeros((2, 3))
    for _ in range(4 if line.rank == 2 else 3):
        line.Neighbor_alltoall(edges, ghosts)  # here


def halos_of_a_grid(comm):
    """All ranks exchange with their neighbours, in each of the forms; at open ends nothing arrives.

    Finding: correct
    Ranks: 4
    """
    grid = comm.Create_cart([2, 2], periods=[True, False])
    got = np.full(4, -1)
    grid.Neighbor_allgather(np.array([grid.rank]), got)
    expected = [edge for direction in (0, 1) for edge in grid.Shift(direction, 1)]
    assert [number for number, edge in zip(got, expected, strict=True) if edge >= 0] == [
        edge for edge in expected if edge >= 0
    ]
    grid.Neighbor_alltoall(np.arange(4), got)
    request = grid.Ineighbor_alltoallv([np.arange(4.0), [1] * 4], [np.empty(4), [1] * 4])
    grid.Ineighbor_allgather(np.array([grid.rank]), got).Wait()
    request.Wait()
    assert len(grid.neighbor_allgather({"rank": grid.rank})) == 4
    assert len(grid.neighbor_alltoall(["up", "down", "left", "right"])) == 4


def neighbours_go_on_without_the_far_end(comm):
    """On the line rank 0 needs rank 1 alone: it goes on and frees rank 3 from its receive.

    Finding: correct
    Ranks: 4
    """
    line = comm.Create_cart([4], periods=[False])
    if line.rank == 3:
        assert comm.recv(source=0) == "come"
    if line.rank == 1:
        sum(range(30_000_000))
    ghosts = np.full(2, -1)
    line.Neighbor_allgather(np.array([line.rank]), ghosts)
    if line.rank == 0:
        assert ghosts[1] == 1
        comm.send("come", dest=3)


def messages_along_a_graph(comm):
    """Each rank tells its right neighbour of the graph, first with numbers and then with an object.

    Finding: correct
    Ranks: 4
    """
    left, right = (comm.rank - 1) % 4, (comm.rank + 1) % 4
    graph = comm.Create_dist_graph_adjacent([left], [right])
    got = np.empty(1, dtype=int)
    graph.Neighbor_alltoall(np.array([comm.rank]), got)
    assert got[0] == left
    assert graph.neighbor_allgather(comm.rank) == [left]
    graph.Free()
