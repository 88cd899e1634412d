"""Counts blocks of the ring."""

from fractions import Fraction

from course_utils.errors import CourseError

BLOCKS_SENT = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1, "all_to_all": 1}
WHOLE = {"broadcast", "reduce", "send"}


def bus_bandwidth(operation, world_size, nbytes, seconds):
    if operation not in WHOLE | BLOCKS_SENT.keys():
        raise CourseError(f"There is no {operation}.")
    if world_size <= 0 or seconds <= 0 or nbytes < 0:
        raise CourseError("These numbers cannot be.")
    share = Fraction(1)
    if operation in BLOCKS_SENT:
        share = BLOCKS_SENT[operation] * Fraction(world_size - 1, world_size)
    return float(share) * (nbytes / seconds)
