"""The ring without rounds: blocks in segments, each passed on as soon as it has come; the fast one."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of, check_operands, combine

if TYPE_CHECKING:
    from mpi4py import MPI


SEGMENT_BYTES = 2 << 20
"""At most this many bytes travel in one message."""
POSTED = 2
"""This many receives wait for their messages at any time."""


def segments_per_block(length: int, itemsize: int, world_size: int, segment_bytes: int = SEGMENT_BYTES) -> int:
    """How many segments each block of the vector is cut into: as few as fit, at least one."""
    longest, room = -(-length // world_size), max(1, segment_bytes // itemsize)
    return max(1, -(-longest // room))


def async_ring_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    op: "MPI.Op | None" = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> None:
    """Combine the vectors of all ranks, in place: a ring of segments under way at once.

    A rank passes a segment on as soon as it has come and been combined, while the next is
    on its way: links and adders work at the same time. Receives start before their
    messages come, so that MPI need not keep them. The same bytes as the ring: 2 (P − 1)/P
    of the vector sent by each rank, in 2 (P − 1) messages for each segment.

    Args:
        vector: one-dimensional and contiguous, length and dtype equal on all ranks;
            overwritten with the result.
        op: a commutative operation of MPI; None for the sum.
        segment_bytes: at most this many travel in one message, but always a whole element.

    Raises:
        ValueError: vector or operation do not fit.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
    of workstations"; the segments as in Open MPI's `allreduce_intra_ring_segmented`.
    """
    check_operands(vector, op)
    rank, world_size = comm.rank, comm.size
    if world_size == 1:
        return
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    # The blocks of the ring, each cut into segments: one is added while the next is on its way.
    number = segments_per_block(len(vector), vector.itemsize, world_size, segment_bytes)
    segments = [blocks_of(block, number) for block in blocks_of(vector, world_size)]
    # All that arrives, in order: the blocks of 2 (P − 1) rounds, each in its segments.
    blocks = [(rank - step - 2) % world_size for step in range(2 * (world_size - 1))]
    arriving = [part for block in blocks for part in segments[block]]
    adding = (world_size - 1) * number  # this many are combined; then finished sums come
    incoming = np.empty((POSTED, len(segments[0][0])), vector.dtype)
    sends, receives = [], []

    def post(index: int) -> None:
        """Be ready for an arrival: in a buffer; in the vector, once that part is sent."""
        if index == len(arriving):
            return
        buffer = arriving[index]
        if index < adding:
            buffer = incoming[index % POSTED, : len(buffer)]
        else:
            sends[index - adding].Wait()
        receives.append((comm.Irecv(buffer, source=left), buffer))

    # Some receives are ready before anything comes; then this rank's first block leaves.
    for index in range(min(POSTED, adding)):
        post(index)
    sends += [comm.Isend(part, dest=right) for part in segments[left]]
    # What has arrived is passed on at once, except what arrives in the last round:
    # it has been everywhere.
    for index, part in enumerate(arriving):
        request, buffer = receives[index]
        request.Wait()
        if index < adding:
            combine(buffer, part, op)
        if index + number < len(arriving):
            sends.append(comm.Isend(part, dest=right))
        post(len(receives))
    # The caller may write into the vector again only when nothing is read from it any more.
    for request in sends:
        request.Wait()
