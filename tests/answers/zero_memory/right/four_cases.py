"""One formula for each stage."""

from course_utils.errors import CourseError


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise CourseError("There are the stages 0 to 3, and one rank at least.")

    if stage == 0:
        each = parameter_bytes + gradient_bytes + state_bytes
    elif stage == 1:
        each = parameter_bytes + gradient_bytes + state_bytes / ranks
    elif stage == 2:
        each = parameter_bytes + (gradient_bytes + state_bytes) / ranks
    else:
        each = (parameter_bytes + gradient_bytes + state_bytes) / ranks
    return parameters * each
