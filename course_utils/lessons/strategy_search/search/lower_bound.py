"""How quick a strategy can be at best: a bound for networks in which each operator reads the one before.

From the first operator inwards, all that later operators see of a beginning is when each device is free (clocks), and
how long each is busy after their backward passes (rest). A beginning that is nowhere better than another one, up to a
shift of both, is dropped; so is one that needs `target` at least, whatever follows. What may follow is bounded twice:
by the smallest entry of each matrix, and by the mean work of all devices. Memory is left out, which can only lower the
bound.

Source: Held & Karp 1962, "A Dynamic Programming Approach to Sequencing Problems" (dominated beginnings are dropped).
"""

import time
from dataclasses import dataclass

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.simulator.step_tables import NEVER, Tables, Whole

MOST = 20_000
"""Beginnings kept at one operator; with more the search gives up."""


@dataclass(frozen=True)
class Bound:
    """No strategy takes less than `nanoseconds`.

    Attributes:
        took: seconds of the search. kept: beginnings that had to be looked at.
    """

    nanoseconds: int
    took: float
    kept: int


def bound_below(tables: Tables, target: int) -> Bound | None:
    """The least makespan, or `target` where nothing is quicker; None where too many beginnings are left.

    Args:
        target: nanoseconds, such as the best that a walk has found.

    Raises:
        CourseError: an operator reads others than the one before.
    """
    began = time.perf_counter()
    if any(len(own) != 1 or own[0].source not in (n, n + 1) for n, own in enumerate(tables.factors[1:])):
        raise CourseError("Only a network in which each operator reads the one before is bounded. Try the walks.")
    steps = [(_first(own[0].forward), _first(own[0].backward)) for own in tables.factors[1:]]
    smallest, work = _rests(steps, tables.devices)
    kept, before = 0, [(np.zeros((1, tables.devices), np.int64),) * 2]
    for number, (forward, backward) in enumerate(steps):
        after = []
        for own in range(forward.shape[1]):
            found = [
                ((forward[x, own] + clocks[:, None]).max(2), (backward[x, own] + rest[:, :, None]).max(1))
                for x, (clocks, rest) in enumerate(before)
            ]
            clocks, rest = (np.concatenate(each) for each in zip(*found, strict=True))
            least = np.maximum(
                (rest[:, :, None] + smallest[number][own] + clocks[:, None]).max((1, 2)),
                -(-((rest + clocks).sum(1) + work[number][own]) // tables.devices),
            )
            open_ = np.flatnonzero(least < target)
            open_ = open_[least[open_].argsort(kind="stable")]
            after.append(_best(clocks[open_], rest[open_]))
        before = after
        kept += (here := sum(len(clocks) for clocks, _ in before))
        if here > MOST:
            return None
    ends = [int((clocks + rest).max(1).min()) for clocks, rest in before if len(clocks)]
    return Bound(min([target, *ends]), time.perf_counter() - began, kept)


def _first(matrices: Whole) -> Whole:
    return np.moveaxis(matrices, (2, 3), (0, 1))  # (source, own, devices, devices)


def _times(left: Whole, right: Whole) -> Whole:
    return np.maximum((left[..., :, :, None] + right[..., None, :, :]).max(-2), NEVER)


def _rests(steps: list[tuple[Whole, Whole]], devices: int) -> tuple[list[Whole], list[Whole]]:
    """For each operator and choice, of all that follows: the smallest entries, and the least work of all devices."""
    own = steps[-1][0].shape[1]
    nothing = np.where(np.eye(devices, dtype=bool), 0, NEVER)
    smallest, work = [np.repeat(nothing[None], own, 0)], [np.zeros(own, np.int64)]
    for forward, backward in reversed(steps[1:]):
        smallest.insert(0, _times(_times(backward, smallest[0]), forward).min(1))
        busy = np.trace(forward, axis1=2, axis2=3) + np.trace(backward, axis1=2, axis2=3)
        work.insert(0, (busy + work[0]).min(1))
    return smallest, work


def _best(clocks: Whole, rest: Whole) -> tuple[Whole, Whole]:
    """Without those that another is as good as, up to a shift."""
    taken: list[int] = []
    for one in range(len(clocks)):
        behind = (clocks[taken] - clocks[one]).max(1) + (rest[taken] - rest[one]).max(1)
        if not (behind <= 0).any():
            taken.append(one)
    return clocks[taken], rest[taken]
