"""The check of `go_on_without`: who stops and who heals, and a step in float64 with the learner's split."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from course_utils.checks.cases import rejections
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.lessons.hybrid_and_sharded.device_mesh import place_of
from course_utils.lessons.read_the_manual.large_training.lost_gpu import Recovery
from course_utils.words import join, ranks_in_words

TEXTS, NUMBERS = 3, 5
"""Of the step that is taken with the learner's split: texts in a micro-batch, numbers in the gradient."""
SAME = 1e-12
Sizes = Mapping[str, int]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(sizes: Sizes, dead: Sequence[int], micro_batches: int, key: str = "") -> Case:
        label = f"the mesh {dict(sizes)}, {ranks_in_words(list(dead))} died, {micro_batches} micro-batches"
        seed = int(rng.integers(2**31))
        given = (sizes, list(dead), micro_batches)
        return Case(label, [given], with_comm=False, key=key, judge=lambda outcome: _wrong(outcome, seed))

    yield case({"data": 4, "pipeline": 2, "tensor": 2}, [5], 16)
    yield case({"data": 4, "pipeline": 2, "tensor": 2}, [5], 12, "even")
    yield case({"pipeline": 2, "data": 4, "tensor": 2}, [5], 16, "data-in-the-middle")
    yield case({"tensor": 2, "data": 3}, [4], 9, "data-last")
    yield case({"data": 4}, [0], 10)
    yield case({"data": 4, "pipeline": 2, "tensor": 2}, [1, 2], 13, "two-of-one-replica")
    yield case({"data": 5, "shard": 2, "tensor": 2}, [6, 17], 16, "two-replicas")
    yield case({"data": 3, "tensor": 2}, [5, 0], 7, "two-replicas")
    yield case({"data": 6, "pipeline": 2}, [2], 3, "few-micro-batches")
    yield case({"data": 2, "pipeline": 4, "tensor": 2}, [15], 8, "one-left")
    for _ in range(4):
        axes = [str(name) for name in rng.permutation(["data", "pipeline", "tensor", "shard"])[:3]]
        axes = axes if "data" in axes else [*axes[:2], "data"]
        sizes = {name: int(rng.integers(3, 6) if name == "data" else rng.integers(2, 4)) for name in axes}
        dead = sorted(int(rank) for rank in rng.choice(int(np.prod(list(sizes.values()))), 2, replace=False))
        yield case(sizes, dead, int(rng.integers(8, 40)))
    mesh = {"data": 2, "tensor": 2}
    yield from rejections("go_on_without", [(mesh, [4], 8), (mesh, [-1], 8), (mesh, [0, 3], 8), ({"data": 1}, [0], 8)])


def _are_whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(isinstance(number, Integral) for number in numbers)


def _maps_to(table: Any, is_right: Callable[[Any], bool]) -> bool:
    return isinstance(table, dict) and _are_whole([*table]) and all(map(is_right, table.values()))


FORMS: Sequence[tuple[str, Callable[[Any], bool], str]] = (
    ("stopped", _are_whole, "a list of ranks"),
    ("batches", lambda table: _maps_to(table, _are_whole), "a dictionary from replicas to lists of micro-batches"),
    ("weights", lambda table: _maps_to(table, lambda each: isinstance(each, Real)), "a dictionary of numbers"),
    ("heals", lambda table: _maps_to(table, lambda each: isinstance(each, Integral)), "a dictionary from rank to rank"),
)
"""What each part of a `Recovery` has to be, so that it can be judged."""


def _wrong(outcome: Outcome, seed: int) -> Finding | None:
    sizes, dead, micro_batches = outcome.case.arguments[0]
    recovery = outcome.results[0]
    if recovery is None:
        return Finding(Kind.NOTHING, expected="a Recovery")
    if not isinstance(recovery, Recovery):
        return own("not-a-recovery", "{who} returned a {got}, and a Recovery is asked for", got=type(recovery).__name__)
    for name, is_right, form in FORMS:
        if not is_right(getattr(recovery, name)):
            return own("form", "`{name}` of the Recovery is not {form}", name=name, form=form)
    lost = {place_of(rank, sizes)["data"] for rank in dead}
    return (
        _wrong_ranks(recovery, sizes, lost)
        or _wrong_batches(recovery, sizes, lost, micro_batches)
        or _wrong_gradient(recovery, micro_batches, seed)
        or _wrong_source(recovery, sizes)
    )


def _wrong_ranks(recovery: Recovery, sizes: Sizes, lost: set[int]) -> Finding | None:
    for rank in range(int(np.prod(list(sizes.values())))):
        replica = place_of(rank, sizes)["data"]
        if replica in lost and rank not in recovery.stopped:
            words = "rank {rank} is not in `stopped`, and its replica {replica} has lost a GPU"
            return own("computes-on", words, rank=rank, replica=replica)
        if replica not in lost and rank in recovery.stopped:
            words = "rank {rank} is in `stopped`, and its replica {replica} is complete"
            return own("stops-in-vain", words, rank=rank, replica=replica)
    if recovery.stopped != sorted(set(recovery.stopped)):
        return own("not-in-order", "`stopped` is {got}, not each rank once in rising order", got=recovery.stopped)
    return None


