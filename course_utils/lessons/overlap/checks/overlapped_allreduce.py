"""The check of `overlapped_allreduce`: the means, and when each bucket leaves, from the trace of backward passes."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
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
    means_by_default,
    passes,
    step_of,
    steps_of,
    unwaited,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from course_utils.trace.events import Event

MEGA = 2**17  # numbers of float64 that take a mebibyte
RIGHT = "the means are right, but"


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
        key: str = "",
    ) -> Case:
        """Rows of each weight matrix, -1 for a vector, 0 for one number; for each step rank → its order."""
        shapes = [{-1: (WIDTH,), 0: ()}.get(row, (row, WIDTH)) for row in rows]
        dtypes = dtypes or ["float64"] * len(rows)
        weights = [drawn(rng, *shape, dtype=dtype) * 0.5 for shape, dtype in zip(shapes, dtypes, strict=True)]
        orders = orders or [lambda rank: range(len(rows))] * 2
        listed = listed or list(range(len(rows)))
        steps = [[(drawn(rng, 3, WIDTH), list(order(rank))) for order in orders] for rank in range(size)]
        given = [(weights, listed, frozen, bucket_bytes, others, each) for each in steps]
        label = f"{ranks(size)}, {count(len(rows), 'parameter')}{about}, buckets of {bucket_bytes:,} bytes"
        more = {"backend": "gloo", "harness": gradients_after, "judge": _on_its_way, "key": key}
        return Case(label, given, expected(given), **more)

    pair = 8 * WIDTH * 4
    yield case([2, 3, 1, 4], 2 * pair, "")
    two = min(2, world_size)
    yield case([2, 3, 1], 1, "", [lambda rank: range(3)] * 3, size=two)
    yield case([3, -1, 0, 2], 10**6, "", size=two)
    yield case([2, 3, 1, 2], 100, ", one frozen", frozen=(2,), size=two, key="frozen")
    yield case([2, 3, 1, 2], 100, ", one used twice", [lambda rank: (0, 1, 2, 3, 1)] * 2, size=two)
    yield case([2, 3, 1], 80, ", one listed twice", listed=(0, 1, 2, 0), size=two, key="listed-twice")
    orders = [_turned, _turned, lambda rank: range(4)]
    yield case([2, 2, 2, 2], 1, ", another order on odd ranks", orders, key="another-order")
    yield case([2, 2, 2, 2], pair, ", turned round on odd ranks", [_turned, _turned], key="turned-round")
    yield case([2, 3, 1], 80, ", between two models that wait", size=two, others=True, key="between-models")
    one_less = [
        lambda rank: (0, 1, 3) if rank == 1 else (0, 1, 2, 3),
        lambda rank: (0, 1, 2, 3) if rank else (0, 2, 3),
        lambda rank: (0, 1, 3),
    ]
    yield case([2, 3, 1, 2], 100, ", not all used in each step", one_less, key="not-all-used")
    dtypes = ["float64", "float64", "float32", "float64"]
    yield case([2, 3, 2, 1], 10**6, ", two dtypes", size=two, dtypes=dtypes, key="dtypes")
    dtypes = ["float16", "float64", "float64", "float32"]
    yield case([3, 2, 2, 1], pair, ", three dtypes", size=two, dtypes=dtypes, key="dtypes")
    yield case([2, 3, 1], 64, "", size=two, dtypes=["float32"] * 3, key="float32")
    yield _without_a_limit(two)
    for size in sorted({1, max(1, world_size - 1), world_size}):
        yield case([int(n) for n in rng.integers(1, 5, 6)], int(rng.integers(60, 260)), "", size=size)


def _without_a_limit(size: int) -> Case:
    """No limit is given. The last two gradients fill a bucket of the docstring's limit, and the first is one more."""
    numbers = [1, 5 * MEGA, 20 * MEGA]
    label = f"{ranks(size)}, 3 parameters, no limit is named"
    wanted = {f"the mean of the gradient of parameter {k}": 1.0 for k in range(len(numbers))}
    more = {"backend": "gloo", "harness": means_by_default, "judge": _two_by_default, "key": "no-limit-named"}
    return Case(label, [(numbers,)] * size, [wanted] * size, **more)


def _two_by_default(outcome: Outcome) -> Finding | None:
    """Where the means are right: are there the buckets of the docstring's limit?"""
    first, *others = [8 * number for number in outcome.case.arguments[0][0]]
    for rank in range(outcome.world_size):
        sent = [call.bytes for call in collectives(outcome, rank)]
        if sent != [sum(others), first]:
            words = f"{RIGHT} rank {{rank}} sent buckets of {{got}} bytes, expected {{expected}}"
            return own("other-limit", words, rank=rank, got=sent, expected=[sum(others), first])
    return None


def _turned(rank: int) -> Order:
    """Rank 0 goes through the layers from 0 to 3, rank 1 from 3 to 0."""
    return range(4)[::-1] if rank % 2 else range(4)


