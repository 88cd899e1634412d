"""Refused with: How far apart are two neighbours along an axis that is not the last?"""

import math

import numpy as np

from course_utils.errors import CourseError


def mesh_groups(sizes):
    if not sizes or min(sizes.values()) < 1:
        raise CourseError("This is no mesh.")
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))

    return {axis: grid.reshape(-1, size).tolist() for axis, size in sizes.items()}
