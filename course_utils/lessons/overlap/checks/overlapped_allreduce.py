"""The check of `overlapped_allreduce`: the means, and when each bucket leaves, from the trace of backward passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import Recogniser, collectives
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.overlap.checks.steps import (
    WIDTH,
    Order,
    buckets_of,
    bytes_of,
    could,
    expected,
    gradients_after,
    passes,
    steps_of,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
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
        others: bool = False,
    ) -> Case:
        """Rows of each weight matrix, -1 for a vector, 0 for one number; for each step rank → its order."""
        shapes = [{-1: (WIDTH,), 0: ()}.get(row, (row, WIDTH)) for row in rows]
        dtypes = dtypes or ["float64"] * len(rows)
        weights = [drawn(rng, *shape, dtype=dtype) * 0.5 for shape, dtype in zip(shapes, dtypes, strict=True)]
        orders = orders or [lambda rank: range(len(rows))] * 2
        listed = listed or list(range(len(rows)))
        steps = [[(drawn(rng, 3, WIDTH), list(order(rank))) for order in orders] for rank in range(size)]
        given = [(weights, listed, frozen, bucket_bytes, others, own) for own in steps]
        label = f"{ranks(size)}, {count(len(rows), 'parameter')}{about}, buckets of {bucket_bytes:,} bytes"
        return Case(label, given, expected(given), backend="gloo", harness=gradients_after, judge=_on_its_way)

    pair = 8 * WIDTH * 4
    yield case([2, 3, 1, 4], 2 * pair, "")
    yield case([2, 3, 1], 1, "", [lambda rank: range(3)] * 3, size=min(2, world_size))
    yield case([3, -1, 0, 2], 10**6, "", size=min(2, world_size))
    yield case([2, 3, 1, 2], 100, ", one frozen", frozen=(2,), size=min(2, world_size))
    yield case([2, 3, 1, 2], 100, ", one used twice", [lambda rank: (0, 1, 2, 3, 1)] * 2, size=min(2, world_size))
    yield case([2, 3, 1], 80, ", one listed twice", listed=(0, 1, 2, 0), size=min(2, world_size))
    yield case([2, 2, 2, 2], 1, ", another order on odd ranks", [_turned, _turned, lambda rank: range(4)])
    yield case([2, 2, 2, 2], pair, ", turned round on odd ranks", [_turned, _turned])
    yield case([2, 3, 1], 80, ", between two models that wait", size=min(2, world_size), others=True)
    one_less = [
        lambda rank: (0, 1, 3) if rank == 1 else (0, 1, 2, 3),
        lambda rank: (0, 1, 2, 3) if rank else (0, 2, 3),
        lambda rank: (0, 1, 3),
    ]
    yield case([2, 3, 1, 2], 100, ", not all used in each step", one_less)
    two, three = ["float64", "float32", "float32", "float64"], ["float16", "float64", "float64", "float32"]
    yield case([2, 3, 2, 1], 10**6, ", two dtypes", size=min(2, world_size), dtypes=two)
    yield case([3, 2, 2, 1], pair, ", three dtypes", size=min(2, world_size), dtypes=three)
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
            few = "few" if len(calls) < len(wanted) * steps_of(case) else "many"
            made = f"{count(len(calls), 'all-reduce')} in {count(steps_of(case), 'step')}"
            return f"the means are right, but rank {rank} made too {few}: {made}, expected {len(wanted)} in each"
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
    for number, (backward, marks, under_way) in enumerate(passes(outcome, rank)):
        order = case.arguments[rank][-1][number][1]
        own = [call for call in calls if backward.start <= call.start][: len(buckets)]
        begun = sum(call.start <= backward.end for call in own)
        of_whom = f"rank {rank}'s backward pass (step {number})"
        if under_way < begun:
            return f"the means are right, but {of_whom} stood still until an all-reduce was done"
        if not begun and could(buckets, order, 0):
            return f"the means are right, but nothing had left when {of_whom} was at its end"
        for place in sorted({*marks, 0}, reverse=True):
            until = marks.get(place, backward.end) if place else backward.end
            left, wanted = sum(call.start <= until for call in own), could(buckets, order, place)
            if left != wanted:
                while_at = f"layer {place - 1} of {len(order)}" if place else "its end"
                return (
                    f"the means are right, but when {of_whom} was at {while_at}, "
                    f"{left} of {count(len(buckets), 'bucket')} had left, expected {wanted}"
                )
    return None


def _found_where(label: str, words: str) -> Recogniser:
    return lambda case, outcome: label in case.label and words in outcome.wrong


def _later_step(case: Case, outcome: Outcome) -> bool:
    return "(step 1)" in outcome.wrong and "not all used" not in case.label


EXERCISE = Exercise(
    library="buckets",
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
    symptoms={
        "other buckets travel, and one stands in the list twice": _found_where("listed twice", "sent buckets of"),
        "too many buckets travel, and dtypes differ": _found_where("dtypes", "too many"),
        "all goes well in the first step": _later_step,
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the same means; each of {count(len(buckets_of(outcome.case)), 'bucket')} "
        f"({sum(map(sum, (bytes_of(outcome.case, bucket) for bucket in buckets_of(outcome.case)))):,} bytes) left once "
        "in each step, as soon as its last gradient was ready"
    ),
)
