"""Refused with: What does the docstring promise for a stage or a number of ranks that does not exist?"""


def fits(parameters, ranks, stage, memory, activations=0.0, parameter_bytes=2, gradient_bytes=2, state_bytes=12):
    needed = [state_bytes, gradient_bytes, parameter_bytes]
    needed = [one / ranks if k < stage else one for k, one in enumerate(needed)]
    return parameters * sum(needed) + activations <= memory
