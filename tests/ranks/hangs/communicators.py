"""Communicators: made, used and freed in ways that do not fit together on all ranks.

In the MPI Bugs Initiative these belong to "Invalid parameter" and "Call ordering" (on derived communicators), in
MPI-BugBench and MPI-CorrBench to "communicator" mismatches. Written from the ideas; none is copied.
"""

import numpy as np
from mpi4py import MPI


def helper_rank_stays_out_of_split(comm):
    """Rank 2 only writes files and thinks that Split does not concern it.

    Finding: deadlock
    Words: Split, 2
    Ranks: 3
    """
    if comm.rank == 2:
        return
    workers = comm.Split(color=0, key=comm.rank)  # here
    workers.Barrier()


def sum_over_all_instead_of_the_group(comm):
    """Only the ranks with colour 1 sum, but they name the communicator of all ranks.

    Finding: deadlock
    Words: allreduce, 1, 3
    Ranks: 4
    """
    colour = comm.rank % 2
    team = comm.Split(colour, comm.rank)
    if colour == 1:
        comm.allreduce(comm.rank)  # here
    team.Free()


def two_libraries_in_opposite_orders(comm):
    """Two copies of the communicator, and the ranks meet on them in opposite orders.

    Finding: deadlock
    Words: Barrier, allreduce, 0, 1
    """
    solver, output = comm.Dup(), comm.Dup()
    if comm.rank == 0:
        solver.allreduce(1.5)  # here
        output.Barrier()
    else:
        output.Barrier()  # here
        solver.allreduce(2.5)


def three_overlapping_pairs_in_a_circle(comm):
    """Pairs 0-1, 1-2 and 2-0: each rank begins with the pair to its right, so all three wait in a circle.

    Finding: deadlock
    Words: Allreduce, 0, 1, 2
    Ranks: 3
    """
    right, left = (comm.rank + 1) % 3, (comm.rank - 1) % 3
    pairs = {}
    for a, b in [(0, 1), (1, 2), (2, 0)]:
        made = comm.Split(0 if comm.rank in (a, b) else MPI.UNDEFINED)
        if made != MPI.COMM_NULL:
            pairs[a + b - comm.rank] = made
    total = np.zeros(1)
    for other in (right, left):
        pairs[other].Allreduce(np.ones(1), total)  # here


