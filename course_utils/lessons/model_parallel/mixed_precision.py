"""Mixed precision: the model computes with 16 bits, and the optimizer keeps every parameter in 32."""

from collections.abc import Callable, Iterable

import torch
from torch import nn


class MixedPrecision(torch.optim.Optimizer):
    """Any optimizer, on float32 copies of parameters in 16 bits.

    A step is often smaller than half of a bfloat16's last digit, 0.4 % of a number: added to the parameter itself, it
    would be lost.

    Args:
        parameters: of the model.
        make: makes the optimizer of the copies, such as `torch.optim.Adam`.

    Source: Micikevicius et al. 2018, "Mixed Precision Training", §3.1.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
    ) -> None:
        self.low = list(parameters)
        self.copies = [nn.Parameter(one.detach().float()) for one in self.low]
        self.inner = make(self.copies)
        super().__init__(self.copies, {})
        self.state = self.inner.state

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """A step of the copies, which are then rounded into the model."""
        for copy, low in zip(self.copies, self.low, strict=True):
            copy.grad = None if low.grad is None else low.grad.float()
        self.inner.step()
        for copy, low in zip(self.copies, self.low, strict=True):
            low.copy_(copy)
            copy.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the model's gradients."""
        for low in self.low:
            low.grad = None
