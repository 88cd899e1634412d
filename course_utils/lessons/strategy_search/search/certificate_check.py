"""Check a certificate of `lower_bound.py`, operator by operator.

Nothing of the search is used, and no matrix of its: each step of the program is carried out on clocks in plain Python.

Source: Held & Karp 1962, "A Dynamic Programming Approach to Sequencing Problems" (dominance).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.search.certificate import Certificate
from course_utils.lessons.strategy_search.simulator.program_steps import (
    Costs,
    Step,
    compute,
    exchange,
    gradient_sums,
    output_sums,
)
from course_utils.progress_bar import ProgressBar

Clocks = Sequence[float]
"""Nanoseconds of each device, whole numbers; `_NEVER` where nothing is waited for."""
_NEVER = float("-inf")


def check_certificate(graph: OperatorGraph, costs: Costs, devices: int, certificate: Certificate) -> int:
    """How many partial strategies were looked at, kept or not; each has a reason.

    Raises:
        CourseError: a number that does not hold, or a partial strategy that may lead to a quicker strategy.
    """
    operators, choices = graph.operators, choices_of(graph, devices)
    if any(operator.inputs != ((number - 1,) if number else ()) for number, operator in enumerate(operators)):
        raise CourseError("The certificate is of a network in which each operator reads the one before.")
    _check_sizes(certificate, [len(own) for own in choices[1:]], devices)
    before: Sequence = [[([0] * devices, [0] * devices)]]  # nothing is done yet
    looked_at = 0
    with ProgressBar("checking the certificate") as bar:
        for level, (producer, reader) in enumerate(pairwise(operators)):
            for (x, a), (y, b) in product(*map(enumerate, choices[level : level + 2])):
                steps = _steps(producer, a, reader, b, costs)
                after = certificate.follow[level][y], certificate.work[level][y]
                if level:
                    claimed = certificate.follow[level - 1][x], certificate.work[level - 1][x]
                    _check_bounds(f"{reader.name} {b}", *steps, claimed, after)
                for clocks, rest in before[x]:
                    looked_at += 1
                    new = _after(clocks, steps[0]), _remaining(rest, steps[1])
                    beaten = any(_no_worse(other, new) for other in certificate.partial[level][y])
                    if not beaten and _least(*new, *after) < certificate.nanoseconds:
                        raise CourseError(
                            f"A partial strategy is missing for no reason. It ends with {reader.name} in {b.parts} "
                            f"parts on the devices {b.devices}."
                        )
                bar.refresh()
            before = certificate.partial[level]
    _check_ends(certificate)
    return looked_at


def _check_sizes(certificate: Certificate, sizes: Sequence[int], devices: int) -> None:
    for each in (certificate.partial, certificate.follow, certificate.work):
        if [len(own) for own in each] != sizes:
            raise CourseError("The certificate is of another network, or of another number of devices.")
    pairs = [pair for level in certificate.partial for own in level for pair in own]
    tables = [own for level in certificate.follow for own in level]
    if any(len(row) != devices for table in (*pairs, *tables) for row in table) or any(
        len(own) != devices for own in tables
    ):
        raise CourseError(f"The certificate is not of {devices} devices.")


def _steps(producer: Operator, a: Config, reader: Operator, b: Config, costs: Costs) -> tuple[list[Step], list[Step]]:
    """What the reader does in its forward and in its backward pass, in the order of the program."""
    forward = [
        exchange(producer, a, reader, b, costs, "forward"),
        compute(reader, b, costs, "forward"),
        output_sums(reader, b, costs),
    ]
    backward = [
        output_sums(reader, b, costs),
        compute(reader, b, costs, "backward"),
        gradient_sums(reader, b, costs),
        exchange(producer, a, reader, b, costs, "backward"),
    ]
    return [step for step in forward if step], [step for step in backward if step]


def _after(clocks: Clocks, steps: Iterable[Step]) -> Clocks:
    """When each device is free after some steps: `clocks` say when it was before."""
    for step in steps:
        new = list(clocks)
        for device, nanoseconds, partners in step:
            new[device] = nanoseconds + max(clocks[member] for member in (device, *partners))
        clocks = new
    return clocks


def _remaining(rest: Clocks, steps: Sequence[Step]) -> Clocks:
    """How long it is to the end from before some steps: `rest` says it from after them."""
    for step in reversed(steps):
        new = [_NEVER if any(work.device == other for work in step) else here for other, here in enumerate(rest)]
        for device, nanoseconds, partners in step:
            for member in (device, *partners):
                new[member] = max(new[member], nanoseconds + rest[device])
        rest = new
    return rest


def _least(clocks: Clocks, rest: Clocks, follow: Sequence[Sequence[int | None]], work: int) -> float:
    """What a partial strategy takes, whatever follows: the longest wait, or a device's share of all work."""
    between = _through(follow, clocks)
    devices = len(clocks)
    return max(*map(sum, zip(rest, between, strict=True)), -(-(sum(rest) + sum(clocks) + work) // devices))


def _through(follow: Sequence[Sequence[int | None]], clocks: Clocks) -> Clocks:
    """When each device is free before the backward pass, at the earliest."""
    return [
        max((clock + wait for clock, wait in zip(clocks, row, strict=True) if wait is not None), default=_NEVER)
        for row in follow
    ]


def _no_worse(first: Sequence[Clocks], other: Sequence[Clocks]) -> bool:
    """Whether all that may follow ends with `first` as early as with `other`: what clocks lose, rest gains."""
    return sum(max(a - b for a, b in zip(*both, strict=True)) for both in zip(first, other, strict=True)) <= 0


def _check_bounds(name: str, forward: list[Step], backward: list[Step], before: tuple, after: tuple) -> None:
    """That waits and work of an operator are no more than the next one's and what lies between."""
    (follow, work), (next_follow, next_work) = before, after
    busy = next_work
    for device in range(len(follow)):
        from_device = [0 if other == device else _NEVER for other in range(len(follow))]
        there = _after(from_device, forward)
        busy += there[device] + _after(from_device, backward)[device]
        found = _after(_through(next_follow, there), backward)
        for i, end in enumerate(found):
            if follow[i][device] is not None and follow[i][device] > end:
                raise CourseError(f"From device {device} to {i} it may take less, with {name}.")
    if work > busy:
        raise CourseError(f"There may be less work, with {name}.")


def _check_ends(certificate: Certificate) -> None:
    """That behind the last operator nothing is claimed to follow, and that all that was kept takes long enough."""
    for follow, work, kept in zip(*(each[-1] for each in (certificate.follow, certificate.work, certificate.partial))):
        if work > 0 or any(
            wait is not None and (i != j or wait > 0) for i, row in enumerate(follow) for j, wait in enumerate(row)
        ):
            raise CourseError("After the last operator nothing follows.")
        for clocks, rest in kept:
            if max(map(sum, zip(clocks, rest, strict=True))) < certificate.nanoseconds:
                raise CourseError("A partial strategy that was kept leads to a quicker strategy.")
