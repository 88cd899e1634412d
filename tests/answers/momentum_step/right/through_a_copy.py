"""The new velocity is worked out first and then put into its array."""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for w, g, v in zip(parameters, gradients, velocities):
        new = g + v * momentum
        v[:] = new
        w += -rate * new
