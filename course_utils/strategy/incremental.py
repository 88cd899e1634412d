"""The incremental simulator: when one operator changes, only what stands around it is multiplied again.

A step of training is one long product of matrices: F₀, F₁, … F₍ₙ₋₁₎ forward and B₍ₙ₋₁₎, … B₁, B₀ backward. Another choice
for operator i changes F_i and B_i, and those of its readers. All that is done before F_i is one vector, the clocks; all
after B_i another, the time that remains for each device; all between the last reader's two passes is one matrix:

    makespan = remaining · B_i … B_last · inner · F_last … F_i · clocks

Chains walk over the operators side by side, from the first to the last and again from the first. At each operator any
number of choices are tried; to go on, one product renews the clocks and one the remaining time.
"""

import numpy as np

from course_utils.strategy.tables import Tables, Whole, identity, product, times


class Chains:
    """Many strategies of one graph, all at the same operator, whose choices can be tried and taken.

    Attributes:
        columns: the choices, (operators, chains).
        at: the operator at which all chains are.
    """

    def __init__(self, tables: Tables, columns: Whole) -> None:
        self.tables = tables
        self.columns = columns.copy()
        self._last = last_readers(tables)
        self.to_first()

    def to_first(self) -> None:
        """Go to the first operator and renew the inner matrices, from the innermost outwards."""
        devices, chains = self.tables.devices, self.columns.shape[1]
        inner = identity(devices)
        needed = {last + 1 for last in self._last}
        self._inner = {len(self.columns): inner[:, :, None]}
        for number in reversed(range(1, len(self.columns))):
            pairs = self.tables.pairs(number, self.columns)
            for factor, pair in zip(reversed(self.tables.factors[number]), reversed(pairs), strict=True):
                inner = product(factor.backward.take(pair, axis=2), inner)
                inner = product(inner, factor.forward.take(pair, axis=2))
            if number in needed:
                self._inner[number] = inner[:, :, None]
        self._clocks = np.zeros((devices, 1, chains), np.int64)
        self._remaining = np.zeros((devices, 1, chains), np.int64)
        self.at = 0

    def makespans(self, tries: Whole) -> Whole:
        """Nanoseconds of each chain with other choices for the operator at which it is: (tries, chains), as given."""
        walked = []
        clocks = self._clocks
        for number in range(self.at, self._last[self.at] + 1):
            for factor, pair in zip(self.tables.factors[number], self._pairs(number, tries), strict=True):
                clocks = times(factor.forward.take(pair, axis=2), clocks)
                walked.append((factor.backward, pair))
        clocks = times(self._inner[self._last[self.at] + 1], clocks)
        for backward, pair in reversed(walked):
            clocks = times(backward.take(pair, axis=2), clocks)
        return np.broadcast_to((self._remaining + clocks).max(axis=0), tries.shape)

    def go_on(self, chosen: Whole) -> None:
        """Take a choice in each chain, and go to the next operator; from the last one to the first."""
        self.columns[self.at] = chosen
        if self.at + 1 == len(self.columns):
            self.to_first()
            return
        pairs = self._pairs(self.at, chosen[None])
        for factor, pair in zip(self.tables.factors[self.at], pairs, strict=True):
            self._clocks = times(factor.forward.take(pair, axis=2), self._clocks)
        for factor, pair in zip(self.tables.factors[self.at], pairs, strict=True):
            self._remaining = (self._remaining[:, None] + factor.backward.take(pair, axis=2)).max(axis=0)
        self.at += 1

    def _pairs(self, number: int, tries: Whole) -> list[Whole]:
        """Which matrices an operator has where `tries` are the choices of the operator at which the chains are."""
        columns = {one: self.columns[one][None] for one in {number, *self._sources(number)}} | {self.at: tries}
        return self.tables.pairs(number, columns)

    def _sources(self, number: int) -> set[int]:
        return {factor.source for factor in self.tables.factors[number]}


def last_readers(tables: Tables) -> list[int]:
    """For each operator the last one that reads what it, or any operator before it, computes.

    What comes after depends on none of their choices, so that its matrix is right as long as they are changed.
    """
    last = list(range(len(tables.choices)))
    for reader, factors in enumerate(tables.factors):
        for factor in factors:
            last[factor.source] = max(last[factor.source], reader)
    return [max(last[: number + 1]) for number in range(len(last))]
