"""A vector of bytes and a vector of divisors."""

import numpy as np

from course_utils.lessons.model_parallel.memory_parts import check_stage


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    check_stage(stage, ranks)
    bytes_of = np.array([state_bytes, gradient_bytes, parameter_bytes])
    return parameters * np.sum(bytes_of / np.where(np.arange(3) < stage, ranks, 1))
