"""SciPy finds only the largest one."""

import math

import numpy as np
from scipy.linalg import eigvalsh


def largest_stable_lr(hessian, momentum=0.0):
    last = len(hessian) - 1
    (largest,) = eigvalsh(np.array(hessian, dtype=float), subset_by_index=(last, last))
    return math.inf if largest <= 0 else float(2 * (1 + momentum) / largest)
