"""Refused with: Have the ranks of a group the same place along its axis, or all another?"""

from itertools import product

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    places = list(product(*map(range, sizes.values())))
    groups = {axis: [[] for _ in range(size)] for axis, size in sizes.items()}
    for rank, place in enumerate(places):
        for axis, at in zip(sizes, place):
            groups[axis][at].append(rank)
    return groups
