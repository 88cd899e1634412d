"""Refused with: Is that not recursive doubling's time?

log₂ P (α + nβ), as the report has it: that is recursive doubling.
"""

from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import combined_bytes, powers


def allreduce_time(algorithm, world_size, nbytes, network):
    active, doublings, surplus = powers(world_size)
    steps, block = 2 * (world_size - 1), nbytes / world_size
    folding = [nbytes, nbytes] if surplus else []
    halves = [nbytes / 2**k for k in range(1, doublings + 1)]
    segments = segments_per_block(int(nbytes), 1, world_size)
    sizes = {
        "gather-broadcast": [nbytes] * steps,
        "tree": [nbytes] * 2 * (world_size - 1).bit_length(),
        "recursive doubling": folding + [nbytes] * doublings,
        "halving-doubling": folding + [nbytes] * doublings,
        "ring": [block] * steps,
        "asynchronous ring": [block / segments] * segments * steps,
    }[algorithm]
    messages = sum(network.message_seconds(size) for size in sizes)
    return messages + network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))
