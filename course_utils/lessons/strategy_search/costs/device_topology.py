"""The devices and the links between them, as somebody describes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network, allreduce_time

_TYPICAL = 1 << 20  # bytes of the message for which the quickest way is taken


@dataclass(frozen=True)
class Link:
    """How long messages between two devices take.

    Attributes:
        one_way: while nothing comes back.
        both_ways: while as many bytes come back at the same time. None: as long as one way alone.
    """

    one_way: Network
    both_ways: Network | None = None

    def seconds(self, sent: float, received: float) -> float:
        """While this many bytes go and this many come."""
        most, least = max(sent, received), min(sent, received)
        alone = self.one_way.message_seconds(most)
        if self.both_ways is None or not least:
            return alone
        further = self.both_ways.message_seconds(least) - self.one_way.message_seconds(least)
        return alone + max(0.0, further)

    def rate(self) -> float:
        """Bytes per second of a long message."""
        return 1 / self.one_way.beta


@dataclass(frozen=True)
class DeviceTopology:
    """Devices, and a link from each to each.

    Attributes:
        names: of the devices.
        memory: bytes that each has for training; empty: it does not matter.
        links: of each pair (a, b) with a < b, by number.
        sums: an all-reduce among this many devices, as measured; None: a ring over the slowest link.
        message: seconds that each message of an exchange costs beside the first two, one there and one back.
        speeds: how fast each computes, as a factor: at 0.5 a part takes twice as long. Empty: all at 1.

    Raises:
        CourseError: no devices, devices that cannot reach each other, a link on which nothing moves, a speed of 0.
    """

    names: tuple[str, ...]
    memory: tuple[int, ...]
    links: Mapping[tuple[int, int], Link]
    sums: Mapping[int, Network] = field(default_factory=dict)
    message: float = 0.0
    speeds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.names:
            raise CourseError("There are no devices to spread a model over. Name at least one.")
        if self.memory and len(self.memory) != len(self.names):
            raise CourseError(f"{len(self.names)} devices need a memory each; here are {len(self.memory)}.")
        if self.speeds and len(self.speeds) != len(self.names):
            raise CourseError(f"{len(self.names)} devices need a speed each; here are {len(self.speeds)}.")
        for one, speed in zip(self.names, self.speeds):
            if not 0 < speed < math.inf:
                raise CourseError(
                    f"{one} has a speed of {speed:g}; a speed is a finite number above 0. Or leave the device out."
                )
        for device, one in enumerate(self.names):
            if self.memory and self.memory[device] <= 0:
                raise CourseError(f"{one} has no memory. Leave it out, or say how many bytes it has.")
            for other in range(device + 1, len(self.names)):
                if (device, other) not in self.links:
                    raise CourseError(
                        f"{one} cannot reach {self.names[other]}: no way of links leads there. "
                        "Describe the missing link, or leave one of the two out."
                    )

    def __len__(self) -> int:
        return len(self.names)

    def link(self, devices: Sequence[int] = ()) -> Link:
        """The slowest link between the first of these devices and the others; of all links where none is named."""
        if len(devices) > 1:
            pairs = {(min(devices[0], other), max(devices[0], other)) for other in devices[1:]}
            return max((self.links[pair] for pair in pairs), key=lambda link: link.one_way.beta)
        return max(self.links.values(), key=lambda link: link.one_way.beta)

    def exchange_seconds(self, sent: float, received: float, messages: int, devices: Sequence[int] = ()) -> float:
        """One device's share of an exchange; its messages share its link, so their bytes add up.

        Args:
            sent, received: bytes.
            messages: sent and received, together.
            devices: itself, then those it has to do with.
        """
        return self.link(devices).seconds(sent, received) + self.message * max(0, messages - 2)

    def all_reduce_seconds(self, nbytes: float, ranks: int, devices: Sequence[int] = ()) -> float:
        """An all-reduce among this many devices."""
        if ranks in self.sums:
            return self.sums[ranks].message_seconds(nbytes)
        ring = [(one, other) for one, other in zip(devices, [*devices[1:], *devices[:1]], strict=True) if one != other]
        slowest = max((self.link(pair) for pair in ring), key=lambda link: link.one_way.beta) if ring else self.link()
        return allreduce_time("ring", ranks, nbytes, slowest.one_way)


def describe(
    memory: Mapping[str, int],
    links: Mapping[tuple[str, str], tuple[float, float]] | tuple[float, float],
    speeds: Sequence[float] = (),
) -> DeviceTopology:
    """Devices that one does not have here.

    Args:
        memory: bytes of each device, by its name.
        links: (latency in seconds, bandwidth in bytes per second) of each pair that is connected, one direction at a
            time or both at once; what is not connected is reached through others, on the quickest way. One such pair of
            numbers stands for all: each device is connected with each.
        speeds: how fast each device computes, as a factor, in the order of `memory`; none: all alike. Of parts of
            unequal size the first device has the larger one, so let the slower devices come last.

    Raises:
        CourseError: a speed of 0 or less, more or fewer speeds than devices; a link to a device that is not there, with
            no bandwidth, or none that leads to a device.
    """
    names = tuple(memory)
    if isinstance(links, tuple):
        links = {(one, other): links for n, one in enumerate(names) for other in names[n + 1 :]}
    direct: dict[tuple[int, int], tuple[float, float]] = {}
    for (one, other), (latency, bandwidth) in links.items():
        if one not in memory or other not in memory or one == other:
            raise CourseError(f"A link joins two different devices out of {', '.join(names)}; not {one} and {other}.")
        if not bandwidth > 0 or latency < 0:
            raise CourseError(
                f"Between {one} and {other} nothing would ever arrive: {bandwidth:g} bytes per second, latency "
                f"{latency:g} s. A bandwidth is more than 0, a latency not less."
            )
        a, b = sorted((names.index(one), names.index(other)))
        direct[a, b] = latency, 1 / bandwidth
    ways = _quickest_ways(direct, len(names))
    found = {pair: Link(Network(*way)) for pair, way in ways.items()}
    return DeviceTopology(names, tuple(memory.values()), found, speeds=tuple(speeds))


def _quickest_ways(direct: dict[tuple[int, int], tuple[float, float]], devices: int) -> dict:
    """(latency, seconds per byte) of each pair that any way joins: latencies add up, the slowest link sets the pace.

    Source: Floyd 1962, "Algorithm 97: Shortest path".
    """
    ways = direct | {(b, a): way for (a, b), way in direct.items()}

    def taken(way: tuple[float, float]) -> float:
        return way[0] + _TYPICAL * way[1]

    for through in range(devices):
        for a in range(devices):
            for b in range(devices):
                if a != b and (a, through) in ways and (through, b) in ways:
                    first, second = ways[a, through], ways[through, b]
                    joined = first[0] + second[0], max(first[1], second[1])
                    if (a, b) not in ways or taken(joined) < taken(ways[a, b]):
                        ways[a, b] = joined
    return {(a, b): way for (a, b), way in ways.items() if a < b}
