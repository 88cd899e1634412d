"""Megatron's cut through a transformer block: attention by heads, the perceptron by its wide layer.

Each half has a column-parallel layer first and a row-parallel layer last, and needs exactly one all-reduce forward and
one backward. Everything between the two works on what this rank has.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.differentiable_collectives import (
    Group,
    all_reduced,
    join_over_ranks,
    split_over_ranks,
)
from course_utils.lessons.model_parallel.parallel_linear import (
    ColumnParallelLinear,
    RowParallelLinear,
    column_parallel_linear,
    row_parallel_linear,
)
from course_utils.lessons.model_parallel.transformer import Block


def tensor_parallel_mlp(
    x: torch.Tensor,
    up_weight: torch.Tensor,
    up_bias: torch.Tensor,
    down_weight: torch.Tensor,
    down_bias: torch.Tensor,
    group: Group = None,
) -> torch.Tensor:
    """Return down(gelu(up(x))) with both layers cut over the ranks.

    There is one all-reduce forward and one backward, and nothing is sent between the layers.

    Args:
        x: (…, width), equal on all ranks.
        up_weight: (hidden / P, width), this rank's rows of the first layer's `weight`.
        up_bias: (hidden / P,), this rank's.
        down_weight: (width, hidden / P), this rank's columns of the second layer's `weight`.
        down_bias: (width,), equal on all ranks.
        group: the ranks that share the layers; None for all.

    Returns:
        (…, width), equal on all ranks.

    Source: Shoeybi et al. 2019, §3, figure 3a.
    """
    # A column cut makes some columns of `hidden`, complete, so gelu can be applied to them.
    # A row cut needs just those columns as its input.
    hidden = gelu(column_parallel_linear(x, up_weight, up_bias, group))
    return row_parallel_linear(hidden, down_weight, down_bias, group)


def parallelise_block(block: Block, group: Group = None, sequence: bool = False) -> None:
    """Cut a block over ranks, in place: each keeps its heads and its part of the perceptron's wide layer.

    Args:
        block: equal on all ranks.
        sequence: norms, dropout and sums are cut too, along the sequence: x comes and goes as (batch, length / P,
            width), see `split_over_ranks` and `join_over_ranks`. The gradients of what every rank then has whole are
            sums over ranks; `sum_sequence_gradients` makes them.

    Raises:
        CourseError: heads or width cannot be divided by the number of ranks.
    """
    ranks, attention = dist.get_world_size(group), block.attention
    if attention.heads % ranks:
        raise CourseError(f"{attention.heads} heads cannot be divided among {ranks} ranks. Choose a multiple.")
    attention.heads //= ranks
    for dropout in (attention.dropout, *((block.drop_1, block.drop_2) if sequence else ())):
        dropout.parts, dropout.part = ranks, dist.get_rank(group)
    attention.qkv = ColumnParallelLinear(attention.qkv, group, sequence)
    attention.out = RowParallelLinear(attention.out, group, sequence)
    block.mlp.up = ColumnParallelLinear(block.mlp.up, group, sequence)
    block.mlp.down = RowParallelLinear(block.mlp.down, group, sequence)


class MoveBetweenRanks(nn.Module):
    """A move between ranks, along dimension 1, in the place of a layer."""

    def __init__(self, move: Callable[[torch.Tensor, int, Group], torch.Tensor], group: Group) -> None:
        super().__init__()
        self.move, self.group = move, group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x as it lies after the move."""
        return self.move(x, 1, self.group)


def parallelise_model(layers: nn.Sequential, group: Group = None, sequence: bool = False) -> nn.Sequential:
    """Cut every block of a character model over ranks, in place. Embedding and head stay whole on every rank.

    Args:
        layers: equal on all ranks.
        sequence: as for `parallelise_block`; the text is cut after the embedding and joined before the head.

    Returns:
        The same layers, with the cut and the join between them where there are any.
    """
    for layer in layers:
        if isinstance(layer, Block):
            parallelise_block(layer, group, sequence)
    if not sequence:
        return layers
    first, *blocks, last = layers
    return nn.Sequential(
        first, MoveBetweenRanks(split_over_ranks, group), *blocks, MoveBetweenRanks(join_over_ranks, group), last
    )


def sequence_parameters(block: Block) -> list[nn.Parameter]:
    """What every rank has whole, and uses for its part of the sequence only: norms, and biases added after the sum."""
    mine = [*block.norm_1.parameters(), *block.norm_2.parameters(), block.attention.out.bias, block.mlp.down.bias]
    return [parameter for parameter in mine if parameter is not None]


def sum_sequence_gradients(block: Block, group: Group = None) -> None:
    """After the backward pass of a sequence-parallel block: one all-reduce, of `sequence_parameters`' gradients."""
    parameters = sequence_parameters(block)
    flat = all_reduced(torch.cat([parameter.grad.flatten() for parameter in parameters]), group)
    for parameter, part in zip(parameters, flat.split([parameter.numel() for parameter in parameters]), strict=True):
        parameter.grad = part.view_as(parameter)
