"""The devices and the links between them, as somebody describes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network, allreduce_time


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
        one_direction = self.one_way.message_seconds(most)
        if self.both_ways is None or not least:
            return one_direction
        further = self.both_ways.message_seconds(least) - self.one_way.message_seconds(least)
        return one_direction + max(0.0, further)


@dataclass(frozen=True)
class DeviceTopology:
    """Devices, and the link from each to each: all alike.

    Attributes:
        names: of the devices.
        memory: bytes that each has for training; empty: it does not matter.
        link: None for a single device.
        sums: an all-reduce among this many devices, as measured; where there is none, a ring.
        message: seconds that each message of an exchange costs beside the first two, one there and one back.
        speeds: how fast each computes, as a factor: at 0.5 a part takes twice as long. Empty: all at 1.

    Raises:
        CourseError: no devices, no memory or speed for each of them, a speed of 0.
    """

    names: tuple[str, ...]
    memory: tuple[int, ...]
    link: Link | None
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
        for name, speed in zip(self.names, self.speeds):
            if not 0 < speed < math.inf:
                raise CourseError(
                    f"{name} has a speed of {speed:g}; a speed is a finite number above 0. Or leave the device out."
                )
        for device, name in enumerate(self.names):
            if self.memory and self.memory[device] <= 0:
                raise CourseError(f"{name} has no memory. Leave it out, or say how many bytes it has.")

    def __len__(self) -> int:
        return len(self.names)

    def exchange_seconds(self, sent: float, received: float, messages: int) -> float:
        """One device's share of an exchange; its messages share its link, so their bytes add up.

        Args:
            sent, received: bytes.
            messages: sent and received, together.
        """
        return self.link.seconds(sent, received) + self.message * max(0, messages - 2)

    def all_reduce_seconds(self, nbytes: float, ranks: int) -> float:
        """An all-reduce among this many devices."""
        if ranks in self.sums:
            return self.sums[ranks].message_seconds(nbytes)
        return allreduce_time("ring", ranks, nbytes, self.link.one_way)


def describe(memory: Mapping[str, int], link: tuple[float, float], speeds: Sequence[float] = ()) -> DeviceTopology:
    """Devices that one does not have here.

    Args:
        memory: bytes of each device, by its name.
        link: (latency in seconds, bandwidth in bytes per second) between each two of them, one direction at a time or
            both at once.
        speeds: how fast each device computes, as a factor, in the order of `memory`; none: all alike. Of parts of
            unequal size the first device has the larger one, so let the slower devices come last.

    Raises:
        CourseError: a speed of 0 or less, more or fewer speeds than devices; a link on which nothing moves.
    """
    latency, bandwidth = link
    if not bandwidth > 0 or latency < 0:
        raise CourseError(
            f"Between two devices nothing would ever arrive: {bandwidth:g} bytes per second, latency {latency:g} s. "
            "A bandwidth is more than 0, a latency not less."
        )
    network = Network(latency, 1 / bandwidth)
    return DeviceTopology(tuple(memory), tuple(memory.values()), Link(network), speeds=tuple(speeds))
