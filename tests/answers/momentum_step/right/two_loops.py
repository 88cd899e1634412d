"""First all velocities, then all weights."""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for i in range(len(velocities)):
        velocities[i] *= momentum
        velocities[i] += gradients[i]
    for i in range(len(parameters)):
        parameters[i] -= rate * velocities[i]
