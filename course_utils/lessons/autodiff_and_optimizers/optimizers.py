"""Adam by hand, and what optimizers remember: their state, in bytes per parameter.

An optimizer that looks back keeps arrays as large as the model. `state_bytes` measures them in any optimizer of torch.
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
    """One step of Adam, in place: parameters, means and squares change, gradients do not.

    A mean and a square are running averages of the gradient and of its square: of the old value the
    share beta1 (of the square: beta2) stays, the rest is new. Both begin at 0 and are too small at
    first; divided by 1 − beta^step they are not. The parameter then moves by −rate · mean /
    (√square + eps), with the corrected mean and the corrected square.

    Args:
        parameters, gradients, means, squares: a float array each per parameter, of its shape, also
            `()`.
        step: which step this is, counted from 1.

    Source: Kingma & Ba 2015, "Adam: a method for stochastic optimization", algorithm 1;
    `torch.optim.Adam`.
    """
    for parameter, gradient, mean, square in zip(parameters, gradients, means, squares, strict=True):
        # Running averages, in place: the caller keeps them for the next step.
        mean *= beta1
        mean += (1 - beta1) * gradient
        square *= beta2
        square += (1 - beta2) * gradient**2
        # Both began at 0 and have seen `step` gradients:
        # this undoes how much the zeros still count.
        corrected_mean = mean / (1 - beta1**step)
        corrected_square = square / (1 - beta2**step)
        parameter -= rate * corrected_mean / (np.sqrt(corrected_square) + eps)


def state_bytes(optimizer: "Optimizer") -> int:
    """Bytes of all tensors that the optimizer of torch keeps from one step to the next; 0 before its first step."""
    kept = (entry for state in optimizer.state.values() for entry in state.values())
    return sum(getattr(entry, "nbytes", 0) for entry in kept)


def state_bytes_per_parameter(model: "nn.Module", makers: Mapping[str, "Callable[..., Optimizer]"]) -> dict[str, float]:
    """What each optimizer keeps for one parameter of `model`, measured after one step with gradients of zero.

    The model's weights may change (Adam with weight decay moves them); its gradients are gone afterwards.

    Args:
        makers: by name, what makes an optimizer of the model's parameters: `torch.optim.Adam`, or a function.
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
