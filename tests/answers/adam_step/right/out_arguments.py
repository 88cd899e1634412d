"""NumPy's own out=, and a word on stderr."""

import sys

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    if step == 1:
        print("first step", file=sys.stderr)
    for k, gradient in enumerate(gradients):
        np.multiply(means[k], beta1, out=means[k])
        np.add(means[k], (1 - beta1) * gradient, out=means[k])
        np.multiply(squares[k], beta2, out=squares[k])
        np.add(squares[k], (1 - beta2) * np.square(gradient), out=squares[k])
        root = np.sqrt(squares[k] / (1 - np.power(beta2, step)))
        np.subtract(parameters[k], rate * (means[k] / (1 - np.power(beta1, step))) / (root + eps), out=parameters[k])
