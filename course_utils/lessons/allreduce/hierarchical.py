"""All-reduce on two levels: fast links inside a node, slow ones between nodes, and as little as possible over those."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of
from course_utils.lessons.allreduce.ring import ring_all_gather, ring_allreduce, ring_reduce_scatter

if TYPE_CHECKING:
    from mpi4py import MPI


class SubCommunicator:
    """Some ranks of a communicator, numbered from 0: as much of a communicator as an all-reduce needs.

    `comm.Split` would do as well, but it makes all ranks talk first, and this costs nothing. A message within one of
    these communicators never meets a message of another as long as no two of them have two ranks in common.

    Args:
        members: the ranks of `comm` that belong to it, in the order in which they are numbered.
    """

    def __init__(self, comm: "MPI.Intracomm", members: Sequence[int]) -> None:
        self.comm, self.members = comm, members
        self.rank, self.size = members.index(comm.rank), len(members)

    def Sendrecv(self, sendbuf: np.ndarray, dest: int, sendtag: int = 0, recvbuf=None, source: int = 0) -> None:
        """Send to one member and receive from another, both at once."""
        self.comm.Sendrecv(sendbuf, self.members[dest], sendtag, recvbuf, self.members[source])


def hierarchical_allreduce(comm: "MPI.Intracomm", vector: np.ndarray, node_size: int) -> None:
    """Add up the vectors of all ranks, in place: inside the nodes, then between them, then inside again.

    Rank r is on node r // node_size. A reduce-scatter inside gives each of a node's g ranks one block of the node's
    sum. Each then adds up its block with the same blocks of the other nodes, around a ring. An all-gather inside gives
    every rank all blocks. Over a node's link go 2 (N − 1)/N of the vector each way, in 2 (N − 1) rounds; the flat
    ring sends 2 (P − 1)/P in 2 (P − 1).

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; overwritten with the sum.
        node_size: ranks on each node; P is a multiple of it.

    Raises:
        ValueError: the ranks do not fill the nodes.

    Source: Jia et al. 2018, "Highly scalable deep learning training system with mixed-precision", §3.3 (in three
    phases); the reduce-scatter instead of a reduce as in NCCL's trees of nodes.
    """
    rank, world_size = comm.rank, comm.size
    if node_size < 1 or world_size % node_size:
        raise ValueError(f"{world_size} ranks do not fill nodes of {node_size}")
    first = rank // node_size * node_size
    node = SubCommunicator(comm, range(first, first + node_size))
    equals = SubCommunicator(comm, range(rank % node_size, world_size, node_size))
    ring_reduce_scatter(node, vector)
    ring_allreduce(equals, blocks_of(vector, node_size)[node.rank])
    ring_all_gather(node, vector)
