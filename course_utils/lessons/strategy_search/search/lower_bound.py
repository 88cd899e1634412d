"""How quick a strategy can be at best: a bound for networks in which each operator reads the one before.

A branch and bound search. A partial strategy has configurations for the first operators only. All that later operators
see of it is when each device is free (clocks), and how long each is busy after their backward passes (rest). One that
is nowhere better than another, up to a shift of both, is dropped (dominance). So is one that needs `target` at least,
whatever follows. What may follow is bounded twice: by the smallest entry of each matrix, and by the mean work of all
devices. Memory is left out, which can only lower the bound.

Source: Held & Karp 1962, "A Dynamic Programming Approach to Sequencing Problems" (dominance).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.search.certificate import Certificate
from course_utils.lessons.strategy_search.simulator.step_tables import NEVER, Tables, Whole

MOST = 20_000
"""Partial strategies kept at one operator; with more the search gives up."""


@dataclass(frozen=True)
class Bound:
    """No strategy takes less than `nanoseconds`.

    Attributes:
        strategy: one that takes just as long, memory left out; None where none is quicker than the target.
        certificate: why; `certificate_check.py` checks it with a program of its own.
        took: seconds of the search. kept: partial strategies that had to be looked at.
    """

    nanoseconds: int
    strategy: list[Config] | None
    certificate: Certificate = field(repr=False)
    took: float
    kept: int


class _PartialStrategies(NamedTuple):
    """Those that end with one choice of an operator.

    Attributes:
        clocks, rest: nanoseconds, (partial strategies, devices).
        choices: of all operators so far, (partial strategies, operators).
    """

    clocks: Whole
    rest: Whole
    choices: Whole

    def pick(self, numbers: Sequence[int] | Whole) -> "_PartialStrategies":
        return _PartialStrategies(*(each[numbers] for each in self))


def bound_below(tables: Tables, target: int) -> Bound | None:
    """The least makespan, or `target` where nothing is quicker; None where too many partial strategies are left.

    Args:
        target: nanoseconds, such as the best that a walk has found.

    Raises:
        CourseError: an operator reads others than the one before.
    """
    began = time.perf_counter()
    if any(len(own) != 1 or own[0].source != max(n, 1) for n, own in enumerate(tables.factors[1:])):
        raise CourseError("Only a network in which each operator reads the one before is bounded. Try the walks.")
    steps = [(_first(own[0].forward), _first(own[0].backward)) for own in tables.factors[1:]]
    follow, work = _follows(steps, tables.devices)
    nothing = np.zeros((1, tables.devices), np.int64)
    levels = [[_PartialStrategies(nothing, nothing, np.zeros((1, 1), np.int64))]]
    for step, least_times, least_work in zip(steps, follow, work, strict=True):
        levels.append(_next_level(levels[-1], step, least_times, least_work, target))
        if sum(len(own.clocks) for own in levels[-1]) > MOST:
            return None
    ends = [pair for own in levels[-1] for pair in zip((own.clocks + own.rest).max(1), own.choices, strict=True)]
    least, column = min(ends, key=lambda end: end[0], default=(target, None))
    strategy = None if column is None else tables.strategy(column)
    certificate = _certificate(int(least), levels[1:], follow, work)
    kept = sum(len(own.clocks) for level in levels[1:] for own in level)
    return Bound(int(least), strategy, certificate, time.perf_counter() - began, kept)


def _next_level(
    before: Sequence[_PartialStrategies], step: tuple[Whole, Whole], follow: Whole, work: Whole, target: int
) -> list[_PartialStrategies]:
    """For each choice of the next operator, the partial strategies that may lead below the target."""
    forward, backward = step
    level = []
    for own in range(forward.shape[1]):
        found = _go_on(before, forward[:, own], backward[:, own], own)
        least = _least(found, follow[own], int(work[own]))
        open_ = np.flatnonzero(least < target)
        level.append(_best(found.pick(open_[least[open_].argsort(kind="stable")])))
    return level


def _certificate(
    nanoseconds: int, levels: Sequence[Sequence[_PartialStrategies]], follow: Sequence[Whole], work: Sequence[Whole]
) -> Certificate:
    """All that was kept and proved, as plain numbers."""
    partial = [[list(zip(own.clocks.tolist(), own.rest.tolist(), strict=True)) for own in level] for level in levels]
    waits = [
        [[[None if wait < NEVER // 2 else wait for wait in row] for row in own] for own in each.tolist()]
        for each in follow
    ]
    return Certificate(nanoseconds, partial, waits, [each.tolist() for each in work])


def _go_on(before: Sequence[_PartialStrategies], forward: Whole, backward: Whole, own: int) -> _PartialStrategies:
    """All partial strategies with one choice of the next operator behind them; its matrices (source, devices, …)."""
    found = [
        _PartialStrategies(
            (forward[x] + each.clocks[:, None]).max(2),
            (backward[x] + each.rest[:, :, None]).max(1),
            np.pad(each.choices, ((0, 0), (0, 1)), constant_values=own),
        )
        for x, each in enumerate(before)
    ]
    return _PartialStrategies(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _least(found: _PartialStrategies, follow: Whole, work: int) -> Whole:
    """What each partial strategy takes at least, whatever follows."""
    waits = (found.rest[:, :, None] + follow + found.clocks[:, None]).max((1, 2))
    return np.maximum(waits, -(-((found.rest + found.clocks).sum(1) + work) // len(follow)))


def _first(matrices: Whole) -> Whole:
    return np.moveaxis(matrices, (2, 3), (0, 1))  # (source, own, devices, devices)


def _times(left: Whole, right: Whole) -> Whole:
    return np.maximum((left[..., :, :, None] + right[..., None, :, :]).max(-2), NEVER)


def _follows(steps: list[tuple[Whole, Whole]], devices: int) -> tuple[list[Whole], list[Whole]]:
    """For each operator and choice, of all that follows: the smallest entries, and the least work of all devices."""
    own = steps[-1][0].shape[1]
    nothing = np.where(np.eye(devices, dtype=bool), 0, NEVER)
    smallest, work = [np.repeat(nothing[None], own, 0)], [np.zeros(own, np.int64)]
    for forward, backward in reversed(steps[1:]):
        smallest.insert(0, _times(_times(backward, smallest[0]), forward).min(1))
        busy = np.trace(forward, axis1=2, axis2=3) + np.trace(backward, axis1=2, axis2=3)
        work.insert(0, (busy + work[0]).min(1))
    return smallest, work


def _best(found: _PartialStrategies) -> _PartialStrategies:
    """Without those that another is as good as, up to a shift."""
    clocks, rest = found.clocks, found.rest
    taken: list[int] = []
    for index in range(len(clocks)):
        behind = (clocks[taken] - clocks[index]).max(1) + (rest[taken] - rest[index]).max(1)
        if not (behind <= 0).any():
            taken.append(index)
    return found.pick(taken)
