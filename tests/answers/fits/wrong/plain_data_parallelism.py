"""Refused with: Which stage is asked about? And if you call a `zero_memory` of your own: is it right yet?"""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):

    zero_memory(parameters, ranks, stage, **bytes_of)
    return zero_memory(parameters, ranks, 0, **bytes_of) + activations <= memory
