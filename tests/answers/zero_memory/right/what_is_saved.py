"""All of it, less what the stage saves."""

from course_utils.errors import CourseError


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    order = (state_bytes, gradient_bytes, parameter_bytes)
    if stage not in range(4):
        raise CourseError(f"There is no stage {stage}. Take 0, 1, 2 or 3.")
    if not ranks >= 1:
        raise CourseError("There is one rank at least.")
    saved = sum(order[:stage]) * (ranks - 1) / ranks
    return float(parameters * (sum(order) - saved))
