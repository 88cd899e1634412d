"""Along each axis the ranks stand a stride apart."""

import math

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if len(sizes) == 0 or any(size <= 0 for size in sizes.values()):
        raise CourseError("A mesh has axes, and each of them ranks.")
    total = stride = math.prod(sizes.values())
    groups = {}
    for axis, size in sizes.items():
        stride //= size
        firsts = [rank for rank in range(total) if rank // stride % size == 0]
        groups[axis] = [list(range(first, first + size * stride, stride)) for first in firsts]
    return groups
