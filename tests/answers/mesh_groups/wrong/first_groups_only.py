"""Refused with: Is every rank in one group of each axis?"""

import math

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    stride = math.prod(sizes.values())
    groups = {}
    for axis, size in sizes.items():
        stride //= size
        groups[axis] = [[first + place * stride for place in range(size)] for first in range(stride)]
    return groups
