"""NumPy's numbers."""

import numpy as np

from course_utils.errors import CourseError

NAMES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "send"]


def bus_bandwidth(operation, world_size, nbytes, seconds):
    if operation not in NAMES:
        raise CourseError(f"Unknown operation {operation}.")
    if not (world_size > 0 and seconds > 0 and nbytes >= 0):
        raise CourseError("Ranks and seconds are above zero, bytes are not below.")
    s = (world_size - 1) / world_size
    shares = np.array([2 * s, s, s, s, 1, 1, 1])
    return shares[NAMES.index(operation)] * nbytes / seconds
