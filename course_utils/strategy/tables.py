"""Each step of the program as a matrix, so that the time of many strategies is a few operations on arrays.

Between two steps the only state is a clock for each device. A step with `Work(device, nanoseconds, partners)` sets

    clock'[device] = nanoseconds + max(clock[device], clock[partner], …)

which is a matrix times a vector, where max stands for + and + for × (max-plus algebra: Baccelli, Cohen, Olsder & Quadrat
1992, "Synchronization and Linearity", chapter 3). Both are exact on whole nanoseconds, and associative: whatever is
multiplied first, the makespan is that of `simulate`, to the last nanosecond.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from course_utils.strategy.configurations import Config, Strategy, configurations
from course_utils.strategy.graph import Operator, OperatorGraph
from course_utils.strategy.steps import Costs, Direction, Step, compute, exchange, gradient_sums, norm_sums

Whole = NDArray[np.int64]
NEVER = -(2**61)
"""In a matrix: the one device does not wait for the other. So low that no sum of times lifts it above 0."""


@dataclass(frozen=True)
class Factor:
    """One input of an operator, or the operator itself where it reads data only: what is done for it in each pass.

    Attributes:
        source: the operator that the input comes from; the operator itself where there is none.
        forward, backward: (devices, devices, pairs) of nanoseconds; pair a · own choices + b for choice a of the
            source and b of the reader. The last input's hold the operator's own computation too.
    """

    source: int
    forward: Whole
    backward: Whole


@dataclass(frozen=True)
class Tables:
    """Matrices of all steps of a graph, for all configurations of its operators.

    Attributes:
        choices: of each operator; a strategy is a column of numbers of choices.
        factors: of each operator; forward one after the other, backward in reverse.
        memory: of each operator, (devices, choices) in bytes; empty where nothing limits it.
    """

    devices: int
    choices: tuple[tuple[Config, ...], ...]
    factors: tuple[tuple[Factor, ...], ...]
    memory: tuple[Whole, ...]
    limits: tuple[int, ...]

    def makespans(self, columns: Whole) -> Whole:
        """Full simulation: nanoseconds of each column of choices, (operators, strategies)."""
        clocks = np.zeros((self.devices, columns.shape[1]), np.int64)
        walked = []
        for number, factors in enumerate(self.factors):
            for factor, pair in zip(factors, self.pairs(number, columns), strict=True):
                clocks = times(factor.forward.take(pair, axis=2), clocks)
                walked.append((factor.backward, pair))
        for backward, pair in reversed(walked):
            clocks = times(backward.take(pair, axis=2), clocks)
        return clocks.max(axis=0)

    def pairs(self, number: int, columns: Whole | Mapping[int, Whole]) -> list[Whole]:
        """For each factor of an operator, which of its matrices each strategy has."""
        own = len(self.choices[number])
        return [
            columns[number] if factor.source == number else columns[factor.source] * own + columns[number]
            for factor in self.factors[number]
        ]

    def strategy(self, column: Whole) -> list[Config]:
        """The configurations that a column of choices stands for."""
        return [choices[chosen] for choices, chosen in zip(self.choices, column, strict=True)]

    def column(self, strategy: Strategy) -> Whole:
        """The numbers of a strategy's configurations among the choices."""
        return np.array([choices.index(one) for choices, one in zip(self.choices, strategy, strict=True)])

    def excess(self, columns: Whole) -> Whole:
        """By how many bytes each strategy's fullest devices are over their limits, together; 0 where it fits."""
        if not self.limits:
            return np.zeros(columns.shape[1], np.int64)
        used = sum(memory[:, chosen] for memory, chosen in zip(self.memory, columns, strict=True))
        return np.maximum(used - np.array(self.limits)[:, None], 0).sum(axis=0)


def times(matrix: Whole, clocks: Whole) -> Whole:
    """Max-plus product of matrices (devices, devices, n) with vectors (devices, n): the clocks after a step."""
    return (matrix + clocks).max(axis=1)


