"""The gate: which experts a token goes to, how much each of them counts, and how experts are kept equally busy.

An expert is one of several MLPs of a layer. The scores come from a linear layer with one output for each expert.
"""

import torch

from course_utils.errors import CourseError


def route(
    scores: torch.Tensor,
    k: int,
    bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k experts of each token, and their weights. Nothing is sent, because each rank
    routes its own tokens.

    An expert's share is its part of the softmax over *all* experts. The k largest shares win, and
    of equal shares the expert with the lower number. The weights are the shares as they are. They
    are not divided by their sum, because with k = 1 the weight would always be 1, and the gate
    would learn nothing from the predictions. The softmax is computed in float32, since in float16
    small shares would all be 0; for scores in float64, it is computed in float64.

    Args:
        scores: (tokens, experts), in any floating-point dtype.
        k: experts for each token.
        bias: (experts,), added to the shares for the choice only (see `next_bias`).

    Returns:
        The numbers of the experts, (tokens, k) of int64, the largest share plus bias first; and the
        weights, (tokens, k), differentiable, in the dtype of the scores.

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
    """Return how many rows each of `number` experts gets, (number,) of int64. Dropped choices, −1, are not counted."""
    return torch.bincount(experts[experts >= 0], minlength=number)


def balancing_loss(shares: torch.Tensor, load: torch.Tensor) -> torch.Tensor:
    """Return the term that, times a small factor, is added to the loss; it is 1.0 if all experts are equally busy.

    It is N · Σ f_i · P_i over the N experts, where f_i is the fraction of all rows that expert i gets, and P_i its mean
    share. The rows are counted and have no gradient. The shares have one. The derivative
    with respect to P_i is N · f_i, which is largest for the busiest expert.

    Args:
        shares: (tokens, N), this rank's; the mean of all ranks' losses is that of one process.
        load: (N,), rows of each expert, of all ranks together.

    Source: Fedus et al. 2021, "Switch Transformers", eq. 4 to 6.
    """
    parts = load.to(shares.dtype) / max(int(load.sum()), 1)
    return load.numel() * (parts * shares.mean(dim=0)).sum()


def next_bias(bias: torch.Tensor, load: torch.Tensor, rate: float) -> torch.Tensor:
    """Return the biases for the next step, raised for experts with fewer rows than the mean, lowered for others.

    A bias affects only the choice. It has no gradient and adds nothing to the gate's.

    Args:
        bias: (experts,).
        load: (experts,), rows of each expert in this step, of all ranks together.
        rate: 0.001 in the paper.

    Source: Wang et al. 2024, "Auxiliary-loss-free load balancing strategy for mixture-of-experts", algorithm 1.
    """
    load = load.to(bias.dtype)
    return bias + rate * (load.mean() - load).sign()


def imbalance(load: torch.Tensor) -> float:
    """Return the rows of the busiest expert in multiples of its fair share: 1.0 is balanced, as is a load without rows.

    Source: Wang et al. 2024, §4.1, "MaxVio", plus 1.
    """
    total = int(load.sum())
    return float(load.max()) * load.numel() / total if total else 1.0
