"""What lesson 16 runs on ranks: one layer with a gate that we hold by the hand, and two ways to sum gradients wrong."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from course_utils.lessons.experts.all_to_all import all_to_all_by_messages
from course_utils.lessons.experts.expert_capacity import capacity, dropped_share
from course_utils.lessons.experts.expert_layer import (
    combine,
    dispatch,
    experts_in_one_process,
    own_experts,
    run_experts,
)
from course_utils.lessons.experts.expert_training import ExpertRun, whole_parameters
from course_utils.lessons.experts.gate import route
from course_utils.lessons.model_parallel.transformer import Mlp
from course_utils.trace.recorder import phase

if TYPE_CHECKING:
    from course_utils.lessons.experts.choices import Dispatched


class RoutedLayer(NamedTuple):
    """One rank's part of a layer with experts, as every rank can make it again.

    Attributes:
        tokens: (tokens, width), this rank's, float64 or float32.
        experts, weights: (tokens, k), the gate's choice.
        modules: all experts.
    """

    tokens: torch.Tensor
    experts: torch.Tensor
    weights: torch.Tensor
    modules: nn.ModuleList


def make_layer(
    rank: int, tokens: int, width: int, number: int, k: int, crowd: float = 0.0, dtype: torch.dtype = torch.float64
) -> RoutedLayer:
    """Tokens of a rank, a gate's choice for them, and the experts; the same wherever it is called.

    Args:
        crowd: the share of tokens that want expert 2 above all; 0 leaves the gate alone.
    """
    torch.manual_seed(0)
    gate = nn.Linear(width, number, bias=False).to(dtype)
    modules = nn.ModuleList(Mlp(width).to(dtype) for _ in range(number))
    torch.manual_seed(1 + rank)
    x = torch.randn(tokens, width).to(dtype)
    with torch.no_grad():
        scores = gate(x)
        scores[: round(crowd * tokens), 2 % number] += 100
    return RoutedLayer(x, *route(scores, k), modules)


def layer_step(layer: RoutedLayer, mine: Sequence[nn.Module]) -> "tuple[torch.Tensor, Dispatched]":
    """Dispatch, this rank's experts, combine, as phases; the result, and the way that rows went."""
    with phase("dispatch"):
        dispatched = dispatch(layer.tokens, layer.experts, len(mine))
    with phase("experts"):
        made = run_experts(dispatched.rows, dispatched.expert, mine)
    with phase("combine"):
        return combine(made, layer.weights, dispatched), dispatched


class LayerResult(NamedTuple):
    """What a rank brings back from one layer.

    Attributes:
        error: the largest difference from all experts in one process.
        sent: rows to each rank.
        rows: that this rank's experts got.
        dropped: share of choices.
    """

    error: float
    sent: list[int]
    rows: int
    dropped: float


@torch.no_grad()
def one_layer(
    tokens: int,
    width: int,
    number: int,
    k: int,
    crowd: float = 0.0,
    factor: float | None = None,
    dtype: torch.dtype = torch.float64,
) -> LayerResult:
    """A layer's forward pass on all ranks, and the same in one process."""
    layer = make_layer(dist.get_rank(), tokens, width, number, k, crowd, dtype)
    if factor is not None:
        layer = layer._replace(experts=capacity(layer.experts, number, factor))
    y, dispatched = layer_step(layer, own_experts(layer.modules))
    wanted = experts_in_one_process(*layer)
    error = float((y - wanted).abs().max()) if y.numel() else 0.0
    return LayerResult(error, dispatched.sent, len(dispatched.rows), dropped_share(layer.experts))


@torch.no_grad()
def rows_by_messages(tokens: int, width: int, number: int, k: int) -> list[int]:
    """The rows of a layer to their experts and back by plain messages, which the trace counts; rows to each rank."""
    layer = make_layer(dist.get_rank(), tokens, width, number, k)
    order = layer.experts.flatten().argsort(stable=True)
    to = layer.experts.flatten()[order] // (number // dist.get_world_size())
    sent = torch.bincount(to, minlength=dist.get_world_size())
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    rows = all_to_all_by_messages(layer.tokens[order // k], sent.tolist(), received.tolist())
    all_to_all_by_messages(rows, received.tolist(), sent.tolist())
    return sent.tolist()


def summing(over_all: bool, by_all: bool) -> Callable[..., None]:
    """A way to sum the experts' gradients: over all ranks or over `data`, divided by the number of all or of `data`.

    What all ranks have is summed over all, and divided by their number.
    """

    def gradients(shared, own, data) -> None:
        ranks = dist.get_world_size()
        for parameter in shared:
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
        for parameter in own:
            dist.all_reduce(parameter.grad, group=None if over_all else data)
            parameter.grad /= ranks if by_all else dist.get_world_size(data)

    return gradients


def largest_difference(runs: Sequence[ExpertRun], serial: ExpertRun, sizes: dict[str, int], number: int) -> float:
    """The largest difference from one process, in any step's loss and any parameter after the last."""
    gaps = [abs(a - b) for a, b in zip(runs[0].losses, serial.losses, strict=True)]
    whole = whole_parameters(runs, sizes, number)
    return max(gaps + [float((whole[name] - values).abs().max()) for name, values in serial.parameters.items()])
