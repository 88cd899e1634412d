"""Weight stashing: a pipeline that is never flushed, and in which each stage takes a step after every micro-batch.

PipeDream runs one schedule on and on for the whole training run. Between the forward and the backward pass of a
micro-batch, a stage then takes steps for earlier micro-batches, so its weights change. Therefore it keeps the weights
of each forward pass until the backward pass of the same micro-batch has used them.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.run_schedule import Loss, run_schedule
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.split_backward import Later, Stage
from course_utils.lessons.pipeline.stage_pace import Pace

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

Weights = dict[str, torch.Tensor]
"""One version of a stage's weights, by name. It is never changed, because a step makes a new version."""


class SteppingStage(Stage):
    """A stage that takes an SGD step after the backward pass of every micro-batch.

    Each forward pass notes which version of the weights it used. Backward passes come in the same order as forward
    ones, as in 1F1B, so the oldest note is the one that belongs to a backward pass.

    Attributes:
        version: how many steps it has taken.
        staleness: for each step, how many others came between its forward pass and itself.
        versions: the most versions of the weights that were kept at any time.

    Source: Narayanan et al. 2019, "PipeDream: Generalized Pipeline Parallelism for DNN Training", §3.3.
    """

    def __init__(self, *layers: nn.Module, rate: float, stash: bool = True) -> None:
        """With `stash`, each backward pass uses the weights of its forward pass; without it, the newest ones."""
        super().__init__()
        self.model, self.rate, self.stash = nn.Sequential(*layers), rate, stash
        self.weights: Weights = _leaves(dict(self.model.named_parameters()))
        self.in_flight: deque[tuple[int, Weights]] = deque()
        self.version, self.versions, self.staleness = 0, 1, list[int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the stage's output, computed with the newest weights."""
        self.in_flight.append((self.version, self.weights))
        self.versions = max(self.versions, len({id(weights) for _, weights in self.in_flight}))
        return torch.func.functional_call(self.model, self.weights, (x,))

    def take(self) -> list[Later]:
        """Return what is left to do after a backward pass, which is the step."""
        return [self.step]

    def step(self) -> None:
        """Take a step of SGD from the newest weights, along the gradient of the oldest micro-batch on its way."""
        version, used = self.in_flight.popleft()
        self.staleness.append(self.version - version)
        gradients = {name: weight.grad for name, weight in used.items()}
        for weight in used.values():
            weight.grad = None  # a different micro-batch may have used this version, too
        if self.stash:
            self.weights = _leaves({name: w - self.rate * gradients[name] for name, w in self.weights.items()})
        else:
            for name, weight in self.weights.items():
                weight.data -= self.rate * gradients[name]  # in place, so that autograd does not notice
        self.version += 1


def _leaves(tensors: Mapping[str, torch.Tensor]) -> Weights:
    return {name: tensor.detach().clone().requires_grad_() for name, tensor in tensors.items()}


@dataclass(frozen=True)
class StashedTraining:
    """What a rank knows of a training run without a flush.

    Attributes:
        losses: of each micro-batch, before its step; where the last stage is.
        staleness: of each step; see `SteppingStage`.
        versions: the most versions of its weights that the rank kept.
        weights: in the end, by name.
    """

    losses: list[float]
    staleness: list[int]
    versions: int
    weights: dict[str, torch.Tensor] = field(repr=False)


def train_without_flush(
    comm: "MPI.Intracomm",
    layers: Sequence[nn.Module],
    micro_batches: Sequence[torch.Tensor],
    loss: Loss,
    rate: float,
    stash: bool = True,
    pace: Pace | None = None,
) -> StashedTraining:
    """Train on one micro-batch after the other, where each stage takes its own steps and the pipeline is filled once.

    Activations go from rank to rank, gradients of activations come back; weights never move. The schedule is 1F1B over
    all micro-batches.

    Args:
        layers: of the whole model, the same on every rank; rank r gets an equal share.
        micro_batches: of the whole training run, in order.
        loss: (output, micro-batch) → its mean loss.
        rate: of SGD.
        stash: whether a backward pass uses the weights of its forward pass.
        pace: how long an action takes at least, see `course_utils.lessons.pipeline.stage_pace`.
    """
    schedule = one_f_one_b_schedule(comm.size, len(micro_batches))
    own = _parts(layers, comm.size)[comm.rank]
    stage = SteppingStage(*own, rate=rate, stash=stash)
    losses: list[float] = []

    def noted(output: torch.Tensor, index: int) -> torch.Tensor:
        value = loss(output, index)
        losses.append(value.item())
        return value

    run_schedule(comm, schedule, {comm.rank: stage}, micro_batches, noted, pace)
    weights = {name: weight.detach() for name, weight in stage.weights.items()}
    return StashedTraining(losses, stage.staleness, stage.versions, weights)


def train_with_delay(
    layers: Sequence[nn.Module],
    stages: int,
    micro_batches: Sequence[torch.Tensor],
    loss: Loss,
    rate: float,
) -> list[float]:
    """Compute in one process what weight stashing computes: SGD along gradients at weights that are some steps old.

    Stage r of P uses the weights of P - r - 1 steps ago: w' = w - rate · ∇f(w₀ of P - 1 steps ago, …, w_{P-1} of now).

    Returns:
        The loss of each micro-batch, before its step.

    Source: Narayanan et al. 2019, §3.3, "Staleness".
    """
    parts = [nn.Sequential(*part) for part in _parts(layers, stages)]
    history = [[_leaves(dict(part.named_parameters()))] for part in parts]
    losses = []
    for index, x in enumerate(micro_batches):
        used = [versions[max(0, index - (stages - 1 - stage))] for stage, versions in enumerate(history)]
        for part, weights in zip(parts, used, strict=True):
            x = torch.func.functional_call(part, weights, (x,))
        value = loss(x, index)
        losses.append(value.item())
        for versions, weights in zip(history, used, strict=True):
            gradients = torch.autograd.grad(value, list(weights.values()), retain_graph=True)
            now = versions[-1].items()
            versions.append(_leaves({n: w - rate * g for (n, w), g in zip(now, gradients, strict=True)}))
    return losses


def _parts(layers: Sequence[nn.Module], stages: int) -> list[list[nn.Module]]:
    """Cut the layers into equal shares, one for each stage."""
    if len(layers) % stages:
        raise CourseError(f"{len(layers)} layers cannot be shared out equally to {stages} stages.")
    share = len(layers) // stages
    return [list(layers[stage * share : (stage + 1) * share]) for stage in range(stages)]
