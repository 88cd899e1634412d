"""What moves between ranks inside a model, as functions that the backward pass goes through.

They come in pairs: what one does forward, the other does backward.

| function | forward | backward |
|---|---|---|
| `copy_to_ranks` | nothing | all-reduce |
| `sum_over_ranks` | all-reduce | nothing |
| `gather_over_ranks` | all-gather | reduce-scatter |
| `scatter_over_ranks` | reduce-scatter | all-gather |
| `split_over_ranks` | nothing, each takes its part | all-gather |
| `join_over_ranks` | all-gather | nothing, each takes its part |

Source: Shoeybi et al. 2019, "Megatron-LM", §3 (the first two, f and g); Korthikanti et al. 2022, "Reducing Activation
Recomputation in Large Transformer Models", §4.2.2 (the others, g and its conjugate).
"""

from functools import partial

import torch
import torch.distributed as dist

from course_utils.lessons.data_parallel.differentiable import Group, all_reduced, moved


def all_gathered(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """All ranks' `x`, one after the other along `dim`."""
    parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x.contiguous(), group=group)
    return torch.cat(parts, dim=dim)


def own_part(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """This rank's part of what every rank has, along `dim`, as a copy. Nothing moves."""
    return x.detach().chunk(dist.get_world_size(group), dim=dim)[dist.get_rank(group)].clone()


def reduce_scattered(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """This rank's part along `dim` of the sum of all ranks' `x`."""
    parts = x.chunk(dist.get_world_size(group), dim=dim)
    mine = torch.empty_like(parts[0], memory_format=torch.contiguous_format)
    dist.reduce_scatter_single(mine, torch.cat(parts), group=group)
    return mine


def unmoved(x: torch.Tensor) -> torch.Tensor:
    """The same numbers; nothing moves."""
    return x.view_as(x)


def copy_to_ranks(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """Every rank uses the same `x`, each for its own part of a layer. Backward: one all-reduce of the gradient.

    Each rank's part asks for a different change of `x`; the gradient is the sum of what all ask for.

    Args:
        x: equal on all ranks.
    """
    return moved(x, unmoved, partial(all_reduced, group=group))


def sum_over_ranks(x: torch.Tensor, group: Group = None) -> torch.Tensor:
    """The sum of all ranks' `x`, on every rank. Forward: one all-reduce. Backward: nothing moves.

    All ranks go on with the same sum and have the same loss, once. So the gradient of the sum, which every rank has, is
    that of each term. (`lessons.data_parallel.differentiable.all_reduce_sum` is for ranks with losses of their own.)
    """
    return moved(x, partial(all_reduced, group=group), unmoved)


def gather_over_ranks(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """All ranks' parts joined along `dim`, on every rank, each for its own part of a layer.

    Forward: all-gather. Backward: reduce-scatter, as each rank's layer asks for changes of every part.
    """
    where = {"dim": dim, "group": group}
    return moved(x, partial(all_gathered, **where), partial(reduce_scattered, **where))


def scatter_over_ranks(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """This rank's part along `dim` of the sum of all ranks' `x`. Forward: reduce-scatter. Backward: all-gather."""
    where = {"dim": dim, "group": group}
    return moved(x, partial(reduce_scattered, **where), partial(all_gathered, **where))


def split_over_ranks(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """This rank's part of an `x` that is equal on all ranks. Forward: nothing moves. Backward: all-gather."""
    where = {"dim": dim, "group": group}
    return moved(x, partial(own_part, **where), partial(all_gathered, **where))


def join_over_ranks(x: torch.Tensor, dim: int, group: Group = None) -> torch.Tensor:
    """All ranks' parts, on every rank, where all go on with the same: one loss, that every rank computes.

    Forward: all-gather. Backward: each takes its part of the gradient, which all have; nothing moves.
    """
    where = {"dim": dim, "group": group}
    return moved(x, partial(all_gathered, **where), partial(own_part, **where))
