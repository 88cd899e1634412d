"""DiLoCo: ranks train alone for many steps, and the mean of their changes serves a second optimizer as its gradient.

Parameters are one flat NumPy vector.
"""

from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.autodiff_and_optimizers.optimizers import adam_step

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI


def outer_step(
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    started: np.ndarray,
    velocity: np.ndarray,
    rate: float = 0.7,
    momentum: float = 0.9,
) -> None:
    """Make one outer step from the weights at which all ranks started, with Nesterov's momentum
    along the mean of their changes.

    The outer gradient is g = started − (mean of all ranks' parameters). The step is that of torch's
    SGD with `nesterov`: v ← momentum · v + g, and then w ← w − rate · (g + momentum · v), where w
    begins at `started`. With rate 1 and momentum 0, the new weights are the plain mean. It takes
    one all-reduce of n numbers of their dtype.

    Args:
        parameters: (n,), this rank's weights after its inner steps; afterwards the new weights,
            which are equal on all ranks.
        started: (n,), the weights at which all ranks began, equal on all; afterwards the new
            weights, too.
        velocity: (n,), v, equal on all ranks and zero at the beginning; changed in place.
        rate, momentum: of the outer optimizer.

    Source: Douillard et al. 2023, "DiLoCo", algorithm 1 and §2; rate and momentum of §3.
    """
    # The outer gradient points from the mean of all ranks' weights back to the start.
    total = np.empty_like(parameters)
    comm.Allreduce(started - parameters, total)
    gradient = total / comm.size
    # Nesterov's momentum uses the gradient once more, on top of the new velocity.
    velocity *= momentum
    velocity += gradient
    started -= rate * (gradient + momentum * velocity)
    parameters[:] = started


class AdamW:
    """The inner optimizer: Adam from lesson 2, with weights that shrink a little at each step.

    Args:
        size: numbers in the vector.
        rate, decay: as torch's AdamW has them.

    Source: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2.
    """

    def __init__(self, size: int, rate: float = 0.003, decay: float = 0.01) -> None:
        self.rate, self.decay = rate, decay
        self.mean, self.square, self.steps = np.zeros(size), np.zeros(size), 0

    def step(self, parameters: np.ndarray, gradient: np.ndarray) -> None:
        """Make one step against the gradient, in place."""
        self.steps += 1
        parameters *= 1 - self.rate * self.decay
        adam_step([parameters], [gradient], [self.mean], [self.square], self.steps, self.rate)
