"""Fewer bytes for the same gradients: fewer bits, the largest entries only, or a product of two thin matrices.

What a compression leaves out is not lost: *error feedback* keeps it on the rank and adds it to the next gradient. As
communication hooks these functions take the place of the all-reduce in `DistributedDataParallel`.
"""

from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.overlap.float8 import float8_hook


def top_k_with_error_feedback(
    gradient: torch.Tensor, error: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the k largest numbers of gradient + error, by magnitude, and the error that is left.

    Nothing is sent. The arguments keep their values.

    Args:
        gradient: (n,), of this step.
        error: (n,), what earlier steps have left out; zeros at first.
        k: how many numbers to send, 0 or more. If it is more than n, all n of them are sent.

    Returns:
        (indices, values, error). The indices, int64, and the values are to be sent, in any order;
        both have the shape (min(k, n),). The error, of shape (n,), is what is left for the next
        step. Of equal magnitudes any may be chosen.

    Source: Stich, Cordonnier, Jaggi 2018, "Sparsified SGD with Memory", algorithm 1.
    """
    # What earlier steps left out is considered again, so nothing is lost for good.
    corrected = gradient + error
    indices = corrected.abs().topk(min(k, len(corrected))).indices
    values = corrected[indices]
    # What is not sent now is remembered.
    left_out = corrected.index_fill(0, indices, 0)
    return indices, values, left_out


@dataclass
class TopK:
    """State of `top_k_hook`: which share of the entries is sent, and what each bucket still owes."""

    share: float = 0.01
    errors: dict[int, torch.Tensor] = field(default_factory=dict)


def top_k_hook(state: TopK, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook: every rank sends its largest entries to all, and all add up what has come.

    Each rank sends k indices and k values, and receives those of all others: 12 (P − 1) k bytes in and out, where the
    all-reduce of n entries sends 8 (P − 1)/P · n. The ranks' largest entries lie in different places, so the sum of P
    sparse vectors has up to P·k entries.
    """
    gradient = bucket.buffer()
    world_size = dist.get_world_size()
    error = state.errors.get(bucket.index(), torch.zeros_like(gradient))
    k = max(1, int(state.share * gradient.numel()))
    indices, values, state.errors[bucket.index()] = top_k_with_error_feedback(gradient, error, k)
    all_indices = [torch.empty_like(indices) for _ in range(world_size)]
    all_values = [torch.empty_like(values) for _ in range(world_size)]
    dist.all_gather(all_indices, indices)
    dist.all_gather(all_values, values)
    mean = torch.zeros_like(gradient).index_add_(0, torch.cat(all_indices), torch.cat(all_values)).div_(world_size)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(mean)
    return done


def compress(module: DistributedDataParallel, how: str, **settings: float) -> None:
    """Give a `DistributedDataParallel` a communication hook, before its first backward pass.

    Args:
        how: "none"; "fp16", halves what is sent; "float8" with `block=128`, a quarter; "top-k" with `share=0.01`;
            "PowerSGD" with `rank=2`.

    Raises:
        ValueError: `how` is none of these.

    Source: Vogels, Karimireddy, Jaggi 2019, "PowerSGD"; `torch.distributed.algorithms.ddp_comm_hooks`.
    """
    if how == "none":
        return
    if how == "fp16":
        module.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif how == "float8":
        module.register_comm_hook(int(settings.get("block", 128)), float8_hook)
    elif how == "top-k":
        module.register_comm_hook(TopK(settings.get("share", 0.01)), top_k_hook)
    elif how == "PowerSGD":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(settings.get("rank", 2)), start_powerSGD_iter=2
        )
        module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        raise ValueError(f'how is "none", "fp16", "float8", "top-k" or "PowerSGD", not {how!r}')
