"""Parts that the checks of lesson 1 share: random arrays of any shape, and copies for a function to work on."""

from collections.abc import Sequence

import numpy as np

Shapes = Sequence[tuple[int, ...]]


def arrays(
    rng: np.random.Generator, shapes: Shapes, dtype: str | Sequence[str] = "float64", scale: float = 1.0
) -> list[np.ndarray]:
    """Draw one array of each shape; all have the same dtype, or each has its own."""
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    return [
        np.asarray(scale * rng.standard_normal(shape)).astype(each) for shape, each in zip(shapes, dtypes, strict=True)
    ]


def working_copies(given: Sequence[np.ndarray], views: bool) -> list[np.ndarray]:
    """Copy the arrays; as views, a copy with more than one row is not contiguous in memory."""
    return [np.repeat(array, 2, axis=0)[::2] if views else array.copy() for array in given]
