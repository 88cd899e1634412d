"""The check of `minibatches`: each example once, the right lengths, new companions in every epoch, all from `rng`."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.compare import describe, kind_of
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import raised
from course_utils.lessons.sgd.checks import LESSON
from course_utils.words import count

MIXED = 100  # with at least so many examples, chance cannot look like order


def epochs(function: Callable, n: int, batch_size: int, seed: int) -> object:
    """The batches of two epochs from one generator, and of the first from another generator with the same seed."""
    rng = np.random.default_rng(seed)
    first = function(n, batch_size, rng)
    if not hasattr(first, "__iter__"):
        return first
    most = 2 * n + 2  # whoever never ends is stopped
    told = [list(itertools.islice(first, most))]
    told.append(list(itertools.islice(function(n, batch_size, rng), most)))
    told.append(list(itertools.islice(function(n, batch_size, np.random.default_rng(seed)), most)))
    return told


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(n: int, batch_size: int) -> Case:
        label = f"{n} example{'' if n == 1 else 's'}, batch size {batch_size}"
        given = (n, batch_size, int(rng.integers(2**31)))
        return Case(label, [given], with_comm=False, harness=epochs, judge=_what_is_wrong)

    yield case(12, 4)
    yield case(10 * int(rng.integers(20, 40)), 10)
    yield case(10, 4)
    yield case(32 * int(rng.integers(5, 10)) + int(rng.integers(1, 32)), 32)
    yield case(5, 8)
    yield case(MIXED + int(rng.integers(50)), 1)
    yield case(6, 6)
    yield case(1, 1)
    yield case(0, 4)


def _what_is_wrong(outcome: Outcome) -> str | None:
    n, size, _ = outcome.case.arguments[0]
    form = _wrong_form(outcome.results[0])
    if form:
        return form
    for name, batches in zip(("first", "second"), _batches_returned(outcome), strict=False):
        order = [index for batch in batches for index in batch]
        outside = [index for index in order if not 0 <= index < n]
        if outside:
            return f"the {name} epoch holds the index {outside[0]}, and there are {n} examples"
        if len(set(order)) < n:
            never = n - len(set(order))
            return f"{never} of {n} examples {'is' if never == 1 else 'are'} in no batch of the {name} epoch"
        if len(order) > n:
            return f"the {name} epoch holds {len(order)} indices, and there are {n} examples"
        got, wanted = [len(batch) for batch in batches], _lengths(n, size)
        if got and not wanted:
            return f"the {name} epoch has {count(len(got), 'batch')}, expected none"
        if got != wanted:
            return f"the batches of the {name} epoch have {_few(got)} examples, expected {_few(wanted)}"
    return _wrong_order(outcome)


def _wrong_form(result: object) -> str | None:
    if kind_of(result) != "list" or len(result) != 3:
        return f"rank 0 returned {describe(result)}, expected batches of indices"
    for batch in itertools.chain(*result):
        if kind_of(batch) not in ("array", "list", "tuple"):
            return f"a batch is {describe(batch)}, expected an array of indices"
        if kind_of(batch) == "array" and (batch.ndim != 1 or (batch.size and batch.dtype.kind not in "iu")):
            return f"a batch is an array of shape {batch.shape} with {batch.dtype} numbers, expected (batch,) integers"
        if any(kind_of(index) != "int" for index in (batch if kind_of(batch) != "array" else ())):
            return f"a batch is {describe(batch)}, expected an array of indices"
    return None


def _wrong_order(outcome: Outcome) -> str | None:
    n, size, _ = outcome.case.arguments[0]
    first, second, again = _batches_returned(outcome)
    if n >= MIXED:
        if size > 1 and _span(first) < n / 3:
            low, high = min(first[1]), max(first[1])
            return f"the second batch holds only examples between {low} and {high}"
        if _stride(first) > 0.5:
            return "neighbours in the order always have the same distance"
        if size > 1 and _together_again(first, second) > 0.5:
            return "in the second epoch, examples meet the same companions as in the first"
        if first == second:
            return "the second epoch has the same order as the first"
    if first != again:
        return "two generators of the same seed gave unlike batches"
    return None


def _batches_returned(outcome: Outcome) -> list[list[list[int]]]:
    return [[[int(index) for index in batch] for batch in batches] for batches in outcome.results[0]]


def _lengths(n: int, size: int) -> list[int]:
    return [min(size, n - start) for start in range(0, n, size)]


def _few(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:6])
    return f"{shown}, …, {numbers[-1]}" if len(numbers) > 6 else shown or "no"


def _span(batches: list[list[int]]) -> float:
    return float(np.mean([max(batch) - min(batch) for batch in batches if len(batch) > 1]))


def _stride(batches: list[list[int]]) -> float:
    """The share of neighbours in the order that have its most frequent distance."""
    steps = np.diff([index for batch in batches for index in batch])
    return float(np.unique(steps, return_counts=True)[1].max() / len(steps))


def _together_again(first: list[list[int]], second: list[list[int]]) -> float:
    """The share of pairs of the first epoch's batches that are in one batch of the second epoch too."""
    where = {index: number for number, batch in enumerate(second) for index in batch}
    pairs = [where[one] == where[other] for batch in first for one, other in itertools.pairwise(batch)]
    return float(np.mean(pairs))


