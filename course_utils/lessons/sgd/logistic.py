"""Logistic regression that tells a 2 from a 5 with two weights, so that its loss can be drawn as a map."""

import numpy as np

DIGITS = (2, 5)


def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """Return the 359 images of a 2 or a 5, and which of them show a 5.

    Returns:
        images: (359, 8, 8), float64, from 0 for paper to 16 for ink; y: (359,), 1.0 for a 5 and 0.0 for a 2.

    Source: Alpaydin & Kaynak 1998, UCI "Optical recognition of handwritten digits", as scikit-learn distributes them.
    """
    from sklearn.datasets import load_digits

    images, label = load_digits(return_X_y=True)
    chosen = np.isin(label, DIGITS)
    return images[chosen].reshape(-1, 8, 8), (label[chosen] == DIGITS[1]).astype(float)


def two_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return two numbers for each of the 359 images, and which of the images show a 5.

    The first number is the amount of ink in the left half, the second the amount in the lower left quarter. Both are
    shifted and scaled to mean 0 and standard deviation 1 over the images.

    Returns:
        x: (359, 2), float64; y: (359,), 1.0 for a 5 and 0.0 for a 2.
    """
    images, y = digit_images()
    left = images[:, :, :4]
    ink = np.stack([left.mean(axis=(1, 2)), left[:, 4:].mean(axis=(1, 2))], axis=1)
    return (ink - ink.mean(axis=0)) / ink.std(axis=0), y


def probability(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the probability that each row of x is in class 1: 1 / (1 + exp(−w·x)), shape (n,)."""
    return 0.5 * (1 + np.tanh(x @ w / 2))  # the same function, without an overflow


def loss(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of −log(the probability of the right class)."""
    score = x @ w
    return float(np.mean(np.logaddexp(0, score) - y * score))


def gradients(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of each example's loss, shape (n, 2)."""
    return (probability(w, x) - y)[:, None] * x


def gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the gradient of the loss, shape (2,), which is the mean over the examples."""
    return gradients(w, x, y).mean(axis=0)


def hessian(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the second derivatives of the loss at w, shape (2, 2): the mean of p (1 − p) x xᵀ, whatever the labels."""
    p = probability(w, x)
    return x.T @ (x * (p * (1 - p))[:, None]) / len(x)


def best_weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Find the weights with the lowest loss by Newton's method: w ← w − H⁻¹ ∇L, until the gradient is 0 to rounding."""
    w = np.zeros(x.shape[1])
    for _ in range(50):
        w -= np.linalg.solve(hessian(w, x), gradient(w, x, y))
        if np.abs(gradient(w, x, y)).max() < 1e-14:
            break
    return w
