"""Lesson 1, How does a network learn? Read `gradient_descent` first.

`logistic` is a model with two weights, so its loss can be drawn as a map. `digits_network` is a small network for
handwritten digits.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import gradient_descent, pictures
    from .digits_network import accuracy, flat, loss_and_gradients, new_network, train_digits, unflat
    from .gradient_descent import (
        bisect,
        descend,
        gradient_noise,
        largest_stable_lr,
        minibatches,
        predicted_noise,
        sgd_step,
    )
    from .logistic import best_weights, digit_images, gradients, loss, probability, two_digits
    from .pictures import parts_and_whole

__getattr__, __dir__, __all__ = attach(__name__, __file__)
