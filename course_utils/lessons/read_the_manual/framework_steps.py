"""One training step, however it is written: what it leaves behind, and which collectives it asked for.

What frameworks send does not all pass through torch.distributed's Python functions: DDP calls its collectives from
C++ (FSDP2 calls its own from Python). torch's profiler sees both (lesson 14), as events `c10d::…` with the shapes of
what this rank gives.
"""

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.profiler import ProfilerActivity, profile, record_function

from course_utils.lessons.hybrid_and_sharded.fsdp import whole_tensor
from course_utils.lessons.model_parallel.collective_counts import WORDS, ring_bytes
from course_utils.lessons.model_parallel.memory_counter import own_part
from course_utils.trace.events import Event

Way = Callable[[torch.Tensor, torch.Tensor], nn.Module]
"""Makes a model on every rank and trains it for a step on this rank's share of a batch; gives the model back."""

BROADCAST = "broadcast"
AT_THE_START = "at the start"
_FORWARD = "course: a forward pass begins"
_CALLS = {
    "c10d::allreduce_": "all_reduce",
    "c10d::broadcast_": BROADCAST,
    "c10d::allgather_": "all_gather",
    "c10d::_allgather_base_": "all_gather_single",
    "c10d::reduce_scatter_": "reduce_scatter",
    "c10d::_reduce_scatter_base_": "reduce_scatter_single",
}
"""torch's internal names, and those of its Python functions."""
_SECOND = ("c10d::allgather_", "c10d::_allgather_base_", "c10d::reduce_scatter_", "c10d::_reduce_scatter_base_")
"""Calls whose first argument is where the result goes."""


@dataclass(frozen=True)
class Stepped:
    """What a way has done on one rank.

    Attributes:
        weights: all of the model's, (n,), put together where ranks keep parts.
        kept: how many numbers this rank keeps of "weights" and of "gradients".
        calls: the collectives, in order: torch.distributed's name, and how many numbers this rank gave.
        start: how many of these calls, the first ones, were made before the first forward pass.
    """

    weights: torch.Tensor
    kept: dict[str, int]
    calls: list[tuple[str, int]]
    start: int = 0

    def count(self, words: str) -> int:
        """How many collectives of a kind, "all-reduce"; those that carry a single number, to agree on it, left out."""
        return sum(words_of(name) == words and numbers > 1 for name, numbers in self.calls)

    def sent(self, ranks: int) -> dict[str, float]:
        """How many numbers rank 0 sends for each kind of collective, were they done by rings.

        All that is sent before the first forward pass is counted together, as `AT_THE_START`.
        """
        sent: dict[str, float] = {}
        for position, (name, numbers) in enumerate(self.calls):
            kind = AT_THE_START if position < self.start else words_of(name)
            event = Event(0, name, "collective", None, None, numbers, 0.0, 0.0)
            amount = numbers * (ranks > 1) if name == BROADCAST else ring_bytes(event, ranks)
            sent[kind] = sent.get(kind, 0.0) + amount
        return sent


def step_seen(wrap: Way, x: torch.Tensor, y: torch.Tensor) -> Stepped:
    """Runs on every rank: let a way do its step under torch's profiler, and look at what is there afterwards.

    Args:
        x, y: the whole batch, the same on every rank; the way takes its share.
    """
    mark = register_module_forward_pre_hook(_mark_forward)  # global hooks run before those of DDP and FSDP2
    try:
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            model = wrap(x, y)
            dist.barrier()  # the profiler must not end while messages are under way
    finally:
        mark.remove()
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    kept = {"weights": parameters, "gradients": gradients}
    numbers = {name: sum(own_part(tensor).numel() for tensor in tensors) for name, tensors in kept.items()}
    calls, start = _calls_of(profiler)
    return Stepped(torch.cat([whole_tensor(parameter).flatten() for parameter in parameters]), numbers, calls, start)


def _mark_forward(module: nn.Module, inputs: tuple) -> None:
    with record_function(_FORWARD):
        pass


def _calls_of(profiler: profile) -> tuple[list[tuple[str, int]], int]:
    """The collectives in a profile, in the order of their beginning, and how many began before any forward pass."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    calls = sorted((event for event in events if event.get("name") in _CALLS), key=lambda event: event["ts"])
    forward = min((event["ts"] for event in events if event.get("name") == _FORWARD), default=math.inf)
    start = sum(event["ts"] < forward for event in calls)
    dims = [event["args"]["Input Dims"][event["name"] in _SECOND] for event in calls]
    return [(_CALLS[event["name"]], _numbers(dim)) for event, dim in zip(calls, dims, strict=True)], start


def _numbers(shape: Sequence) -> int:
    """How many numbers a tensor of this shape has, or several tensors."""
    if shape and isinstance(shape[0], list):
        return sum(map(_numbers, shape))
    return math.prod(shape)


def words_of(name: str) -> str:
    """What a collective is called in sentences."""
    return WORDS.get(name, name)


def largest_difference(steps: Sequence[Stepped], weights: torch.Tensor) -> float:
    """The largest difference between any rank's weights and these."""
    return max(float((step.weights - weights).abs().max()) for step in steps)


def parts(steps: Mapping[str, Sequence[Stepped]]) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """For each way what rank 0 sends by rings, and what it keeps, in numbers; for `course.draw.shares`."""
    sent = {name: ranks[0].sent(len(ranks)) for name, ranks in steps.items()}
    kinds = list(dict.fromkeys(kind for by_kind in sent.values() for kind in by_kind))
    even = {name: {kind: by_kind.get(kind, 0.0) for kind in kinds} for name, by_kind in sent.items()}
    return even, {name: ranks[0].kept for name, ranks in steps.items()}
