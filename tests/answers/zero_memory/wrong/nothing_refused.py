"""Refused with: What does the docstring promise for a stage or a number of ranks that does not exist?"""


def zero_memory(parameters, ranks, stage, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    order = [state_bytes, gradient_bytes, parameter_bytes]
    return parameters * (sum(order[:stage]) / ranks + sum(order[stage:]))
