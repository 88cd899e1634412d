"""A stage whose backward pass comes in two halves: what the stage before waits for, then what the optimizer needs.

Of a linear layer y = x Wᵀ + b, with g the gradient of y, the backward pass makes two products of equal cost: g W, the
gradient of the input, and gᵀ x, the gradient of the weights. autograd makes both at once. Here the second is put aside.
"""

from collections.abc import Callable

import torch
from torch import nn

Later = Callable[[], None]
"""A piece of work that was put aside; called, it adds to `parameter.grad`."""


class _InputFirst(torch.autograd.Function):
    """A linear layer whose backward pass returns the gradient of its input, and puts that of its weights aside."""

    @staticmethod
    def forward(context, x: torch.Tensor, layer: "SplitLinear", weight: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        context.layer = layer
        return nn.functional.linear(x, weight, layer.bias)

    @staticmethod
    def backward(context, gradient: torch.Tensor):
        (x,), layer = context.saved_tensors, context.layer
        layer.put_aside.append(lambda: layer.add_weight_gradient(x, gradient))
        return (gradient @ layer.weight if context.needs_input_grad[0] else None), None, None


class SplitLinear(nn.Linear):
    """`nn.Linear`, whose weight gradients wait in `put_aside` until they are called."""

    put_aside: list[Later]

    @classmethod
    def of(cls, layer: nn.Linear, put_aside: list[Later]) -> "SplitLinear":
        """The same layer, with the same parameters."""
        split = cls(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        split.weight, split.bias = layer.weight, layer.bias
        split.put_aside = put_aside
        return split

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, in) → (…, out)."""
        return _InputFirst.apply(x, self, self.weight)

    @torch.no_grad()
    def add_weight_gradient(self, x: torch.Tensor, gradient: torch.Tensor) -> None:
        """The second half: gᵀ x and the sum of g over all examples."""
        gradient = gradient.flatten(0, -2)
        if self.weight.requires_grad:
            _add(self.weight, gradient.T @ x.flatten(0, -2))
        if self.bias is not None and self.bias.requires_grad:
            _add(self.bias, gradient.sum(0))


def _add(parameter: nn.Parameter, gradient: torch.Tensor) -> None:
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


class Stage(nn.Sequential):
    """A part of the model, made of layers; its linear layers put their weight gradients aside.

    Parameters have the names that they have in `nn.Sequential(*layers)`. What is not a linear layer gets its weight
    gradients in the first half, as autograd gives them.
    """

    def __init__(self, *layers: nn.Module) -> None:
        self_made: list[Later] = []
        super().__init__(*(_split(layer, self_made) for layer in layers))
        self._put_aside = self_made

    def take(self) -> list[Later]:
        """What the last backward pass has put aside; the stage forgets it."""
        taken = list(self._put_aside)
        self._put_aside.clear()
        return taken


def _split(module: nn.Module, put_aside: list[Later]) -> nn.Module:
    """The module with every `nn.Linear` in it replaced."""
    if type(module) is nn.Linear:
        return SplitLinear.of(module, put_aside)
    for name, child in module.named_children():
        setattr(module, name, _split(child, put_aside))
    return module
