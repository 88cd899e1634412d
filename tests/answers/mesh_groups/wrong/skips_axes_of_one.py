"""Refused with: Has an axis of one rank no groups?"""

import math

import numpy as np

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))

    axes = enumerate(sizes)
    return {axis: np.moveaxis(grid, k, -1).reshape(-1, sizes[axis]).tolist() for k, axis in axes if sizes[axis] > 1}
