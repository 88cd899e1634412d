"""Speculative decoding: a small model drafts tokens, the large one checks them all at once, and changes nothing.

The draft proposes token x with probability q(x); the large model would take it with probability p(x). Accept x with
probability min(1, p(x)/q(x)). If it is rejected, draw from what the draft proposes too seldom, max(0, p - q), scaled to
the sum 1. Then for every token x

    P(x) = q(x) min(1, p(x)/q(x))  +  P(rejected) · max(0, p(x) - q(x)) / Σ max(0, p - q)
         = min(q(x), p(x))         +  max(0, p(x) - q(x))  =  p(x),

because P(rejected) = 1 - Σ min(p, q) = Σ max(0, p - q). So the text has the distribution of the large model, whatever
the draft is.

Source: Leviathan, Kalman & Matias 2023, "Fast Inference from Transformers via Speculative Decoding", §2.3 and A.1;
Chen et al. 2023, "Accelerating Large Language Model Decoding with Speculative Sampling".
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

Distribution = Callable[[Sequence[int]], np.ndarray]
"""The tokens so far → the probability of each token to come next, (tokens,), a sum of 1."""
Rule = Callable[[int, np.ndarray, np.ndarray, np.random.Generator], tuple[int, bool]]
"""What `accept_or_resample` is: a drafted token and two distributions → a token, and whether it is the drafted one."""


def accept_or_resample(
    drafted: int, draft: np.ndarray, target: np.ndarray, generator: np.random.Generator
) -> tuple[int, bool]:
    """Return the token that goes into the text, and whether the drafted one was accepted.

    Over many drafted tokens that come from the distribution `draft`, the returned tokens have
    exactly the distribution `target`, and as many as possible are accepted.

    Args:
        drafted: a token, drawn from `draft`.
        draft: (tokens,), the probability of each token by the small model; above 0 for `drafted`.
        target: (tokens,), the same by the large model. Neither is changed.
        generator: what all random numbers come from.

    Source: Leviathan, Kalman & Matias 2023, "Fast Inference from Transformers via Speculative
    Decoding", §2.3.
    """
    # random() is below 1, so a token that the target prefers is always accepted.
    if generator.random() * draft[drafted] < target[drafted]:
        return drafted, True
    missing = np.maximum(target - draft, 0)
    return int(generator.choice(len(target), p=missing / missing.sum())), False


def speculative_round(
    text: Sequence[int],
    draft: Distribution,
    target: Distribution,
    length: int,
    generator: np.random.Generator,
    rule: Rule = accept_or_resample,
) -> list[int]:
    """Return the tokens that one round adds to a text: the accepted ones, and one more.

    The small model drafts `length` tokens, one after the other. The large model reads all of them in one pass, which
    gives its distribution before each of them and after the last. Tokens are accepted until the first rejected one,
    which is replaced. If all are accepted, the large model's last distribution gives one more.

    Args:
        length: of the draft.
        rule: accepts or replaces a token.
    """
    drafted, expected = list(text), []
    for _ in range(length):
        expected.append(draft(drafted))
        drafted.append(int(generator.choice(len(expected[-1]), p=expected[-1])))
    added: list[int] = []
    for proposed, small in zip(drafted[len(text) :], expected, strict=True):
        token, accepted = rule(proposed, small, target([*text, *added]), generator)
        added.append(token)
        if not accepted:
            return added
    last = target([*text, *added])
    return [*added, int(generator.choice(len(last), p=last))]


def acceptance(draft: np.ndarray, target: np.ndarray) -> float:
    """Return the probability that a drafted token is accepted: what the two distributions have in common."""
    return float(np.minimum(draft, target).sum())


def expected_tokens(accepted: float, length: int) -> float:
    """Return how many tokens a round adds on average, if each drafted token is accepted with the same probability.

    Args:
        accepted: that probability; independent of the other tokens.
        length: of the draft.

    Source: Leviathan, Kalman & Matias 2023, §3.1, equation 1: (1 - a^(k+1)) / (1 - a).
    """
    return sum(accepted**kept for kept in range(length + 1))


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> tuple[float, float]:
    """Compare counts with a distribution; return χ², and how often chance alone gives a larger one (the p-value).

    Args:
        counts: how often each outcome occurred.
        probabilities: of the outcomes, all above 0, a sum of 1; the same shape.

    Source: Pearson 1900; the p-value is the upper incomplete gamma function with half the degrees of freedom.
    """
    expected = counts.sum() * probabilities
    statistic = float(((counts - expected) ** 2 / expected).sum())
    freedom = counts.size - 1
    p_value = torch.special.gammaincc(*torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64))
    return statistic, float(p_value)
