"""Each of the three is divided from some stage on."""

from course_utils.errors import CourseError


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise CourseError("There are the stages 0 to 3, and one rank at least.")

    of_state = parameters * state_bytes / (ranks if stage >= 1 else 1)
    of_gradients = parameters * gradient_bytes / (ranks if stage >= 2 else 1)
    of_parameters = parameters * parameter_bytes / (ranks if stage >= 3 else 1)
    return of_state + of_gradients + of_parameters
