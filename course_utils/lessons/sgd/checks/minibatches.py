"""The check of `minibatches`: each example once, the right lengths, a new order in every epoch, all from `rng`."""

import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.compare import describe, kind_of
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.words import count

MIXED = 100  # with at least this many examples, chance cannot look like order
EPOCHS = 6  # in 6, chance leaves none of MIXED examples at one place
EPOCHS_OF_TWO = 40  # in 40, chance gives two examples both orders
STILL = 12  # more examples than chance leaves where they were: it leaves one


def epochs(function: Callable, n: int, batch_size: int, seed: int) -> object:
    """Collect the batches of several epochs from one generator, and of the first from a second one with the same seed.

    Returns a dictionary, which also tells whether the generators that all programs share were left alone. If the
    function returns something that cannot be iterated, that is returned as it is.
    """
    shared, rng = shared_generators(), np.random.default_rng(seed)
    first = function(n, batch_size, rng)
    if not hasattr(first, "__iter__"):
        return first
    most = most_batches(n)
    drawn = [list(itertools.islice(first, most))]
    number = EPOCHS_OF_TWO if n == 2 else EPOCHS
    for generator in (*[rng] * (number - 1), np.random.default_rng(seed)):
        drawn.append(list(itertools.islice(function(n, batch_size, generator), most)))
    return {"epochs": drawn[:-1], "again": drawn[-1], "shared": shared_generators() == shared}


def most_batches(n: int) -> int:
    """How many batches of an epoch are looked at: more than it can have, so that a function that never ends is told."""
    return 2 * n + 2


def after_other_epochs(function: Callable, n: int, batch_size: int, seed: int) -> object:
    """Collect the same after an epoch with more examples, and one with as many, in batches of a different size."""
    rng = np.random.default_rng(seed)
    for others, size in ((2 * n, batch_size + 1), (n, batch_size + 2)):
        list(itertools.islice(function(others, size, rng), most_batches(others)))
    return epochs(function, n, batch_size, seed)


def shared_generators() -> tuple:
    """Return the states of the generators of `random` and of `np.random`."""
    _, numbers, position, *_ = np.random.get_state()
    return random.getstate(), numbers.tobytes(), position


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(n: int, batch_size: int, harness: Callable = epochs, key: str = "") -> Case:
        label = f"{count(n, 'example') if n else 'no examples'}, batch size {batch_size}"
        given = (n, batch_size, int(rng.integers(2**31)))
        label += ", after other epochs" * (harness != epochs)
        return Case(label, [given], with_comm=False, harness=harness, judge=_what_is_wrong, key=key)

    yield case(12, 4)
    yield case(10 * int(rng.integers(20, 40)), 10)
    yield case(10, 4)
    yield case(32 * int(rng.integers(5, 10)) + int(rng.integers(8, 32)), 32)
    yield case(5, 8)
    yield case(MIXED + int(rng.integers(50)), 1)
    yield case(MIXED + int(rng.integers(50)), 3 * MIXED)
    yield case(6, 6)
    yield case(1, 1)
    yield case(2, 1)
    yield case(0, 4, key="no-examples")
    yield case(10, 4, after_other_epochs, AFTER_ANOTHER_CALL)


def _what_is_wrong(outcome: Outcome) -> Finding | None:
    n, size, _ = outcome.case.arguments[0]
    found = outcome.results[0]
    if kind_of(found) != "dict" or set(found) != {"epochs", "again", "shared"}:
        words = "your function returned {result}, expected batches, each an array of indices"
        return own("not-indices", words, result=describe(found))
    epochs = [*found["epochs"], found["again"]]
    form = _wrong_form(epochs)
    if form:
        return form
    if len(epochs[0]) == most_batches(n):
        words = "the first epoch has no end: after {batches} batches of {examples}, there was another one"
        return own("no-end", words, batches=most_batches(n), examples=count(n, "example"))
    first, second, *later, again = [[[int(i) for i in batch] for batch in batches] for batches in epochs]
    wrong = _wrong_numbers("first", first, n, size) or _wrong_numbers("second", second, n, size)
    if n >= MIXED:
        wrong = wrong or _wrong_order(first, n) or _wrong_company(first, second)
    if n >= MIXED or n == 2:
        wrong = wrong or _wrong_places([first, second, *later], n)
    if not wrong and first != again:
        return own("not-repeatable", "two generators with the same seed gave different batches")
    if not wrong and not found["shared"]:
        words = "your function used a generator that all programs share, that of `random` or `np.random`"
        return own("shared-generator", words)
    return wrong


def _wrong_form(epochs: list) -> Finding | None:
    for batch in itertools.chain(*epochs):
        if kind_of(batch) in ("list", "tuple"):
            words = "a batch is the {kind} {batch}, expected an array"
            return own("not-an-array", words, kind=kind_of(batch), batch=describe(batch))
        if kind_of(batch) != "array":
            return own("not-indices", "a batch is {batch}, expected an array of indices", batch=describe(batch))
        if batch.ndim != 1:
            words = "a batch has the shape {shape}, expected an array with one axis"
            return own("not-one-axis", words, shape=batch.shape)
        if batch.size and batch.dtype != np.int64:
            key = "not-int64" if batch.dtype.kind in "iu" else "not-indices"
            return own(key, "a batch holds {got} numbers, expected int64", got=str(batch.dtype))
    return None


