"""The check of `make_buckets`: the one grouping that the docstring describes, for any sizes."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, raised, same
from course_utils.lessons.overlap.checks import LESSON
from course_utils.words import count

Sizes = Sequence[int]
Buckets = list[list[int]]


def by_hand(sizes: Sizes, limit: int, dtypes: Sequence | None = None) -> Buckets:
    """The longest run of gradients that fits, cut off again and again."""
    left, buckets = list(range(len(sizes)))[::-1], []

    def fits(places: list[int]) -> bool:
        alike = dtypes is None or len({dtypes[place] for place in places}) == 1
        return len(places) == 1 or alike and sum(sizes[place] for place in places) <= limit

    while left:
        length = max(n for n in range(1, len(left) + 1) if fits(left[:n]))
        buckets.append(left[:length])
        left = left[length:]
    return buckets


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(sizes: Sizes, limit: int, dtypes: Sequence[str] | None = None) -> Case:
        sizes = [int(size) for size in sizes]
        given = (sizes, limit) if dtypes is None else (sizes, limit, dtypes)
        label = f"sizes {sizes}, limit {limit}" + (f", dtypes {dtypes}" if dtypes else "")
        return Case(label, [given], [by_hand(*given)], with_comm=False)

    yield case([8, 5, 4, 3, 2, 6], 10)
    yield case([4, 4, 4, 4, 4], 8)
    yield case([3, 50, 4, 2, 5], 10)
    yield case([], 10)
    yield case([7], 7)
    yield case([7], 3)
    yield case([4, 3, 4, 0, 4], 1)
    yield case([6, 0, 3, 12, 0, 5, 1], 9)
    yield case([2, 2, 2, 2, 2, 2], 100, ["float32", "float32", "float64", "float64", "float32", "float32"])
    yield case(rng.integers(1, 9, 6), 12, [str(one) for one in rng.choice(["float32", "float16"], 6)])
    for length in (5, 12, 30):
        yield case(rng.integers(1, 40, length), int(rng.integers(30, 90)))


def _got(outcome: Outcome) -> Buckets:
    return [list(bucket) for bucket in outcome.results[0]]


def _limit(case: Case) -> tuple[Sizes, int]:
    return case.arguments[0][0], case.arguments[0][1]


def _places(outcome: Outcome) -> list[int]:
    return [place for bucket in _got(outcome) for place in bucket]


def _is(formula: Callable[..., Buckets]) -> Recogniser:
    """A recogniser of what another rule gives from (sizes, limit, dtypes…)."""
    return lambda case, outcome: same(outcome.results[0], formula(*case.arguments[0]))


def _first_first(sizes: Sizes, limit: int, dtypes: Sequence | None = None) -> Buckets:
    turned = by_hand(sizes[::-1], limit, dtypes and dtypes[::-1])
    return [[len(sizes) - 1 - place for place in bucket] for bucket in turned]


def _rising(case: Case, outcome: Outcome) -> bool:
    return any(sorted(bucket) == bucket and len(bucket) > 1 for bucket in _got(outcome))


def _sizes_instead(case: Case, outcome: Outcome) -> bool:
    sizes, _ = _limit(case)
    return sorted(_places(outcome)) == sorted(sizes) != list(range(len(sizes)))


def _lost(case: Case, outcome: Outcome) -> bool:
    sizes, _ = _limit(case)
    return set(_places(outcome)) < set(range(len(sizes)))


def _empty_one(case: Case, outcome: Outcome) -> bool:
    return [] in _got(outcome)


def _too_full(case: Case, outcome: Outcome) -> bool:
    sizes, limit = _limit(case)
    return any(len(bucket) > 1 and sum(sizes[place] for place in bucket) > limit for bucket in _got(outcome))


def _mixed(case: Case, outcome: Outcome) -> bool:
    dtypes = case.arguments[0][2]
    return any(len({dtypes[place] for place in bucket}) > 1 for bucket in _got(outcome))


def _not_in_order(case: Case, outcome: Outcome) -> bool:
    sizes, _ = _limit(case)
    return sorted(_places(outcome)) == list(range(len(sizes))) and _places(outcome) != list(range(len(sizes)))[::-1]


def _too_early(case: Case, outcome: Outcome) -> bool:
    return len(_got(outcome)) > len(case.expected[0])


def _fails_on_nothing(case: Case, outcome: Outcome) -> bool:
    return raised(outcome) and not case.arguments[0][0]


MAKE_BUCKETS = Exercise(
    name="make_buckets",
    library="course_utils.lessons.overlap.buckets:make_buckets",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=1,
    turn="from the last to the first; close a bucket when the next does not fit",
    title="which gradients travel together?",
    cases=_cases,
    picture=False,
    hints=(
        "You go through the gradients from the last to the first. What do you have to know at each, to decide whether "
        "it still goes into the open bucket?",
        "`for place in reversed(range(len(sizes)))`: open a new bucket where there is none yet, where `sizes[place]` "
        "is more than the room left in the last one, or where its dtype is another one; then append `place` to the "
        "last bucket.",
    ),
    mistakes=(
        Mistake("What are the buckets of a model without parameters?", _fails_on_nothing),
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("Is there ever a bucket with nothing in it?", _empty_one),
        Mistake("Does a bucket list bytes, or the places at which they stand?", _sizes_instead),
        Mistake("Is every gradient in a bucket, the last one opened too?", _lost),
        Mistake("Which gradient does the backward pass compute first?", _is(_first_first)),
        Mistake("In which order do the gradients of one bucket become ready?", _rising),
        Mistake("Can one vector hold two dtypes?", _mixed),
        Mistake("Is it closed before the gradient that makes it too large, or after?", _too_full),
        Mistake("May a gradient overtake another one to fill a gap?", _not_in_order),
        Mistake("Does one more gradient fit exactly?", _too_early),
    ),
    praise=lambda outcome: (
        f"every gradient once, the last first; the last case made {count(len(outcome.results[0]), 'bucket')} "
        f"of {count(len(outcome.case.arguments[0][0]), 'gradient')}"
    ),
)
