"""The incremental simulator: when one operator changes, only what stands around it is multiplied again.

A step of training is one long product of matrices: F₀, F₁, … F₍ₙ₋₁₎ forward, then B₍ₙ₋₁₎, … B₁, B₀ backward. Another
choice for operator i changes F_i and B_i, and those of its readers. All that is done before F_i is one vector, the
clocks; all after B_i another, the time that remains for each device; all between the last reader's passes one matrix:

    makespan = remaining · B_i … B_last · inner · F_last … F_i · clocks

Chains walk over the operators side by side, from the first to the last and again from the first. At each operator all
its choices are tried at once; to go on, one product renews the clocks and one the remaining time.
"""

import numpy as np

from course_utils.lessons.strategy_search.simulator.step_tables import Factor, Tables, Whole, identity, product, times


class Chains:
    """Many strategies of one graph, all at the same operator, where the choices are tried and one is taken.

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
        needed = {last + 1 for last in self._last}
        inner = identity(devices)
        self._inner = {len(self.columns): inner}
        for number in reversed(range(1, len(self.columns))):
            for factor in reversed(self.tables.factors[number]):
                forward, backward = factor.at(self.columns[factor.source], self.columns[number])
                inner = product(product(backward, inner), forward)
            if number in needed:
                self._inner[number] = inner
        self._clocks = np.zeros((devices, chains), np.int64)
        self._remaining = np.zeros((devices, chains), np.int64)
        self.at = 0

    def makespans(self) -> Whole:
        """Nanoseconds of each chain with each choice for the operator at which it is: (chains, choices)."""
        last, back = self._last[self.at], []
        clocks = self._clocks[..., None]
        for number in range(self.at, last + 1):
            for factor in self.tables.factors[number]:
                forward, backward = self._with_all_choices(factor, number)
                clocks = times(forward, clocks)
                back.append(backward)
        clocks = times(self._inner[last + 1][..., None], clocks)
        for backward in reversed(back):
            clocks = times(backward, clocks)
        found = (self._remaining[..., None] + clocks).max(axis=0)
        return np.broadcast_to(found, (self.columns.shape[1], len(self.tables.choices[self.at])))

    def go_on(self, chosen: Whole) -> None:
        """Take a choice in each chain, and go to the next operator; from the last one to the first."""
        self.columns[self.at] = chosen
        if self.at + 1 == len(self.columns):
            self.to_first()
            return
        for factor in self.tables.factors[self.at]:
            forward, backward = factor.at(self.columns[factor.source], chosen)
            self._clocks = times(forward, self._clocks)
            self._remaining = (self._remaining[:, None] + backward).max(axis=0)
        self.at += 1

    def _with_all_choices(self, factor: Factor, number: int) -> tuple[Whole, Whole]:
        """Forward and backward matrices (devices, devices, chains, choices) of operator `number`'s factor."""
        if number == self.at:
            return factor.for_each_own(self.columns[factor.source])
        if factor.source == self.at:
            return factor.for_each_source(self.columns[number])
        forward, backward = factor.at(self.columns[factor.source], self.columns[number])
        return forward[..., None], backward[..., None]


def last_readers(tables: Tables) -> list[int]:
    """For each operator the last one that reads what it, or any operator before it, computes.

    What comes after depends on none of their choices, so that its matrix is right as long as they are changed.
    """
    last = list(range(len(tables.choices)))
    for reader, factors in enumerate(tables.factors):
        for factor in factors:
            last[factor.source] = max(last[factor.source], reader)
    return [max(last[: number + 1]) for number in range(len(last))]
