"""Loops, Python's own numbers, an array at the end."""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    import math

    rows = []
    for row, label in zip(logits.tolist(), labels.tolist()):
        largest = max(row)
        e = [math.exp(x - largest) for x in row]
        total = sum(e)
        rows.append([(x / total - (k == label)) * float(gradient) / len(labels) for k, x in enumerate(e)])
    return np.array(rows, dtype=logits.dtype)
