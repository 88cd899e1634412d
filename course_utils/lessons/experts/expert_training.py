"""Training runs with experts, step by step the same on four ranks as in one process, and three recipes for balancing.

Every rank reads its part of each batch. The mesh has two axes. Ranks along `expert` have one set of experts between
them, and ranks along `data` have the same experts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError, nearest
from course_utils.lessons.experts.character_experts import (
    WholeExperts,
    expert_layers,
    parameters_apart,
    spread_experts,
)
from course_utils.lessons.experts.expert_gradients import expert_gradients
from course_utils.lessons.experts.gate import balancing_loss, imbalance, load_of, next_bias
from course_utils.lessons.hybrid_and_sharded.hybrid_step import equal_shards
from course_utils.lessons.hybrid_and_sharded.mesh_training import Adam, Batches, make_groups
from course_utils.trace.recorder import phase

BALANCED = ("nothing", "loss", "bias")
"""What keeps the experts equally busy: nothing, a term of the loss, or a bias of the choice."""


@dataclass(frozen=True)
class Recipe:
    """How a model is trained.

    Attributes:
        rate: of Adam.
        balance: one of `BALANCED`.
        loss_factor: of the balancing loss; 0.01 in the paper.
        bias_rate: by which a bias changes in a step; 0.001 in the paper, whose training runs are long.
    """

    rate: float = 0.01
    balance: str = "nothing"
    loss_factor: float = 0.01
    bias_rate: float = 0.01

    def __post_init__(self) -> None:
        if self.balance not in BALANCED:
            raise CourseError(f"balance is one of {', '.join(BALANCED)}.{nearest(self.balance, BALANCED)}")


@dataclass
class ExpertRun:
    """What a rank returns after a training run.

    Attributes:
        losses: of each step, of the whole batch, without the balancing loss.
        loads: of each step, rows of each expert of the first layer with experts, from all ranks.
        dropped: of each step, the share of choices that were dropped, in all layers.
        held_out: the loss on text that was not used for training; nan if none was given.
        parameters: after the last step, by name; of the experts only this rank's own.
    """

    losses: list[float] = field(default_factory=list)
    loads: list[list[int]] = field(default_factory=list)
    dropped: list[float] = field(default_factory=list)
    held_out: float = float("nan")
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def imbalances(self) -> list[float]:
        """For each step, the tokens of the busiest expert in multiples of its fair share."""
        return [imbalance(torch.tensor(load)) for load in self.loads]


def mesh_of_experts(sizes: Mapping[str, int]) -> dict[str, dist.ProcessGroup]:
    """Return this rank's groups along "data" and "expert". Every rank has to call it, because all make all groups.

    Raises:
        CourseError: other axes, or another number of ranks than take part.
    """
    if set(sizes) != {"data", "expert"} or prod(sizes.values()) != dist.get_world_size():
        raise CourseError(
            f"A mesh of data × expert for {dist.get_world_size()} ranks, not {dict(sizes)}. "
            'Write {"data": 2, "expert": 2} for four.'
        )
    return make_groups(sizes)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a batch."""
    return cross_entropy(model(x).flatten(0, 1), y.flatten())


def train_in_one(build: Callable[[], nn.Sequential], batches: Batches, recipe: Recipe, held_out=None) -> ExpertRun:
    """Train in one process; needs no torch.distributed.

    Args:
        build: makes the model: `functools.partial(character_experts, 4)`.
        batches: of `course_utils.lessons.model_parallel.text.text_batches`.
        held_out: one more batch, to judge by.
    """
    model, run = build(), ExpertRun()
    layers, adam = expert_layers(model), Adam(model, recipe.rate)
    for x, y in batches:
        model.zero_grad()
        loss = loss_of(model, x, y)
        loads = [load_of(layer.chosen, layer.number) for layer in layers]
        (loss + balancing(layers, loads, recipe)).backward()
        adam.step()
        note(run, loss.item(), layers, loads, recipe)
    if held_out is not None:
        with torch.no_grad():
            run.held_out = loss_of(model, *held_out).item()
    run.parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return run


