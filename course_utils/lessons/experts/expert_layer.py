"""Experts on different ranks: tokens travel to their experts (dispatch), and what was made of them back (combine).

With e experts on each of P ranks, expert i is on rank i // e. Every rank has tokens of its own, and any of them may
want an expert of any rank.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.experts.all_to_all import exchanged
from course_utils.lessons.experts.choices import Dispatched, check_choices


def dispatch(
    tokens: torch.Tensor,
    experts: torch.Tensor,
    experts_here: int,
    group: Group = None,
) -> Dispatched:
    """Send each token to its experts' ranks.

    Forward: an all-to-all of how many rows are coming, then one of the rows. Backward: one, of the
    rows' gradients.

    Args:
        tokens: (tokens, width), this rank's; ranks may have unequal numbers of them.
        experts: (tokens, k) of int64, each token's experts, counted over all ranks; −1 for a choice
            that was dropped.
        experts_here: experts on each rank.

    Raises:
        CourseError: there is no such expert, or not one choice for each token.

    Source: Lepikhin et al. 2020, "GShard", §3.1; its dispatch fills blocks of one size, this one
    sends what there is.
    """
    ranks, k = dist.get_world_size(group), experts.shape[1]
    check_choices(tokens, experts, ranks * experts_here)
    flat = experts.flatten()
    order = flat.argsort(stable=True)  # by expert, and so by rank
    order = order[flat[order] >= 0]
    counts = torch.bincount(flat[order], minlength=ranks * experts_here)
    theirs = torch.empty_like(counts)
    dist.all_to_all_single(theirs, counts, group=group)
    sent, received = (of_all.view(ranks, experts_here).sum(dim=1).tolist() for of_all in (counts, theirs))
    rows = exchanged(tokens[order // k], sent, received, group)
    expert = torch.arange(experts_here).repeat(ranks).repeat_interleave(theirs)
    return Dispatched(rows, expert, order, sent, received)


def combine(
    made: torch.Tensor,
    weights: torch.Tensor,
    dispatched: Dispatched,
    group: Group = None,
) -> torch.Tensor:
    """Bring back what the experts made, and add it up for each token, weighted.

    Forward: one all-to-all, the way back. Backward: one, there again. A token whose choices were
    all dropped gets zeros: the block adds its input, so it passes unchanged.

    Args:
        made: (R, width), what this rank's experts made of `dispatched.rows`.
        weights: (tokens, k), of this rank's tokens, of which there may be none; dtype as `made`.
        dispatched: of `dispatch`.

    Returns:
        (tokens, width).

    Source: Lepikhin et al. 2020, "GShard", §3.1; Fedus et al. 2021, eq. 2.
    """
    tokens, k = weights.shape
    back = exchanged(made, dispatched.received, dispatched.sent, group)
    weighted = back * weights.flatten()[dispatched.order].unsqueeze(1)
    return weighted.new_zeros(tokens, made.shape[1]).index_add(0, dispatched.order // k, weighted)


def run_experts(rows: torch.Tensor, expert: torch.Tensor, modules: Sequence[nn.Module]) -> torch.Tensor:
    """What this rank's experts make of the rows that came: each of its own, in their places.

    An expert that gets no row computes nothing, and its parameters get gradients of zeros.
    """
    made = torch.zeros_like(rows)
    for number, module in enumerate(modules):
        mine = (expert == number).nonzero().squeeze(1)
        made = made.index_copy(0, mine, module(rows[mine]))
    return made


def experts_in_one_process(
    tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, modules: Sequence[nn.Module]
) -> torch.Tensor:
    """What dispatch, the experts and combine make together, in one process that has all experts: a loop over them."""
    check_choices(tokens, experts, len(modules))
    y = torch.zeros_like(tokens)
    for number, module in enumerate(modules):
        token, choice = (experts == number).nonzero(as_tuple=True)
        y = y.index_add(0, token, module(tokens[token]) * weights[token, choice].unsqueeze(1))
    return y


def own_experts(modules: Sequence[nn.Module], group: Group = None) -> nn.ModuleList:
    """This rank's experts of those that every rank has made, in order.

    Raises:
        CourseError: they cannot be dealt out evenly.
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if not modules or len(modules) % ranks:
        raise CourseError(f"{len(modules)} experts cannot be dealt out to {ranks} ranks. Take a multiple of {ranks}.")
    each = len(modules) // ranks
    return nn.ModuleList(list(modules)[rank * each : (rank + 1) * each])
