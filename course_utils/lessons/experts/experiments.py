"""What lesson 16 runs on ranks: a layer whose gate can be pushed towards one expert, and how far weights differ."""

from collections.abc import Sequence
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
        experts, weights: (tokens, k), what the gate has chosen.
        modules: all experts.
    """

    tokens: torch.Tensor
    experts: torch.Tensor
    weights: torch.Tensor
    modules: nn.ModuleList


def make_layer(
    rank: int, tokens: int, width: int, number: int, k: int, crowd: float = 0.0, dtype: torch.dtype = torch.float64
) -> RoutedLayer:
    """Return tokens of a rank, what a gate chooses for them, and the experts; the same on whatever rank it is called.

    Args:
        crowd: the share of the tokens that are made to choose expert 2; 0 leaves the gate alone.
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
    """Run dispatch, this rank's experts and combine as phases; return the result and what dispatch returned."""
    with phase("dispatch"):
        dispatched = dispatch(layer.tokens, layer.experts, len(mine))
    with phase("experts"):
        made = run_experts(dispatched.rows, dispatched.expert, mine)
    with phase("combine"):
        return combine(made, layer.weights, dispatched), dispatched


class LayerResult(NamedTuple):
    """What a rank returns after one layer.

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
    """Run a layer's forward pass on all ranks, and the same in one process."""
    layer = make_layer(dist.get_rank(), tokens, width, number, k, crowd, dtype)
    if factor is not None:
        layer = layer._replace(experts=capacity(layer.experts, number, factor))
    y, dispatched = layer_step(layer, own_experts(layer.modules))
    wanted = experts_in_one_process(*layer)
    error = float((y - wanted).abs().max()) if y.numel() else 0.0
    return LayerResult(error, dispatched.sent, len(dispatched.rows), dropped_share(layer.experts))


@torch.no_grad()
def rows_by_messages(tokens: int, width: int, number: int, k: int) -> list[int]:
    """Send the rows of a layer to their experts and back by plain messages; return how many went to each rank."""
    layer = make_layer(dist.get_rank(), tokens, width, number, k)
    order = layer.experts.flatten().argsort(stable=True)
    to = layer.experts.flatten()[order] // (number // dist.get_world_size())
    sent = torch.bincount(to, minlength=dist.get_world_size())
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    rows = all_to_all_by_messages(layer.tokens[order // k], sent.tolist(), received.tolist())
    all_to_all_by_messages(rows, received.tolist(), sent.tolist())
    return sent.tolist()


def largest_difference(runs: Sequence[ExpertRun], serial: ExpertRun, sizes: dict[str, int], number: int) -> float:
    """Return the largest difference from one process, in the loss of any step and in any parameter after the last."""
    gaps = [abs(a - b) for a, b in zip(runs[0].losses, serial.losses, strict=True)]
    whole = whole_parameters(runs, sizes, number)
    return max(gaps + [float((whole[name] - values).abs().max()) for name, values in serial.parameters.items()])
