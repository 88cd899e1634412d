"""The check of `block_attention`: against all scores at once, and never more than a block of them in memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.torch_cases import drawn, not_contiguous
from course_utils.words import bytes_text

if TYPE_CHECKING:
    from torch import Tensor

RESULT = ("the output", "the log-sum-exp")
ALL_ALIKE = {"large-scores": 1, "far-below": -1}
"""Key of a case whose scores are all very large, or all far below 0 → their sign."""


def at_once(q, k, v, q_positions, k_positions, block=0):
    """Attention with all scores at once, in the dtype that sums are kept in."""
    import torch

    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    q, k, v = (tensor.to(kind) for tensor in (q, k, v))
    seen = k_positions[None, :] <= q_positions[:, None]
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    top = scores.masked_fill(~seen, torch.finfo(kind).min).amax(-1, keepdim=True) if len(k_positions) else 0
    weights = torch.exp(scores - top).masked_fill(~seen, 0.0)
    total = weights.sum(-1)
    out = weights @ v / total.clamp(min=torch.finfo(kind).tiny).unsqueeze(-1)
    lse = (total.log() + top.squeeze(-1)).masked_fill(total == 0, -torch.inf)
    return dict(zip(RESULT, (out, lse), strict=True))


def counted(function: Callable, *given: Any) -> Any:
    """Call the learner's function; return what it gives, by name, and the bytes of the largest tensor that it makes."""
    from course_utils.lessons.long_texts.allocated import Allocated

    with Allocated() as allocated:
        found = function(*given)
    if type(found) not in (tuple, list) or len(found) != len(RESULT):
        return {RESULT[0]: found}
    return {**dict(zip(RESULT, found, strict=True)), "largest": allocated.largest}


def _frugal(outcome: Outcome) -> Finding | None:
    q, k, _, q_positions, k_positions, block = outcome.case.arguments[0]
    if len(k_positions) < 8 * block:
        return None  # too few keys for a difference
    scores = q.shape[0] * q.shape[1] * len(q_positions) * block
    enough = max(scores, q.numel(), k.numel()) * 8
    largest = outcome.results[0]["largest"]
    if largest <= enough * (block + 1) / block:  # one more column may be the log-sum-exp so far
        return None
    words = "the numbers are right, but you made a tensor of {largest}, and {enough} are enough for a block"
    return own("too-much-memory", words, largest=bytes_text(largest), enough=bytes_text(enough))


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        q_positions: "Tensor",
        k_positions: "Tensor",
        block: int,
        about: str = "",
        dtype: str = "float64",
        scale: float = 1.0,
        heads: tuple[int, int] = (2, 3),
        key: str = "",
    ) -> Case:
        import torch

        q, k, v = (drawn(rng, *heads, len(some), 5) for some in (q_positions, k_positions, k_positions))
        q, k, v = ((scale * tensor).to(getattr(torch, dtype)) for tensor in (q, k, v))
        if key in ALL_ALIKE:
            q, k = scale + q / scale**2, ALL_ALIKE[key] * (scale + k / scale**2)
        if key == "different-scores":
            q = q * torch.linspace(0, 1, len(q_positions))[:, None].to(q)
        if key == "not-contiguous":
            q, k, v = map(not_contiguous, (q, k, v))
        given = (q, k, v, q_positions, k_positions, block)
        label = f"{len(q_positions)} queries, {len(k_positions)} keys, blocks of {block}, {dtype}"
        label = f"{about}; {label}" if about else label
        expected = at_once(*given) | {"largest": ...}
        return Case(label, [given], [expected], with_comm=False, harness=counted, judge=_frugal, key=key)

    import torch

    def text(n: int) -> list["Tensor"]:
        return [torch.arange(n)] * 2

    yield case(*text(1), 1, key="one-block")
    yield case(*text(6), 8, key="one-block")
    yield case(*text(12), 4, key="several-blocks")
    yield case(*text(11), 4, key="several-blocks")
    yield case(*text(int(rng.integers(13, 30))), 1, key="several-blocks")
    yield case(torch.arange(20, 28), torch.arange(12), 5, "queries behind all keys", key="other-keys")
    yield case(torch.arange(6, 14), torch.arange(4, 12), 3, "the text's middle", key="other-keys")
    yield case(torch.arange(9), torch.arange(4, 16), 3, "queries that see no key", key="no-key")
    yield case(torch.arange(4), torch.arange(4, 8), 2, "no query sees a key", key="no-key")
    yield case(torch.arange(4, 8), torch.arange(12).flip(0), 3, "keys from the last to the first", key="any-order")
    yield case(torch.arange(12).flip(0), torch.arange(12), 3, "queries from the last to the first", key="any-order")
    mixed = torch.from_numpy(rng.permutation(16))
    yield case(mixed[:7], mixed[4:], 3, "tokens in any order", key="any-order")
    yield case(*text(9), 4, "q, k and v not contiguous", key="not-contiguous")
    yield case(*text(10), 3, "large scores", scale=30.0, key="large-scores")
    yield case(*text(10), 3, "scores far below 0", scale=30.0, key="far-below")
    yield case(*text(10), 3, "scores from 0 to 3,000", scale=40.0, key="different-scores")
    # In float32, a score of 400 has an error of about 1e-4.
    few = case(*text(10), 3, "scores from 0 to 400", "float32", scale=15.0, key="different-scores")
    yield replace(few, tolerance=1e-2)
    yield case(*text(24), 5, dtype="float32")
    yield case(*text(40), 4, dtype="float16", key="two-bytes")
    yield case(*text(40), 4, dtype="bfloat16", key="two-bytes")
    yield case(torch.arange(480, 512), torch.arange(512), 32, "the end of a long text", heads=(1, 1))
    yield in_a_row(case(*text(8), 3), case(torch.arange(2, 10).flip(0), mixed[:8], 3, "tokens in any order"))
    yield in_a_row(case(*text(5), 2), case(*text(9), 4, dtype="float32"))
    yield case(*text(512), 16, "a long text", heads=(1, 1))


EXERCISE = Exercise(
    library="block_attention",
    number=2,
    minutes=30,
    difficulty=3,
    turn="block by block; how is the next block added?",
    title="attention without all scores at once",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Go through the keys block by block. What do you have to remember about the earlier blocks, for each query, so "
        "that you can add the next one? And what happens to a query that sees no key of a block?",
        "Begin with out = 0 and lse = -∞, in float32 for numbers of two bytes. For each block, compute "
        "`masked_scores(q, keys, q_positions, positions)`, their `logsumexp(dim=-1)`, the weights "
        "`exp(scores - lse of the block)` (with -∞ replaced by 0), and the block's output. Then `merge_attention`.",
    ),
    praise=lambda outcome: (
        "the same as with all scores at once, for tokens in any order; the largest tensor had "
        f"{bytes_text(outcome.results[0]['largest'])}, and all scores would have {bytes_text(512 * 512 * 8)}"
    ),
)
