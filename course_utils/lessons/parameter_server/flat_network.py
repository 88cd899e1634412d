"""The small network of lesson 1 in one flat vector, as messages carry it: parameters, gradient, endless batches."""

from collections.abc import Iterator

import numpy as np

from course_utils.lessons.sgd.digits_network import Arrays, flat, loss_and_gradients, new_network, unflat
from course_utils.lessons.sgd.gradient_descent import minibatches


def flat_gradient(vector: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of the batch's loss at these weights, (n,)."""
    return flat(loss_and_gradients(unflat(vector), x, y)[1])


def own_batches(
    data: Arrays, part: int, parts: int, batch_size: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of every `parts`-th training image from number `part` on, epoch after epoch."""
    x, y = data[0][part::parts], data[1][part::parts]
    rng = np.random.default_rng(seed)
    while True:
        for batch in minibatches(len(x), batch_size, rng):
            yield x[batch], y[batch]


def first_weights(seed: int) -> np.ndarray:
    """Return a new network's weights, (n,), which are the same on every rank."""
    return flat(new_network(np.random.default_rng(seed)))
