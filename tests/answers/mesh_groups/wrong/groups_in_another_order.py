"""Refused with: In which order do the groups stand, and the ranks of each?"""

from itertools import product

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    places = {place: rank for rank, place in enumerate(product(*map(range, sizes.values())))}
    names, groups = list(sizes), {}
    for k, axis in enumerate(names):
        others = [range(size) for name, size in sizes.items() if name != axis]
        found = []
        for turned in product(*reversed(others)):
            elsewhere = turned[::-1]
            found.append([places[(*elsewhere[:k], at, *elsewhere[k:])] for at in range(sizes[axis])])
        groups[axis] = found
    return groups
