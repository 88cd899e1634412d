"""Heal a newcomer: it receives the whole training state from a living peer, in a single message."""

from collections.abc import Mapping

import torch
import torch.distributed as dist


def heal(state: torch.Tensor, step: int, heals: Mapping[int, int]) -> int:
    """Give each newcomer the state of its peer, and return how many steps this rank's state now
    includes.

    For each newcomer, one message travels from its peer: the state, with the number of steps
    appended to it. No other rank sends anything.

    Args:
        state: of any shape, float64: weights and the optimizer's averages. A newcomer's is
            overwritten in place; all others stay as they are.
        step: how many steps this rank's state includes.
        heals: the rank of each newcomer → the rank of its peer, the same on all ranks. A peer may
            heal several newcomers, and is not a newcomer itself.
    """
    rank = dist.get_rank()
    if rank in heals:
        message = torch.empty(state.numel() + 1, dtype=state.dtype)
        dist.recv(message, src=heals[rank])
        state.copy_(message[:-1].view_as(state))
        return int(message[-1])
    # The number of steps travels with the state: Adam needs it, too.
    message = torch.cat([state.reshape(-1), torch.tensor([step], dtype=state.dtype)])
    mine = [newcomer for newcomer, peer in heals.items() if peer == rank]
    sending = [dist.isend(message, dst=newcomer) for newcomer in mine]
    for each in sending:
        each.wait()
    return step
