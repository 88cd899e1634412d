"""A small network for handwritten digits in NumPy. Its backward pass is written by hand, which lesson 2 automates.

Its parameters are a list of four arrays: weights and biases of the hidden layer, weights and biases of the output.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from course_utils.lessons.sgd.gradient_descent import minibatches, sgd_step

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""(train_x, train_y, test_x, test_y), as `course_utils.data.digits_arrays` gives them."""


@dataclass
class DigitsRun:
    """The results of a training."""

    losses: list[float]
    """The loss of each step's batch, before the step."""
    test_accuracy: float
    """The share of the test images that are classified correctly at the end."""
    parameters: list[np.ndarray]
    """The weights at the end."""


def new_network(rng: np.random.Generator, hidden: int = 32) -> list[np.ndarray]:
    """Return new parameters: (64, hidden), (hidden,), (hidden, 10), (10,), float64. Weights are random, biases are 0.

    The weights of a layer have standard deviation √(2 / inputs), so that numbers keep their size from layer to layer.

    Source: He et al. 2015, "Delving Deep into Rectifiers", §2.2.
    """
    first = rng.normal(0, np.sqrt(2 / 64), (64, hidden))
    second = rng.normal(0, np.sqrt(2 / hidden), (hidden, 10))
    return [first, np.zeros(hidden), second, np.zeros(10)]


def flat(parameters: Sequence[np.ndarray]) -> np.ndarray:
    """Copy all parameters into one vector, (n,), as it is sent in messages."""
    return np.concatenate([parameter.ravel() for parameter in parameters])


def unflat(vector: np.ndarray) -> list[np.ndarray]:
    """Return the network's four arrays as views of the vector."""
    hidden = (len(vector) - 10) // (64 + 1 + 10)
    shapes = [(64, hidden), (hidden,), (hidden, 10), (10,)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [piece.reshape(shape) for piece, shape in zip(np.split(vector, ends), shapes, strict=True)]


def scores(parameters: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return a score for each of the ten digits, shape (n, 10); the highest is the network's answer."""
    first, first_bias, second, second_bias = parameters
    return np.maximum(x @ first + first_bias, 0) @ second + second_bias


def loss_and_gradients(
    parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray
) -> tuple[float, list[np.ndarray]]:
    """Return the mean of −log(the probability of the right digit) over a batch, and its gradient for each parameter.

    Args:
        x: (batch, 64) images. y: (batch,) the digit in each image.
    """
    first, first_bias, second, second_bias = parameters
    hidden = np.maximum(x @ first + first_bias, 0)
    score = hidden @ second + second_bias
    score = score - score.max(axis=1, keepdims=True)  # the same probabilities, without an overflow
    log_p = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    rows = np.arange(len(y))
    to_score = np.exp(log_p)  # backward: how the loss changes with each score
    to_score[rows, y] -= 1
    to_score /= len(y)
    to_hidden = (to_score @ second.T) * (hidden > 0)
    gradients = [x.T @ to_hidden, to_hidden.sum(axis=0), hidden.T @ to_score, to_score.sum(axis=0)]
    return float(-log_p[rows, y].mean()), gradients


def accuracy(parameters: Sequence[np.ndarray], x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the images x whose digit y has the highest score."""
    return float((scores(parameters, x).argmax(axis=1) == y).mean())


def train_digits(
    data: Arrays,
    step: Callable[[list, list, float], None] = sgd_step,
    batches: Callable[[int, int, np.random.Generator], Iterator[np.ndarray]] = minibatches,
    *,
    epochs: int = 20,
    batch_size: int = 32,
    rate: float = 0.1,
    seed: int = 0,
) -> DigitsRun:
    """Train a new network on the digits.

    Args:
        step: called as step(parameters, gradients, rate) for each batch; changes the parameters in place.
        batches: called as batches(n, batch_size, rng) in each epoch; yields the indices of each batch.
    """
    train_x, train_y, test_x, test_y = data
    rng = np.random.default_rng(seed)
    parameters, losses = new_network(rng), []
    for _ in range(epochs):
        for batch in batches(len(train_x), batch_size, rng):
            loss, gradients = loss_and_gradients(parameters, train_x[batch], train_y[batch])
            step(parameters, gradients, rate)
            losses.append(loss)
    return DigitsRun(losses, accuracy(parameters, test_x, test_y), parameters)
