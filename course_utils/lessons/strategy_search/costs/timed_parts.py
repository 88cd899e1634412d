"""Timing parts of operators on a rank: each forward and backward, in passes through the model.

In a loop of its own, an operator finds its numbers in the cache and runs faster than in the network. So all operators
of the model run once forward, in its order, and once backward, and only then again. A core is slower while its
neighbour computes: an operator in k parts is timed while k ranks compute, and the others wait.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist

from course_utils.lessons.hardware.machine_rates import using_threads
from course_utils.lessons.strategy_search.costs.local_modules import LocalPart, fill
from course_utils.lessons.strategy_search.graph.operator_graph import Shape
from course_utils.lessons.strategy_search.program.run_program import keep_freed_memory
from course_utils.trace.torch.torch_distributed import unrecorded


class PartToTime(NamedTuple):
    """A part to be timed.

    Attributes:
        reads: shape of each input.
        rows: more than 0: the inputs are numbers below this, of a table's rows, and not float32.
        first: no gradient of the inputs is needed.
    """

    part: LocalPart
    reads: tuple[Shape, ...]
    rows: int
    first: bool


class _Running:
    """A part with its inputs, and what lies between its forward and its backward pass."""

    def __init__(self, job: PartToTime) -> None:
        self.part, self.job = fill(job.part), job
        if job.rows:
            self.inputs = [torch.randint(job.rows, shape) for shape in job.reads]
        else:
            self.inputs = [torch.randn(shape) for shape in job.reads]
        for tensor in self.inputs:
            tensor.requires_grad_(not job.first and tensor.is_floating_point())

    def forward(self) -> float:
        """Seconds. The inputs have just been written, as they have in the network."""
        inputs = [tensor.clone() for tensor in self.inputs]
        began = time.perf_counter()
        self.made = self.part(*inputs)
        return time.perf_counter() - began

    def backward(self) -> float:
        """Seconds, with the update of the parameters."""
        gradient = None if self.made.ndim == 0 else torch.rand_like(self.made)
        for tensor in self.inputs:
            tensor.grad = None
        began = time.perf_counter()
        if self.made.requires_grad:
            self.made.backward(gradient)
        with torch.no_grad():
            for parameter in self.part.parameters():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-1e-6)
                    parameter.grad = None
        seconds = time.perf_counter() - began
        del self.made
        return seconds


Seconds = tuple[list[float], list[float]]
"""Of a part, forward and backward, each as often as it was timed."""


def time_passes(passes: Sequence[tuple[int, Sequence[PartToTime]]], rounds: int) -> list[list[Seconds]]:
    """Seconds of each part; for every pass a list, in its order, empty on ranks that only waited.

    Each pass runs once more first, which finds everything cold and does not count. Ranks begin a pass together.

    Args:
        passes: how many ranks compute, and parts that run one after the other, in the order of the model.
        rounds: how often each is timed.
    """
    if dist.is_initialized():  # on a rank, and not in somebody's notebook
        keep_freed_memory()
    with using_threads(1), unrecorded():
        return [_one_pass(jobs, rounds, workers) for workers, jobs in passes]


def _one_pass(jobs: Sequence[PartToTime], rounds: int, workers: int) -> list[Seconds]:
    together = dist.is_initialized()
    if together and dist.get_rank() >= workers:
        for _ in range(rounds + 2):
            dist.barrier()
        return []
    parts = [_Running(job) for job in jobs]
    seconds: list[Seconds] = [([], []) for _ in parts]
    for turn in range(rounds + 1):
        if together:
            dist.barrier()
        forward = [part.forward() for part in parts]
        backward = [part.backward() for part in reversed(parts)][::-1]
        if turn:
            for (there, back), forward_seconds, backward_seconds in zip(seconds, forward, backward, strict=True):
                there.append(forward_seconds)
                back.append(backward_seconds)
    if together:
        dist.barrier()  # nobody begins the next pass, or goes, before all are done
    return seconds
