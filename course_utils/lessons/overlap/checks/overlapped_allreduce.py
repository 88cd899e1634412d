"""The check of `overlapped_allreduce`: the means, and when each bucket leaves, from the trace of backward passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, collectives, raised, same, says
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.overlap.checks import LESSON
from course_utils.lessons.overlap.checks.common import none_returned
from course_utils.lessons.overlap.checks.steps import (
    UNDER_WAY,
    UNWAITED,
    WIDTH,
    Order,
    buckets_of,
    bytes_of,
    could,
    expected,
    gradients_after,
    gradients_of,
    named,
    passes,
    steps_of,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        rows: Sequence[int],
        bucket_bytes: int,
        about: str,
        orders: Sequence[Callable[[int], Order]] = (),
        size: int = world_size,
        frozen: Sequence[int] = (),
        listed: Sequence[int] = (),
        dtypes: Sequence[str] = (),
    ) -> Case:
        """rows: of each weight matrix; -1 for a vector. orders: for each step, rank → its parameters in order."""
        shapes = [(WIDTH,) if row < 0 else (row, WIDTH) for row in rows]
        dtypes = dtypes or ["float64"] * len(rows)
        weights = [drawn(rng, *shape, dtype=dtype) * 0.5 for shape, dtype in zip(shapes, dtypes, strict=True)]
        orders = orders or [lambda rank: range(len(rows))] * 2
        listed = listed or list(range(len(rows)))
        given = [
            (weights, listed, frozen, bucket_bytes, [(drawn(rng, 3, WIDTH), list(order(rank))) for order in orders])
            for rank in range(size)
        ]
        label = f"{ranks(size)}, {count(len(rows), 'parameter')}{about}, buckets of {bucket_bytes:,} bytes"
        return Case(label, given, expected(given), backend="gloo", harness=gradients_after, judge=_on_its_way)

    pair = 8 * WIDTH * 4
    yield case([2, 3, 1, 4], 2 * pair, "")
    yield case([2, 3, 1], 1, "", [lambda rank: range(3)] * 3, size=min(2, world_size))
    yield case([3, -1, 2], 10**6, "", size=min(2, world_size))
    yield case([2, 3, 1, 2], 100, ", one frozen", frozen=(2,), size=min(2, world_size))
    yield case([2, 3, 1, 2], 100, ", one used twice", [lambda rank: (0, 1, 2, 3, 1)] * 2, size=min(2, world_size))
    yield case([2, 3, 1], 80, ", one listed twice", listed=(0, 1, 2, 0), size=min(2, world_size))
    yield case([2, 2, 2, 2], 1, ", another order on odd ranks", [_turned, _turned, lambda rank: range(4)])
    one_less = [lambda rank: (0, 1, 2, 3), lambda rank: (0, 1, 2, 3) if rank else (0, 2, 3), lambda rank: (0, 1, 3)]
    yield case([2, 3, 1, 2], 100, ", not all used in each step", one_less)
    yield case(
        [2, 3, 2, 1],
        10**6,
        ", two dtypes",
        size=min(2, world_size),
        dtypes=["float64", "float32", "float32", "float64"],
    )
    for size in sorted({1, max(1, world_size - 1), world_size}):
        yield case([int(n) for n in rng.integers(1, 5, 6)], int(rng.integers(60, 260)), "", size=size)


def _turned(rank: int) -> Order:
    """Rank 0 goes through the layers from 0 to 3, rank 1 from 3 to 0."""
    return range(4)[::-1] if rank % 2 else range(4)


def _on_its_way(outcome: Outcome) -> str | None:
    """Where the means are right: does each bucket travel once, and does it leave as soon as it may?"""
    case = outcome.case
    wanted = [sum(bytes_of(case, bucket)) for bucket in buckets_of(case)]
    for rank in range(outcome.world_size):
        calls = collectives(outcome, rank)
        others = {call.name for call in calls} - {"all_reduce"}
        if others:
            return f"the means are right, but rank {rank} called {min(others)}; one all_reduce for each bucket does"
        if len(calls) != len(wanted) * steps_of(case):
            each = f"{count(len(wanted), 'bucket')} in {count(steps_of(case), 'step')}"
            return f"the means are right, but rank {rank} made {count(len(calls), 'all-reduce')} for {each}"
        sent = [call.bytes for call in calls]
        if sent != wanted * steps_of(case):
            return f"the means are right, but rank {rank} sent buckets of {sent} bytes, expected {wanted} in each step"
        late = _late(outcome, rank, calls)
        if late:
            return late
    return None


def _late(outcome: Outcome, rank: int, calls: Sequence["Event"]) -> str | None:
    """The first moment at which fewer (or more) buckets had left than could."""
    case, buckets = outcome.case, buckets_of(outcome.case)
    for number, (backward, marks) in enumerate(passes(outcome, rank)):
        order = case.arguments[rank][-1][number][1]
        own = [call for call in calls if backward.start <= call.start][: len(buckets)]
        begun = sum(call.start <= backward.end for call in own)
        if outcome.results[rank][f"{UNDER_WAY} (step {number})"] < begun:
            return f"the means are right, but rank {rank}'s backward pass stood still until an all-reduce was done"
        for place in sorted({*marks, 0}, reverse=True):
            until = marks.get(place, backward.end) if place else backward.end
            left, wanted = sum(call.start <= until for call in own), could(buckets, order, place)
            if left != wanted:
                while_at = f"layer {place - 1} of {len(order)}" if place else "the end"
                return (
                    f"the means are right, but when rank {rank}'s backward pass was at {while_at}, "
                    f"{left} of {count(len(buckets), 'bucket')} had left, expected {wanted}"
                )
    return None


def _is_mean_of(change: Callable[["Tensor", int], "Tensor"]) -> Recogniser:
    """A recogniser of gradients that are the means, changed by a function of (mean, world size)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        size, wanted = outcome.world_size, case.expected[0]
        pairs = [(got[name], mean) for got in outcome.results for name, mean in _gradients(wanted).items()]
        pairs = [(got, mean) for got, mean in pairs if mean is not None]
        return size > 1 and all(same(got, change(mean, size), 1e-6) for got, mean in pairs)

    return recognises


