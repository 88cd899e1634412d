"""The place of each rank by division, then groups in a dict."""

from collections import defaultdict

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes:
        raise CourseError("A mesh needs an axis.")
    total = 1
    for name, size in sizes.items():
        if size < 1:
            raise CourseError(f"Axis {name} has {size} ranks. Give it one at least.")
        total *= size

    def place(rank):
        found = {}
        for name in reversed(list(sizes)):
            rank, found[name] = divmod(rank, sizes[name])
        return found

    result = {}
    for axis in sizes:
        groups = defaultdict(list)
        for rank in range(total):
            others = place(rank)
            del others[axis]
            groups[tuple(others.items())].append(rank)
        result[axis] = list(groups.values())
    return result
