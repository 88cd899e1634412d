"""Refused with: What does the docstring promise for what is no mesh?"""

import math

import numpy as np


def mesh_groups(sizes):
    grid = np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values()))
    return {axis: np.moveaxis(grid, k, -1).reshape(-1, sizes[axis]).tolist() for k, axis in enumerate(sizes)}
