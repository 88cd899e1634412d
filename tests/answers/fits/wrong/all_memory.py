"""Refused with: Whose memory is it, one rank's or that of all?"""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):
    return zero_memory(parameters, ranks, stage, **bytes_of) + activations <= memory * ranks
