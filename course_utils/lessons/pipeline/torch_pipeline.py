"""The same model through `torch.distributed.pipelining`, and the lists of its schedules in our notation.

All messages go through torch.distributed's default group.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import COMPUTATIONS, Schedule, parse

SINGLE = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}
"""torch's schedules for one stage on each rank."""
MULTI = {"interleaved": ScheduleInterleaved1F1B, "ZB-H1": ScheduleInterleavedZeroBubble}
"""torch's schedules for several stages on each rank; with one stage its zero-bubble schedule is ZB-H1."""


def torch_pipeline(
    name: str,
    parts: Mapping[int, nn.Module],
    stages: int,
    micro_batches: int,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> Any:
    """Return torch's own schedule, with this rank's stages.

    Args:
        name: "GPipe", "1F1B", "interleaved" or "ZB-H1".
        parts: this rank's stages by number; plain modules, which torch differentiates in its own way.
        stages: of all ranks together.
        micro_batches: into which torch cuts the batch.
        loss: (output, target) of a micro-batch → its mean loss.

    Raises:
        CourseError: no such schedule, or more stages on this rank than it takes.
    """
    placed = [PipelineStage(part, stage, stages, torch.device("cpu")) for stage, part in sorted(parts.items())]
    if name in SINGLE and len(placed) == 1:
        return SINGLE[name](placed[0], micro_batches, loss_fn=loss)
    if name in MULTI:
        return MULTI[name](placed, micro_batches, loss_fn=loss)
    known = ", ".join([*SINGLE, *MULTI])
    raise CourseError(f"No schedule {name!r} for {len(placed)} stages on a rank. There are: {known}.")


def run_with_torch(pipeline: Any, x: torch.Tensor, target: torch.Tensor) -> float:
    """Run one forward and backward pass of the batch, which leaves the gradients of its mean loss in `parameter.grad`.

    Args:
        x, target: the whole batch, on every rank; only the first stage reads x, and only the last one the target.

    Returns:
        The mean loss where the last stage is, 0.0 elsewhere.
    """
    losses: list[torch.Tensor] = []
    rank = dist.get_rank()
    inputs = (x,) if rank == 0 else ()
    if rank == dist.get_world_size() - 1:
        pipeline.step(*inputs, target=target, losses=losses)
        return torch.stack(losses).mean().item()
    pipeline.step(*inputs)
    return 0.0


def published_order(pipeline: Any) -> Schedule:
    """Read torch's list of actions for each rank, without its messages and its sums of gradients."""
    single = isinstance(pipeline, tuple(SINGLE.values()))
    order = pipeline._get_pipeline_order() if single else pipeline.pipeline_order  # torch has no public name for either
    return [
        [
            parse(str(action))
            for action in order[rank]
            if action is not None and action.computation_type.value in COMPUTATIONS
        ]
        for rank in sorted(order)
    ]
