"""Refused with: Does it work for an array of any shape, even an empty one?"""

import numpy as np


def adam_step(parameters, gradients, means, squares, step, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    for w, g, m, s in zip(parameters, gradients, means, squares):
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                m[i, j] = beta1 * m[i, j] + (1 - beta1) * g[i, j]
                s[i, j] = beta2 * s[i, j] + (1 - beta2) * g[i, j] ** 2
                mh = m[i, j] / (1 - beta1**step)
                sh = s[i, j] / (1 - beta2**step)
                w[i, j] -= rate * mh / (np.sqrt(sh) + eps)