def train_experts(
    sizes: Mapping[str, int],
    build: Callable[[], nn.Sequential],
    batches: Batches,
    recipe: Recipe,
    held_out=None,
    gradients: Callable[..., None] = expert_gradients,
) -> ExpertRun:
    """Train on a mesh of data × expert; `ranks.run(train_experts, sizes, build, batches, recipe, backend="gloo")`.

    Moves, in each layer with experts: two all-to-alls forward (and one of counts), two backward, one all-reduce of all
    loads; at the end of a step two of gradients, one of losses.

    Args:
        sizes: ranks along each axis, {"data": 2, "expert": 2}.
        batches: whole ones, the same on every rank, of which each takes its part.
        gradients: adds up the gradients; exchange it to try out a mistake.

    Raises:
        CourseError: mesh, experts or batches cannot be dealt out evenly.
    """
    groups, run = mesh_of_experts(sizes), ExpertRun()
    model = spread_experts(build(), groups["expert"])
    layers, adam = expert_layers(model), Adam(model, recipe.rate)
    for x, y in batches:
        model.zero_grad()
        with phase("forward"):
            loss = loss_of(model, *own_part(x, y))
            loads = all_ranks([load_of(layer.chosen, layer.number) for layer in layers])
        with phase("backward"):
            (loss + balancing(layers, loads, recipe)).backward()
        with phase("gradients"):
            gradients(*parameters_apart(model), groups["data"])
        adam.step()
        note(run, loss.item(), layers, loads, recipe)
        run.losses[-1], run.dropped[-1] = mean_of_ranks(run.losses[-1], run.dropped[-1])
    if held_out is not None:
        with torch.no_grad():
            (run.held_out,) = mean_of_ranks(loss_of(model, *own_part(*held_out)).item())
    run.parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return run


def own_part(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's part of a batch.

    Raises:
        CourseError: they cannot be dealt out evenly.
    """
    ranks, rank = dist.get_world_size(), dist.get_rank()
    equal_shards(len(x), ranks)
    return x.chunk(ranks)[rank], y.chunk(ranks)[rank]


def all_ranks(loads: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Add up the rows of each layer's experts over all ranks. Moves: one all-reduce, if there is a layer."""
    if not loads:
        return []
    total = torch.stack(list(loads))
    dist.all_reduce(total)
    return list(total)


def mean_of_ranks(*values: float) -> list[float]:
    """Return the means over all ranks of some numbers. Moves: one all-reduce."""
    total = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(total)
    return (total / dist.get_world_size()).tolist()


def balancing(layers: Sequence[WholeExperts], loads: Sequence[torch.Tensor], recipe: Recipe) -> torch.Tensor | float:
    """Return what the recipe adds to the loss."""
    if recipe.balance != "loss":
        return 0.0
    pairs = zip(layers, loads, strict=True)
    return recipe.loss_factor * sum(balancing_loss(layer.shares, load) for layer, load in pairs)


@torch.no_grad()
def note(
    run: ExpertRun, loss: float, layers: Sequence[WholeExperts], loads: Sequence[torch.Tensor], recipe: Recipe
) -> None:
    """Keep the loss and the loads of a step, and change the biases if the recipe has any."""
    run.losses.append(loss)
    run.loads.append(loads[0].tolist() if loads else [])
    dropped = [float((layer.chosen < 0).double().mean()) for layer in layers]
    run.dropped.append(sum(dropped) / len(dropped) if dropped else 0.0)
    if recipe.balance == "bias":
        for layer, load in zip(layers, loads, strict=True):
            layer.bias.copy_(next_bias(layer.bias, load, recipe.bias_rate))


def whole_parameters(runs: Sequence[ExpertRun], sizes: Mapping[str, int], number: int) -> dict[str, torch.Tensor]:
    """Put together the parameters of all ranks under the names of the whole model, from the first set of experts.

    Args:
        runs: of all ranks of the mesh, in order.
        number: of experts in a layer.
    """
    each = number // sizes["expert"]
    whole = {}
    for rank, run in enumerate(runs[: sizes["expert"]]):  # "expert" is the last axis: these are one set
        for name, values in run.parameters.items():
            layer, experts, rest = name.partition(".experts.")
            if experts:
                local, _, rest = rest.partition(".")
                name = f"{layer}.experts.{rank * each + int(local)}.{rest}"
            whole[name] = values
    return whole
