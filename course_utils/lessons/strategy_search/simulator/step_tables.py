"""Each step of the program as a matrix, so that the time of many strategies is a few operations on arrays.

Between two steps the only state is a clock for each device. A step with `Work(device, nanoseconds, partners)` sets

    clock'[device] = nanoseconds + max(clock[device], clock[partner], …)

which is a matrix times a vector, where max stands for + and + for × (max-plus algebra: Baccelli, Cohen, Olsder &
Quadrat 1992, "Synchronization and Linearity", chapter 3). Both are exact on whole nanoseconds, and associative:
whatever is multiplied first, the makespan is that of `simulate`, to the last nanosecond.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.simulator.program_steps import (
    Costs,
    Direction,
    Step,
    compute,
    exchange,
    gradient_sums,
    output_sums,
)

Whole = NDArray[np.int64]
"""Whole numbers: nanoseconds, bytes, or the numbers of choices; as they are whole, sums of them are exact."""
NEVER = -(2**61)
"""In a matrix: the one device does not wait for the other. So low that no sum of times lifts it above 0."""


@dataclass(frozen=True)
class Factor:
    """What is done for one input of an operator; the last input's has the operator's own computation in it too.

    Attributes:
        source: the operator that the input comes from; the operator itself where it reads data only.
        forward, backward: nanoseconds, (devices, devices, choices of the source, own choices); of one choice of the
            source where that is the operator itself.
    """

    source: int
    forward: Whole
    backward: Whole

    def at(self, source: Whole, own: Whole) -> tuple[Whole, Whole]:
        """Both matrices for each pair of choices: (devices, devices, pairs)."""
        _, devices, sources, choices = self.forward.shape
        pairs = own if sources == 1 else source * choices + own
        flat = devices, devices, -1
        return self.forward.reshape(flat).take(pairs, axis=2), self.backward.reshape(flat).take(pairs, axis=2)

    def for_each_own(self, source: Whole) -> tuple[Whole, Whole]:
        """Both matrices for these choices of the source and all own ones: (devices, devices, n, own choices)."""
        if self.forward.shape[2] == 1:
            return self.forward, self.backward
        return self.forward.take(source, axis=2), self.backward.take(source, axis=2)

    def for_each_source(self, own: Whole) -> tuple[Whole, Whole]:
        """Both matrices for these own choices and all of the source: (devices, devices, n, choices of the source)."""
        forward, backward = self._turned
        return forward.take(own, axis=2), backward.take(own, axis=2)

    @cached_property
    def _turned(self) -> tuple[Whole, Whole]:
        """With own choices first: what is taken together then lies together."""
        return tuple(np.ascontiguousarray(matrices.swapaxes(2, 3)) for matrices in (self.forward, self.backward))


@dataclass(frozen=True)
class Tables:
    """Matrices of all steps of a graph, for all configurations of its operators.

    Attributes:
        choices: of each operator; a strategy is a column with the number of a choice for each.
        factors: of each operator; forward one after the other, backward in reverse.
        memory: of each operator, bytes of (devices, choices); empty where nothing limits them.
        limits: bytes of each device.
    """

    devices: int
    choices: tuple[tuple[Config, ...], ...]
    factors: tuple[tuple[Factor, ...], ...]
    memory: tuple[Whole, ...] = ()
    limits: tuple[int, ...] = ()

    def makespans(self, columns: Whole) -> Whole:
        """Full simulation: nanoseconds of each column of choices, (operators, strategies)."""
        clocks, back = np.zeros((self.devices, columns.shape[1]), np.int64), []
        for number, factors in enumerate(self.factors):
            for factor in factors:
                forward, backward = factor.at(columns[factor.source], columns[number])
                clocks = times(forward, clocks)
                back.append(backward)
        for backward in reversed(back):
            clocks = times(backward, clocks)
        return clocks.max(axis=0)

    def excess(self, columns: Whole) -> Whole:
        """By how many bytes the devices of each strategy are over their limits, together; 0 where it fits."""
        if not self.limits:
            return np.zeros(columns.shape[1], np.int64)
        used = sum(memory[:, chosen] for memory, chosen in zip(self.memory, columns, strict=True))
        return np.maximum(used - np.array(self.limits)[:, None], 0).sum(axis=0)

    def strategy(self, column: Whole) -> list[Config]:
        """The configurations that a column of choices stands for."""
        return [choices[chosen] for choices, chosen in zip(self.choices, column, strict=True)]

    def column(self, strategy: Strategy) -> Whole:
        """The numbers of a strategy's configurations among the choices; where there is one, as of the input, it is 0.

        Raises:
            CourseError: a configuration is none of its operator's choices.
        """
        numbers = []
        for operator, (choices, config) in enumerate(zip(self.choices, strategy, strict=True)):
            if len(choices) > 1 and config not in choices:
                raise CourseError(
                    f"Operator {operator} cannot be spread as {config}. "
                    f"Take one of its {len(choices)} choices on {self.devices} devices."
                )
            numbers.append(choices.index(config) if len(choices) > 1 else 0)
        return np.array(numbers)


def times(matrix: Whole, clocks: Whole) -> Whole:
    """Max-plus product of matrices (devices, devices, …) with vectors (devices, …): the clocks after a step."""
    return (matrix + clocks).max(axis=1)


def product(left: Whole, right: Whole) -> Whole:
    """Max-plus product of matrices (devices, devices, …): `right` first, then `left`."""
    result = left[:, 0, None] + right[None, 0]
    for device in range(1, len(left)):
        np.maximum(result, left[:, device, None] + right[None, device], out=result)
    return result


def identity(devices: int) -> Whole:
    """The matrix of a step in which nobody does anything: (devices, devices, 1)."""
    matrix = np.full((devices, devices, 1), NEVER)
    matrix[np.arange(devices), np.arange(devices)] = 0
    return matrix


def matrices_of(steps: Sequence[Step], devices: int) -> Whole:
    """A matrix for each of some steps: (devices, devices, steps)."""
    matrices = np.repeat(identity(devices), len(steps), axis=2)
    for number, step in enumerate(steps):
        for device, nanoseconds, partners in step:
            matrices[device, device, number] = nanoseconds
            for partner in partners:
                matrices[device, partner, number] = nanoseconds
    return matrices


def make_tables(graph: OperatorGraph, costs: Costs, devices: int) -> Tables:
    """All matrices of a graph on this number of devices; `costs.limits`, where it is not empty, limits their memory."""
    choices = tuple(choices_of(graph, devices))
    exchanges: dict[tuple, Whole] = {}  # equal ones, as in a network's repeated layers, are made once

    def exchanged(producer: int, reader: int, direction: Direction) -> Whole:
        ends = [replace(graph.operators[number], name="", inputs=(), modules=()) for number in (producer, reader)]
        key = (*ends, direction)
        if key not in exchanges:
            pairs = [(a, b) for a in choices[producer] for b in choices[reader]]
            steps = [exchange(ends[0], a, ends[1], b, costs, direction) for a, b in pairs]
            shape = devices, devices, len(choices[producer]), len(choices[reader])
            exchanges[key] = matrices_of(steps, devices).reshape(shape)
        return exchanges[key]

    def factors(number: int, operator: Operator) -> Iterator[Factor]:
        own = {
            direction: _own(operator, choices[number], costs, devices, direction)[:, :, None]
            for direction in ("forward", "backward")
        }
        sources = [source for source in operator.inputs if graph.operators[source].kind != "input"]
        if not sources and operator.kind != "input":
            yield Factor(number, own["forward"], own["backward"])
        for position, source in enumerate(sources, start=1):
            forward, backward = exchanged(source, number, "forward"), exchanged(source, number, "backward")
            if position == len(sources):
                forward, backward = product(own["forward"], forward), product(backward, own["backward"])
            yield Factor(source, forward, backward)

    made = tuple(tuple(factors(*numbered)) for numbered in enumerate(graph.operators))
    limits = tuple(costs.limits)
    memory = [_memory(*both, costs, devices) for both in zip(graph.operators, choices, strict=True)] if limits else ()
    return Tables(devices, choices, made, tuple(memory), limits)


def _own(operator: Operator, choices: Sequence[Config], costs: Costs, devices: int, direction: Direction) -> Whole:
    """What the operator does without its inputs, for each choice: (devices, devices, choices)."""
    computes = matrices_of([compute(operator, config, costs, direction) for config in choices], devices)
    within = matrices_of([output_sums(operator, config, costs) for config in choices], devices)
    if direction == "forward":
        return product(within, computes)
    sums = matrices_of([gradient_sums(operator, config, costs) for config in choices], devices)
    return product(sums, product(computes, within))


def _memory(operator: Operator, choices: Sequence[Config], costs: Costs, devices: int) -> Whole:
    """Bytes of each choice on each device."""
    used = np.zeros((devices, len(choices)), np.int64)
    for chosen, config in enumerate(choices):
        for part, device in enumerate(config.devices):
            used[device, chosen] = costs.memory(operator, config, part)
    return used
