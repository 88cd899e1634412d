"""Refused with: In which array does the next call look for the velocity?"""


def momentum_step(parameters, gradients, velocities, rate, momentum=0.9):
    for i in range(len(parameters)):
        velocities[i] = momentum * velocities[i] + gradients[i]
        parameters[i] = parameters[i] - rate * velocities[i]
