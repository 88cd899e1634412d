"""From the share of the time without bubble."""

import numpy as np


def bubble_fraction(ranks, micro_batches, chunks=1):
    against_ideal = np.float64(ranks - 1) / (chunks * micro_batches)
    return against_ideal / (1 + against_ideal)
