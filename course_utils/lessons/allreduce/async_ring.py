"""The ring without rounds: each segment of a block is sent on as soon as it has arrived. The fast one."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of

if TYPE_CHECKING:
    from mpi4py import MPI


SEGMENT_BYTES = 2 << 20
"""At most this many bytes travel in one message."""


def segments_per_block(length: int, itemsize: int, world_size: int, segment_bytes: int = SEGMENT_BYTES) -> int:
    """Return into how many segments each block has to be cut: as few as possible, but at least one."""
    longest, room = -(-length // world_size), max(1, segment_bytes // itemsize)
    return max(1, -(-longest // room))


def async_ring_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    segment_bytes: int = SEGMENT_BYTES,
) -> None:
    """Add up the vectors of all ranks, in place, in a ring in which many segments are on their way.

    The blocks are those of the ring, and each is cut into segments. As soon as a segment has
    arrived and has been added, a rank sends it on, while the next one is still on its way.
    So adding and sending happen at the same time. Each rank sends as many bytes as in the
    ring, 2 (P − 1)/P of the vector, in 2 (P − 1) messages for each segment of a block. Every
    message is sent and received by a call that does not wait.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; the sum takes the
            place of what was in it.
        segment_bytes: the most that one message may carry, but always at least one number.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
    of workstations"; the segments as in Open MPI's `allreduce_intra_ring_segmented`.
    """
    rank, world_size = comm.rank, comm.size
    if world_size == 1:
        return
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    # The blocks of the ring, each cut into segments.
    number = segments_per_block(len(vector), vector.itemsize, world_size, segment_bytes)
    segments = [blocks_of(block, number) for block in blocks_of(vector, world_size)]
    # All that will arrive, in order: the blocks of 2 (P − 1) rounds, segment by segment.
    blocks = [(rank - step - 2) % world_size for step in range(2 * (world_size - 1))]
    arriving = [part for block in blocks for part in segments[block]]
    adding = (world_size - 1) * number  # so many are added; after that complete sums arrive
    posted = 2  # this many receives are waiting for their messages at any time
    incoming = np.empty((posted, len(segments[0][0])), vector.dtype)
    sends, receives = [], []

    def post(index: int) -> None:
        """Start a receive: into a buffer, or into the vector once that part of it has been sent."""
        if index == len(arriving):
            return
        buffer = arriving[index]
        if index < adding:
            buffer = incoming[index % posted, : len(buffer)]
        else:
            sends[index - adding].Wait()
        receives.append((comm.Irecv(buffer, source=left), buffer))

    # Start some receives before anything arrives. Then send this rank's first block.
    for index in range(min(posted, adding)):
        post(index)
    sends += [comm.Isend(part, dest=right) for part in segments[left]]
    # Send on at once what has arrived, except in the last round, when it has been everywhere.
    for index, part in enumerate(arriving):
        request, buffer = receives[index]
        request.Wait()
        if index < adding:
            part += buffer
        if index + number < len(arriving):
            sends.append(comm.Isend(part, dest=right))
        post(len(receives))
    # The caller may change the vector as soon as nothing is being read from it any more.
    for request in sends:
        request.Wait()
