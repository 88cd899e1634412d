"""One clock for all ranks: that of rank 0.

`time.perf_counter` counts from the same moment in all processes of one machine (on Linux it is CLOCK_MONOTONIC, from
the machine's start). On another machine it counts from another moment: how far that is away is measured with
ping-pong. A number that comes back after a round trip was read, on average, in the middle of it: the error is at most
half of the shortest round trip.

Source: Cristian 1989, "Probabilistic clock synchronization"; RFC 5905 (NTP) keeps the shortest round trip, too.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from course_utils import system

PINGS = 20
Ping = tuple[float, float, float]
"""When rank 0 sent, what the other one's clock said, when rank 0 had the answer; in seconds, each on its own clock."""


@dataclass(frozen=True)
class Offset:
    """What to add to a rank's clock to have rank 0's.

    Attributes:
        seconds: to be added.
        error: at most this many seconds wrong; 0 on one machine, where there is one clock.
    """

    seconds: float = 0.0
    error: float = 0.0


def offset_of(pings: Iterable[Ping]) -> Offset:
    """The offset from the ping with the shortest round trip, at least one."""
    sent, there, back = min(pings, key=lambda ping: ping[2] - ping[0])
    return Offset((sent + back) / 2 - there, (back - sent) / 2)


def offset_to_rank_0(always_measure: bool = False) -> Offset:
    """This rank's offset to rank 0 of torch.distributed's default group; all ranks call it together.

    Over gloo, in a group of its own where the default group is NCCL's: that one's receive returns before the number
    is there, and the clock would be read too early.

    Every rank tells the name of its machine to all. Then those of other machines than rank 0's do `PINGS` ping-pongs
    with it, one rank after the other: a float64 goes to the rank, its clock's reading comes back.

    Args:
        always_measure: also on rank 0's machine, where the result should be 0 but for the error. For tests.
    """
    over_nccl = dist.get_backend() == "nccl"
    group = dist.new_group(backend="gloo") if over_nccl else dist.group.WORLD
    names: list[str] = [""] * dist.get_world_size()
    dist.all_gather_object(names, system.boot(), group=group)
    rank, own = dist.get_rank(), Offset()
    for other in range(1, len(names)):
        if always_measure or names[other] != names[0]:
            found = _ping_pong(other, group) if rank in (0, other) else None
            own = found or own
    if over_nccl:
        dist.destroy_process_group(group)
    return own


def _ping_pong(other: int, group: dist.ProcessGroup) -> Offset | None:
    """Rank 0 measures and tells the result to the other, which gives it back; rank 0 itself has none."""
    number = torch.zeros(1, dtype=torch.float64)
    result = torch.zeros(2, dtype=torch.float64)
    if dist.get_rank():
        for _ in range(PINGS):
            dist.recv(number, 0, group=group)
            number.fill_(time.perf_counter())
            dist.send(number, 0, group=group)
        dist.recv(result, 0, group=group)
        return Offset(*result.tolist())
    pings = []
    for _ in range(PINGS):
        sent = time.perf_counter()
        dist.send(number, other, group=group)
        dist.recv(number, other, group=group)
        there = number.item()
        pings.append((sent, there, time.perf_counter()))
    found = offset_of(pings)
    dist.send(result.copy_(torch.tensor([found.seconds, found.error])), other, group=group)
    return None
