"""Refused with: Which of the two must be the larger?"""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):
    return zero_memory(parameters, ranks, stage, **bytes_of) + activations >= memory
