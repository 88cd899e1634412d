"""Refused with: Along which axis are the ranks 0 and 1 neighbours, the first or the last?"""

import math

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    total, stride = math.prod(sizes.values()), 1
    groups = {}
    for axis, size in sizes.items():
        firsts = [rank for rank in range(total) if rank // stride % size == 0]
        groups[axis] = [list(range(first, first + size * stride, stride)) for first in firsts]
        stride *= size
    return groups
