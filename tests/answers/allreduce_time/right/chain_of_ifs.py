"""Closed formulas, one `if` each; NumPy's numbers; prints."""

import math

import numpy as np

from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import combined_bytes


def allreduce_time(algorithm, world_size, nbytes, network):
    P, m = world_size, network.message_seconds
    log = math.floor(math.log2(P) + 1e-12)
    extra = 0 if 2**log == P else 2 * m(nbytes)
    print(algorithm, P, nbytes)
    if algorithm == "gather-broadcast":
        time = 2 * (P - 1) * m(nbytes)
    elif algorithm == "tree":
        time = 2 * math.ceil(math.log2(P) - 1e-12) * m(nbytes)
    elif algorithm == "recursive doubling":
        time = extra + log * m(nbytes)
    elif algorithm == "halving-doubling":
        time = extra + 2 * sum(m(nbytes / 2**k) for k in range(1, log + 1))
    elif algorithm == "ring":
        time = 2 * (P - 1) * m(nbytes / P)
    elif algorithm == "asynchronous ring":
        parts = segments_per_block(int(nbytes), 1, P)
        time = 2 * (P - 1) * parts * m(nbytes / P / parts)
    return np.float64(time + network.combine_seconds(combined_bytes(algorithm, P, nbytes)))
