"""The same training with each stage of ZeRO: what a rank keeps and sends, counted beside the formulas."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from course_utils.lessons.hybrid_and_sharded.hybrid_step import equal_shards
from course_utils.lessons.hybrid_and_sharded.mesh_training import Batches
from course_utils.lessons.hybrid_and_sharded.zero1 import AdamShard, adam_shard, zero1_step
from course_utils.lessons.hybrid_and_sharded.zero2 import zero2_backward, zero2_state, zero2_update
from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory, zero_traffic
from course_utils.lessons.model_parallel.collective_counts import collectives_in, ring_bytes
from course_utils.lessons.model_parallel.memory_counter import bytes_of
from course_utils.lessons.model_parallel.memory_parts import check_stage
from course_utils.trace.events import Event
from course_utils.trace.recorder import phase

SMALL_BUCKET = 1 << 16
"""Bytes of a bucket, for models of the size that fits a page."""


@dataclass
class ShardedRun:
    """What a rank brings back from a training run.

    Attributes:
        losses: of each step, of this rank's shard; the mean over the ranks is the batch's.
        parameters: after the last step, whole, by their names.
        kept: bytes of "parameters", "gradients" and "state" that this rank keeps from one step to the next, counted
            from the tensors themselves.
        most_gradients: bytes of gradients at most, while they were made; None where torch does it (stage 3).
    """

    losses: list[float]
    parameters: dict[str, torch.Tensor]
    kept: dict[str, int]
    most_gradients: int | None


def train_sharded(
    stage: int,
    build: Callable[[], nn.Sequential],
    batches: Batches,
    rate: float = 0.003,
    bucket_bytes: int = SMALL_BUCKET,
    micro_batches: int = 1,
) -> ShardedRun:
    """Train a model data-parallel with Adam; for `ranks.run(train_sharded, stage, build, batches, backend="gloo")`.

    What is sent is recorded; `sent_by_rank` reads it from the run's events.

    Args:
        stage: 0 (one all-reduce of the whole gradient, Adam on every rank), 1, 2, or 3 (FSDP2).
        build: makes the model, the same on every rank.
        batches: whole batches, the same on every rank; each takes its share.
        micro_batches: into which each rank cuts its share. Gradients are accumulated over them, and stages 2 and 3
            reduce-scatter them after each backward pass.

    Raises:
        CourseError: no such stage, or a batch that cannot be cut evenly.
    """
    ranks, rank = dist.get_world_size(), dist.get_rank()
    check_stage(stage, ranks)
    model = build()
    training = prepared(stage, model, rate, bucket_bytes)
    losses = []
    for x, y in batches:
        equal_shards(len(x), ranks * micro_batches)
        mine, target = x.chunk(ranks)[rank], y.chunk(ranks)[rank]
        with phase("step"):
            training.begin()
            total = 0.0
            for xs, ys in zip(mine.chunk(micro_batches), target.chunk(micro_batches), strict=True):
                loss = cross_entropy(model(xs).flatten(0, 1), ys.flatten()) / micro_batches
                training.backward(loss)
                total += loss.item()
            training.update()
        losses.append(total)
    kept = {name: bytes_of(tensors) for name, tensors in training.tensors().items()}
    return ShardedRun(losses, training.whole(), kept, training.most_gradients())


class Replicated:
    """Stage 0: everything on every rank; gradients are averaged with one all-reduce."""

    def __init__(self, model: nn.Sequential, rate: float, bucket_bytes: int) -> None:
        self.model, self.rate, self.bucket_bytes = model, rate, bucket_bytes
        self.prepare()

    def prepare(self) -> None:
        """Make what the training run keeps."""
        self.flat = FlatModel(self.model)
        self.adam = AdamShard(torch.zeros_like(self.flat.vector), torch.zeros_like(self.flat.vector))

    def step(self, loss: torch.Tensor) -> None:
        """Take a step with one backward pass."""
        self.begin()
        self.backward(loss)
        self.update()

    def begin(self) -> None:
        """Forget the gradients of the last step."""
        self.flat.gradient.zero_()

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a micro-batch to those that are there."""
        loss.backward()

    def update(self) -> None:
        """Change the parameters, with the mean of the ranks' gradients."""
        dist.all_reduce(self.flat.gradient)
        self.flat.gradient /= dist.get_world_size()
        self.flat.vector += self.adam.change(self.flat.gradient, self.rate)

    def tensors(self) -> dict[str, list[torch.Tensor]]:
        """What is kept on this rank from one step to the next."""
        parameters = list(self.model.parameters())
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        return {"parameters": parameters, "gradients": gradients, "state": self.state()}

    def state(self) -> list[torch.Tensor]:
        """What Adam keeps on this rank."""
        return [self.adam.mean, self.adam.square]

    def whole(self) -> dict[str, torch.Tensor]:
        """Copies of the whole parameters, by their names."""
        return {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}

    def most_gradients(self) -> int | None:
        """Bytes of gradients at most."""
        return bytes_of(self.tensors()["gradients"])


