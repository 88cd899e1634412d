"""Refused with: Can one calculate with a whole list, or with each array in it?"""


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    means = beta1 * means + (1 - beta1) * gradients
    squares = beta2 * squares + (1 - beta2) * gradients**2
    parameters -= rate * means / (squares**0.5 + eps)
