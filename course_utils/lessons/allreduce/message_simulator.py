"""A simulator for all-reduces on more ranks than this machine can run: discrete events on a network of numbers.

An event is a rank that is ready for its next round. It hands its message to the first link of the way, waits for the
one that comes to it, adds it up, and is ready again. A link serves messages in the order in which they come; a message
flows through all links of its way at once, as fast as the slowest lets it. Messages that a rank hands over one after
the other, without a receive in between, share its link as TCP's connections do: all are done when the last one is.

Events that cannot influence each other are taken together, as arrays: those that lie closer than the shortest time in
which a rank can act upon another (Chandy and Misra 1979 call it lookahead). So 1,024 ranks take seconds, not hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.message_tables import SCHEDULES, Schedule, hierarchical
from course_utils.lessons.allreduce.network_topology import Topology
from course_utils.trace.events import Event
from course_utils.words import bytes_text, seconds_text

DRAWN = 32  # ranks up to which the messages are kept, for a picture


@dataclass(frozen=True)
class Simulated:
    """An all-reduce that never ran: what the simulator says it would take.

    Attributes:
        algorithm, topology, world_size, nbytes: what was simulated; nbytes of the vector.
        seconds: from the start to the last rank's end.
        rounds: in which messages are sent.
        bytes_per_rank: what each rank sends.
        events: the messages, for `pictures.simulated_timeline`; empty above 32 ranks.
    """

    algorithm: str
    topology: str
    world_size: int
    nbytes: float
    seconds: float
    rounds: int
    bytes_per_rank: np.ndarray = field(repr=False)
    events: Sequence[Event] = field(default=(), repr=False)

    def __repr__(self) -> str:
        size, time = bytes_text(self.nbytes), seconds_text(self.seconds)
        return f"<simulated, not run: {self.algorithm}, {size}, {self.topology}: {time} in {self.rounds} rounds>"


def simulate_allreduce(
    algorithm: str, world_size: int, nbytes: float, topology: Topology, node_size: int | None = None
) -> Simulated:
    """Predict an all-reduce of a vector of `nbytes` on a network that need not exist. Nothing is sent.

    Args:
        algorithm: a name of `SCHEDULES`, or "hierarchical".
        topology: made for as many ranks by a function of `course_utils.lessons.allreduce.network_topology`.
        node_size: for "hierarchical": how many ranks make a node.

    Raises:
        CourseError: no such algorithm, or the topology has another number of ranks.
    """
    if algorithm == "hierarchical" and node_size:
        schedule = hierarchical(world_size, nbytes, node_size)
    elif algorithm in SCHEDULES:
        schedule = SCHEDULES[algorithm](world_size, nbytes)
    else:
        known = ", ".join(f'"{name}"' for name in SCHEDULES)
        raise CourseError(f'No algorithm {algorithm!r}: {known}, or "hierarchical" with node_size=.')
    if topology.world_size != world_size:
        raise CourseError(f"{world_size} ranks on a network of {topology.world_size}: make it for as many.")
    events: list[Event] = []
    seconds = play(schedule, topology, events if world_size <= DRAWN else None)
    sent = schedule.nbytes.sum(axis=0)
    return Simulated(algorithm, topology.name, world_size, nbytes, seconds, len(schedule.dest), sent, events)


def play(schedule: Schedule, topology: Topology, events: list[Event] | None = None) -> float:
    """Let all messages of a schedule happen, and return the second at which the last rank is done.

    Args:
        events: gets one event for each send and each receive.

    Raises:
        CourseError: a rank waits for a message that nobody sends.
    """
    rounds, world_size = schedule.dest.shape
    links = Links(topology)
    expects = _expected(schedule)
    steps = _next_steps(schedule, expects)
    last = len(steps) - 1  # the step of a rank that has nothing left to do
    beside = _bytes_beside(schedule, expects)
    arrival = np.full((rounds, world_size), np.inf)
    step, ready, waiting = steps[0].copy(), np.zeros(world_size), np.zeros(world_size, bool)
    while True:
        able = ~waiting & (step < last)
        if not able.any():
            break
        ranks = np.flatnonzero(able & (ready <= ready[able].min() + topology.overhead))
        sending = ranks[step[ranks] < rounds]
        sending = sending[schedule.dest[step[sending], sending] >= 0]
        if len(sending):
            number = step[sending]
            dest, size = schedule.dest[number, sending].astype(int), schedule.nbytes[number, sending]
            began, ready[sending] = ready[sending], ready[sending] + topology.overhead
            arrival[number, dest] = links.carry(sending, dest, size, ready[sending], beside[number, sending])
            if events is not None:
                events += _sends(sending, dest, size, began, ready[sending])
        waiting[ranks] = True
        ranks = np.flatnonzero(waiting)
        number = step[ranks] - schedule.lag
        needs = (number >= 0) & (expects[number, ranks] >= 0)
        come = np.where(needs, arrival[number, ranks], -np.inf)
        there = come < np.inf
        ranks, number, needs, come = ranks[there], number[there], needs[there], come[there]
        source = expects[number, ranks]
        adding = topology.gamma * schedule.nbytes[number, source] * schedule.adds[number, source]
        began, ready[ranks] = ready[ranks], np.maximum(ready[ranks], come + (topology.overhead + adding) * needs)
        if events is not None:
            events += _receives(
                ranks[needs], source[needs], schedule.nbytes[number, source][needs], began[needs], come[needs]
            )
        waiting[ranks] = False
        step[ranks] = steps[step[ranks] + 1, ranks]
    if waiting.any():
        raise CourseError(f"simulated rank {np.flatnonzero(waiting)[0]} waits for a message that nobody sends.")
    return float(ready.max())


class Links:
    """All links of a topology, and until when each is taken."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.taken = np.full(len(topology.beta), -np.inf)
        self.under_way = np.empty(0)  # when the messages that are under way will arrive

    def carry(
        self, source: np.ndarray, dest: np.ndarray, nbytes: np.ndarray, begins: np.ndarray, beside: np.ndarray
    ) -> np.ndarray:
        """When the last byte of each message arrives. Messages that want the same link queue, the earlier one first.

        Args:
            beside: bytes that the sender hands over right after the message, and that share its first link with it.
        """
        head, tail = begins.copy(), begins.copy()
        route = self.topology.route(source, dest)
        for links in route:
            queue = np.argsort(head, kind="stable")
            queue = queue[links[queue] >= 0]
            while len(queue):
                _, first = np.unique(links[queue], return_index=True)
                now = queue[first]
                self._serve(links[now], now, nbytes, head, tail)
                queue = np.delete(queue, first)
        shared = beside * self.topology.beta[route[0]]
        arrival = tail + shared + self.topology.latency(source, dest, nbytes)
        if self.topology.work:
            self.under_way = np.append(self.under_way[self.under_way > begins.min()], arrival)
            arrival += self.topology.work * (len(self.under_way) - 1)
        return arrival

    def _serve(
        self, links: np.ndarray, messages: np.ndarray, nbytes: np.ndarray, head: np.ndarray, tail: np.ndarray
    ) -> None:
        """Let one message pass on each of these links; `head` and `tail` become the times at the link's end."""
        beta, now = self.topology.beta[links], head[messages]
        begins = np.maximum(self.taken[links], now - self.topology.burst * beta)
        self.taken[links] = begins + nbytes[messages] * beta
        head[messages] = np.maximum(now, begins)
        tail[messages] = np.maximum(tail[messages], np.maximum(now, self.taken[links]))


