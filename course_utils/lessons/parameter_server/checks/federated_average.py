"""The check of `federated_average`: the mean over all examples, from one sum of what every clinic has learned."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import after_another_call, fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding
from course_utils.lessons.parameter_server.checks.common import LEAST, after_a_different_call, called, sums_alone
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(examples: Sequence[int], length: int, dtype: str = "float64", cancels: bool = False) -> Case:
        """`cancels`: the mean of every weight is 0, exactly; rank 0 must have one example."""
        weights = list(rng.standard_normal((len(examples), length)).astype(dtype))
        if cancels:
            others = rng.integers(1, 9, (len(examples) - 1, length)).astype(dtype)
            weights = [-np.tensordot(examples[1:], others, axes=1).astype(dtype), *others]
        mean = weighted(weights, examples)
        wanted = weights if mean is None else [mean] * len(examples)
        about = f"{', '.join(map(str, examples))} examples{', nobody has any' if mean is None else ''}"
        about += ", and weights whose mean is 0" * cancels
        label = f"{ranks(len(examples))} with {about}, {count(length, f'{dtype} number')}"
        arguments = [(own.copy(), int(number)) for own, number in zip(weights, examples, strict=True)]
        cost = Cost(messages=0, collectives=1 if len(examples) > 1 else None)
        key = "nobody-has-any" if mean is None else "clinic-without-examples" if 0 in examples else ""
        expected = [{0: own} for own in wanted]
        return Case(label, arguments, expected_arguments=expected, cost=cost, judge=_one_sum, key=key)

    def of(numbers: Sequence[int]) -> list[int]:
        return [numbers[rank % len(numbers)] for rank in range(world_size)]

    def drawn(least: int, most: int, size: int = world_size) -> list[int]:
        return rng.integers(least, most, size).tolist()

    yield case(of([1, 2, 5, 2]), 4)
    yield case(drawn(3, 500), int(rng.integers(20, 200)))
    yield case(drawn(1, 2000), 501, "float32")
    yield case(of([40, 0, 7, 13]), 30)
    yield case(of([1, 4, 2, 3]), 5, cancels=True)
    for size in fewer(world_size):
        yield case(drawn(1, 90, size), int(rng.integers(2, 99)), str(rng.choice(["float32", "float64"])))
    yield case(of([0]), 6)
    yield case([0] * (world_size - 1) + [1], 6, "float32")
    yield case([1] + [0] * (world_size - 1), 7)
    yield case(of([3_000_000_000, 1_000_000_000, 2_000_000_001, 4_000_000_000]), 8)
    for length in (1, 0):
        yield case(of([3, 1, 4, 1]), length)
    yield after_another_call(case(of([5, 2, 8]), 9))
    yield after_a_different_call(case(of([3, 1, 4]), 11), case(of([2, 7, 1]), 6))
    yield case(of([700, 20, 300, 90]), 50_001, "float32")


def weighted(weights: Sequence[np.ndarray], examples: Sequence[int]) -> np.ndarray | None:
    """The mean of all ranks' weights, each counted by its examples, in their dtype; None where there is no example."""
    if sum(examples) == 0:
        return None
    return np.average(np.stack(weights).astype("float64"), axis=0, weights=examples).astype(weights[0].dtype)


def _one_sum(outcome: Outcome) -> Finding | None:
    return sums_alone(outcome, 8 * (len(outcome.case.arguments[0][0]) + 1), "mean is")


def _single_clinics_seen(case: Case, outcome: Outcome) -> bool:
    """Whether a message or a gather is as large as the weights; the numbers of examples may be gathered alone."""
    events = [event for reply in outcome.attempt.replies for event in reply.events or ()]
    moves = [event for event in events if any(name in event.name.lower() for name in ("gather", "alltoall", "send"))]
    return any(event.bytes >= case.arguments[0][0].nbytes for event in moves)


def _handed_on(case: Case, outcome: Outcome) -> bool:
    return called(outcome, "bcast")


EXERCISE = Exercise(
    library="local_sgd",
    number=6,
    minutes=10,
    difficulty=2,
    turn="add up weights times examples, and the examples, in one all-reduce",
    title="clinics with many patients and with few",
    cases=_cases,
    hints=(
        "The mean over all examples is one sum divided by another. Which two sums are these? Can both travel in "
        "the same vector?",
        "Make the vector `np.append(parameters.astype(np.float64) * examples, examples)`, and add it up with one "
        "`comm.Allreduce` into an array `total` of the same length. If its last number is above 0, set "
        "`parameters[:] = total[:-1] / total[-1]`.",
    ),
    symptoms={"weights of a single clinic travel": _single_clinics_seen, "the sum is handed on": _handed_on},
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the mean over all examples; each contributed "
        f"{outcome.run.bytes_per_rank[0]:,} bytes to one all-reduce, and only the sum was shared"
    ),
)