def _wrong_numbers(which: str, batches: list[list[int]], n: int, size: int) -> Finding | None:
    def found(key: str, words: str, **values: object) -> Finding:
        return own(key, words, which=which, n=n, examples=count(n, "example"), **values)

    order = [index for batch in batches for index in batch]
    outside = [index for index in order if not 0 <= index < n]
    if outside:
        words = "the {which} epoch has the index {index}, but there are {examples}, numbered from 0"
        key = "counted-from-1" if outside == [n] and 0 not in order else "index-outside"
        return found(key, words, index=outside[0])
    never = n - len(set(order))
    if never and len(order) > n - never:
        words = "the {which} epoch has some examples more than once, and {never} of {n} not at all"
        return found("drawn-twice", words, never=never)
    if never:
        words = "{never} of {n} examples {verb} not in any batch of the {which} epoch"
        return found("left-out", words, never=never, verb="is" if never == 1 else "are")
    got, wanted = [len(batch) for batch in batches], _lengths(n, size)
    if len(order) > n:
        words = "the {which} epoch has {indices} indices, but there are {examples}"
        return found("filled-up" if {*got} == {size} else "in-two-batches", words, indices=len(order))
    if got and not wanted:
        return found("batches-of-nothing", "the {which} epoch has {got}, expected none", got=count(len(got), "batch"))
    if got != wanted and 0 in got:
        words = "the {which} epoch has a batch without examples; its batches have {got}, expected {expected}"
        return found("empty-batch", words, got=_few(got), expected=_few(wanted))
    if got != wanted:
        words = "the batches of the {which} epoch have {got} examples, expected {expected}"
        return found("other-lengths", words, got=_few(got), expected=_few(wanted))
    return None


def _wrong_order(batches: list[list[int]], n: int) -> Finding | None:
    steps = np.diff(np.concatenate(batches))
    spans = [max(batch) - min(batch) for batch in batches if len(batch) > 1]
    if spans and np.mean(spans) < n / 3 and sum(steps < 0) > 1:
        words = "the second batch has only examples between {least} and {most}"
        return own("neighbours-together", words, least=min(batches[1]), most=max(batches[1]))
    if np.unique(steps, return_counts=True)[1].max() > len(steps) / 2:
        return own("even-distances", "neighbours in the order are always the same distance apart")
    return None


def _wrong_company(first: list[list[int]], second: list[list[int]]) -> Finding | None:
    """Tell whether examples of one batch are together again, in most batches or in a whole large one."""
    if first == second:
        return own("same-order", "the second epoch has the same order as the first")
    where = {index: number for number, batch in enumerate(second) for index in batch}
    large = [batch for batch in first if 5 <= len(batch) < len(where)]
    again = [
        np.mean([where[example] == where[other] for example, other in itertools.pairwise(batch)]) for batch in large
    ]
    if again and (np.mean(again) > 0.5 or max(again) == 1):
        return own("same-companions", "in the second epoch, the same examples are together in a batch as in the first")
    return None


def _wrong_places(epochs: list[list[list[int]]], n: int) -> Finding | None:
    """Tell whether examples keep their positions: one of them in all epochs, or many in the first."""
    orders = [np.concatenate(batches) for batches in epochs if sum(map(len, batches)) == n]
    still = np.flatnonzero((np.array(orders) == orders[0]).all(axis=0))
    if len(still):
        words = "example {example} is at the same position in all {epochs} epochs"
        return own("not-moved", words, example=int(orders[0][still[0]]), epochs=len(orders))
    left = int(sum(orders[0] == np.arange(n)))
    words = "{left} of {n} examples are at the same position as before the shuffling"
    return own("not-moved", words, left=left, n=n) if left > STILL else None


def _lengths(n: int, size: int) -> list[int]:
    return [min(size, n - start) for start in range(0, n, size)]


def _few(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:6])
    return f"{shown}, …, {numbers[-1]}" if len(numbers) > 6 else shown or "no"


EXERCISE = Exercise(
    library="gradient_descent",
    number=1,
    minutes=8,
    difficulty=1,
    turn="shuffle the numbers 0 … n − 1, then cut them into pieces",
    title="shuffled batches, the last one shorter",
    cases=_cases,
    hints=(
        "Think of a pack of cards, numbered from 0. What do you do first, so that every card is dealt exactly once, in "
        "an order that you can't foresee? And what do you get from a slice that reaches beyond the end of an array?",
        "Let `order = rng.permutation(n)`. Then, for each `start` in `range(0, n, batch_size)`, yield "
        "`order[start : start + batch_size]`.",
    ),
    praise=lambda outcome: "each epoch has every example once, in a new order; the last batch takes what is left",
)
