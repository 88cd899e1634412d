"""Three kinds of parallelism in one training run: a small transformer on a mesh of data × pipeline × tensor.

A rank's coordinate along `pipeline` selects its layers, the one along `tensor` its part of each layer, and the one
along `data` its part of every batch. Each kind of parallelism sends its messages in its own groups and needs to know
nothing of the others. All messages go through torch.distributed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import prod

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups, place_of
from course_utils.lessons.hybrid_and_sharded.hybrid_step import equal_shards
from course_utils.lessons.hybrid_and_sharded.zero1 import AdamShard
from course_utils.lessons.model_parallel.differentiable_collectives import all_gathered
from course_utils.lessons.model_parallel.parallel_block import parallelise_block
from course_utils.lessons.model_parallel.parallel_linear import ColumnParallelLinear, RowParallelLinear
from course_utils.lessons.model_parallel.split_layers import split_layers
from course_utils.lessons.model_parallel.transformer import Block
from course_utils.lessons.pipeline.group_messages import GroupMessages
from course_utils.lessons.pipeline.run_schedule import run_schedule, split_model
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.trace.events import Event
from course_utils.trace.recorder import phase

AXES = ("data", "pipeline", "tensor")
TIMEOUT = timedelta(seconds=60)
"""How long a group waits for a message, as long as the group of all ranks does; by default it would be half an hour."""
Clip = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], Mapping[str, dist.ProcessGroup]], float]
"""(gradients that are cut over the tensor group, replicated ones, groups) → the norm; as `clip_over_mesh` does it."""
Batches = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""For each step the whole batch, on every rank: codes of characters and of those that come next."""


def own_groups(sizes: Mapping[str, int]) -> dict[str, dist.ProcessGroup]:
    """Return this rank's group along each axis. All ranks make all groups in the same order, because torch demands it.

    Raises:
        CourseError: the mesh has another number of ranks than there are, or an axis that is none of `AXES`.
    """
    if strange := [axis for axis in sizes if axis not in AXES]:
        raise CourseError(f"The axes of this mesh are {', '.join(AXES)}, not {strange[0]!r}.")
    if prod(sizes.values()) != dist.get_world_size():
        raise CourseError(
            f"A mesh of {dict(sizes)} has {prod(sizes.values())} ranks, and {dist.get_world_size()} take part. "
            f"Write ranks.run(…, ranks={prod(sizes.values())}), or choose other sizes."
        )
    return make_groups(sizes)


def make_groups(sizes: Mapping[str, int]) -> dict[str, dist.ProcessGroup]:
    """Make all groups of a mesh, whose axes may have any names, and return this rank's group along each axis."""
    return make_process_groups(mesh_groups(sizes))


def make_process_groups(groups: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, dist.ProcessGroup]:
    """Make all these groups, axis by axis as every rank does it, and return this rank's group along each axis."""
    own = {}
    for axis, members in groups.items():
        for group in members:
            made = dist.new_group(group, timeout=TIMEOUT)
            if dist.get_rank() in group:
                own[axis] = made
    return own


class Adam:
    """Adam for all parameters of a module, written here because importing torch's own takes seconds on each rank."""

    def __init__(self, module: nn.Module, rate: float) -> None:
        self.rate = rate
        self.states = {
            parameter: AdamShard(torch.zeros_like(parameter), torch.zeros_like(parameter))
            for parameter in module.parameters()
        }

    @torch.no_grad()
    def step(self) -> None:
        """Change each parameter by what Adam makes of its gradient, `parameter.grad`."""
        for parameter, state in self.states.items():
            parameter += state.change(parameter.grad, self.rate)


