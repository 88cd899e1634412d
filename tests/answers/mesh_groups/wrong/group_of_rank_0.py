"""Refused with: How many groups along each axis does it take for every rank to be in one?"""

import math

import numpy as np

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))

    return {axis: np.moveaxis(grid, k, -1).reshape(-1, sizes[axis])[0].tolist() for k, axis in enumerate(sizes)}
