"""A linear layer y = x W + b cut over ranks, in a column cut or in a row cut.

The names are those of W on paper; torch stores it transposed, as `weight`. In a column cut (rows of `weight`,
dimension 0) each rank computes some of the outputs from the whole input. In a row cut (columns of `weight`, dimension
1) each rank computes a term of every output from some of the inputs, and the terms are summed. A row cut after a
column cut needs no message between the two. Megatron-LM says column-parallel and row-parallel.
"""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import linear

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.differentiable_collectives import (
    Group,
    all_reduced,
    gather_over_ranks,
    moved,
    own_part,
    scatter_over_ranks,
    unmoved,
)


def column_parallel_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, group: Group = None
) -> torch.Tensor:
    """Return this rank's outputs of a linear layer in a column cut.

    Forward nothing is sent. Backward there is one all-reduce, of the gradient of x.

    Args:
        x: (…, in), equal on all ranks. If it requires no gradient, nothing has to
            be sent backward.
        weight: (out / P, in), this rank's rows of the layer's `weight`. Ranks may have different
            numbers of rows.
        bias: (out / P,), this rank's, or None.
        group: the ranks that share the layer; None for all.

    Returns:
        (…, out / P).

    Source: Shoeybi et al. 2019, §3: "column parallel".
    """
    # Each rank's outputs give a part of x's gradient: backward, the parts are summed.
    x = moved(x, unmoved, partial(all_reduced, group=group))
    return linear(x, weight, bias)


def row_parallel_linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, group: Group = None
) -> torch.Tensor:
    """Return all outputs of a linear layer in a row cut.

    Forward there is one all-reduce, of y. Backward nothing is sent.

    Args:
        x: (…, in / P), this rank's inputs.
        weight: (out, in / P), this rank's columns of the layer's `weight`. Ranks may have
            different numbers of columns.
        bias: (out,), equal on all ranks, or None. It is added once.
        group: the ranks that share the layer; None for all.

    Returns:
        (…, out), equal on all ranks.

    Source: Shoeybi et al. 2019, §3: "row parallel".
    """
    # Each rank's inputs give a part of y:
    # forward, the parts are summed, and the bias comes after that, once.
    y = moved(linear(x, weight), partial(all_reduced, group=group), unmoved)
    return y if bias is None else y + bias


def shard(tensor: torch.Tensor, dim: int, group: Group = None, name: str = "tensor") -> torch.Tensor:
    """This rank's part of a tensor that every rank has, along `dim`, as a copy.

    Raises:
        CourseError: the dimension cannot be divided by the number of ranks.
    """
    ranks = dist.get_world_size(group)
    if tensor.shape[dim] % ranks:
        raise CourseError(
            f"{name}: {tensor.shape[dim]} along dimension {dim} cannot be divided among {ranks} ranks. "
            f"Choose a multiple of {ranks}."
        )
    return own_part(tensor, dim, group)


class ColumnParallelLinear(nn.Module):
    """`column_parallel_linear` as a module, cut out of a whole layer that every rank has.

    Args:
        sequence: x comes cut along dimension 1, and is gathered here (lesson 9, sequence parallelism).
    """

    def __init__(self, whole: nn.Linear, group: Group = None, sequence: bool = False) -> None:
        super().__init__()
        self.group, self.sequence = group, sequence
        self.weight = nn.Parameter(shard(whole.weight.detach(), 0, group, "outputs"))
        self.bias = None if whole.bias is None else nn.Parameter(shard(whole.bias.detach(), 0, group, "outputs"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, in) → (…, out / P)."""
        if self.sequence:
            return linear(gather_over_ranks(x, 1, self.group), self.weight, self.bias)
        return column_parallel_linear(x, self.weight, self.bias, self.group)


class RowParallelLinear(nn.Module):
    """`row_parallel_linear` as a module, cut out of a whole layer that every rank has.

    Args:
        sequence: y leaves cut along dimension 1: a reduce-scatter in place of the all-reduce.
    """

    def __init__(self, whole: nn.Linear, group: Group = None, sequence: bool = False) -> None:
        super().__init__()
        self.group, self.sequence = group, sequence
        self.weight = nn.Parameter(shard(whole.weight.detach(), 1, group, "inputs"))
        self.bias = None if whole.bias is None else nn.Parameter(whole.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, in / P) → (…, out)."""
        if not self.sequence:
            return row_parallel_linear(x, self.weight, self.bias, self.group)
        y = scatter_over_ranks(linear(x, self.weight), 1, self.group)
        return y if self.bias is None else y + self.bias
