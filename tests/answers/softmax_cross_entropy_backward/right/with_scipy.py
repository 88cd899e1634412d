"""SciPy's softmax."""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    from scipy.special import softmax

    result = softmax(logits, axis=-1)
    for row, label in enumerate(labels):
        result[row, label] -= 1.0
    return (float(gradient) / logits.shape[0]) * result
