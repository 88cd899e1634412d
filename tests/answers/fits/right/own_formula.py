"""Without zero_memory."""

import numpy as np

from course_utils.errors import CourseError


def fits(parameters, ranks, stage, memory, activations=0.0, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise CourseError("There are the stages 0 to 3, and one rank at least.")
    order = np.array([state_bytes, gradient_bytes, parameter_bytes], dtype=float)
    order[:stage] /= ranks
    return order.sum() * parameters + activations <= memory
