"""The check of `float8_all_reduce`: the sum of numbers that are rounded twice, in a quarter of the bytes.

The vectors are such that sums are exact in float32, so the order of adding makes no difference: in each block, the
largest magnitude is 448 times a power of two.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.words import bytes_text, count, ranks

if TYPE_CHECKING:
    from torch import Tensor

LARGEST = 448.0  # of E4M3


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    import torch

    def case(
        size: int, n: int, block: int, about: str = "", key: str = "", zeros: bool = False, times: float = 1.0
    ) -> Case:
        vectors = [times * blocks_of(rng, n, block) for _ in range(size)]
        if zeros:
            for vector in vectors:
                vector[:block] = 0
        return made(f"{ranks(size)}, {count(n, 'number')} in blocks of {block}{about}", vectors, block, key)

    def made(label: str, vectors: Sequence["Tensor"], block: int, key: str = "") -> Case:
        given = [(vector, block) for vector in vectors]
        wanted = [expected(vectors, block)] * len(vectors)
        return Case(label, given, wanted, tolerance=1e-6, backend="gloo", judge=_few_bytes, key=key)

    size = max(available, 2)
    yield case(2, 64, 16)
    yield case(size, 8 * size * 4, 8)
    yield case(size, 8 * size, 4)
    yield case(size, 16 * size * 2 + 5, 16, ", the last of them not full", key="uneven")
    yield case(size, 16 * size + 1, 16, ", all of them small", key="uneven", times=2.0**-20)
    yield case(min(size, 3), 3, 8, ", fewer than a block", key="uneven")
    yield case(size, 16 * size, 16, ", of which the first is all 0", zeros=True)
    # Rounded again on every rank that it comes through, 256 + 14 would stay 256.
    large, small = torch.tensor([896.0, 256.0, 0.0, 0.0]), torch.tensor([0.0, 14.0, 0.0, 0.0])
    yield made(f"{ranks(size)}, of which the others add a little to what rank 0 has", [large] + [small] * (size - 1), 4)
    apart = [blocks_of(rng, 8 * size, 8) * 2.0 ** (3 * (rank % 2)) for rank in range(size)]
    yield made(f"{ranks(size)}, every other one with numbers 8 times larger", apart, 8)
    for fewer in sorted({1, 2, 3, size}):
        if fewer <= size:
            yield case(fewer, int(rng.integers(200, 600)), 32)


def blocks_of(rng: np.random.Generator, n: int, block: int) -> "Tensor":
    """Draw n numbers, of which the largest in each block is 448 or 896; all are multiples of 1/512."""
    import torch

    filled = -(-n // block) * block
    values = np.round(np.clip(rng.standard_normal((filled // block, block)) * 90, -440, 440) * 512) / 512
    columns = rng.integers(0, min(block, n), len(values))  # a short vector has its largest number, too
    if n % block:
        columns[-1] = rng.integers(0, n % block)
    values[np.arange(len(values)), columns] = LARGEST * rng.choice([-1, 1], len(values))
    values *= rng.choice([1.0, 2.0], (len(values), 1))
    return torch.tensor(values.reshape(-1)[:n], dtype=torch.float32)


def rounded(values: "Tensor", block: int) -> "Tensor":
    """The values as E4M3 with a factor for each block, by a calculation that shares nothing with the lesson's."""
    import torch

    result = values.clone()
    for begin in range(0, len(values), block):
        part = values[begin : begin + block]
        scale = part.abs().max() / LARGEST
        if scale:
            result[begin : begin + block] = (part / scale).to(torch.float8_e4m3fn).float() * scale
    return result


def expected(vectors: Sequence["Tensor"], block: int) -> "Tensor":
    """The sum of the rounded vectors, rounded."""
    return rounded(sum(rounded(vector, block) for vector in vectors), block)


def _few_bytes(outcome: Outcome) -> Finding | None:
    """Where the numbers are right: is every number sent as one byte, and to no more ranks than need it?"""
    size, (vector, block) = outcome.world_size, outcome.case.arguments[0]
    part = -(-len(vector) // (size * block)) * block
    most = round(2 * (size - 1) * part * (1 + 4 / block))
    for rank in range(size):
        sent = bytes_sent(outcome, rank)
        if sent > most:
            if sent > 3 * most:
                words = (
                    "the numbers are right, but {who} sent {got:,} bytes; with one byte for a number, {expected:,} do"
                )
                return own("four-bytes", words, rank=rank, got=sent, expected=most)
            return Finding(Kind.BYTES, rank, got=sent, expected=most)
    return None


def bytes_sent(outcome: Outcome, rank: int) -> int:
    """Bytes that leave a rank: rings for what gathers and reduces, and no message of a rank to itself."""
    size = outcome.world_size
    events = [event for reply in outcome.attempt.replies for event in reply.events or () if event.rank == rank]
    total = 0.0
    for event in events:
        if event.kind == "collective":
            total += event.bytes * _copies(event.name, size)
        elif event.kind == "send":
            total += event.bytes
    return round(total)


def _copies(name: str, size: int) -> float:
    """How many times the bytes that the trace counts leave the rank."""
    factors = {"all_reduce": 2 * (size - 1) / size, "all_gather": size - 1}
    factors |= {"all_to_all": (size - 1) / size, "reduce_scatter": (size - 1) / size}
    return next((factor for start, factor in factors.items() if name.startswith(start)), 1.0)


def _praise(outcome: Outcome) -> str:
    size, (vector, _) = outcome.world_size, outcome.case.arguments[0]
    plain = 2 * (size - 1) / size * 4 * len(vector)
    return (
        f"{ranks(size)} have the same sum of {count(len(vector), 'number')}, and each sent "
        f"{bytes_text(bytes_sent(outcome, 0))}; a ring of float32 numbers sends {bytes_text(plain)}"
    )


EXERCISE = Exercise(
    library="float8",
    number=6,
    minutes=25,
    difficulty=3,
    turn="an all-to-all of bytes, a sum in float32, an all-gather of bytes",
    title="an all-reduce with a byte for each number",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "A reduce-scatter gives each rank one part of the sum. How can a rank get that part of *every* vector, so that "
        "it can add them up itself, in float32? And which of its numbers does it have to round before it shares the "
        "sum?",
        "Cut the padded vector into P parts of whole blocks. `quantise` it, and send numbers and scales with "
        "`dist.all_to_all_single(received, sent)`, the numbers as `.view(torch.uint8)`. What you receive is your part "
        "of P vectors, one after the other: `dequantise` it, `view(P, part)`, and `sum(0)`. Then `quantise` this sum, "
        "`dist.all_gather_single` its numbers and its scales, `dequantise`, and cut off what was padded.",
    ),
    praise=_praise,
)
