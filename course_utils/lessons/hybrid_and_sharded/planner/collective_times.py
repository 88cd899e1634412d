"""What a collective of NCCL takes on paper, with its latency, and the memory that its buffers take.

A ring has a hop for each member; on thousands of GPUs, or for small messages, a tree is quicker, and NCCL takes the
quicker of the two. For a gather and a reduce-scatter there is only the ring.
"""

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Cluster
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import Layout

CHUNK = 1 << 18
"""Bytes of a piece that goes up a tree while the next one is on its way."""
TREE_SHARE = 0.45
"""Of a ring's bandwidth: each number goes up and down, and a tree reaches nine tenths."""
BUFFER = 4 << 20
"""Bytes of NCCL's buffer for each neighbour and channel (NCCL_BUFFSIZE)."""
CHANNELS = 16
"""Of one communicator: as many as NCCL opens between GPUs with NVLink; assumed."""
ALL_TO_ALL_CHANNELS = 2
"""Towards each other member of an all-to-all; assumed."""


def nodes_of(cluster: Cluster, neighbours: int, members: int) -> int:
    """Nodes over which a group reaches, whose members are `neighbours` ranks apart."""
    return max(1, min(members, -(-neighbours * members // cluster.node)))


def ring_latency(cluster: Cluster, neighbours: int, members: int) -> float:
    """Seconds that an empty all-gather or reduce-scatter takes: N - 1 hops, of which one leads out of each node.

    Source: NCCL, src/graph/tuning.cc, `ncclTopoTuneModel` (nInterSteps).
    """
    between = nodes_of(cluster, neighbours, members) - 1
    return (members - 1 - between) * cluster.hop + between * cluster.latency


def tree_latency(cluster: Cluster, neighbours: int, members: int) -> float:
    """Seconds that a small all-reduce takes: a chain inside each node, a binary tree over nodes, up and down.

    Source: NCCL, src/graph/tuning.cc, `ncclTopoTuneModel`; each level waits for a chunk of 256 KiB.
    """
    nodes = nodes_of(cluster, neighbours, members)
    inside = (-(-members // nodes) - 1) * (cluster.hop + CHUNK / cluster.inside)
    return 2 * (inside + (nodes - 1).bit_length() * (cluster.latency + CHUNK / cluster.between))


def ring_seconds(cluster: Cluster, neighbours: int, members: int, nbytes: float, pieces: int = 1) -> float:
    """Of an all-gather or a reduce-scatter of `nbytes`, in several messages one after the other."""
    beta = cluster.network(neighbours, members).beta
    return (members - 1) / members * nbytes * beta + pieces * ring_latency(cluster, neighbours, members)


def allreduce_seconds(cluster: Cluster, neighbours: int, members: int, nbytes: float, pieces: int = 1) -> float:
    """Of an all-reduce of `nbytes`, as a ring or as a tree, whichever is quicker."""
    if members == 1:
        return 0.0
    ring = 2 * ring_seconds(cluster, neighbours, members, nbytes, pieces)
    beta = cluster.network(neighbours, members).beta
    return min(ring, nbytes * beta / TREE_SHARE + pieces * tree_latency(cluster, neighbours, members))


def buffer_bytes(layout: Layout) -> float:
    """Bytes of NCCL's buffers on a GPU: for each axis a communicator, with a neighbour on either side for each channel.

    They lie outside of what torch's allocator counts. An all-to-all has buffers for each other member.

    Source: NCCL's user guide, "Environment variables", NCCL_BUFFSIZE.
    """
    groups = (layout.tensor, layout.pipeline, layout.context, layout.replicas // layout.copies, layout.copies)
    rings = sum(size > 1 for size in groups)
    return BUFFER * (2 * CHANNELS * rings + 2 * ALL_TO_ALL_CHANNELS * (layout.expert - 1))
