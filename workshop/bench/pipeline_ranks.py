"""What the bench of pipelines trains: the digits' network, through our schedules and through torch's."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.data import digits
from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.pipeline.actions import Action, Schedule, micro_batches_of, rank_of_stages
from course_utils.lessons.pipeline.digits_pipeline import BATCH, digit_batches, digit_layers, own_stages
from course_utils.lessons.pipeline.run_schedule import run_schedule
from course_utils.lessons.pipeline.torch_pipeline import published_order, run_with_torch, torch_pipeline

if TYPE_CHECKING:
    from mpi4py import MPI

RATE = 0.5


@dataclass(frozen=True)
class TrainedStages:
    """What a rank has after its training.

    Attributes:
        losses: before each step; zeros where the last stage is not.
        parameters: of each stage, at the end.
        order: what torch says that each rank does, where torch did it.
    """

    losses: list[float]
    parameters: dict[int, list[torch.Tensor]]
    order: Schedule | None = None


Pass = Callable[[Any], float]
"""A batch → its loss, when forward and backward pass are done."""


def trained(stages: Mapping[int, nn.Module], batches: Iterable[Any], forward_and_backward: Pass) -> TrainedStages:
    """A step of gradient descent for each batch."""
    optimizer = Sgd([parameter for stage in stages.values() for parameter in stage.parameters()], RATE)
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        losses.append(forward_and_backward(batch))
        optimizer.step()
    return TrainedStages(
        losses, {stage: [parameter.detach() for parameter in part.parameters()] for stage, part in stages.items()}
    )


def train_pipeline(comm: "MPI.Intracomm", schedule: Sequence[Sequence[Action]], steps: int) -> TrainedStages:
    """Some steps through a schedule: losses where the last stage is, and this rank's stages."""
    mine = own_stages(schedule, comm.rank, digit_layers())
    batches = digit_batches(steps, micro_batches_of(schedule))
    return trained(mine, batches, lambda batch: run_schedule(comm, schedule, mine, *batch))


def train_with_torch(name: str, schedule: Schedule, steps: int) -> TrainedStages:
    """The same through torch's own schedule of this name, with stages where ours has them, on the default group."""
    import torch.distributed as dist

    plain = own_stages(schedule, dist.get_rank(), digit_layers(), plain=True)
    stages = len(rank_of_stages(schedule))
    pipeline = torch_pipeline(name, plain, stages, micro_batches_of(schedule), cross_entropy)
    data = digits("float64")
    batches = [slice(step * BATCH, (step + 1) * BATCH) for step in range(steps)]
    result = trained(plain, batches, lambda own: run_with_torch(pipeline, data.train_x[own], data.train_y[own]))
    return replace(result, order=published_order(pipeline))