class StateSharded(Replicated):
    """Stage 1."""

    def prepare(self) -> None:
        """Make what the training run keeps."""
        self.flat = FlatModel(self.model)
        self.adam = adam_shard(self.flat.vector)

    def update(self) -> None:
        """Change this rank's part of the parameters, and gather the others."""
        zero1_step(self.flat.vector, self.flat.gradient, self.adam, self.rate)


class GradientsSharded(Replicated):
    """Stage 2."""

    def prepare(self) -> None:
        """Make what the training run keeps."""
        self.zero2 = zero2_state(self.model.parameters(), self.bucket_bytes)

    def begin(self) -> None:
        """Forget the gradients of the last step."""
        self.sums: list[torch.Tensor] = []

    def backward(self, loss: torch.Tensor) -> None:
        """Reduce-scatter each bucket, and add this rank's parts to those that are there."""
        zero2_backward(loss, self.zero2)
        before = self.sums or [0.0] * len(self.zero2.buckets)
        self.sums = [bucket.mine + part for bucket, part in zip(self.zero2.buckets, before, strict=True)]

    def update(self) -> None:
        """Change this rank's part of every bucket, and gather the others."""
        for bucket, part in zip(self.zero2.buckets, self.sums, strict=True):
            bucket.mine = part
        zero2_update(self.zero2, self.rate)

    def tensors(self) -> dict[str, list[torch.Tensor]]:
        """Gradients are in the buckets."""
        return super().tensors() | {"gradients": self.zero2.gradients()}

    def state(self) -> list[torch.Tensor]:
        """Of Adam, this rank's part of every bucket."""
        return [moment for bucket in self.zero2.buckets for moment in (bucket.state.mean, bucket.state.square)]

    def most_gradients(self) -> int | None:
        """What the buckets have seen."""
        return self.zero2.most


class FullySharded(Replicated):
    """Stage 3, through torch."""

    def prepare(self) -> None:
        """Divide the parameters; Adam sees this rank's parts only."""
        from course_utils.lessons.hybrid_and_sharded.fsdp import (
            shard_fully,  # takes a second to import, and only this stage needs it
        )

        shard_fully(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.rate)

    def begin(self) -> None:
        """Forget the gradients of the last step."""
        self.optimizer.zero_grad()

    def update(self) -> None:
        """Change this rank's parts; the backward passes have reduce-scattered the gradients already."""
        self.optimizer.step()

    def state(self) -> list[torch.Tensor]:
        """What torch's Adam keeps on this rank; a number of steps for each parameter is in it."""
        return [entry for state in self.optimizer.state.values() for entry in state.values()]

    def whole(self) -> dict[str, torch.Tensor]:
        """All-gathered."""
        from course_utils.lessons.hybrid_and_sharded.fsdp import whole_tensor

        return {name: whole_tensor(parameter) for name, parameter in self.model.named_parameters()}

    def most_gradients(self) -> int | None:
        """torch does not say."""
        return None


def prepared(stage: int, model: nn.Sequential, rate: float = 0.003, bucket_bytes: int = SMALL_BUCKET) -> Replicated:
    """A training run of this stage, on every rank: `step(loss)` is a backward pass and a step; the model is changed."""
    return (Replicated, StateSharded, GradientsSharded, FullySharded)[stage](model, rate, bucket_bytes)


class FlatModel:
    """A model whose parameters are views of one vector, and their gradients of another.

    Attributes:
        vector, gradient: (n,), of one dtype.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        self.vector = parameters_to_vector(parameters).detach()
        self.gradient = torch.zeros_like(self.vector)
        sizes = [parameter.numel() for parameter in parameters]
        pieces = zip(parameters, self.vector.split(sizes), self.gradient.split(sizes), strict=True)
        for parameter, piece, gradient in pieces:
            parameter.data = piece.view_as(parameter)
            parameter.grad = gradient.view_as(parameter)


def sent_by_rank(events: Iterable[Event], ranks: int, steps: int) -> list[float]:
    """Bytes that each rank sends in a step, were the collectives that the trace counted done by rings."""
    events = list(events)
    return [
        sum(ring_bytes(event, ranks) for event in collectives_in(events, "step", rank)) / steps for rank in range(ranks)
    ]


def on_paper(parameters: Sequence[torch.Tensor], ranks: int, stage: int) -> tuple[dict[str, float], float]:
    """What the formulas say of a model trained with Adam: bytes kept on each rank by part, and bytes sent in a step."""
    number, size = sum(parameter.numel() for parameter in parameters), parameters[0].element_size()
    bytes_of_each = {"parameters": (size, 0, 0), "gradients": (0, size, 0), "state": (0, 0, 2 * size)}
    kept = {name: zero_memory(number, ranks, stage, *each) for name, each in bytes_of_each.items()}
    return kept, zero_traffic(number, ranks, stage, size)
