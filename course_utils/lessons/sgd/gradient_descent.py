"""Gradient descent, batch by batch: one step against the gradient, with momentum, and how long a step may be.

Everything is NumPy in one process. A model is its list of parameters, arrays of any shape; a gradient is a list of
arrays of the same shapes.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The batches of one epoch: the numbers 0 … n − 1 in a new random order, cut into pieces.

    Every example is in exactly one batch, and no batch is empty. The last one is shorter where
    `batch_size` does not divide n. All randomness comes from `rng`: the same seed gives the same
    batches.

    Yields:
        Indices of the examples of one batch, int64, shape (batch_size,) or shorter.

    Source: Bottou 2012, "Stochastic Gradient Descent Tricks", which advises to shuffle.
    """
    # A new order in every epoch: batches of the same examples again and again would teach less.
    order = rng.permutation(n)
    for start in range(0, n, batch_size):
        # A slice that reaches beyond the end is shorter, so the last examples are not lost.
        yield order[start : start + batch_size]


def sgd_step(
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    rate: float,
) -> None:
    """Move every parameter against its gradient, in place: w ← w − rate · g.

    Whoever else holds one of these arrays sees its new numbers. The gradients stay as they are.

    Args:
        parameters: float arrays of any shapes, also `()`, a single number; changed.
        gradients: one for each parameter, of the same shape; read.
        rate: the learning rate η.

    Source: Robbins & Monro 1951, "A Stochastic Approximation Method".
    """
    for parameter, gradient in zip(parameters, gradients, strict=True):
        # -= writes into the array itself;
        # parameter = parameter - … would make a new one that nobody else sees.
        parameter -= rate * gradient


def momentum_step(
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    velocities: Sequence[np.ndarray],
    rate: float,
    momentum: float = 0.9,
) -> None:
    """One step with momentum, in place: v ← momentum · v + g, then w ← w − rate · v.

    Args:
        parameters: float arrays of any shapes, also `()`, a single number; changed.
        gradients: one for each parameter, of the same shape; read.
        velocities: one for each parameter, of the same shape, zeros before the first step;
            changed, for the next call.
        rate: the learning rate η.
        momentum: the share β of the old velocity that is kept, 0 ≤ β < 1.

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods";
    `torch.optim.SGD` does the same.
    """
    for parameter, gradient, velocity in zip(parameters, gradients, velocities, strict=True):
        # The velocity first: the step already goes along with the newest gradient.
        velocity *= momentum
        velocity += gradient
        parameter -= rate * velocity


def largest_stable_lr(hessian: np.ndarray, momentum: float = 0.0) -> float:
    """The learning rate η above which descent leaves a minimum.

    The eigenvalues λ of the Hessian are the curvatures of the loss there. Along the direction of
    each, a step multiplies the distance from the minimum by 1 − η λ. In no direction may the
    distance grow. Momentum makes the bound 1 + momentum times as large.

    Args:
        hessian: (n, n), symmetric; the second derivatives of the loss at a minimum, so that no
            eigenvalue is below 0; read.
        momentum: the β of `momentum_step`.

    Returns:
        The bound, a float; `math.inf` where the loss is flat (every eigenvalue is 0).

    Source: LeCun, Bottou, Orr & Müller 1998, "Efficient BackProp", §5; Polyak 1964 with momentum.
    """
    # The distance must not grow along any eigenvector, so the largest eigenvalue decides.
    # They come sorted.
    steepest = np.linalg.eigvalsh(hessian)[-1]
    return 2 * (1 + momentum) / float(steepest) if steepest > 0 else math.inf


def descend(
    gradient: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    rate: float,
    steps: int,
    momentum: float = 0.0,
) -> np.ndarray:
    """The path of gradient descent from `start`: shape (steps + 1, *start.shape), the start first.

    Args:
        gradient: of the loss, at a point.
        start: read, not changed.
    """
    w, velocity = np.array(start, dtype=float), np.zeros(np.shape(start))
    path = [w.copy()]
    for _ in range(steps):
        momentum_step([w], [gradient(w)], [velocity], rate, momentum)
        path.append(w.copy())
    return np.array(path)


def bisect(holds: Callable[[float], bool], low: float, high: float, tries: int = 20) -> float:
    """The largest number for which `holds` is true, to (high − low) / 2^tries: halve, and keep the half with the edge.

    Args:
        holds: true up to some number between low and high, false from there on.
    """
    for _ in range(tries):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def gradient_noise(
    gradients: np.ndarray, batch_size: int, rng: np.random.Generator, draws: int = 2000, replace: bool = False
) -> float:
    """How far the gradient of a random batch is from that of all examples: the root of the mean squared distance.

    Args:
        gradients: (n, parameters), the gradient of each example by itself.
        draws: the number of batches that are drawn.
        replace: whether one example may be drawn twice into a batch. Without, a batch is as in `minibatches`.
    """
    everything = gradients.mean(axis=0)
    squares = 0.0
    for _ in range(draws):
        batch = rng.choice(len(gradients), batch_size, replace=replace)
        squares += float(np.sum((gradients[batch].mean(axis=0) - everything) ** 2))
    return math.sqrt(squares / draws)


def predicted_noise(gradients: np.ndarray, batch_size: int, replace: bool = False) -> float:
    """What `gradient_noise` comes to with very many draws: σ / √B, times √((n − B) / (n − 1)) without replacement.

    σ² is the mean squared distance of one example's gradient from the mean of all n.

    Source: Cochran 1977, "Sampling Techniques", theorem 2.2 (the finite population correction).
    """
    n = len(gradients)
    sigma = math.sqrt(np.mean(np.sum((gradients - gradients.mean(axis=0)) ** 2, axis=1)))
    rest = 1.0 if replace else math.sqrt((n - batch_size) / (n - 1))
    return sigma / math.sqrt(batch_size) * rest
