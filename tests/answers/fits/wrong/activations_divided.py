"""Refused with: Are these one rank's activations, or those of all ranks?"""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):
    return zero_memory(parameters, ranks, stage, **bytes_of) + activations / ranks <= memory
