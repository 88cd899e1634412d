"""Adam by hand, and the state that optimizers keep, in bytes per parameter.

An optimizer that uses earlier gradients keeps arrays as large as the model. `state_bytes` counts them in any of torch's
optimizers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


def adam_step(
    parameters: Sequence[np.ndarray],
    gradients: Sequence[np.ndarray],
    means: Sequence[np.ndarray],
    squares: Sequence[np.ndarray],
    step: int,
    rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """Take one step of Adam: change parameters, means and squares in place, but not gradients.

    For each parameter, with its gradient:

        mean   = beta1 · mean   + (1 − beta1) · gradient
        square = beta2 · square + (1 − beta2) · gradient²
        parameter = parameter − rate · corrected mean / (√(corrected square) + eps)

    The corrected mean is mean / (1 − beta1^step), and the corrected square is square /
    (1 − beta2^step). The arrays of means and squares keep the uncorrected averages.

    Args:
        parameters: a list of float arrays, which can have any shape, even `()`.
        gradients, means, squares: lists of arrays with the same shapes.
        step: the number of this step, counted from 1.

    Source: Kingma & Ba 2015, "Adam: a method for stochastic optimization", algorithm 1;
    `torch.optim.Adam`.
    """
    for parameter, gradient, mean, square in zip(parameters, gradients, means, squares, strict=True):
        # The averages change in place, because the caller keeps them for the next step.
        mean *= beta1
        mean += (1 - beta1) * gradient
        square *= beta2
        square += (1 - beta2) * gradient**2
        # Both began at 0. After `step` gradients, this 0 still has the share beta^step.
        corrected_mean = mean / (1 - beta1**step)
        corrected_square = square / (1 - beta2**step)
        parameter -= rate * corrected_mean / (np.sqrt(corrected_square) + eps)


def state_bytes(optimizer: "Optimizer") -> int:
    """Return the bytes of all tensors that one of torch's optimizers keeps between steps, 0 before its first step."""
    kept = (entry for state in optimizer.state.values() for entry in state.values())
    return sum(getattr(entry, "nbytes", 0) for entry in kept)


def state_bytes_per_parameter(model: "nn.Module", makers: Mapping[str, "Callable[..., Optimizer]"]) -> dict[str, float]:
    """Return the bytes that each optimizer keeps for one parameter of `model`, after a step with gradients of zero.

    The model's weights may change, because AdamW makes them smaller. Its gradients are None afterwards.

    Args:
        makers: name → a function that makes an optimizer for a list of parameters, such as `torch.optim.Adam`.
    """
    import torch

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    count = sum(parameter.numel() for parameter in parameters)
    measured = {}
    for name, make in makers.items():
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer = make(parameters)
        optimizer.step()
        measured[name] = state_bytes(optimizer) / count
    for parameter in parameters:
        parameter.grad = None
    return measured
