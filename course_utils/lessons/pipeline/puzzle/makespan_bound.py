"""Why no schedule of a puzzle is faster than the best known: a search that ends in a proof.

Suppose that a schedule takes less than `seconds`. Then each action has a **head**, before which it cannot begin, and a
**tail**, what must still follow it; both are longest paths through what must come after what. If some actions of one
rank need, together with the shortest head and the shortest tail among them, `seconds` or more, there is no such
schedule. Where that is not so, the same sum tells which action is the last of a set, or the first; what is still open
is decided both ways. `proof_check.py` follows the steps again with a program of its own.

All micro-batches are alike, so the n-th F on a rank may be taken to be of micro-batch n, and so may I and W: only
numbers change. Then memory is an order, too: with room for k micro-batches, F of number n comes after W of n − k.
A whole backward pass is an I and a W behind it. That messages share a link is left out, which can only lower the bound.

Source: Carlier & Pinson 1989, "An Algorithm for Solving the Job-Shop Problem" (heads, tails, which is last).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action
from course_utils.lessons.pipeline.puzzle.puzzle import Puzzle

_TICK = 1e6  # a millionth of a second is our unit: in whole numbers, sums are exact
NODES = 400
"""Cases that a search looks at before it gives up."""


@dataclass(frozen=True)
class ProofStep:
    """A step of a proof.

    Attributes:
        kind: "too long": `actions`, all on one rank, need too much time. "last": `action` comes after all of `actions`;
            "first": before them. "either": `action` comes before the only one of `actions`, or after it; two `cases`.
        cases: of "either", the proofs of both.
    """

    kind: str
    actions: tuple[Action, ...]
    action: Action | None = None
    cases: tuple[tuple["ProofStep", ...], ...] = ()


@dataclass(frozen=True)
class Proof:
    """That no schedule of a puzzle takes less than `seconds`.

    Attributes:
        took: seconds of the search for the proof.
    """

    puzzle: Puzzle
    seconds: float
    steps: tuple[ProofStep, ...] = field(repr=False)
    took: float

    def __len__(self) -> int:
        """All steps, those of cases too."""
        return _count(self.steps)


def prove(puzzle: Puzzle, seconds: float, nodes: int = NODES) -> Proof | None:
    """A proof that no schedule takes less than `seconds`; None where none is found, which says nothing.

    Args:
        nodes: cases to look at before it gives up.

    Source: Carlier & Pinson 1989, with the branching of "the pair that hurts more, either way".
    """
    began = time.perf_counter()
    search = _Search(puzzle, round(_TICK * seconds), nodes)
    steps = search.refute()
    return None if steps is None else Proof(puzzle, seconds, tuple(steps), time.perf_counter() - began)


class Stretch(NamedTuple):
    """Some actions of a rank, in seconds: what must come before them, their own work, what must still follow."""

    before: float
    work: float
    after: float


def longest_stretches(puzzle: Puzzle) -> list[Stretch]:
    """Of each rank, the actions whose head, work and tail are longest together."""
    search = _Search(puzzle, 0, 0)
    return [Stretch(*(part / _TICK for part in search.longest(rank))) for rank in range(puzzle.ranks)]


def lower_bound(puzzle: Puzzle) -> float:
    """Seconds that each schedule needs by its heads and tails alone, without a search."""
    return max(map(sum, longest_stretches(puzzle)))


def _count(steps: Iterable[ProofStep]) -> int:
    return sum(1 + sum(map(_count, step.cases)) for step in steps)


class _Search:
    """Heads and tails under what has been decided so far, all of which can be taken back.

    Attributes:
        heads, tails: of each action, in millionths of a second.
        after, before: of each action those that must come later (earlier), and how long after its end (before its
            start).
    """

    def __init__(self, puzzle: Puzzle, target: int, nodes: int) -> None:
        self.target, self.nodes = target, nodes
        times = {FORWARD: puzzle.forward, INPUT: puzzle.input_gradient, WEIGHT: puzzle.weight_gradient}
        ranks, count = range(puzzle.ranks), range(puzzle.micro_batches)
        self.own = [[Action(kind, rank, n) for n in count for kind in times] for rank in ranks]
        self.long = {action: round(_TICK * times[action.kind][action.stage]) for own in self.own for action in own}
        self.heads, self.tails = dict.fromkeys(self.long, 0), dict.fromkeys(self.long, 0)
        self.after: dict[Action, list[tuple[Action, int]]] = {action: [] for action in self.long}
        self.before: dict[Action, list[tuple[Action, int]]] = {action: [] for action in self.long}
        self.trail: list[tuple] = []  # what to take back
        for earlier, later, wait in _orders(puzzle):
            self.put(earlier, later, wait)

    def put(self, earlier: Action, later: Action, wait: int = 0) -> None:
        """From now on `later` begins no earlier than `wait` after the end of `earlier`."""
        self.after[earlier].append((later, wait))
        self.before[later].append((earlier, wait))
        self.trail.append((earlier, later))
        self._longer(self.heads, self.after, earlier)
        self._longer(self.tails, self.before, later)

    def _longer(self, ends: dict[Action, int], ways: dict[Action, list[tuple[Action, int]]], start: Action) -> None:
        open_ = [start]
        while open_:
            action = open_.pop()
            for other, wait in ways[action]:
                longer = ends[action] + self.long[action] + wait
                if longer > ends[other]:
                    self.trail.append((ends, other, ends[other]))
                    ends[other] = longer
                    if longer <= self.target or not self.target:  # round a circle it would grow for ever
                        open_.append(other)

    def take_back(self, mark: int) -> None:
        """Undo all that was put after the trail was this long."""
        while len(self.trail) > mark:
            what, *rest = self.trail.pop()
            if isinstance(what, Action):
                self.after[what].pop()
                self.before[rest[0]].pop()
            else:
                what[rest[0]] = rest[1]

    def refute(self) -> list[ProofStep] | None:
        """Steps after which no schedule below the target is left; None if the search has to give up."""
        self.nodes -= 1
        mark = len(self.trail)
        steps, closed = self._forced()
        if not closed:
            pair = self._pair() if self.nodes > 0 else None
            if pair is None:
                return None
            cases = []
            for earlier, later in (pair, pair[::-1]):
                here = len(self.trail)
                self.put(earlier, later)
                cases.append(self.refute())
                self.take_back(here)
                if cases[-1] is None:
                    return None
            steps.append(ProofStep("either", (pair[1],), pair[0], tuple(map(tuple, cases))))
        self.take_back(mark)
        return steps

    def _numbers(self, rank: int) -> tuple[NDArray, NDArray, NDArray]:
        own = self.own[rank]
        return tuple(np.array([each[action] for action in own]) for each in (self.heads, self.tails, self.long))

    def sums(self, rank: int) -> NDArray:
        """Of all actions whose head is no shorter than i's, and tail than j's: head i + their work + tail j."""
        heads, tails, long = self._numbers(rank)
        work = ((heads >= heads[:, None]) * long) @ (tails >= tails[:, None]).T
        return np.where(work > 0, heads[:, None] + work + tails, 0)

    def longest(self, rank: int) -> tuple[int, int, int]:
        """Head, work and tail of the actions for which their sum is longest."""
        sums, (heads, tails, _) = self.sums(rank), self._numbers(rank)
        i, j = np.unravel_index(sums.argmax(), sums.shape)
        return int(heads[i]), int(sums[i, j] - heads[i] - tails[j]), int(tails[j])

    def _forced(self) -> tuple[list[ProofStep], bool]:
        """All that follows without a choice, and whether nothing is left to refute."""
        steps: list[ProofStep] = []
        again = True
        while again:
            again = False
            for rank, own in enumerate(self.own):
                sums = self.sums(rank)
                heads, tails, _ = self._numbers(rank)
                if sums.max() >= self.target:
                    i, j = np.unravel_index(sums.argmax(), sums.shape)
                    chosen = np.flatnonzero((heads >= heads[i]) & (tails >= tails[j]))
                    steps.append(ProofStep("too long", tuple(own[n] for n in chosen)))
                    return steps, True
                for kind in ("last", "first"):
                    for step in self._ends(rank, kind):
                        if self._sum(step) >= self.target:  # what was put before may have changed it, for the better
                            steps.append(step)
                            again = True
                            for other in step.actions:
                                self.put(*((other, step.action) if kind == "last" else (step.action, other)))
        return steps, False

    def _ends(self, rank: int, kind: str) -> list[ProofStep]:
        """Which actions must come last (first) of which others: of each, where most follows from it."""
        heads, tails, long = self._numbers(rank)
        late, short = heads >= heads[:, None], tails >= tails[:, None]
        member = late[:, None, :] & short[None, :, :]  # (head i, tail j, action)
        others = (member @ long)[:, :, None] - member * long  # work of the set without the action
        if kind == "last":
            ends = np.minimum(heads[:, None, None], heads) + tails[None, :, None]
            gain = np.maximum(0, (long + tails)[:, None] - tails)  # (the last, another): by how much its tail grows
            ends_of, grows = heads + long, heads
        else:
            ends = heads[:, None, None] + np.minimum(tails[None, :, None], tails)
            gain = np.maximum(0, (long + heads)[:, None] - heads)
            ends_of, grows = tails + long, tails
        sure = (others > 0) & (others + long + ends >= self.target)
        found = []
        for index in np.flatnonzero(sure.any((0, 1))):
            sets = member[sure[:, :, index]]
            sets[:, index] = False
            reached = np.where(sets, ends_of, 0).max(axis=1)  # by the end of the set the action's own end grows, too
            gains = sets @ gain[index] + np.maximum(0, reached - grows[index])
            largest = gains.argmax()
            if gains[largest]:
                actions = tuple(self.own[rank][n] for n in np.flatnonzero(sets[largest]))
                found.append(ProofStep(kind, actions, self.own[rank][index]))
        return found

    def _sum(self, step: ProofStep) -> int:
        """What it takes if the step were not so."""
        everyone = (*step.actions, step.action)
        from_, to = (everyone, step.actions) if step.kind == "last" else (step.actions, everyone)
        work = sum(self.long[action] for action in everyone)
        return min(self.heads[action] for action in from_) + work + min(self.tails[action] for action in to)

    def _pair(self) -> tuple[Action, Action] | None:
        """Two actions of a rank whose order is open: those for which the better order is worst."""

        def longest(a: Action, b: Action) -> int:
            return self.heads[a] + self.long[a] + self.long[b] + self.tails[b]

        def ordered(a: Action, b: Action) -> bool:
            return self.heads[b] >= self.heads[a] + self.long[a] and self.tails[a] >= self.tails[b] + self.long[b]

        open_ = [
            (a, b)
            for own in self.own
            for n, a in enumerate(own)
            for b in own[n + 1 :]
            if a.kind != b.kind and not ordered(a, b) and not ordered(b, a)
        ]
        return max(open_, key=lambda pair: min(longest(*pair), longest(*pair[::-1])), default=None)


def _orders(puzzle: Puzzle) -> Iterable[tuple[Action, Action, int]]:
    """(earlier, later, time between) of all actions whose order the puzzle gives."""
    transfer = round(_TICK * (puzzle.message + puzzle.latency))
    for rank in range(puzzle.ranks):
        for n in range(puzzle.micro_batches):
            forward, first, second = (Action(kind, rank, n) for kind in (FORWARD, INPUT, WEIGHT))
            yield forward, first, 0
            yield first, second, 0
            if rank:
                yield Action(FORWARD, rank - 1, n), forward, transfer
                yield first, Action(INPUT, rank - 1, n), transfer
            if n >= puzzle.memory[rank]:
                yield Action(WEIGHT, rank, n - puzzle.memory[rank]), forward, 0
            if n:
                for action in (forward, first, second):
                    yield Action(action.kind, rank, n - 1), action, 0