class MeshTraining:
    """One rank's part of a training run on a mesh, which at each step equals that of the whole model in one process.

    Args:
        model: of `character_model`, equal on all ranks; its layers are used, and changed. With dropout, replicas and
            micro-batches draw different masks from those of one process, so the runs are equal only on average.
        sizes: ranks along each axis, {"data": 2, "pipeline": 2, "tensor": 2}; an axis that is left out has one.
        micro_batches: into which each rank's share of a batch is cut for the pipeline.
        rate: of Adam.
        clip: changes the gradients before Adam sees them; None for nothing.

    Attributes:
        norms: what `clip` has returned, step by step.

    Raises:
        CourseError: the mesh does not suit the ranks, or the model cannot be cut so.
    """

    def __init__(
        self,
        model: nn.Sequential,
        sizes: Mapping[str, int],
        micro_batches: int = 2,
        rate: float = 0.003,
        clip: Clip | None = None,
    ) -> None:
        self.sizes = {**sizes, **{axis: 1 for axis in AXES if axis not in sizes}}
        self.coordinates, self.groups = place_of(dist.get_rank(), self.sizes), own_groups(self.sizes)
        self.micro_batches, self.width = micro_batches, model[0].position.weight.shape[1]
        numbers = [sum(parameter.numel() for parameter in layer.parameters()) for layer in model]
        cuts, stage = split_layers(numbers, self.sizes["pipeline"]), self.coordinates["pipeline"]
        if self.sizes["tensor"] > 1:
            for block in (layer for layer in model if isinstance(layer, Block)):
                parallelise_block(block, self.groups["tensor"])
        self.stage, self.first_layer = split_model(list(model), cuts)[stage], sum(cuts[:stage])
        self.adam, self.clip, self.norms = Adam(self.stage, rate), clip, []

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """Take a step with the whole batch, which every rank is given; return its loss on the last stage, else 0.0.

        Moves: activations and their gradients along `pipeline`, four all-reduces for each block and micro-batch along
        `tensor`, one all-reduce of this rank's gradients along `data`.

        Raises:
            CourseError: the batch cannot be dealt out evenly.
        """
        equal_shards(len(x), self.sizes["data"] * self.micro_batches)
        mine = self.coordinates["data"]
        xs = x.chunk(self.sizes["data"])[mine].chunk(self.micro_batches)
        ys = y.chunk(self.sizes["data"])[mine].chunk(self.micro_batches)

        def share_of_loss(output: torch.Tensor, index: int) -> torch.Tensor:
            return cross_entropy(output.flatten(0, 1), ys[index].flatten(), reduction="sum") / y.numel()

        dtype = next(self.stage.parameters()).dtype
        messages = GroupMessages(self.groups["pipeline"], (*xs[0].shape, self.width), dtype)
        schedule = one_f_one_b_schedule(self.sizes["pipeline"], self.micro_batches)
        stages = {self.coordinates["pipeline"]: self.stage}
        self.stage.zero_grad()
        loss = torch.tensor(run_schedule(messages, schedule, stages, xs, share_of_loss), dtype=torch.float64)
        with phase("data"):
            self._sum_over_replicas(loss)
        if self.clip:
            self.norms.append(self.clip(*self.cut_and_replicated(), self.groups))
        self.adam.step()
        return loss.item()

    def cut_and_replicated(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """This rank's gradients: of what is cut over the tensor group, and of what all its ranks have whole."""
        cut, replicated = [], []
        for name, parameter in self.stage.named_parameters():
            layer, _, own = name.rpartition(".")
            whole = cut_dimension(self.stage.get_submodule(layer), own) is None
            (replicated if whole else cut).append(parameter.grad)
        return cut, replicated

    def _sum_over_replicas(self, loss: torch.Tensor) -> None:
        """Add up what the replicas have, losses and gradients: each is already a share of the whole batch's."""
        if self.sizes["data"] == 1:
            return
        gradients = [parameter.grad for parameter in self.stage.parameters()]
        flat = torch.cat([loss.reshape(1).to(gradients[0].dtype), *(gradient.flatten() for gradient in gradients)])
        dist.all_reduce(flat, group=self.groups["data"])
        total, *parts = flat.split([1, *(gradient.numel() for gradient in gradients)])
        loss.copy_(total[0])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    @torch.no_grad()
    def parameters(self) -> dict[str, torch.Tensor]:
        """This stage's parameters, whole again and by their names in the whole model. Moves: all-gathers in `tensor`.

        Every rank of a tensor group has to call it.
        """
        whole = {}
        for name, parameter in self.stage.named_parameters():
            layer, _, rest = name.partition(".")
            dim = cut_dimension(self.stage.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2])
            joined = parameter if dim is None else all_gathered(parameter, dim, self.groups["tensor"])
            whole[f"{self.first_layer + int(layer)}.{rest}"] = joined.detach().clone()
        return whole


