"""Gradient descent in NumPy: batches, a step against the gradient, a step with momentum, and the largest rate.

A model is a list of parameters, which are arrays of any shape. Its gradient is a list of arrays of the same shapes.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Shuffle the numbers 0 … n − 1 and cut them into the batches of one epoch.

    Every example is in exactly one batch, and no batch is empty, so for n = 0 there is no batch. If
    `batch_size` does not divide n, the last batch is shorter. All randomness comes from `rng`, so
    the same seed gives the same batches.

    Yields:
        The indices of the examples in one batch, an int64 array of shape (batch_size,) or shorter.

    Source: Bottou 2012, "Stochastic Gradient Descent Tricks", which recommends shuffling.
    """
    # The order is new in every epoch, so that examples meet in new batches.
    order = rng.permutation(n)
    for start in range(0, n, batch_size):
        # A slice that reaches beyond the end is simply shorter, so no example is lost.
        yield order[start : start + batch_size]


def sgd_step(
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    rate: float,
) -> None:
    """Move every parameter against its gradient, in place: w ← w − rate · g.

    The arrays themselves change, so everyone who holds one of them sees the new numbers. The
    gradients stay as they are.

    Args:
        parameters: float arrays of any shape, including `()`, a single number; changed.
        gradients: one for each parameter, of the same shape; read.
        rate: the learning rate η.

    Source: Robbins & Monro 1951, "A Stochastic Approximation Method".
    """
    for parameter, gradient in zip(parameters, gradients, strict=True):
        # `-=` writes into the array itself. `parameter = parameter - …` would make a new array
        # and leave the one in the list unchanged.
        parameter -= rate * gradient


def momentum_step(
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    velocities: Sequence[np.ndarray],
    rate: float,
    momentum: float = 0.9,
) -> None:
    """Take one step with momentum, in place: v ← momentum · v + g, then w ← w − rate · v.

    Args:
        parameters: float arrays of any shape, including `()`, a single number; changed.
        gradients: one for each parameter, of the same shape; read.
        velocities: one for each parameter, of the same shape, all zeros before the first step;
            changed, because the next call needs them.
        rate: the learning rate η.
        momentum: the share β of the old velocity that is kept, 0 ≤ β < 1.

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods";
    `torch.optim.SGD` does the same.
    """
    for parameter, gradient, velocity in zip(parameters, gradients, velocities, strict=True):
        # The velocity comes first, so that this step already contains the new gradient.
        velocity *= momentum
        velocity += gradient
        parameter -= rate * velocity


def largest_stable_lr(hessian: np.ndarray, momentum: float = 0.0) -> float:
    """Return the learning rate η above which descent moves away from a minimum.

    The eigenvalues λ of the Hessian are the curvatures of the loss in its main directions. In each
    of them, a step without momentum multiplies the distance from the minimum by 1 − η λ, and the
    distance must not grow in any direction. With momentum the limit is 2 (1 + momentum) / λ.

    Args:
        hessian: (n, n), symmetric; the second derivatives of the loss at a minimum, so that no
            eigenvalue is negative; read.
        momentum: the β of `momentum_step`.

    Returns:
        The limit, a float; `math.inf` if the loss is flat, that is, if every eigenvalue is exactly
        0. A loss that is only nearly flat has a limit.

    Source: LeCun, Bottou, Orr & Müller 1998, "Efficient BackProp", §5; Polyak 1964 with momentum.
    """
    # The steepest direction is the first to fail. NumPy sorts the eigenvalues, the largest last.
    steepest = np.linalg.eigvalsh(hessian)[-1]
    return 2 * (1 + momentum) / float(steepest) if steepest > 0 else math.inf


def descend(
    gradient: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    rate: float,
    steps: int,
    momentum: float = 0.0,
) -> np.ndarray:
    """Return the path of gradient descent from `start`, shape (steps + 1, *start.shape), the start first.

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
    """Return the largest number for which `holds` is true, to within (high − low) / 2^tries, by bisection.

    Args:
        holds: true up to some number between low and high, and false above it.
    """
    for _ in range(tries):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def gradient_noise(
    gradients: np.ndarray, batch_size: int, rng: np.random.Generator, draws: int = 2000, replace: bool = False
) -> float:
    """Measure the root mean square distance between the gradient of a random batch and that of all examples.

    Args:
        gradients: (n, parameters), the gradient of each single example.
        draws: the number of batches that are drawn.
        replace: whether an example can be in a batch twice. If not, the batches are like those of `minibatches`.
    """
    everything = gradients.mean(axis=0)
    squares = 0.0
    for _ in range(draws):
        batch = rng.choice(len(gradients), batch_size, replace=replace)
        squares += float(np.sum((gradients[batch].mean(axis=0) - everything) ** 2))
    return math.sqrt(squares / draws)


def predicted_noise(gradients: np.ndarray, batch_size: int, replace: bool = False) -> float:
    """Return the noise that `gradient_noise` approaches: σ / √B, times √((n − B) / (n − 1)) without replacement.

    Here σ² is the mean squared distance between one example's gradient and the mean of all n.

    Source: Cochran 1977, "Sampling Techniques", theorem 2.2 (the finite population correction).
    """
    n = len(gradients)
    sigma = math.sqrt(np.mean(np.sum((gradients - gradients.mean(axis=0)) ** 2, axis=1)))
    rest = 1.0 if replace else math.sqrt((n - batch_size) / (n - 1))
    return sigma / math.sqrt(batch_size) * rest
