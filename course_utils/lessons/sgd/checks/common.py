"""What the checks of lesson 1 share: arrays of any shapes, and one of them for a function to work on."""

from collections.abc import Sequence

import numpy as np

Shapes = Sequence[tuple[int, ...]]


def arrays(
    rng: np.random.Generator, shapes: Shapes, dtype: str | Sequence[str] = "float64", scale: float = 1.0
) -> list[np.ndarray]:
    """One array of each shape, its numbers drawn afresh; all of one dtype, or each of its own."""
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    return [
        np.asarray(scale * rng.standard_normal(shape)).astype(each) for shape, each in zip(shapes, dtypes, strict=True)
    ]


def working_copies(given: Sequence[np.ndarray], views: bool) -> list[np.ndarray]:
    """Arrays with the same numbers; as views, none of more than one row lies in one piece in memory."""
    return [np.repeat(array, 2, axis=0)[::2] if views else array.copy() for array in given]
