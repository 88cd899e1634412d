"""What each device does in one step of the program: its part of an operator, an exchange, or an all-reduce.

A step is a list of `DeviceWork`, at most one for each device. Tasks are made from it (`task_graph`), and so are the
matrices with which the search is quick (`step_tables`): both predict the same time, to the last nanosecond.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from math import prod
from typing import Literal, NamedTuple, Protocol

from course_utils.lessons.strategy_search.graph.configurations import (
    Box,
    Config,
    common,
    input_box,
    output_box,
    parameters_at,
    replicas,
    volume,
)
from course_utils.lessons.strategy_search.graph.operator_graph import Operator

NUMBER = 4
"""Bytes of a number: float32."""
Direction = Literal["forward", "backward"]


class Costs(Protocol):
    """What a task takes, in whole nanoseconds, and how much memory a part needs."""

    @property
    def limits(self) -> tuple[int, ...]:
        """Bytes of each device; empty where memory does not matter."""

    def compute(self, operator: Operator, config: Config, part: int, direction: Direction) -> int:
        """The part with the number `part`, with the elementwise operators that follow; backward: all its gradients."""

    def exchange(self, sent: int, received: int, messages: int, devices: tuple[int, ...] = ()) -> int:
        """One device's share of an exchange: bytes out, bytes in, and how many messages both are together.

        Args:
            devices: itself first, then its partners; matters where links differ.
        """

    def all_reduce(self, nbytes: int, ranks: int, devices: tuple[int, ...] = ()) -> int:
        """An all-reduce of `nbytes` by this many devices."""

    def memory(self, operator: Operator, config: Config, part: int) -> int:
        """Bytes that the part with the number `part` keeps; asked for where there are limits."""


class DeviceWork(NamedTuple):
    """What one device does in a step.

    Attributes:
        nanoseconds: how long it is busy.
        partners: the devices it waits for: none of them may be busy with an earlier step.
    """

    device: int
    nanoseconds: int
    partners: tuple[int, ...] = ()


Step = list[DeviceWork]


def compute(operator: Operator, config: Config, costs: Costs, direction: Direction) -> Step:
    """Each device computes its part; nothing for the input, which everybody reads from the data."""
    if operator.kind == "input":
        return []
    return [
        DeviceWork(device, costs.compute(operator, config, part, direction))
        for part, device in enumerate(config.devices)
    ]


def exchange(producer: Operator, a: Config, reader: Operator, b: Config, costs: Costs, direction: Direction) -> Step:
    """Devices send each other what the reader's parts need of the producer's; backward, gradients go the other way.

    What a device has already does not travel, and the input of the network, being data, never does.
    """
    sent: dict[int, int] = defaultdict(int)
    received: dict[int, int] = defaultdict(int)
    partners: dict[int, set[int]] = defaultdict(set)
    messages: dict[int, int] = defaultdict(int)
    for made, read, nbytes in _traffic(producer, a.kind, reader, b.kind):
        source, target = a.devices[made], b.devices[read]
        if source != target:
            if direction == "backward":
                source, target = target, source
            sent[source] += nbytes
            received[target] += nbytes
            for device, other in ((source, target), (target, source)):
                partners[device].add(other)
                messages[device] += 1
    step = []
    for device in sorted(partners):
        others = tuple(sorted(partners[device]))
        step.append(
            DeviceWork(
                device, costs.exchange(sent[device], received[device], messages[device], (device, *others)), others
            )
        )
    return step


def output_sums(operator: Operator, config: Config, costs: Costs) -> Step:
    """What devices add up before an operator's output is ready; as long forward as backward.

    With a batch norm: all-reduces of what it averages, by the devices that share channels. Under a row cut: each device
    sends every other one its partial sums of what that one keeps, a reduce-scatter; backward an all-gather of as many
    bytes. Nothing for all others.
    """
    if config.row_cut:
        return _reduce_scatter(operator, config, costs)
    if not operator.averages:
        return []
    channels = operator.dimension("parameter")
    bounds = [output_box(operator, config, part)[channels] for part in range(config.parameter)]
    return _all_reduces(config, [operator.averages * (end - begin) for begin, end in bounds], costs)


def gradient_sums(operator: Operator, config: Config, costs: Costs) -> Step:
    """All-reduces of the gradients of parameters, by the devices that have the same."""
    if not operator.parameters or config.row_cut:
        return []
    return _all_reduces(config, [parameters_at(operator, config, part) for part in range(config.parameter)], costs)


def pieces(producer: Operator, a: Config, reader: Operator, b: Config) -> Iterable[tuple[int, int, Box]]:
    """Which box of the producer's output goes from which place of `a` to which place of `b`; empty ones left out."""
    for made in range(len(a.devices)):
        box = output_box(producer, a, made)
        for read in range(len(b.devices)):
            piece = common(box, input_box(reader, b, read, producer.shape))
            if volume(piece):
                yield made, read, piece


@cache
def _traffic(
    producer: Operator, a: tuple[int, ...], reader: Operator, b: tuple[int, ...]
) -> tuple[tuple[int, int, int], ...]:
    """From which place to which how many bytes go, whatever devices the places are on."""
    if producer.kind == "input":
        return ()
    producer_config, reader_config = (Config(*kind[:3], tuple(range(prod(kind[:3]))), len(kind) > 3) for kind in (a, b))
    return tuple(
        (made, read, NUMBER * volume(box))
        for made, read, box in pieces(producer, producer_config, reader, reader_config)
    )


def _all_reduces(config: Config, numbers: list[int], costs: Costs) -> Step:
    """One in each group of replicas; `numbers` of each group."""
    return [
        DeviceWork(
            device,
            costs.all_reduce(NUMBER * count, len(group), group),
            tuple(other for other in group if other != device),
        )
        for group, count in zip(replicas(config), numbers, strict=True)
        for device in group
        if len(group) > 1 and count
    ]


def _reduce_scatter(operator: Operator, config: Config, costs: Costs) -> Step:
    """Partial sums of the whole output, of which each device keeps the sum of its part."""
    kept = [NUMBER * volume(output_box(operator, config, part)) for part in range(len(config.devices))]
    step = []
    for part, device in enumerate(config.devices):
        others = tuple(other for other in config.devices if other != device)
        sent, received = sum(kept) - kept[part], len(others) * kept[part]
        nanoseconds = costs.exchange(sent, received, 2 * len(others), (device, *others))
        step.append(DeviceWork(device, nanoseconds, others))
    return step
