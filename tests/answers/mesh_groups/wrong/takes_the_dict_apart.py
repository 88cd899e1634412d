"""Refused with: Whose dict did you change?"""

import math

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    total = stride = math.prod(sizes.values())
    groups = {}
    while sizes:
        axis = next(iter(sizes))
        size = sizes.pop(axis)
        stride //= size
        firsts = [rank for rank in range(total) if rank // stride % size == 0]
        groups[axis] = [list(range(first, first + size * stride, stride)) for first in firsts]
    return groups
