"""Refused with: How many rounds has half a level of the tree?"""

import math

from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import combined_bytes


def allreduce_time(algorithm, world_size, nbytes, network):
    log = math.log2(world_size)
    segments = segments_per_block(int(nbytes), 1, world_size)
    seconds = {
        "gather-broadcast": 2 * (world_size - 1) * network.message_seconds(nbytes),
        "tree": 2 * log * network.message_seconds(nbytes),
        "recursive doubling": log * network.message_seconds(nbytes),
        "halving-doubling": sum(2 * network.message_seconds(nbytes / 2**k) for k in range(1, int(log) + 1)),
        "ring": 2 * (world_size - 1) * network.message_seconds(nbytes / world_size),
        "asynchronous ring": 2 * (world_size - 1) * segments * network.message_seconds(nbytes / world_size / segments),
    }[algorithm]
    return seconds + network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))
