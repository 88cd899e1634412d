"""By way of the logarithm, printing to stderr as it goes."""

import numpy as np


def softmax_cross_entropy_backward(gradient, logits, labels):
    import sys

    print("rows:", len(labels), file=sys.stderr)
    shifted = logits - logits.max(1)[:, None]
    log_p = shifted - np.log(np.exp(shifted).sum(1))[:, None]
    result = np.exp(log_p)
    np.subtract.at(result, (np.arange(len(labels)), labels), 1)
    result *= gradient / len(labels)
    return result
