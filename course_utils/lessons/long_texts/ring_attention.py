"""Ring Attention: each rank keeps its queries, and keys and values go around the ring of lesson 5.

After P - 1 transfers every query has met every key. Besides its own, a rank never holds more than two ranks' keys and
values.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.long_texts.block_attention import block_attention
from course_utils.lessons.long_texts.block_gradients import KeptForBackward, block_gradients
from course_utils.lessons.long_texts.merge import merge_attention


class Passing:
    """A tensor on its way to the right neighbour, and a second one on its way from the left neighbour."""

    def __init__(self, requests: Sequence[dist.Work], outgoing: torch.Tensor, incoming: torch.Tensor) -> None:
        self._requests, self._outgoing, self._incoming = requests, outgoing, incoming

    def wait(self) -> torch.Tensor:
        """Return what has come from the left, as soon as both tensors have arrived."""
        for request in self._requests:
            request.wait()
        return self._incoming


def pass_on(tensor: torch.Tensor, incoming_shape: Sequence[int], group: Group = None, tag: int = 0) -> Passing:
    """Start to send `tensor` to the right neighbour and to receive from the left one; don't wait.

    Until `wait()` returns, `tensor` must stay as it is.

    Args:
        incoming_shape: of what comes from the left, of the same dtype.
        tag: tells messages apart that are under way between the same ranks at the same time.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    outgoing, incoming = tensor.contiguous(), tensor.new_empty(tuple(incoming_shape))
    requests = [
        dist.isend(outgoing, group=group, group_dst=(rank + 1) % world_size, tag=tag),
        dist.irecv(incoming, group=group, group_src=(rank - 1) % world_size, tag=tag),
    ]
    return Passing(requests, outgoing, incoming)


def check_positions(q: torch.Tensor, positions: Sequence[torch.Tensor], group: Group = None) -> None:
    """Reject shares that are not those of these ranks, before anything is sent.

    Raises:
        CourseError: `positions` doesn't have one entry for each rank, or this rank's has the wrong length.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    if len(positions) != world_size:
        raise CourseError(f"`positions` has {len(positions)} shares for {world_size} ranks. It needs one for each.")
    if len(positions[rank]) != q.shape[2]:
        raise CourseError(
            f"rank {rank} has {q.shape[2]} tokens and {len(positions[rank])} positions. "
            "Give it the tokens `x[positions[rank]]`."
        )


def ring_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    positions: Sequence[torch.Tensor],
    group: Group = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return causal attention of this rank's queries to the keys of all ranks.

    Keys and values go to the right, P - 1 times. They can travel while the rank computes with those
    that it has. Each rank sends the keys and values of all ranks except those of its right
    neighbour; with one rank nothing moves.

    Args:
        q, k, v: (batch, heads, tokens, size), of this rank's tokens; ranks may have more or fewer.
        positions: for each rank the positions of its tokens in the text; the same list on all
            ranks.
        group: the ranks that share the text; None for all.

    Returns:
        Output and log-sum-exp of this rank's queries, as `block_attention` gives them.

    Raises:
        CourseError: `positions` are not those of these ranks.

    Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers", §3, algorithm 1.
    """
    check_positions(q, positions, group)
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    kv, total = torch.stack([k, v]), None
    for step in range(world_size):
        # What is here now came from a rank `step` steps further left.
        source = (rank - step) % world_size
        more = step < world_size - 1
        if more:
            tokens = len(positions[source - 1])
            passing = pass_on(kv, (*kv.shape[:3], tokens, kv.shape[4]), group)
        part = block_attention(q, *kv, positions[rank], positions[source])
        total = merge_attention(*total, *part) if total else part
        if more:
            kv = passing.wait()
    return total


def ring_gradients(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kept: KeptForBackward,
    positions: Sequence[torch.Tensor],
    group: Group = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Do the backward pass: keys and values go around once more, and their gradients follow them.

    The gradient of a rank's keys is a sum that starts at its right neighbour and ends at the rank itself, as in the
    reduce-scatter of lesson 5. Each rank sends (P - 1) times k and v, and (P - 1) times their gradients.

    Args:
        q, k, v, positions, group: as for `ring_attention`.
        kept: of this rank's queries.

    Returns:
        The whole gradients of this rank's q, k and v.

    Source: Liu et al. 2023, §3; Patarasuk and Yuan 2009 (the reduce-scatter).
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    kv, coming = torch.stack([k, v]), None
    dq = 0
    for step in range(world_size):
        source = (rank - step) % world_size
        shape = (*kv.shape[:3], len(positions[source - 1]), kv.shape[4])
        more = step < world_size - 1
        passing = pass_on(kv, shape, group) if more else None
        dq_part, *dkv_part = block_gradients(q, *kv, kept, positions[rank], positions[source])
        dq, dkv = dq + dq_part, torch.stack(dkv_part)
        if step == 0:
            own = dkv  # stays here until the terms of the others arrive
        else:
            total = dkv + coming.wait() if coming else dkv
            coming = pass_on(total, (*total.shape[:3], len(positions[source - 1]), total.shape[4]), group, tag=1)
        kv = passing.wait() if more else kv
    return dq, *(own + coming.wait() if coming else own)
