"""Refused with: Is the steepest direction one of the axes?"""

import numpy as np


def largest_stable_lr(hessian, momentum=0.0):
    largest = np.max(hessian)
    return 2 * (1 + momentum) / largest if largest else np.inf