def cut_dimension(layer: nn.Module, name: str) -> int | None:
    """Return the dimension along which a layer's parameter is cut over the tensor group, None if it isn't cut."""
    if isinstance(layer, ColumnParallelLinear):
        return 0
    return 1 if isinstance(layer, RowParallelLinear) and name == "weight" else None


@dataclass
class MeshRun:
    """What a rank returns after a training run.

    Attributes:
        losses: of each step, of the whole batch; 0.0 where the last stage is not. The last rank always has it.
        parameters: after the last step, whole, by their names in the whole model; on a mesh this rank's stage only.
        norms: of the gradient before each step, where it was clipped.
    """

    losses: list[float]
    parameters: dict[str, torch.Tensor]
    norms: list[float] = field(default_factory=list)


def train_on_mesh(
    sizes: Mapping[str, int],
    build: Callable[[], nn.Sequential],
    batches: Batches,
    micro_batches: int = 2,
    rate: float = 0.003,
    clip: Clip | None = None,
) -> MeshRun:
    """Train a model on a mesh; for `ranks.run(train_on_mesh, sizes, build, batches, backend="gloo")`.

    Args:
        build: makes the model, the same on every rank: `functools.partial(character_model, 96, width=32)`.
        batches: of `course_utils.lessons.model_parallel.text.text_batches`, the same on every rank.
    """
    training = MeshTraining(build(), sizes, micro_batches, rate, clip)
    losses = [training.step(x, y) for x, y in batches]
    return MeshRun(losses, training.parameters(), training.norms)


def train_serially(
    build: Callable[[], nn.Sequential], batches: Batches, rate: float = 0.003, max_norm: float | None = None
) -> MeshRun:
    """Train the same model in one process with torch's own Adam, and if `max_norm` is given, torch's own clipping."""
    model, norms = build(), []
    optimizer = torch.optim.Adam(model.parameters(), rate)

    def clip() -> None:
        if max_norm is not None:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm).item())

    losses = [serial_step(model, optimizer, x, y, clip) for x, y in batches]
    return MeshRun(losses, {name: parameter.detach() for name, parameter in model.named_parameters()}, norms)


def serial_step(
    model: nn.Module,
    optimizer: "Adam | torch.optim.Optimizer",
    x: torch.Tensor,
    y: torch.Tensor,
    before: Callable[[], None] = lambda: None,
) -> float:
    """Take a step with the whole batch in one process and return its loss; call `before` once there are gradients."""
    model.zero_grad()
    loss = cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    before()
    optimizer.step()
    return loss.item()


def whole_model(model: nn.Sequential, results: Iterable[MeshRun]) -> nn.Sequential:
    """Put the parameters that the ranks returned into a model of the same form, and return the model."""
    parameters = {name: value for result in results for name, value in result.parameters.items()}
    model.load_state_dict(parameters)
    return model


def bytes_by_axis(events: Iterable[Event], rank: int) -> dict[str, int]:
    """Count from the trace how many bytes a rank handed over along each axis in the steps of a training run on a mesh.

    Sends go along `pipeline`, the collective at the end of a step along `data`, all others along `tensor`.
    """
    mine = [event for event in events if event.rank == rank]
    ends = [(event.start, event.end) for event in mine if event.kind == "phase" and event.name == "data"]
    last = max((end for _, end in ends), default=float("inf"))
    counted = dict.fromkeys(AXES, 0)
    for event in mine:
        if event.kind == "send":
            counted["pipeline"] += event.bytes
        elif event.kind == "collective" and event.start <= last:
            reduced = any(start <= event.start <= end for start, end in ends)
            counted["data" if reduced else "tensor"] += event.bytes
    return counted
