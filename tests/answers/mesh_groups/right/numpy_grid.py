"""A grid of ranks, each axis moved to its end."""

import math

import numpy as np

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh. Give each axis a rank at least.")
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    return {axis: np.moveaxis(grid, k, -1).reshape(-1, sizes[axis]).tolist() for k, axis in enumerate(sizes)}