def product(left: Whole, right: Whole) -> Whole:
    """Max-plus product of matrices (devices, devices, n): `right` first, then `left`."""
    result = left[:, 0, None] + right[None, 0]
    for device in range(1, len(left)):
        np.maximum(result, left[:, device, None] + right[None, device], out=result)
    return result


def matrix_of(steps: Sequence[Step], devices: int) -> Whole:
    """Some steps, one after the other, as one matrix: (devices, devices)."""
    whole = identity(devices)
    for step in steps:
        matrix = identity(devices)
        for device, nanoseconds, partners in step:
            matrix[device, [device, *partners]] = nanoseconds
        whole = product(matrix, whole)
    return whole[..., 0]


def identity(devices: int) -> Whole:
    """The matrix of a step in which nobody does anything: (devices, devices, 1)."""
    matrix = np.full((devices, devices, 1), NEVER)
    matrix[np.arange(devices), np.arange(devices)] = 0
    return matrix


def make_tables(graph: OperatorGraph, costs: Costs, devices: int) -> Tables:
    """All matrices of a graph on so many devices; `costs.limits`, where it has any, limit the devices' memory."""
    choices = tuple(configurations(operator, devices) for operator in graph.operators)
    exchanges: dict[tuple, Whole] = {}
    factors = []
    for number, operator in enumerate(graph.operators):
        own = [_own(operator, choices[number], costs, devices, way) for way in ("forward", "backward")]
        sources = [one for one in operator.inputs if graph.operators[one].kind != "input"]
        found = []
        for source in sources:
            ends = graph.operators[source], operator
            between = [
                _exchanges(*ends, choices[source], choices[number], costs, devices, way, exchanges)
                for way in ("forward", "backward")
            ]
            found.append(Factor(source, *between))
        if found:
            last, pairs = found[-1], np.tile(np.arange(len(choices[number])), len(choices[found[-1].source]))
            forward = product(own[0][:, :, pairs], last.forward)
            found[-1] = Factor(last.source, forward, product(last.backward, own[1][:, :, pairs]))
        elif operator.kind != "input":
            found = [Factor(number, *own)]
        factors.append(tuple(found))
    limits = tuple(getattr(costs, "limits", ()))
    memory = [_memory(*both, costs, devices) for both in zip(graph.operators, choices, strict=True)] if limits else []
    return Tables(devices, choices, tuple(factors), tuple(memory), limits)


def _own(operator: Operator, choices: Sequence[Config], costs: Costs, devices: int, direction: Direction) -> Whole:
    """The operator's own steps for each choice: (devices, devices, choices)."""
    found = []
    for config in choices:
        steps = [compute(operator, config, costs, direction), norm_sums(operator, config, costs)]
        if direction == "backward":
            steps = [*reversed(steps), gradient_sums(operator, config, costs)]
        found.append(matrix_of(steps, devices))
    return np.stack(found, axis=-1)


def _exchanges(
    producer: Operator,
    reader: Operator,
    made: Sequence[Config],
    read: Sequence[Config],
    costs: Costs,
    devices: int,
    direction: Direction,
    known: dict[tuple, Whole],
) -> Whole:
    """Exchanges for all pairs of choices: (devices, devices, pairs). Equal ones, as in repeated layers, are made once."""
    alike = [replace(one, name="", inputs=(), modules=()) for one in (producer, reader)]
    key = (*alike, direction)
    if key not in known:
        matrices = np.repeat(identity(devices), len(made) * len(read), axis=2)
        for pair, (a, b) in enumerate((a, b) for a in made for b in read):
            for device, nanoseconds, partners in exchange(*alike[:1], a, *alike[1:], b, costs, direction):
                matrices[device, [device, *partners], pair] = nanoseconds
        known[key] = matrices
    return known[key]


def _memory(operator: Operator, choices: Sequence[Config], costs: Costs, devices: int) -> Whole:
    """Bytes of each choice on each device."""
    used = np.zeros((devices, len(choices)), np.int64)
    for chosen, config in enumerate(choices):
        for place, device in enumerate(config.devices):
            used[device, chosen] = costs.memory(operator, config, place)
    return used
