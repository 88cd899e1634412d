"""Two returns."""

from course_utils.sharded import check_stage, zero_memory


def fits(parameters, ranks, stage, memory, activations=0.0, **bytes_of):
    check_stage(stage, ranks)
    needed = sum([zero_memory(parameters=parameters, ranks=ranks, stage=stage, **bytes_of), activations])
    if needed > memory:
        return False
    return True
