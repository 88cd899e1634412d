"""Activation checkpointing: a block saves its input, and computes the rest again when the backward pass comes to it.

That costs a second forward pass, a third more arithmetic, and with tensor parallelism its messages once more.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_utils.lessons.model_parallel.memory_counter import counting_again
from course_utils.lessons.model_parallel.transformer import Block, Dropout


class Checkpointed(nn.Module):
    """A block that is computed again in the backward pass, with the same masks of its dropout.

    PyTorch brings back the state of its own generator of random numbers. The course's dropout has one of its own, which
    is brought back here.

    Source: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", §4.1; `torch.utils.checkpoint`, in its
    variant that is not reentrant.
    """

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As the block's own."""
        generators = {dropout.generator for dropout in self.modules() if isinstance(dropout, Dropout)}
        before = {generator: generator.get_state() for generator in generators}
        again = partial(_again, self.block, before)
        return checkpoint(self.block, x, use_reentrant=False, context_fn=lambda: (nullcontext(), again()))


@contextmanager
def _again(block: nn.Module, states: dict[torch.Generator, torch.Tensor]) -> Iterator[None]:
    """The generators go back to these states, and afterwards on from where they were. What is saved is counted."""
    now = {generator: generator.get_state() for generator in states}
    for generator, state in states.items():
        generator.set_state(state)
    try:
        with counting_again(block):
            yield
    finally:
        for generator, state in now.items():
            generator.set_state(state)


def checkpointed(layers: nn.Sequential) -> nn.Sequential:
    """The same layers, with the same parameters; every block is computed again in the backward pass."""
    return nn.Sequential(*(Checkpointed(layer) if isinstance(layer, Block) else layer for layer in layers))
