"""When a message arrives that one virtual rank sends to another: their network, one message at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Protocol

import numpy as np

from course_utils.errors import CourseError


class VirtualNetwork(Protocol):
    """A network as the scheduler uses it. It asks in the order of virtual time.

    Attributes:
        name: how results speak of it.
        overhead: seconds of work that every message costs its sender, and again its receiver.
        gamma: seconds per byte that an operation of MPI takes to combine two vectors.
    """

    name: str
    overhead: float
    gamma: float

    def arrival_time(self, source: int, dest: int, nbytes: float, begins: float) -> float:
        """The second at which the last byte arrives of a message that is handed over at the second `begins`."""

    def idle_seconds(self, source: int, dest: int, nbytes: float) -> float:
        """Seconds of a message from sender to receiver while nothing else is under way."""


@dataclass(frozen=True)
class OwnLinks:
    """Ranks at one switch, each behind a link of its own: what `start(link=…)` emulates, without what that costs.

    Attributes:
        beta: for each rank, seconds per byte of its link, the same in both directions.
        alpha: seconds that every message costs beside its bytes.
    """

    name: str
    beta: tuple[float, ...]
    alpha: float
    overhead: float = 0.0
    gamma: float = 0.0
    burst: float = 0.0
    work: float = 0.0

    def route(self, source: np.ndarray, dest: np.ndarray) -> np.ndarray:
        """The sender's link, then the receiver's."""
        return np.stack([source, dest + len(self.beta) // 2])

    def latency(self, source: np.ndarray, dest: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
        """The same for all."""
        return np.full(len(source), max(0.0, self.alpha - 2 * self.overhead))


def network_model_of(network: Any, world_size: int) -> VirtualNetwork:
    """The wires of a network that is given as numbers.

    Args:
        network: one with links (`beta`, `route`, `latency`, …), as a topology has them; or one
            with a method `message_seconds(nbytes)`.

    Raises:
        CourseError: it is neither, or is made for another number of ranks.
    """
    if getattr(network, "world_size", world_size) != world_size:
        raise CourseError(f"{world_size} ranks on a network of {network.world_size}: make it for as many.")
    if hasattr(network, "route") and hasattr(network, "latency"):
        return _Routed(network)
    if hasattr(network, "message_seconds"):
        return _Shared(network, world_size) if getattr(network, "shared", False) else _Ports(network, world_size)
    raise CourseError(
        f"network={network!r} is not a network: give a Network(alpha, beta), or a topology such as "
        "switch(P, alpha, beta)."
    )


class _Routed:
    """Links that queue: a message flows through all links of its way at once, as fast as the slowest lets it.

    It takes its turn on all of them when it is handed over. Messages of the same instant do so in the order of ranks.
    """

    def __init__(self, topology: Any) -> None:
        self._route, self._latency = topology.route, topology.latency
        self.name: str = topology.name
        self.overhead, self.gamma = topology.overhead, topology.gamma
        self._work: float = topology.work
        self._beta = [float(beta) for beta in topology.beta]
        self._ahead = [topology.burst * beta for beta in self._beta]
        self._taken = [float("-inf")] * len(self._beta)
        self._routes: dict[tuple[int, int], tuple[int, ...]] = {}
        self._known: dict[tuple[int, int, float], float] = {}
        self._under_way: list[float] = []

    def _find_route(self, source: int, dest: int) -> tuple[int, ...]:
        hops = self._route(np.array([source]), np.array([dest]))[:, 0]
        route = self._routes[source, dest] = tuple(int(link) for link in hops if link >= 0)
        return route

    def _rest(self, source: int, dest: int, nbytes: float) -> float:
        seconds = self._latency(np.array([source]), np.array([dest]), np.array([float(nbytes)]))
        rest = self._known[source, dest, nbytes] = float(seconds[0])
        return rest

    def arrival_time(self, source: int, dest: int, nbytes: float, begins: float) -> float:
        if source == dest:
            return begins
        route = self._routes.get((source, dest)) or self._find_route(source, dest)
        rest = self._known.get((source, dest, nbytes))
        if rest is None:
            rest = self._rest(source, dest, nbytes)
        head = tail = begins
        taken, betas, aheads = self._taken, self._beta, self._ahead
        for link in route:
            beta = betas[link]
            from_then = head - aheads[link]
            if taken[link] > from_then:
                from_then = taken[link]
            taken[link] = until = from_then + nbytes * beta
            if until < head:
                until = head
            if until > tail:
                tail = until
            if from_then > head:
                head = from_then
        return self._with_work(tail + rest, begins)

    def _with_work(self, arrival: float, begins: float) -> float:
        """Later by the work that one computer has with every other message under way."""
        if not self._work:
            return arrival
        under_way = self._under_way
        while under_way and under_way[0] <= begins:
            heappop(under_way)
        heappush(under_way, arrival)
        return arrival + self._work * (len(under_way) - 1)

    def idle_seconds(self, source: int, dest: int, nbytes: float) -> float:
        slowest = max((self._beta[link] for link in self._find_route(source, dest)), default=0.0)
        return 2 * self.overhead + self._rest(source, dest, nbytes) + slowest * nbytes


class _Shared(_Routed):
    """A `Network` whose links are shared: each rank has one, and the rest of a message's time is spent on the way."""

    def __init__(self, network: Any, world_size: int) -> None:
        links = OwnLinks(
            "", (network.beta,) * (2 * world_size), 0.0, network.overhead, network.gamma, 0.0, network.work
        )
        super().__init__(links)
        self.name = "each behind a link"
        seconds: Callable[[float], float] = network.message_seconds

        def latency(source: np.ndarray, dest: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
            rest = [seconds(n) - network.beta * n - 2 * network.overhead for n in nbytes]
            return np.maximum(0.0, rest)

        self._latency = latency


class _Ports:
    """A `Network` as the textbooks have it: a rank has one message at a time under way each way, for α + βn."""

    def __init__(self, network: Any, world_size: int) -> None:
        self.name = "each with one message at a time each way"
        self.overhead, self.gamma = 0.0, network.gamma
        self._seconds = network.message_seconds
        self._out, self._in = [0.0] * world_size, [0.0] * world_size
        self._known: dict[float, float] = {}

    def arrival_time(self, source: int, dest: int, nbytes: float, begins: float) -> float:
        if source == dest:
            return begins
        seconds = self._known.get(nbytes)
        if seconds is None:
            seconds = self._known[nbytes] = self._seconds(nbytes)
        begins = max(begins, self._out[source])
        self._out[source] = begins + seconds
        begins = max(begins, self._in[dest])
        self._in[dest] = begins + seconds
        return begins + seconds

    def idle_seconds(self, source: int, dest: int, nbytes: float) -> float:
        return self._seconds(nbytes)