def _wrong_batches(recovery: Recovery, sizes: Sizes, lost: set[int], micro_batches: int) -> Finding | None:
    complete = [replica for replica in range(sizes["data"]) if replica not in lost]
    for name in ("batches", "weights"):
        got = sorted(getattr(recovery, name))
        if got != complete:
            words = "`{name}` is for the replicas {got}, and those that are complete are {expected}"
            return own(
                "replicas", words, name=name, got=join(list(map(str, got))), expected=join(list(map(str, complete)))
            )
    taken = Counter(number for numbers in recovery.batches.values() for number in numbers)
    for number in sorted(taken.keys() | set(range(micro_batches))):
        if taken[number] != 1 or number not in range(micro_batches):
            times = f"taken {taken[number]} times" if taken[number] else "taken by no replica"
            words = "micro-batch {number} is {times}, and the step has the micro-batches 0 to {last}, each of them once"
            key = "lost" if not taken[number] else "no-such-batch" if number not in range(micro_batches) else "repeated"
            return own(key, words, number=number, times=times, last=micro_batches - 1)
    lengths = {replica: len(numbers) for replica, numbers in recovery.batches.items()}
    most, least = max(lengths, key=lengths.__getitem__), min(lengths, key=lengths.__getitem__)
    if lengths[most] - lengths[least] > 1:
        words = "replica {most} takes {many} micro-batches and replica {least} takes {few}, so one waits for the other"
        return own("uneven", words, most=most, many=lengths[most], least=least, few=lengths[least])
    return None


def _wrong_gradient(recovery: Recovery, micro_batches: int, seed: int) -> Finding | None:
    """Take a step of a linear model with the learner's split, and compare it with one of the whole batch."""
    far = gradient_distance(recovery, micro_batches, seed)
    if far <= SAME:
        return None
    words = "with these weights, the averaged gradient differs from the whole batch's by {far:.2g} of its length"
    return own("gradient", words, measured={"far": far}, total=sum(recovery.weights.values()))


def gradient_distance(recovery: Recovery, micro_batches: int, seed: int) -> float:
    """How far the replicas' weighted mean gradients are from the whole batch's, as a share of its length."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(micro_batches, TEXTS, NUMBERS))
    targets, weights = rng.normal(1, 1, (micro_batches, TEXTS)), rng.normal(size=NUMBERS)

    def mean_gradient(numbers: Sequence[int]) -> np.ndarray:
        x, y = inputs[list(numbers)].reshape(-1, NUMBERS), targets[list(numbers)].reshape(-1)
        return x.T @ (x @ weights - y) / len(y)

    whole = mean_gradient(range(micro_batches))
    parts = [recovery.weights[replica] * mean_gradient(own) for replica, own in recovery.batches.items() if own]
    return float(np.linalg.norm(np.sum(parts, axis=0) - whole) / np.linalg.norm(whole))


def _wrong_source(recovery: Recovery, sizes: Sizes) -> Finding | None:
    for rank in recovery.stopped:
        if rank not in recovery.heals:
            return own("not-healed", "the replacement of rank {rank} is healed by no rank", rank=rank)
        source = recovery.heals[rank]
        if source not in range(int(np.prod(list(sizes.values())))):
            return own("no-such-rank", "rank {rank} is healed from {got}, which is no rank", rank=rank, got=source)
        if source in recovery.stopped:
            words = "rank {rank} is healed from rank {got}, which has stopped itself"
            return own("healed-from-stopped", words, rank=rank, got=source)
        mine, others = place_of(rank, sizes), place_of(source, sizes)
        apart = [axis for axis in sizes if axis != "data" and mine[axis] != others[axis]]
        if apart:
            words = "rank {rank} is healed from rank {got}, which has a different part of the model: their coordinates "
            words += "along {axis} are {own} and {other}"
            axis = apart[0]
            return own("different-part", words, rank=rank, got=source, axis=axis, own=mine[axis], other=others[axis])
    extra = sorted(set(recovery.heals) - set(recovery.stopped))
    if extra:
        return own("healed-in-vain", "rank {rank} is healed, and it never stopped", rank=extra[0])
    return None


def _praise(outcome: Outcome) -> str:
    return (
        "right on every mesh, with one dead GPU and with two; with your split, a step in float64 has the gradient of "
        "the whole batch, and every replacement finds a peer with its part of the model"
    )


EXERCISE = Exercise(
    library="large_training.lost_gpu",
    number=4,
    minutes=30,
    difficulty=2,
    turn="decide who stops, who takes which micro-batches, and who heals whom",
    title="go on without a GPU",
    cases=_cases,
    hints=(
        "Write down the coordinates of all ranks of the mesh, and mark the dead one. Which other ranks hold parts of "
        "the same copy of the model, so that none of them can finish a forward pass? And which ranks of other "
        "replicas have the same layers, and the same columns of each matrix?",
        "`list(itertools.product(*map(range, sizes.values())))` has the coordinates of each rank, and "
        "`list(sizes).index('data')` tells you which of them is the replica. Deal out the micro-batches with "
        "`range(k, micro_batches, len(complete))`. A replica's weight is its number of micro-batches, divided by that "
        "of all. For a source, change the coordinate along `data` to that of a complete replica and keep the others.",
    ),
    praise=_praise,
)