def _gradients(result: dict) -> dict:
    return {name: value for name, value in result.items() if not name.startswith((UNDER_WAY, UNWAITED))}


def _own(case: Case, outcome: Outcome) -> bool:
    weights, _, frozen, _, _ = case.arguments[0]
    for result, given in zip(outcome.results, case.arguments, strict=True):
        own = gradients_of(weights, frozen, *given[-1][0])
        if not all(same(result[named(k, 0)], g, 1e-6) for k, g in enumerate(own) if g is not None):
            return False
    return outcome.world_size > 1


def _unwaited(case: Case, outcome: Outcome) -> bool:
    return any(n for result in outcome.results for name, n in result.items() if name.startswith(UNWAITED))


def _later_step(case: Case, outcome: Outcome) -> bool:
    """The gradients of the first step are right, later ones are not."""
    first = {name: value for name, value in case.expected[0].items() if "(step 0)" in name}
    if none_returned(outcome) or "the means are right" in outcome.wrong:
        return False
    return all(same({name: result[name] for name in first}, first) for result in outcome.results)


def _not_there_yet(case: Case, outcome: Outcome) -> bool:
    """A gradient is zeros that is not."""
    pairs = [(got[name], mean) for got in outcome.results for name, mean in _gradients(case.expected[0]).items()]
    return any(mean is not None and mean.any() and not got.any() for got, mean in pairs)


def _nothing_to_call(case: Case, outcome: Outcome) -> bool:
    return raised(outcome, "object is not callable")


def _labelled(words: str) -> Recogniser:
    return lambda case, outcome: words in case.label


def _frozen(case: Case, outcome: Outcome) -> bool:
    return bool(case.arguments[0][2])


def _none_behind(case: Case, outcome: Outcome) -> bool:
    """Not one call began while a backward pass was at work."""
    starts = [call.start for call in collectives(outcome, 0)]
    work = [backward for backward, _ in passes(outcome, 0)]
    return not any(backward.start <= start <= backward.end for start in starts for backward in work)


OVERLAPPED_ALLREDUCE = Exercise(
    name="overlapped_allreduce",
    library="course_utils.lessons.overlap.buckets:overlapped_allreduce",
    lesson=LESSON,
    place=2,
    minutes=25,
    difficulty=3,
    turn="buckets, a hook on every gradient, and what ends a pass",
    title="gradients that travel behind the backward pass",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "A hook learns that one gradient is ready. What must it count to know that a bucket is full, and what must it "
        "ask before a full bucket may leave, so that all ranks send in the same order?",
        "In the hook: `bucket_of[parameter].missing -= 1`, then go through the buckets from the first, stop at one "
        "with something missing, and `start()` those whose `work` is None. `finish` starts those left, then calls "
        "`bucket.finish()` of each. Hang the hook on with `parameter.register_post_accumulate_grad_hook(ready)`.",
    ),
    mistakes=(
        Mistake("What does the training loop call after `backward()`: what do you return?", _nothing_to_call),
        Mistake("Does the gradient of a frozen parameter ever become ready?", _frozen),
        Mistake("How often does a parameter count that stands in the list twice?", _labelled("listed twice")),
        Mistake("Can one vector hold two dtypes?", _labelled("two dtypes")),
        Mistake("Who starts a bucket of which one gradient never comes?", _labelled("not all used")),
        Mistake("Do all ranks send their buckets in the same order?", _labelled("another order")),
        Mistake("Is every all-reduce waited for before the step?", _unwaited),
        Mistake("Was the sum divided by the number of ranks?", _is_mean_of(lambda mean, size: mean * size)),
        Mistake("How often was it divided by the number of ranks?", _is_mean_of(lambda mean, size: mean / size)),
        Mistake("What must be as it was at the beginning when the next backward pass begins?", _later_step),
        Mistake("Is the result in `parameter.grad`, where the optimizer looks for it?", _own),
        Mistake("Does `parameter.grad` hold the gradient already when your hook is called?", _not_there_yet),
        Mistake("Does the backward pass have to wait for what it sends?", says("stood still")),
        Mistake("How many all-reduces does a bucket need?", says("all-reduces for")),
        Mistake("Which gradient is ready first, and in which bucket is it?", says("sent buckets of")),
        Mistake("Is anything on its way while the backward pass is at work?", _none_behind),
        Mistake("Which gradient is the last that a bucket waits for?", says("had left")),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the same means; each of {count(len(buckets_of(outcome.case)), 'bucket')} "
        f"({sum(map(sum, (bytes_of(outcome.case, bucket) for bucket in buckets_of(outcome.case)))):,} bytes) left once "
        "in each step, as soon as its last gradient was ready"
    ),
)
