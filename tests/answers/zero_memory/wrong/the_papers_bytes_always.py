"""Refused with: Which bytes were you given for a parameter, its gradient and its state?"""

from course_utils.errors import CourseError


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise CourseError("There are the stages 0 to 3, and one rank at least.")

    order = [12, 2, 2]
    return parameters * (sum(order[:stage]) / ranks + sum(order[stage:]))
