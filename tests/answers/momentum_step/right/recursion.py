"""The first three arrays, then the rest."""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    if not len(parameters):
        return None
    velocities[0][:] = momentum * velocities[0] + gradients[0]
    parameters[0][:] -= rate * velocities[0]
    return momentum_step(parameters[1:], gradients[1:], velocities[1:], rate, momentum)
