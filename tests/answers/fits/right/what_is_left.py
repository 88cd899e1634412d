"""What is left of the memory is not below zero."""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):

    left = memory - zero_memory(parameters, ranks, stage, **bytes_of)
    left -= activations
    return not left < 0