def _expected(schedule: Schedule) -> np.ndarray:
    """(rounds, ranks): from whom the rank gets a message of that round; -1 for nobody."""
    expects = np.full(schedule.dest.shape, -1, np.int32)
    number, source = np.nonzero(schedule.dest >= 0)
    expects[number, schedule.dest[number, source]] = source
    return expects


def _bytes_beside(schedule: Schedule, expects: np.ndarray) -> np.ndarray:
    """(rounds, ranks): bytes that the rank sends to others after this message and before its next receive."""
    beside, after = np.zeros(schedule.dest.shape), np.zeros(schedule.dest.shape[1])
    if schedule.lag:  # segments: all to one receiver, over one connection, in order
        return beside
    for number in reversed(range(len(beside))):
        sends = schedule.dest[number] >= 0
        after[expects[number] >= 0] = 0.0
        beside[number, sends] = after[sends]
        after[sends] += schedule.nbytes[number, sends]
    return beside


def _next_steps(schedule: Schedule, expects: np.ndarray) -> np.ndarray:
    """For each step and rank, the first step from there on in which the rank has something to do.

    Step k is the send of round k and the receive of round k - lag. The two rows after the last mean: nothing more.
    """
    rounds, world_size = expects.shape
    last = rounds + schedule.lag
    busy = np.zeros((last + 1, world_size), bool)
    busy[:rounds] = schedule.dest >= 0
    busy[schedule.lag : last] |= expects >= 0
    steps = np.where(busy, np.arange(last + 1)[:, None], last)
    return np.minimum.accumulate(steps[::-1], axis=0)[::-1]


def _sends(source, dest, nbytes, start, end) -> list[Event]:
    return [
        Event(int(s), "Send", "send", int(d), 0, round(n), float(a), float(b))
        for s, d, n, a, b in zip(source, dest, nbytes, start, end, strict=True)
    ]


def _receives(dest, source, nbytes, start, end) -> list[Event]:
    return [
        Event(int(d), "Recv", "recv", int(s), 0, round(n), float(a), float(max(a, b)))
        for d, s, n, a, b in zip(dest, source, nbytes, start, end, strict=True)
    ]
