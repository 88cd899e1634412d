"""Plays the rounds one after the other and adds up what each takes."""

from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import combined_bytes


def allreduce_time(algorithm, world_size, nbytes, network):
    clock = 0.0
    if algorithm in ("recursive doubling", "halving-doubling"):
        active = 2 ** (len(bin(world_size)) - 3)
        if active != world_size:
            clock += network.message_seconds(nbytes)
            clock += network.message_seconds(nbytes)
        distance = 1
        while distance < active:
            if algorithm == "recursive doubling":
                clock += network.message_seconds(nbytes)
            else:
                clock += network.message_seconds(nbytes * distance / active)
                clock += network.message_seconds(nbytes * distance / active)
            distance *= 2
    elif algorithm == "tree":
        distance = 1
        while distance < world_size:
            clock += network.message_seconds(nbytes) + network.message_seconds(nbytes)
            distance *= 2
    else:
        size, pieces = nbytes, 1
        if "ring" in algorithm:
            size = nbytes / world_size
        if algorithm.startswith("asynchronous"):
            pieces = segments_per_block(int(nbytes), 1, world_size)
        for _ in range(world_size - 1):
            for _ in range(2 * pieces):
                clock += network.message_seconds(size / pieces)
    return clock + network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))