def _sound(outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and _wrong_form(outcome.results[0]) is None


def _counts(case: Case, outcome: Outcome) -> tuple[int, int, int]:
    """How many examples there are, how many different ones the first epoch holds, how many it holds in all."""
    order = [index for batch in _batches_returned(outcome)[0] for index in batch]
    return case.arguments[0][0], len(set(order)), len(order)


def _no_batches(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and not _sound(outcome)


def _no_examples(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][0] == 0


def _from_one(case: Case, outcome: Outcome) -> bool:
    n = case.arguments[0][0]
    order = [index for batch in _batches_returned(outcome)[0] for index in batch]
    return n in order and 0 not in order


def _with_replacement(case: Case, outcome: Outcome) -> bool:
    n, different, held = _counts(case, outcome)
    return different < n and held > different


def _dropped(case: Case, outcome: Outcome) -> bool:
    n, different, held = _counts(case, outcome)
    return different == held < n


def _filled_up(case: Case, outcome: Outcome) -> bool:
    n, different, held = _counts(case, outcome)
    return different == n < held


def _other_lengths(case: Case, outcome: Outcome) -> bool:
    n, different, held = _counts(case, outcome)
    size = case.arguments[0][1]
    return different == held == n and [len(batch) for batch in _batches_returned(outcome)[0]] != _lengths(n, size)


def _mixed(case: Case) -> bool:
    return case.arguments[0][0] >= MIXED


def _nothing_shuffled(case: Case, outcome: Outcome) -> bool:
    first = _batches_returned(outcome)[0]
    order = [index for batch in first for index in batch]
    in_blocks = max(map(len, first)) > 1 and _span(first) < len(order) / 3
    return _mixed(case) and (order == sorted(order) or (_stride(first) > 0.5 and not in_blocks))


def _only_the_batches(case: Case, outcome: Outcome) -> bool:
    return _mixed(case) and _span(_batches_returned(outcome)[0]) < case.arguments[0][0] / 3


def _same_every_epoch(case: Case, outcome: Outcome) -> bool:
    first, second, _ = _batches_returned(outcome)
    return _mixed(case) and _together_again(first, second) > 0.5


def _other_generator(case: Case, outcome: Outcome) -> bool:
    first, _, again = _batches_returned(outcome)
    return first != again


MINIBATCHES = Exercise(
    name="minibatches",
    library="course_utils.lessons.sgd.gradient_descent:minibatches",
    lesson=LESSON,
    place=1,
    minutes=8,
    difficulty=1,
    turn="shuffle the numbers 0 … n − 1, then cut them into pieces",
    title="shuffled batches, the last one shorter",
    cases=_cases,
    picture=False,
    hints=(
        "Think of a pack of cards, numbered from 0. What do you do first, so that every card is dealt exactly once "
        "and nobody knows when? And what does a slice do that reaches beyond the end of an array?",
        "`order = rng.permutation(n)`; then, for each start in `range(0, n, batch_size)`, "
        "yield `order[start : start + batch_size]`.",
    ),
    mistakes=(
        Mistake(
            "Does `rng.shuffle` hand an array back, or change the one that it is given?",
            lambda case, outcome: raised(outcome, "NoneType"),
        ),
        Mistake("Do you hand out one array of indices for each batch?", _no_batches),
        Mistake("How many batches does an epoch of no examples have?", _no_examples),
        Mistake("Which number does the first example have?", _from_one),
        Mistake("Can one example be drawn twice in an epoch, and another one never?", _with_replacement),
        Mistake("Which examples does nobody ever see?", _dropped),
        Mistake("Must the last batch be as long as the others?", _filled_up),
        Mistake("Which batches may be shorter than batch_size?", _other_lengths),
        Mistake("Is anything shuffled?", _nothing_shuffled),
        Mistake("Are the examples shuffled, or only the batches?", _only_the_batches),
        Mistake("What is different in the next epoch?", _same_every_epoch),
        Mistake("Does all randomness come from `rng`?", _other_generator),
    ),
    praise=lambda outcome: "each example once an epoch, in new company every time; the last batch takes what is left",
)
