"""The small network of lesson 1 in one flat vector, as messages carry it: parameters, gradient, endless batches."""

from collections.abc import Iterator

import numpy as np

from course_utils.lessons.sgd.digits_network import loss_and_gradients, new_network
from course_utils.lessons.sgd.gradient_descent import minibatches


def flat(parameters: list[np.ndarray]) -> np.ndarray:
    """All parameters in one vector, (n,)."""
    return np.concatenate([parameter.ravel() for parameter in parameters])


def unflat(vector: np.ndarray, hidden: int = 32) -> list[np.ndarray]:
    """The network's four arrays as views of the vector."""
    shapes = [(64, hidden), (hidden,), (hidden, 10), (10,)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [piece.reshape(shape) for piece, shape in zip(np.split(vector, ends), shapes, strict=True)]


def flat_gradient(vector: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gradient of the batch's loss at these weights, (n,)."""
    return flat(loss_and_gradients(unflat(vector), x, y)[1])


def endless(x: np.ndarray, y: np.ndarray, batch_size: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of these images, epoch after epoch."""
    rng = np.random.default_rng(seed)
    while True:
        for batch in minibatches(len(x), batch_size, rng):
            yield x[batch], y[batch]


def first_weights(seed: int) -> np.ndarray:
    """The same on every rank."""
    return flat(new_network(np.random.default_rng(seed)))
