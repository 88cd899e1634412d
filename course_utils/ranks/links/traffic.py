"""Traffic of the nodes while a cell runs, as the kernel counts it on each node's interface; and each rank's CPU time.

A node's counters are those of the network in which its rank's process is. They count what passed the link, with all
headers, whoever sent it: MPI, gloo, or a learner's own socket. Where ranks share a node, its first rank stands for all.
"""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from course_utils import draw
from course_utils.errors import CourseError
from course_utils.system import cpu_seconds
from course_utils.trace.events import Event
from course_utils.trace.kernel_counters import interface_bytes

_INTERVAL = 0.01  # seconds between samples, to begin with
_STEPS = 200  # between samples of a run whose messages are known
_MOST_SAMPLES = 2000  # then every second one is dropped, and the interval doubled
_CHECK_SECONDS = 0.1  # seconds between two looks at whether anything passes the links
_IDLE_RATE = 100_000  # bytes per second of all links: less is what MPI's own watchdogs send, and no slow link


@dataclass(frozen=True)
class Sample:
    """One look at all nodes: the time, and for each the bytes out and in and the CPU seconds of its rank so far."""

    time: float
    sent: tuple[int, ...]
    received: tuple[int, ...]
    cpu: tuple[float, ...]


@dataclass(frozen=True)
class Traffic:
    """What passed the links while the last cell ran. A notebook shows it as a picture.

    Attributes:
        samples: from before the cell to after it.
        rates: bits per second of each node's link.
    """

    samples: list[Sample]
    rates: list[int]

    @property
    def seconds(self) -> float:
        """From the first sample to the last."""
        return self.samples[-1].time - self.samples[0].time

    @property
    def sent(self) -> list[int]:
        """Bytes that left each node, headers included."""
        return [after - before for before, after in zip(self.samples[0].sent, self.samples[-1].sent, strict=True)]

    @property
    def received(self) -> list[int]:
        """Bytes that came to each node, headers included."""
        pairs = zip(self.samples[0].received, self.samples[-1].received, strict=True)
        return [after - before for before, after in pairs]

    def picture(self, title: str | None = None):
        """Each node's traffic over time, out and in, with the CPU use of its rank beside it."""
        begin = self.samples[0].time
        return draw.traffic(
            [sample.time - begin for sample in self.samples],
            [[sample.sent[node] for sample in self.samples] for node in range(len(self.rates))],
            [[sample.received[node] for sample in self.samples] for node in range(len(self.rates))],
            [[sample.cpu[node] for sample in self.samples] for node in range(len(self.rates))],
            self.rates,
            title=title,
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.picture()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        nodes = enumerate(zip(self.sent, self.received, strict=True))
        nodes_text = "; ".join(f"node {node}: {out:,} bytes out, {into:,} in" for node, (out, into) in nodes)
        return f"<traffic of {self.seconds:.2f} s. {nodes_text}>"


def traffic_of(events: Iterable[Event], ranks: int, rate: int) -> Traffic:
    """What messages moved, by their events: a message leaves when its send begins, and has come when its receive ends.

    Args:
        events: with sends and receives, in seconds since the run began.
        ranks: each a node of its own.
        rate: of each link, in bits per second.
    """
    messages = [e for e in events if e.kind in ("send", "recv")]
    moves = sorted((e.start if e.kind == "send" else e.end, e.rank, e.bytes, e.kind) for e in messages)
    end = moves[-1][0] if moves else 0.0
    counted = {"send": [0] * ranks, "recv": [0] * ranks}
    samples, at = [], 0
    for step in range(_STEPS + 1):
        while at < len(moves) and moves[at][0] <= end * step / _STEPS:
            _, rank, nbytes, kind = moves[at]
            counted[kind][rank] += nbytes
            at += 1
        idle = (0.0,) * ranks
        samples.append(Sample(end * step / _STEPS, tuple(counted["send"]), tuple(counted["recv"]), idle))
    return Traffic(samples, [rate] * ranks)


class LinksAtRest:
    """For how long nothing has passed the links. Where there are none, nothing passes them."""

    def __init__(self, pids: list[int], network: dict | None) -> None:
        self._pids = _first_pid_of_each_node(pids, network)
        self._checked_at = self._moved_at = time.monotonic()
        self._sent = self._read()

    def _read(self) -> int:
        """Bytes that have left all nodes so far."""
        with contextlib.suppress(OSError, KeyError):  # a rank has ended
            return sum(interface_bytes(pid)[0] for pid in self._pids)
        return 0

    def seconds(self) -> float:
        """Since something has passed the links, as far as looks at them can tell."""
        now = time.monotonic()
        if self._pids and now - self._checked_at > _CHECK_SECONDS:
            sent = self._read()
            if sent - self._sent > _IDLE_RATE * (now - self._checked_at):
                self._moved_at = now
            self._checked_at, self._sent = now, sent
        return now - self._moved_at


def _first_pid_of_each_node(pids: list[int], network: dict | None) -> list[int]:
    """The processes that stand for the nodes; none where there are no nodes."""
    return pids[:: network.get("ranks_per_node", 1)] if network else []


class Meter:
    """Takes samples of the nodes while somebody calls `sample`. Where there are no nodes it does nothing."""

    def __init__(self, pids: list[int], network: dict | None) -> None:
        self._pids = _first_pid_of_each_node(pids, network)
        self._rates = network["rates"] if network else []
        self._interval = _INTERVAL
        self._samples: list[Sample] = []
        self.sample()

    def sample(self, at_once: bool = False) -> None:
        """Take a sample, if it is time for one."""
        now = time.perf_counter()
        if not self._pids or (self._samples and not at_once and now - self._samples[-1].time < self._interval):
            return
        with contextlib.suppress(OSError, KeyError):  # a rank has ended
            sent, received = zip(*map(interface_bytes, self._pids), strict=True)
            self._samples.append(Sample(now, sent, received, tuple(map(cpu_seconds, self._pids))))
        if len(self._samples) > _MOST_SAMPLES:
            del self._samples[1::2]
            self._interval *= 2

    def traffic(self, network: dict | None) -> Traffic:
        """What was seen.

        Raises:
            CourseError: there are no nodes, or nothing has run on them.
        """
        if not network:
            raise CourseError(
                'These ranks have no links, so no traffic. `course.start(4, link="200 Mbit/s")` has both.'
            )
        if not self._samples:
            raise CourseError("Nothing has run on these nodes yet, so there is no traffic to show.")
        return Traffic(list(self._samples), self._rates)
