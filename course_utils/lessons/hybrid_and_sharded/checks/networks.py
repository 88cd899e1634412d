"""A small network in two parts, on which `hybrid_step` is tried, and its gradients by one process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

LOSS = "the loss"
CALLS = "the number of passes through the fully connected layers"
FORWARD = "the number of passes through the convolutions"
ASKS = "x.requires_grad"
GRADIENT = "the gradient of {}"
CONVOLUTIONS, DENSE = "the convolutions", "the fully connected layers"


@dataclass(frozen=True)
class BothParts:
    """How both parts are made, the same on every rank.

    Attributes:
        seed: of the weights.
        regression: whether the loss is the mean square error, in place of the cross-entropy of classes.
        images: whether the activations are images, which the second part first makes smaller and then flattens.
        turned: whether the activations lie in memory in another order than their axes stand.
        dtype: of the weights and the images.
    """

    seed: int
    regression: bool = False
    images: bool = False
    turned: bool = False
    dtype: str = "float64"

    def parts(self) -> "tuple[nn.Module, nn.Module]":
        """Convolutions and fully connected layers."""
        import torch
        from torch import nn

        class Turned(nn.Module):
            def forward(self, x: "Tensor") -> "Tensor":
                return x.transpose(0, -1).contiguous().transpose(0, -1)

        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            first = [nn.Conv2d(1, 2, 3), nn.Tanh()] + [nn.Flatten()] * (not self.images) + [Turned()] * self.turned
            smaller = [nn.AvgPool2d(2), nn.Flatten()] if self.images else []
            second = [*smaller, nn.Linear(8 if self.images else 32, 5), nn.Tanh(), nn.Linear(5, 3)]
            dtype = getattr(torch, self.dtype)
            return nn.Sequential(*first).to(dtype), nn.Sequential(*second).to(dtype)

    def loss(self) -> "Callable[[Tensor, Tensor], Tensor]":
        """(output, target) → the mean loss."""
        from torch.nn import functional

        return functional.mse_loss if self.regression else functional.cross_entropy

    def activations(self, x: "Tensor") -> "Tensor":
        """What the first part makes of x."""
        return self.parts()[0](x)


def step(function: Callable, network: BothParts, x: "Tensor", y: "Tensor", where: slice) -> dict[str, Any]:
    """Call the learner's function with this rank's shard; return the loss, all gradients, all weights, and how often
    both parts were run.
    """
    convolutions, dense = network.parts()
    forward, calls, own = [], [], x[where]
    convolutions.register_forward_hook(lambda *_: forward.append(1))
    dense.register_forward_hook(lambda *_: calls.append(1))
    loss = function(convolutions, dense, own, y[where], network.loss())
    return named(convolutions, dense) | {
        LOSS: loss,
        CALLS: len(calls),
        FORWARD: len(forward),
        ASKS: own.requires_grad,
    }


def gradients_of(network: BothParts, x: "Tensor", y: "Tensor") -> dict[str, Any]:
    """The same by one process, with all of these examples."""
    convolutions, dense = network.parts()
    loss = network.loss()(dense(convolutions(x)), y)
    loss.backward()
    return named(convolutions, dense) | {LOSS: loss.item()}


def named(convolutions: "nn.Module", dense: "nn.Module") -> dict[str, dict[str, "Tensor | None"]]:
    """The gradients of both parts, then the weights of both, each by its parameter's name."""
    parts = {CONVOLUTIONS: convolutions, DENSE: dense}
    gradients = {
        GRADIENT.format(whose): {name: weight.grad for name, weight in part.named_parameters()}
        for whose, part in parts.items()
    }
    return gradients | {
        f"the weights of {whose}": {name: weight.detach() for name, weight in part.named_parameters()}
        for whose, part in parts.items()
    }
