"""Timing parts of operators on a rank: each forward and backward, in passes through the model.

In a loop of its own, an operator finds its numbers in the cache and runs faster than in the network. So all operators
of the model run once forward, in its order, and once backward, and only then again; and all ranks do so at the same
time, because a core is slower while its neighbour computes.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist

from course_utils.hardware.rates import using_threads
from course_utils.strategy.graph import Shape
from course_utils.strategy.local_modules import Part, fill


class Job(NamedTuple):
    """A part to be timed.

    Attributes:
        reads: shape of each input.
        rows: more than 0: the inputs are numbers below this, of a table's rows, and not float32.
        first: no gradient of the inputs is needed.
    """

    part: Part
    reads: tuple[Shape, ...]
    rows: int
    first: bool


class _Running:
    """A part with its inputs, and what lies between its forward and its backward pass."""

    def __init__(self, job: Job) -> None:
        self.part, self.job = fill(job.part), job
        if job.rows:
            self.inputs = [torch.randint(job.rows, shape) for shape in job.reads]
        else:
            self.inputs = [torch.randn(shape) for shape in job.reads]
        for one in self.inputs:
            one.requires_grad_(not job.first and one.is_floating_point())

    def forward(self) -> float:
        """Seconds. The inputs have just been written, as they have in the network."""
        inputs = [one.clone() for one in self.inputs]
        began = time.perf_counter()
        self.made = self.part(*inputs)
        return time.perf_counter() - began

    def backward(self) -> float:
        """Seconds, with the update of the parameters."""
        gradient = None if self.made.ndim == 0 else torch.rand_like(self.made)
        for one in self.inputs:
            one.grad = None
        began = time.perf_counter()
        if self.made.requires_grad:
            self.made.backward(gradient)
        with torch.no_grad():
            for one in self.part.parameters():
                if one.grad is not None:
                    one.sub_(1e-6 * one.grad)
                    one.grad = None
        seconds = time.perf_counter() - began
        del self.made
        return seconds


def time_passes(passes: Sequence[Sequence[Job]], rounds: int) -> list[list[tuple[list[float], list[float]]]]:
    """Seconds of each part forward and backward, `rounds` times each; for every pass a list, in its order.

    Each pass runs once more first, which finds everything cold and does not count. On ranks, all begin a pass together.

    Args:
        passes: parts that run one after the other, in the order of the model.
    """
    found = []
    with using_threads(1):
        for jobs in passes:
            parts = [_Running(job) for job in jobs]
            seconds: list[tuple[list[float], list[float]]] = [([], []) for _ in parts]
            for turn in range(rounds + 1):
                if dist.is_initialized():
                    dist.barrier()
                forward = [part.forward() for part in parts]
                backward = [part.backward() for part in reversed(parts)][::-1]
                if turn:
                    for (there, back), one, other in zip(seconds, forward, backward, strict=True):
                        there.append(one)
                        back.append(other)
            found.append(seconds)
    return found
