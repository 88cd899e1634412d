"""Refused with: Is what stage 1 divides still divided in stage 2?"""

from course_utils.errors import CourseError


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    if stage not in (0, 1, 2, 3) or ranks < 1:
        raise CourseError("There are the stages 0 to 3, and one rank at least.")

    state, gradients, weights = (parameters * one for one in (state_bytes, gradient_bytes, parameter_bytes))
    if stage == 1:
        state /= ranks
    elif stage == 2:
        gradients /= ranks
    elif stage == 3:
        weights /= ranks
    return state + gradients + weights
