"""The check of `federated_average`: the mean over all examples, from one sum of what every clinic has learned."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, raised, same
from course_utils.lessons.parameter_server.checks import LESSON
from course_utils.lessons.parameter_server.checks.common import HEADERS, LEAST, leaves, names, right, several_returned
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(examples: Sequence[int], length: int, dtype: str = "float64") -> Case:
        weights = [rng.integers(-99, 99, length).astype(dtype) + rank for rank in range(len(examples))]
        weights = [own.astype(dtype) for own in weights]
        mean = weighted(weights, examples)
        wanted = weights if mean is None else [mean] * len(examples)
        label = (
            f"{ranks(len(examples))} with {', '.join(map(str, examples))} examples, {count(length, f'{dtype} number')}"
        )
        arguments = [(own.copy(), number) for own, number in zip(weights, examples, strict=True)]
        kept = [{0: one.copy()} for one in wanted]
        cost = Cost(messages=0, collectives=1)
        return Case(label, arguments, expected_arguments=kept, cost=cost, judge=_sums_alone)

    def of(numbers: Sequence[int]) -> list[int]:
        return [numbers[rank % len(numbers)] for rank in range(world_size)]

    yield case(of([1, 2, 5, 2]), 4)
    yield case([int(number) for number in rng.integers(3, 500, world_size)], int(rng.integers(20, 200)))
    yield case(of([40, 0, 7, 13]), 30)
    yield case([int(number) for number in rng.integers(1, 2000, world_size)], 501, "float32")
    for size in fewer(world_size):
        yield case([int(number) for number in rng.integers(1, 90, size)], int(rng.integers(2, 99)))
    yield case(of([0]), 6)
    yield case([0] * (world_size - 1) + [1], 6, "float32")
    yield case(of([3_000_000_000, 1_000_000_000, 0, 4_000_000_000]), 8)
    for length in (1, 0):
        yield case(of([3, 1, 4, 1]), length)
    yield case(of([700, 20, 300, 90]), 50_001, "float32")


def weighted(weights: Sequence[np.ndarray], examples: Sequence[int]) -> np.ndarray | None:
    """The mean of all ranks' weights, each counted by its examples, in their dtype; None where there is no example."""
    if sum(examples) == 0:
        return None
    return np.average(np.stack(weights).astype("float64"), axis=0, weights=examples).astype(weights[0].dtype)


def _sums_alone(outcome: Outcome) -> str | None:
    """What no result shows: more numbers shared than needed, or weights that others see."""
    numbers = len(outcome.case.arguments[0][0]) + 1
    for rank, sent in enumerate(outcome.run.bytes_per_rank):
        if sent > 8 * numbers + HEADERS:
            return f"the mean is right, but rank {rank} put in {sent:,} bytes; {8 * numbers:,} are enough"
    if _gathers(outcome.case, outcome):
        return "the mean is right, but every rank was sent the weights of all others"
    return None


def _gathers(case: Case, outcome: Outcome) -> bool:
    return bool(names(outcome) & {"gather", "gatherv", "allgather", "iallgather", "allgatherv", "alltoall", "send"})


Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _all_get(formula: Formula) -> Callable[[Case, Outcome], bool]:
    """A recogniser of another mean on all ranks: a formula of (weights as rows, examples as a column)."""

    def of(case: Case) -> list[np.ndarray]:
        rows = np.stack([own for own, _ in case.arguments]).astype("float64")
        numbers = np.array([[number] for _, number in case.arguments], dtype="float64")
        with np.errstate(all="ignore"):
            wrong = formula(rows, numbers).astype(case.arguments[0][0].dtype)
        return [wrong] * len(rows)

    return leaves(of)


def _own(case: Case) -> list[np.ndarray]:
    return [weights for weights, _ in case.arguments]


def _weighed_once(case: Case) -> list[np.ndarray]:
    """What a rank holds that divides its own weights only."""
    total = sum(number for _, number in case.arguments)
    return [weights * number / max(1, total) for weights, number in case.arguments]


def _nobody_has_any(case: Case, outcome: Outcome) -> bool:
    return not any(number for _, number in case.arguments)


def _one_is_empty(case: Case, outcome: Outcome) -> bool:
    numbers = [number for _, number in case.arguments]
    return 0 in numbers and any(numbers) and (hangs(case, outcome) or raised(outcome) or outcome.run is not None)


def _rank_0_alone(case: Case, outcome: Outcome) -> bool:
    holds = [same(got[0], case.expected_arguments[rank][0]) for rank, got in enumerate(outcome.arguments)]
    return several_returned(outcome) and holds[0] and not any(holds[1:])


def _too_often(case: Case, outcome: Outcome) -> bool:
    return right(case, outcome) and outcome.run.collectives > 1


def _no_room(case: Case, outcome: Outcome) -> bool:
    words = ("room for", "truncat", "too small", "mismatch", "bytes", "not contiguous", "cast")
    return any(raised(outcome, word) for word in words)


FEDERATED_AVERAGE = Exercise(
    name="federated_average",
    library="course_utils.lessons.parameter_server.local_sgd:federated_average",
    lesson=LESSON,
    place=5,
    minutes=10,
    difficulty=2,
    turn="add weights times examples, and the examples, in one all-reduce",
    title="clinics with many patients and with few",
    cases=_cases,
    picture=False,
    hints=(
        "A mean over all examples is one sum divided by another. Which two sums, and can they travel in one vector?",
        "`np.append(parameters.astype(np.float64) * examples, examples)`, one `comm.Allreduce` of that into an array "
        "of the same length, then `parameters[:] = total[:-1] / total[-1]`, where the last number is above 0.",
    ),
    mistakes=(
        Mistake("Must anybody see a clinic's own weights?", _gathers),
        Mistake("Could the number of examples travel with the weights?", _too_often),
        Mistake("What is the mean where nobody has an example?", _nobody_has_any),
        Mistake("Have both arrays the same length and dtype?", _no_room),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("Does every clinic count alike, however few examples it has?", _all_get(lambda w, n: w.mean(axis=0))),
        Mistake("What is the sum divided by?", _all_get(lambda w, n: (w * n).sum(axis=0))),
        Mistake("What is the sum divided by?", _all_get(lambda w, n: (w * n).mean(axis=0))),
        Mistake("What is the sum divided by?", _all_get(lambda w, n: (w * n).sum(axis=0) / len(n))),
        Mistake(
            "What are the weights multiplied by before they are added?", _all_get(lambda w, n: w.sum(axis=0) / n.sum())
        ),
        Mistake("Do the weights change in the array that you were given?", leaves(_own)),
        Mistake("Who adds up what all the clinics bring?", leaves(_weighed_once)),
        Mistake("Do all ranks have the mean in the end?", _rank_0_alone),
        Mistake("What does a clinic without examples change, and what does it get?", _one_is_empty),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the mean over all examples; each put "
        f"{outcome.run.bytes_per_rank[0]:,} bytes into one all-reduce, and nothing but the sum was shared"
    ),
)
