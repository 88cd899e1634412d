"""Two returns."""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory
from course_utils.lessons.model_parallel.memory_parts import check_stage


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):
    check_stage(stage, ranks)
    needed = sum([zero_memory(parameters=parameters, ranks=ranks, stage=stage, **bytes_of), activations])
    if needed > memory:
        return False
    return True
