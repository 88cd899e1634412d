"""The library's zero_memory, and a comparison."""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):

    return memory >= zero_memory(parameters, ranks, stage, **bytes_of) + activations
