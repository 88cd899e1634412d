"""All-reduce along two trees at once, in segments: few rounds and few bytes, for any number of ranks."""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of

if TYPE_CHECKING:
    from mpi4py import MPI

SEGMENT_BYTES = 256 << 10
"""At most this many bytes travel in one message."""


def binary_tree(rank: int, world_size: int) -> tuple[int | None, list[int]]:
    """Parent and children of a rank in a tree in which every odd rank is a leaf, and nobody has more than two children.

    The number of zeros at the end of a rank, in binary, is its height: 1, 3, 5 … hang on 2, 6, 10 …, these on 4, 12 ….
    Rank 0 is the root; it has no parent, None, and one child.

    Source: Sanders, Speck, Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", §3;
    the numbers as in NCCL's `ncclGetBtree`.
    """
    reach = rank & -rank if rank else 1 << (world_size - 1).bit_length()
    below = [rank - reach // 2] if rank and reach > 1 else []
    step = reach // 2
    while step and rank + step >= world_size:  # the tree is not full on this side
        step //= 2
    children = below + ([rank + step] if step else [])
    if rank == 0:
        return None, children
    parent = rank - reach | 2 * reach
    return (parent if parent < world_size else rank - reach), children


def two_trees(rank: int, world_size: int) -> list[tuple[int | None, list[int]]]:
    """Parent and children of a rank in both trees: the second is the first, with every rank moved up by one.

    So a rank that passes sums on in one tree is a leaf in the other.
    """
    trees = []
    for moved in (0, 1):
        parent, children = binary_tree((rank - moved) % world_size, world_size)
        up = None if parent is None else (parent + moved) % world_size
        trees.append((up, [(child + moved) % world_size for child in children]))
    return trees


def segments_per_half(length: int, itemsize: int, segment_bytes: int = SEGMENT_BYTES) -> int:
    """How many segments each half of the vector is cut into: as few as fit, at least one."""
    return max(1, -(-(length - length // 2) // max(1, segment_bytes // itemsize)))


def double_tree_allreduce(
    comm: "MPI.Intracomm",
    vector: np.ndarray,
    segment_bytes: int = SEGMENT_BYTES,
) -> None:
    """Add up the vectors of all ranks, in place: each half along a tree of its own.

    In one binary tree half of the ranks are leaves, whose links idle. Two trees share the
    work: who is a leaf in one passes sums on in the other. And each half travels in
    segments, so all levels of a tree are busy at once. No rank sends more than 2 vectors,
    whatever P, and a segment passes 2 log₂ P levels at most.

    Args:
        vector: one-dimensional, of the same length and dtype on all ranks; overwritten with
            the sum.
        segment_bytes: at most this many travel in one message, but always a whole element.

    Source: Sanders, Speck, Träff 2009, "Two-tree algorithms for full bandwidth broadcast,
    reduction and scan". NCCL has it since version 2.4 (2019), as its algorithm "Tree".
    """
    if comm.size == 1:
        return
    halves, trees = blocks_of(vector, 2), two_trees(comm.rank, comm.size)
    number = segments_per_half(len(vector), vector.itemsize, segment_bytes)
    segments = [blocks_of(half, number) for half in halves]
    incoming, sends = np.empty_like(halves[0]), {}
    # What a leaf sends waits for nobody, so it goes first: the ranks above can begin.
    leaf_first = sorted((0, 1), key=lambda tree: len(trees[tree][1]))
    # Up: a rank adds what its children send, and hands the sum of its branch to its parent.
    for tree in leaf_first:
        parent, children = trees[tree]
        for index, part in enumerate(segments[tree]):
            for child in children:
                buffer = incoming[: len(part)]
                comm.Recv(buffer, source=child, tag=tree)
                part += buffer
            if parent is not None:
                sends[tree, index] = comm.Isend(part, dest=parent, tag=tree)
    # Down: the roots have the sums. Those whom others wait for receive first.
    down = []
    for tree in reversed(leaf_first):
        parent, children = trees[tree]
        for index, part in enumerate(segments[tree]):
            if parent is not None:
                sends[tree, index].Wait()  # this part has left, so it may be written over
                comm.Recv(part, source=parent, tag=tree)
            down += [comm.Isend(part, dest=child, tag=tree) for child in children]
    for request in down:
        request.Wait()
