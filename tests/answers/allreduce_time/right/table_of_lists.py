"""A dict from names to lists of messages, with the lesson's own helpers."""

from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import combined_bytes, powers


def allreduce_time(algorithm, world_size, nbytes, network):
    active, doublings, surplus = powers(world_size)
    segments = segments_per_block(int(nbytes), 1, world_size)
    folded = 2 * [nbytes] if surplus else []
    halves = [nbytes / 2 ** (k + 1) for k in range(doublings)]
    table = {
        "gather-broadcast": 2 * (world_size - 1) * [nbytes],
        "tree": 2 * (world_size - 1).bit_length() * [nbytes],
        "recursive doubling": folded + doublings * [nbytes],
        "halving-doubling": folded + halves + halves[::-1],
        "ring": 2 * (world_size - 1) * [nbytes / world_size],
        "asynchronous ring": 2 * (world_size - 1) * segments * [nbytes / world_size / segments],
    }
    seconds = sum(network.message_seconds(size) for size in table[algorithm])
    return seconds + network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))
