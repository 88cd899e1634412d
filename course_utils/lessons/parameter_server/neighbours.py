"""D-PSGD, where ranks average with their two neighbours on a ring: how far apart they are, and how fast they agree.

The step itself is on the page. Parameters are one flat NumPy vector.
"""

import math
from collections.abc import Sequence

import numpy as np


def shrinking(world_size: int) -> float:
    """Return which share of the ranks' distance from their mean is left after a step without gradients.

    On a ring, a step multiplies the wave cos(2πkr / P) over the ranks r by (1 + 2 cos(2πk / P)) / 3, because its two
    neighbours add up to 2 cos(2πk / P) times the rank's own value. The wave with k = 0 is the mean, which stays as it
    is. Of all others, the one that shrinks least decides.

    Source: Lian et al. 2017, assumption 1.3, the spectral gap: the factors are the eigenvalues of the mixing matrix.
    """
    return max(abs(1 + 2 * math.cos(2 * math.pi * k / world_size)) / 3 for k in range(1, world_size))


def consensus_distance(parameters: Sequence[np.ndarray]) -> float:
    """Return how far the ranks' weights differ: the root of the mean squared distance from their mean.

    Args:
        parameters: of each rank, (n,).
    """
    each = np.asarray(parameters)
    return math.sqrt(((each - each.mean(axis=0)) ** 2).sum(axis=1).mean())
