"""NumPy's numbers."""

import numpy as np


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    numbers = np.array([seconds_alone, seconds_together, world_size], dtype=float)
    if (numbers <= 0).any() or kind not in {"strong", "weak"}:
        raise ValueError("makes no sense")
    alone, together, ranks = numbers
    return np.divide(alone, together) * (1 / ranks if kind == "strong" else 1)
