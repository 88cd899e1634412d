"""The check of `break_even`: three ways to train in parallel, each number changed alone, and what makes no sense."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise

GIGA, TERA = 10**9, 10**12
WAYS = ("data", "fsdp", "tensor")


def by_hand(
    parallelism: str, tokens: float, width: float, flops: float, bandwidth: float, number_bytes: float = 2
) -> float:
    """The solved equations: data and FSDP have the same, without the width; tensor has no tokens."""
    amount = 9 * width if parallelism == "tensor" else 2 * tokens
    return 1 + amount / number_bytes * bandwidth / flops


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        parallelism: str, tokens: float, width: float, flops: float, bandwidth: float, *number_bytes: float
    ) -> Case:
        given = (parallelism, tokens, width, flops, bandwidth, *number_bytes)
        label = (
            f"{parallelism}, {tokens:,} tokens, width {width:,}, {flops / TERA:g} TFLOP/s, {bandwidth / GIGA:g} GB/s"
        )
        label += f", {number_bytes[0]:g} bytes" if number_bytes else ""
        return Case(label, [given], [float(by_hand(*given))], with_comm=False, tolerance=1e-9)

    for parallelism in WAYS:
        yield case(parallelism, 1_000_000, 4000, 400 * TERA, 40 * GIGA)
    for parallelism in ("data", "tensor"):
        yield case(parallelism, 1000, 4000, 400 * TERA, 40 * GIGA)
    for parallelism in rng.permutation(WAYS):
        tokens, width = int(rng.integers(10**4, 10**7)), 128 * int(rng.integers(8, 160))
        yield case(str(parallelism), tokens, width, int(rng.integers(50, 900)) * TERA, int(rng.integers(5, 450)) * GIGA)
    for parallelism in rng.permutation(WAYS):
        tokens, width, of_each = int(rng.integers(10**5, 10**7)), 128 * int(rng.integers(8, 160)), rng.choice([1, 4, 8])
        yield case(str(parallelism), tokens, width, 300 * TERA, 30 * GIGA, int(of_each))
    first = case("data", 1_000_000, 4000, 400 * TERA, 40 * GIGA)
    yield in_a_row(first, case("data", 200_000, 8192, 300 * TERA, 50 * GIGA))
    for parallelism in WAYS:
        yield case(parallelism, 0.7, 0.55, 0.875, 0.625, 0.25)
    yield from rejections(
        "break_even", [(wrong, 1e6, 4096, 4e14, 5e10) for wrong in ("pipeline", "Data", "ddp", "tp", "t", "")]
    )
    right = (1e6, 4096, 4e14, 5e10, 2)
    for changed in range(len(right)):
        for value in (0, -1):
            given = [value if index == changed else number for index, number in enumerate(right)]
            yield from rejections("break_even", [(parallelism, *given) for parallelism in WAYS])
    yield from rejections("break_even", [("data", -1e6, 4096, 4e14, -5e10), ("fsdp", 1e6, -4096, -4e14, 5e10)])


EXERCISE = Exercise(
    library="communication_bound",
    number=8,
    minutes=15,
    difficulty=2,
    turn="set two times equal, that of computing on N GPUs and that of sending",
    title="on how many GPUs a step waits for messages",
    cases=_cases,
    hints=(
        "Write down the times of computing and of sending for a model with X parameters on N GPUs. In the equation for "
        "`data`, what do both sides have in common?",
        "X and the N in both denominators cancel, and `N - 1` remains on one side. For `fsdp`, take 6 operations, and "
        "three times (N - 1)/N instead of twice. For `tensor`, take 6 operations for each of `12 * width**2` "
        "parameters, and four all-reduces of `tokens * width` numbers, which is eight times (N - 1)/N.",
    ),
    praise=lambda outcome: (
        "right for all three: N grows with the tokens for data and FSDP, and with the width for tensor"
    ),
)
