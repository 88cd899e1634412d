"""What each task takes, in whole nanoseconds: computed from a description of the devices, or looked up in measurements.

Source: Jia, Zaharia & Aiken 2018, §5 (an operator's time depends on the shape of its part and not on its numbers, so
each shape is measured once).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from course_utils.errors import CourseError
from course_utils.lessons.hardware.roofline import roofline_time
from course_utils.lessons.strategy_search.costs.device_topology import DeviceTopology
from course_utils.lessons.strategy_search.costs.part_shapes import Key, PartShape, part_shapes
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.simulator.program_steps import Direction
from course_utils.words import bytes_text


class Times(NamedTuple):
    """Nanoseconds of a part; backward includes the update of its parameters."""

    forward: int
    backward: int


@dataclass(frozen=True)
class DeviceCosts:
    """What computations and messages take, and how much memory a part needs.

    Attributes:
        topology: the devices and their links.
        times: of each part, on a device with speed 1.
        parts: the same parts with their shapes.
        spread: of the measured times, the width of the middle half as a share of the median: the median over all parts,
            weighted by their time. 0 where nothing was measured.
    """

    topology: DeviceTopology
    times: Mapping[Key, Times] = field(repr=False)
    parts: Mapping[Key, PartShape] = field(repr=False)
    spread: float = 0.0

    @property
    def limits(self) -> tuple[int, ...]:
        """Bytes of each device; empty where memory does not matter."""
        return self.topology.memory

    def compute(self, operator: Operator, config: Config, part: int, direction: Direction) -> int:
        """The part with the number `part`, with the elementwise operators that follow."""
        if operator.kind == "input":
            return 0
        times, speeds = self.times[operator.name, config.kind, part], self.topology.speeds
        nanoseconds = times.forward if direction == "forward" else times.backward
        return round(nanoseconds / speeds[config.devices[part]]) if speeds else nanoseconds

    def exchange(self, sent: int, received: int, messages: int, devices: Sequence[int] = ()) -> int:
        """One device's share of an exchange.

        Args:
            sent, received: bytes.
            messages: sent and received, together.
            devices: itself, then its partners; all links are alike.
        """
        return round(1e9 * self.topology.exchange_seconds(sent, received, messages))

    def all_reduce(self, nbytes: int, ranks: int, devices: Sequence[int] = ()) -> int:
        """An all-reduce of this many bytes among this many devices."""
        return round(1e9 * self.topology.all_reduce_seconds(nbytes, ranks))

    def memory(self, operator: Operator, config: Config, part: int) -> int:
        """Bytes that the part with the number `part` keeps: parameters, gradients, and what the backward pass needs."""
        return 0 if operator.kind == "input" else self.parts[operator.name, config.kind, part].memory()


def described_costs(
    graph: OperatorGraph,
    topology: DeviceTopology,
    flops_per_second: float,
    bytes_per_second: float,
    launch_seconds: float = 0.0,
) -> DeviceCosts:
    """Costs on devices that one does not have: the roofline says how long each part takes at least.

    Args:
        flops_per_second, bytes_per_second: the most that a device computes and moves in its memory.
        launch_seconds: what each module costs beside its work; a GPU's is some microseconds.

    Raises:
        CourseError: a rate of 0 or less; less memory than the model needs.

    Source: Williams, Waterman & Patterson 2009, "Roofline".
    """
    if min(flops_per_second, bytes_per_second) <= 0:
        raise CourseError("A device computes and moves more than 0 numbers per second. Give it both rates.")
    parts = part_shapes(graph, len(topology))
    check_memory(graph, parts, topology)

    def nanoseconds(part: PartShape, work: tuple[int, int]) -> int:
        launches = launch_seconds * max(1, len(part.modules))
        return round(1e9 * (launches + roofline_time([work], flops_per_second, bytes_per_second)))

    times = {key: Times(*(nanoseconds(part, work) for work in part.work())) for key, part in parts.items()}
    return DeviceCosts(topology, times, parts)


def check_memory(graph: OperatorGraph, parts: Mapping[Key, PartShape], topology: DeviceTopology) -> None:
    """Reject a model that fits on the devices in no way at all.

    Two things are asked: whether each operator, cut as finely as can be, has room on its devices if nothing else were
    there, and whether all of them have room together.

    Raises:
        CourseError: it does not fit; what needs how much.
    """
    if not topology.memory:
        return
    whole, together = sum(topology.memory), 0
    for operator in graph.operators[1:]:
        sizes: dict[tuple[int, ...], list[int]] = {}
        for (name, cuts, _), part in parts.items():
            if name == operator.name:
                sizes.setdefault(cuts, []).append(part.memory())
        together += min(map(sum, sizes.values()))
        largest = min(max(each) for each in sizes.values())
        if largest > max(topology.memory):
            raise CourseError(
                f"{operator.name} needs {bytes_text(largest)} on a device, cut as finely as can be; the largest "
                f"has {bytes_text(max(topology.memory))}. Take a smaller batch, a narrower model or other devices."
            )
    if together > whole:
        raise CourseError(
            f"{graph.name} needs at least {bytes_text(together)} with a batch of {graph.operators[0].shape[0]}; the "
            f"devices have {bytes_text(whole)} together. Take a smaller batch, or more devices."
        )
