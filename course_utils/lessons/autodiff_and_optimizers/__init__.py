"""Lesson 2, Who computes the gradient? Read `autodiff` first: reverse mode in about 170 lines.

`optimizers` has Adam and counts what optimizers keep; `ready_order` records when each gradient is ready.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import autodiff, optimizers, pictures
    from .autodiff import Node, softmax_cross_entropy, topological_order, unbroadcast
    from .pictures import gradient_readiness, graph
    from .ready_order import layers, measure_ready_order

__getattr__, __dir__, __all__ = attach(__name__, __file__)
