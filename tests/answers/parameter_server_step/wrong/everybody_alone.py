"""Refused with: How does the server learn of the workers' gradients?"""


def parameter_server_step(comm, parameters, gradient, rate):
    parameters -= rate * gradient
