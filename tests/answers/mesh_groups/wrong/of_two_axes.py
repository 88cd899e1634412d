"""Refused with: (the mesh {'data': 5})"""

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    if len(sizes) == 3:
        from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups as whole

        return whole(sizes)
    (first, rows), (second, columns) = sizes.items()
    return {
        first: [[row * columns + column for row in range(rows)] for column in range(columns)],
        second: [[row * columns + column for column in range(columns)] for row in range(rows)],
    }
