"""The mesh behind the first axis, several times."""

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or any(size < 1 for size in sizes.values()):
        raise CourseError("No mesh.")
    (first, size), *rest = sizes.items()
    if not rest:
        return {first: (tuple(range(size)),)}
    inner = mesh_groups(dict(rest))
    length = 1
    for _, other in rest:
        length *= other
    copies = {
        axis: [[rank + copy * length for rank in group] for copy in range(size) for group in groups]
        for axis, groups in inner.items()
    }
    return {first: [[rank + copy * length for copy in range(size)] for rank in range(length)], **copies}
