"""The gate: which experts a token goes to, what each has to say in its result, and how experts are kept equally busy.

An expert is one of several multilayer perceptrons of a layer. Scores come from a linear layer, one for each expert.
"""

import torch

from course_utils.errors import CourseError


def route(
    scores: torch.Tensor,
    k: int,
    bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k experts of each token, and their weights. Nothing moves: each rank routes its own
    tokens.

    An expert's share is its part in the softmax over *all* experts. The largest shares win; of
    equal ones the expert with the lower number. The shares are the weights, as they are: with k = 1
    the gate would not learn if they were scaled up to a sum of 1. They are computed in float32 at
    least: in float16 small ones would be equal, namely 0.

    Args:
        scores: (tokens, experts), in any floating-point dtype.
        k: experts for each token.
        bias: (experts,), added to the shares for the choice only (see `next_bias`).

    Returns:
        The experts' numbers, (tokens, k) of int64, the most wanted first; the weights, (tokens, k),
        differentiable, dtype as the scores.

    Raises:
        CourseError: there are no k experts.

    Source: Shazeer et al. 2017, "Outrageously large neural networks", §2.1; Fedus et al. 2021,
    "Switch Transformers",
        eq. 1 and 2 (k = 1), §2.4 (float32); Wang et al. 2024, "Auxiliary-loss-free load balancing",
        eq. 3 (the bias).
    """
    number = scores.shape[-1]
    if not 1 <= k <= number:
        raise CourseError(f"A token cannot go to {k} of {number} experts. Choose k from 1 to {number}.")
    shares = scores.softmax(dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    wanted = shares if bias is None else shares + bias
    # `topk` may order equal ones as it likes; ranks and one process must agree.
    experts = wanted.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    return experts, shares.gather(-1, experts).to(scores.dtype)


def load_of(experts: torch.Tensor, number: int) -> torch.Tensor:
    """How many rows each of `number` experts gets: (number,) of int64. Dropped choices, −1, go to nobody."""
    return torch.bincount(experts[experts >= 0], minlength=number)


def balancing_loss(shares: torch.Tensor, load: torch.Tensor) -> torch.Tensor:
    """What is added to the loss (times a small factor) to keep experts equally busy: 1.0 where all are.

    N · Σ f_i · P_i over the N experts: f_i is the part of all rows that expert i gets, P_i its mean share. The rows are
    counted, and have no gradient; the shares have one, and the busiest expert's is pushed down most.

    Args:
        shares: (tokens, N), this rank's; the mean of all ranks' losses is that of one process.
        load: (N,), rows of each expert, of all ranks together.

    Source: Fedus et al. 2021, "Switch Transformers", eq. 4 to 6.
    """
    parts = load.to(shares.dtype) / max(int(load.sum()), 1)
    return load.numel() * (parts * shares.mean(dim=0)).sum()


def next_bias(bias: torch.Tensor, load: torch.Tensor, rate: float) -> torch.Tensor:
    """The bias for the next step, balancing without a loss: an expert with fewer rows than the mean gets `rate` more.

    The bias changes who is chosen, and no gradient: nothing pulls the gate away from what the text asks for.

    Args:
        bias: (experts,).
        load: (experts,), rows of each expert in this step, of all ranks together.
        rate: 0.001 in the paper.

    Source: Wang et al. 2024, "Auxiliary-loss-free load balancing strategy for mixture-of-experts", algorithm 1.
    """
    load = load.to(bias.dtype)
    return bias + rate * (load.mean() - load).sign()


def imbalance(load: torch.Tensor) -> float:
    """How many times its fair part the busiest expert gets: 1.0 is balanced; without any row it is 1.0 as well.

    Source: Wang et al. 2024, §4.1, "MaxVio", plus 1.
    """
    total = int(load.sum())
    return float(load.max()) * load.numel() / total if total else 1.0
