"""Experts on different ranks: tokens travel to their experts (dispatch), and the answers travel back (combine).

With e experts on each of P ranks, expert i is on rank i // e. Every rank has tokens of its own, and each of them may
go to an expert on any rank.
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
    """Send each token to the ranks of its experts.

    Forward, there is one all-to-all for the numbers of rows, and one for the rows. Backward, there
    is one for the gradients of the rows.

    Args:
        tokens: (tokens, width), those of this rank; ranks may have different numbers of them.
        experts: (tokens, k) of int64, the experts of each token, numbered over all ranks; −1 for a
            choice that was dropped.
        experts_here: the number of experts on each rank.

    Raises:
        CourseError: if there is no such expert, or if tokens and choices differ in number.

    Source: Lepikhin et al. 2020, "GShard", §3.1; its dispatch fills blocks of one size, and this
    one sends only the rows that there are.
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
    """Send the experts' answers back, and add up the weighted answers for each token.

    Forward, there is one all-to-all, and backward one in the opposite direction. A token whose
    choices were all dropped gets zeros. Since the block adds its input to them, the token passes
    through the layer unchanged.

    Args:
        made: (R, width), the answers of this rank's experts to `dispatched.rows`.
        weights: (tokens, k), those of this rank's tokens, of which there may be none; dtype as
            `made`.
        dispatched: what `dispatch` returned.

    Returns:
        (tokens, width).

    Source: Lepikhin et al. 2020, "GShard", §3.1; Fedus et al. 2021, eq. 2.
    """
    tokens, k = weights.shape
    back = exchanged(made, dispatched.received, dispatched.sent, group)
    weighted = back * weights.flatten()[dispatched.order].unsqueeze(1)
    return weighted.new_zeros(tokens, made.shape[1]).index_add(0, dispatched.order // k, weighted)


def run_experts(rows: torch.Tensor, expert: torch.Tensor, modules: Sequence[nn.Module]) -> torch.Tensor:
    """Return the answers of this rank's experts for the rows that have arrived, in the order of the rows.

    An expert without rows computes nothing, and the gradients of its parameters are zeros.
    """
    made = torch.zeros_like(rows)
    for number, module in enumerate(modules):
        mine = (expert == number).nonzero().squeeze(1)
        made = made.index_copy(0, mine, module(rows[mine]))
    return made


def experts_in_one_process(
    tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor, modules: Sequence[nn.Module]
) -> torch.Tensor:
    """Do what dispatch, the experts and combine do together, in one process that has all experts."""
    check_choices(tokens, experts, len(modules))
    y = torch.zeros_like(tokens)
    for number, module in enumerate(modules):
        token, choice = (experts == number).nonzero(as_tuple=True)
        y = y.index_add(0, token, module(tokens[token]) * weights[token, choice].unsqueeze(1))
    return y


def own_experts(modules: Sequence[nn.Module], group: Group = None) -> nn.ModuleList:
    """Return this rank's share of the experts, all of which every rank has made in the same order.

    Raises:
        CourseError: they cannot be dealt out evenly.
    """
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if not modules or len(modules) % ranks:
        raise CourseError(f"{len(modules)} experts cannot be dealt out to {ranks} ranks. Take a multiple of {ranks}.")
    each = len(modules) // ranks
    return nn.ModuleList(list(modules)[rank * each : (rank + 1) * each])
