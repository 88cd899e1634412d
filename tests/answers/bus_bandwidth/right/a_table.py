"""Formulas in a table."""

from course_utils.errors import CourseError

SHARES = {
    "all_reduce": lambda p: 2 * (p - 1) / p,
    "reduce_scatter": lambda p: (p - 1) / p,
    "all_gather": lambda p: (p - 1) / p,
    "all_to_all": lambda p: (p - 1) / p,
    "broadcast": lambda p: 1,
    "reduce": lambda p: 1,
    "send": lambda p: 1,
}


def bus_bandwidth(operation, world_size, nbytes, seconds):
    if operation not in SHARES or world_size < 1 or seconds <= 0 or nbytes < 0:
        raise CourseError("There is no such operation, or no such number.")
    return SHARES[operation](world_size) * nbytes / seconds