def last_rank_of_the_row_does_not_gather(comm):
    """Rows of two ranks; rank 3 has an empty block and does not come to the gather of its row.

    Finding: deadlock
    Words: gather, 2, 3
    Ranks: 4
    """
    row = comm.Split(comm.rank // 2, comm.rank)
    block = list(range(comm.rank, 3))
    if block:
        row.gather(block, root=0)  # here


def waiting_for_oneself_on_comm_self(comm):
    """The message comes from rank 0 of another communicator; on COMM_SELF nobody else can send.

    Finding: deadlock
    Words: recv, 1
    """
    if comm.rank == 0:
        comm.send("start", dest=1)
    else:
        MPI.COMM_SELF.recv(source=0)  # here


def sent_on_one_communicator_received_on_its_copy(comm):
    """Rank 0 sends on the copy, rank 1 waits on the original: messages do not cross from one to the other.

    Finding: deadlock
    Words: Recv, 1
    """
    copy = comm.Dup()
    values = np.arange(3.0)
    if comm.rank == 0:
        copy.Send(values, dest=1, tag=7)  # here
    else:
        comm.Recv(values, source=0, tag=7)  # here


def freed_before_the_last_sum(comm):
    """The communicator of the group is freed, and then used for one more sum.

    Finding: error
    Words: allreduce
    """
    team = comm.Split(0, -comm.rank)
    team.allreduce(comm.rank)
    team.Free()
    team.allreduce(comm.rank * 2)  # here


def rank_left_out_uses_the_null_communicator(comm):
    """Rank 0 gives UNDEFINED, gets COMM_NULL and calls Barrier on it all the same.

    Finding: error
    Words: Barrier, 0
    Ranks: 3
    """
    workers = comm.Split(MPI.UNDEFINED if comm.rank == 0 else 5)
    workers.Barrier()  # here


def world_rank_used_in_a_small_communicator(comm):
    """The upper half is a communicator of two ranks, but the message is addressed to rank 3.

    Finding: error
    Words: send, 2
    Ranks: 4
    """
    half = comm.Split(comm.rank // 2)
    if comm.rank == 2:
        half.send([1, 2, 3], dest=3)  # here
    elif comm.rank == 3:
        half.recv(source=0)


def world_rank_used_as_source_is_oneself(comm):
    """Ranks 1 and 2 are 0 and 1 in their group; rank 2 waits for source 1, and there that is itself.

    Finding: deadlock
    Words: recv, 2
    Ranks: 3
    """
    group = comm.Split(int(comm.rank > 0), comm.rank)
    if comm.rank == 1:
        group.isend("result", dest=1)
    elif comm.rank == 2:
        group.recv(source=1)  # here


def shift_with_source_and_dest_exchanged_on_one_rank(comm):
    """On the ring, rank 2 sends to the left and waits from the right, all others the other way round.

    Finding: deadlock
    Words: Sendrecv, 2
    Ranks: 4
    """
    ring = comm.Create_cart([4], periods=[True])
    source, dest = ring.Shift(0, 1)
    if ring.rank == 2:
        source, dest = dest, source
    edge, ghost = np.full(2, float(ring.rank)), np.empty(2)
    ring.Sendrecv(edge, dest, recvbuf=ghost, source=source)  # here


def one_rank_shifts_along_the_other_direction(comm):
    """On the 2 by 2 grid rank 3 exchanges along its column while the others exchange along their rows.

    Finding: deadlock
    Words: sendrecv, 2, 3
    Ranks: 4
    """
    grid = comm.Create_cart([2, 2], periods=[False, False])
    direction = 0 if grid.rank == 3 else 1
    low, high = grid.Shift(direction, 1)
    grid.sendrecv("to the right", dest=high, source=low)  # here
    grid.sendrecv("to the left", dest=low, source=high)  # here


def rank_outside_the_grid_uses_it(comm):
    """A grid of two ranks out of three: rank 2 gets COMM_NULL and asks for its neighbours.

    Finding: error
    Words: Shift, 2
    Ranks: 3
    """
    grid = comm.Create_cart([2], periods=[True])
    source, dest = grid.Shift(0, 1)  # here
    grid.sendrecv(comm.rank, dest=dest, source=source)


def create_called_by_the_members_only(comm):
    """Create is for all ranks of the old communicator, also those that are not in the group.

    Finding: deadlock
    Words: Create, 1
    Ranks: 3
    """
    even = comm.Get_group().Incl([0, 2])
    if comm.rank in (0, 2):
        team = comm.Create(even)  # here
        team.Barrier()
        team.Free()


def create_group_without_one_of_its_members(comm):
    """Create_group needs all members of the group, and rank 1 is one but does not come.

    Finding: deadlock
    Words: Create_group, 1
    Ranks: 3
    """
    group = comm.group.Excl([2])
    if comm.rank == 0:
        pair = comm.Create_group(group, tag=3)  # here
        pair.allgather("x")


def bridge_to_a_leader_that_does_not_answer(comm):
    """The left half calls rank 2, the right half calls rank 1: the leaders do not mean each other.

    Finding: deadlock
    Words: Create_intercomm, 0, 2
    Ranks: 4
    """
    left = comm.rank < 2
    half = comm.Split(0 if left else 1, comm.rank)
    half.Create_intercomm(0, comm, 2 if left else 1, tag=11)  # here


def both_sides_of_the_bridge_want_to_receive(comm):
    """On an intercommunicator root=0 means rank 0 of the other side; both sides wait, nobody is MPI.ROOT.

    Finding: deadlock
    Words: Bcast, 0, 1
    """
    half = comm.Split(comm.rank)
    bridge = half.Create_intercomm(0, comm, 1 - comm.rank)
    data = np.zeros(1000000)
    bridge.Bcast(data, root=0)  # here


def small_sends_meet_in_the_column(comm):
    """In each column both ranks send first; this passes only while so small a message is buffered.

    Finding: luck
    Words: send
    Ranks: 4
    """
    column = comm.Split(comm.rank % 2, comm.rank)
    partner = 1 - column.rank
    column.send(("edge", comm.rank), dest=partner)  # here
    column.recv(source=partner)


def halo_exchange_with_open_ends(comm):
    """At the ends of the line the neighbour is PROC_NULL, and Sendrecv with it does nothing.

    Finding: correct
    Ranks: 3
    """
    line = comm.Create_cart([comm.size], periods=[False])
    down, up = line.Shift(0, 1)
    u = np.full(6, float(line.rank))
    for _ in range(3):
        line.Sendrecv(u[-2:-1], dest=up, recvbuf=u[:1], source=down)
        line.Sendrecv(u[1:2], dest=down, recvbuf=u[-1:], source=up)
        u[1:-1] = (u[:-2] + u[2:]) / 2


def sums_along_rows_and_columns(comm):
    """Every rank sums in its row first and in its column second: the orders fit everywhere.

    Finding: correct
    Ranks: 4
    """
    grid = comm.Create_cart([2, 2])
    row, column = grid.Sub([False, True]), grid.Sub([True, False])
    along_row = row.allreduce(comm.rank)
    assert column.allreduce(along_row) == 6


def create_group_by_its_members_only(comm):
    """Create_group, other than Create, is for the members alone; rank 1 need not come.

    Finding: correct
    Ranks: 3
    """
    group = comm.group.Incl([0, 2])
    if comm.rank != 1:
        pair = comm.Create_group(group, tag=3)
        pair.Barrier()
        pair.Free()


def first_rank_of_the_left_broadcasts_over_the_bridge(comm):
    """The sender names MPI.ROOT, its comrade PROC_NULL, the other side the rank of the sender over there.

    Finding: correct
    Ranks: 4
    """
    half = comm.Split(comm.rank // 2, comm.rank)
    left = comm.rank < 2
    bridge = half.Create_intercomm(0, comm, 2 if left else 0, tag=11)
    if left:
        bridge.bcast("news", root=MPI.ROOT if half.rank == 0 else MPI.PROC_NULL)
    else:
        assert bridge.bcast(None, root=0) == "news"
    bridge.sendrecv(comm.rank, dest=half.rank, source=half.rank)


def same_tag_on_two_communicators(comm):
    """The same tag on two communicators does not mix the messages, so the order of receiving is free.

    Finding: correct
    """
    library = comm.Dup()
    if comm.rank == 0:
        requests = [comm.isend("mine", dest=1, tag=1), library.isend("theirs", dest=1, tag=1)]
        MPI.Request.waitall(requests)
    else:
        assert library.recv(source=0, tag=1) == "theirs"
        assert comm.recv(source=0, tag=1) == "mine"


def leaders_of_the_nodes_gather(comm):
    """Split_type groups the ranks of a node; only their leaders share the second communicator and use it.

    Finding: correct
    Ranks: 3
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    leaders = comm.Split(0 if node.rank == 0 else MPI.UNDEFINED)
    memory = node.reduce(100 + comm.rank, root=0)
    if leaders != MPI.COMM_NULL:
        leaders.gather(memory, root=0)
        leaders.Free()
    node.Free()


def one_rank_of_the_merged_group_goes_home(comm):
    """Two halves build a bridge and become one group again; its last rank does not come to the barrier.

    Finding: deadlock
    Words: barrier, 3
    Ranks: 4
    """
    half = comm.Split(comm.rank % 2, comm.rank)
    bridge = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    whole = bridge.Merge(comm.rank % 2 == 1)
    if whole.rank != 3:
        whole.barrier()  # here


def one_side_of_the_bridge_merges(comm):
    """Only the odd ranks call Merge, for which both sides are needed.

    Finding: deadlock
    Words: Merge, 0, 1
    """
    half = comm.Split(comm.rank)
    bridge = half.Create_intercomm(0, comm, 1 - comm.rank)
    if comm.rank == 1:
        bridge.Merge(True)  # here


def everyone_on_the_graph_receives_first(comm):
    """The edges of the graph form a ring, and each rank receives along its edge before it sends.

    Finding: deadlock
    Words: recv, 0, 3
    Ranks: 4
    """
    graph = comm.Create_dist_graph_adjacent([(comm.rank - 1) % 4], [(comm.rank + 1) % 4])
    (source,), (dest,), _ = graph.Get_dist_neighbors()
    got = graph.recv(source=source)  # here
    graph.send(got + 1, dest=dest)


def two_halves_become_one(comm):
    """The correct twin of one_rank_of_the_merged_group_goes_home: all sum in the merged group, and free what they made.

    Finding: correct
    Ranks: 4
    """
    half = comm.Split(comm.rank % 2, comm.rank)
    bridge = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
    whole = bridge.Merge(comm.rank % 2 == 1)
    assert whole.allreduce(comm.rank) == 6
    for made in (whole, bridge, half):
        made.Free()


def exchange_along_a_graph(comm):
    """The correct twin of everyone_on_the_graph_receives_first: sendrecv along the edges.

    Finding: correct
    Ranks: 4
    """
    graph = comm.Create_dist_graph_adjacent([(comm.rank - 1) % 4], [(comm.rank + 1) % 4])
    (source,), (dest,), _ = graph.Get_dist_neighbors()
    assert graph.sendrecv(comm.rank, dest=dest, source=source) == source
    graph.Free()