def _on_its_way(outcome: Outcome) -> Finding | None:
    """Where the means are right: does each bucket travel once, and does it leave as soon as it may?"""
    case = outcome.case
    wanted = [sum(bytes_of(case, bucket)) for bucket in buckets_of(case)]
    for rank in range(outcome.world_size):
        calls = collectives(outcome, rank)
        others = {call.name for call in calls} - {"all_reduce"}
        if others:
            words = f"{RIGHT} rank {{rank}} called {{call}}; one all_reduce for each bucket is enough"
            return own("no-all-reduce", words, rank=rank, call=min(others))
        if len(calls) != len(wanted) * steps_of(case):
            few = "few" if len(calls) < len(wanted) * steps_of(case) else "many"
            made = {"calls": count(len(calls), "all-reduce"), "steps": count(steps_of(case), "step")}
            words = (
                f"{RIGHT} rank {{rank}} made {{calls}} in {{steps}}, expected {{expected}}, {{buckets}} in each step"
            )
            expected_calls = {"expected": len(wanted) * steps_of(case), "buckets": len(wanted)}
            return own(f"too-{few}-all-reduces", words, rank=rank, **expected_calls, **made)
        sent = [call.bytes for call in calls]
        if sent != wanted * steps_of(case):
            words = f"{RIGHT} rank {{rank}} sent buckets of {{got}} bytes, expected {{expected}} in each step"
            return own("other-buckets", words, rank=rank, got=sent, expected=wanted)
        late = _late(outcome, rank, calls)
        if late:
            return late
    return None


def _late(outcome: Outcome, rank: int, calls: Sequence["Event"]) -> Finding | None:
    """The first moment at which fewer (or more) buckets had left than could."""
    case, buckets = outcome.case, buckets_of(outcome.case)
    backward_pass = "the backward pass of rank {rank} (step {step})"
    for step, (backward, marks, under_way) in enumerate(passes(outcome, rank)):
        order = case.arguments[rank][-1][step][1]
        starts = [call.start for call in calls if backward.start <= call.start][: len(buckets)]
        begun = sum(start <= backward.end for start in starts)
        if under_way < begun:
            words = f"{RIGHT} {backward_pass} stood still until an all-reduce had ended"
            return own("stood-still", words, rank=rank, step=step)
        if not begun and could(buckets, order, 0):
            words = f"{RIGHT} nothing had been sent when {backward_pass} ended"
            return own("nothing-had-left", words, rank=rank, step=step)
        for position in sorted({*marks, 0}, reverse=True):
            until = marks.get(position, backward.end) if position else backward.end
            left, expected = sum(start <= until for start in starts), could(buckets, order, position)
            if left != expected:
                at = "reached layer {layer} of {layers}" if position else "ended"
                words = (
                    f"{RIGHT} when {backward_pass} {at}, {{got}} of {{buckets}} had been started, expected {{expected}}"
                )
                where = {"layer": position - 1, "layers": len(order), "buckets": count(len(buckets), "bucket")}
                key = "at-a-layer" if position else "at-the-end"
                return own(key, words, rank=rank, step=step, got=left, expected=expected, **where)
    return None


def _in_the_case(key: str, finding: str) -> Recogniser:
    return lambda case, outcome: case.key == key and outcome.finding.name == finding


def _left_over(case: Case, outcome: Outcome) -> bool:
    return outcome.finding.where in [(unwaited(step),) for step in range(steps_of(case))]


def _later_step(case: Case, outcome: Outcome) -> bool:
    found = outcome.finding
    step = step_of(case, found.where[0]) if found.where else found.values.get("step")
    return step == 1 and case.key != "not-all-used"


EXERCISE = Exercise(
    library="buckets",
    number=2,
    minutes=25,
    difficulty=3,
    turn="buckets, a hook for every parameter, and a function that finishes the pass",
    title="buckets that leave during the backward pass",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "The hook is told that one gradient is ready. What does it have to count to know that a bucket is complete? "
        "And what does it have to check before a complete bucket may leave, so that all ranks send in the same order?",
        "Write a hook `ready(parameter)` and register it for every parameter. It does "
        "`bucket_of[parameter].missing -= 1`. Then it goes through the buckets from the first, stops at the first one "
        "in which something is missing, and calls `start()` of those whose `work` is None. `finish` starts the buckets "
        "that are left, and then calls `bucket.finish()` of each.",
    ),
    symptoms={
        "other buckets travel, and one stands in the list twice": _in_the_case("listed-twice", "other-buckets"),
        "too many buckets travel, and dtypes differ": _in_the_case("dtypes", "too-many-all-reduces"),
        "an all-reduce is left over": _left_over,
        "all goes well in the first step": _later_step,
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the same means; each of {count(len(buckets_of(outcome.case)), 'bucket')} "
        f"({sum(map(sum, (bytes_of(outcome.case, bucket) for bucket in buckets_of(outcome.case)))):,} bytes) left once "
        "in each step, as soon as its last gradient was ready"
    ),
)
