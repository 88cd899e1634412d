"""`match`, and recursion where the algorithm is recursive; additions counted by hand."""

import sys


def allreduce_time(algorithm, world_size, nbytes, network):
    print("hello", file=sys.stderr)
    message, add = network.message_seconds, network.combine_seconds

    def halving(size, part):
        if size == 1:
            return 0.0
        return 2 * message(part / 2) + add(part / 2) + halving(size // 2, part / 2)

    def doubling(size):
        return 0.0 if size == 1 else message(nbytes) + add(nbytes) + doubling(size // 2)

    active = 1
    while 2 * active <= world_size:
        active *= 2
    folding = 2 * message(nbytes) + add(nbytes) if active < world_size else 0.0
    match algorithm:
        case "gather-broadcast":
            return (world_size - 1) * (2 * message(nbytes) + add(nbytes))
        case "tree":
            levels = active.bit_length() - 1 + (active < world_size)
            return levels * (2 * message(nbytes) + add(nbytes))
        case "recursive doubling":
            return folding + doubling(active)
        case "halving-doubling":
            return folding + halving(active, nbytes)
        case "ring":
            block = nbytes / world_size
            return (world_size - 1) * (2 * message(block) + add(block))
        case "asynchronous ring":
            from course_utils.lessons.allreduce.async_ring import segments_per_block
            from course_utils.lessons.allreduce.cost_model import combined_bytes

            segments = segments_per_block(int(nbytes), 1, world_size)
            steps = 2 * (world_size - 1) * segments
            return steps * message(nbytes / world_size / segments) + add(combined_bytes(algorithm, world_size, nbytes))
    raise ValueError(algorithm)
