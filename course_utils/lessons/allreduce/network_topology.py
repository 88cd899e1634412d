"""Networks for virtual ranks: links with a rate each, and the way that a message takes over them.

A link carries one direction. Messages that want the same link at the same time queue for it: that is contention, and
it is what makes one topology suit an algorithm better than another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from course_utils.errors import CourseError

Alpha = float | Callable[[np.ndarray], np.ndarray]
"""Seconds that a message costs beside its bytes: one number, or a function of the message's size."""
Route = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the arrays of senders and receivers to an array (hops, messages) of link numbers; -1 where there is no hop."""


@dataclass(frozen=True)
class Topology:
    """A network that exists only in numbers. Times in seconds, sizes in bytes.

    Attributes:
        name: how results speak of it.
        world_size: how many ranks it links.
        beta: for each link, seconds per byte.
        route: which links a message takes.
        latency: seconds on the way beside what the bytes cost, for arrays of senders, receivers and bytes.
        overhead: seconds of work that every message costs its sender, and again its receiver.
        gamma: seconds per byte to add two vectors up.
        burst: bytes that a link which has rested lets through at once; what a token bucket does, and no cable.
        work: seconds by which every message under way makes every other later: what one computer with few cores that
            emulates all nodes does, and no network.
    """

    name: str
    world_size: int
    beta: np.ndarray
    route: Route = field(repr=False)
    latency: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = field(repr=False)
    overhead: float = 0.0
    gamma: float = 0.0
    burst: float = 0.0
    work: float = 0.0


def switch(
    world_size: int,
    alpha: Alpha,
    beta: float,
    *,
    overhead: float = 0.0,
    gamma: float = 0.0,
    burst: float = 0.0,
    work: float = 0.0,
) -> Topology:
    """Every rank behind a link of its own, all links at one switch: what `start(link=…)` makes on one machine.

    Args:
        alpha: seconds for an empty message; `overhead` is a part of it, twice.
        beta: seconds per byte of each link, the same in both directions.
    """
    link = (alpha, beta)
    return two_level(world_size, 1, link, link, overhead=overhead, gamma=gamma, burst=burst, work=work)


def two_level(
    world_size: int,
    node_size: int,
    between: tuple[Alpha, float],
    inside: tuple[Alpha, float],
    *,
    cards: int = 1,
    overhead: float = 0.0,
    gamma: float = 0.0,
    burst: float = 0.0,
    work: float = 0.0,
) -> Topology:
    """Nodes of `node_size` ranks: inside, every rank has a fast link; slower links lead from a node to the others.

    Rank r is on node r // node_size. The ranks of a node share its network cards evenly, neighbours the same card.

    Args:
        between, inside: (alpha, beta): seconds for an empty message, and seconds per byte of a link.
        cards: network cards of each node, each with a link of its own to the other nodes.

    Raises:
        CourseError: the ranks do not fill the nodes, or the cards cannot be shared evenly.
    """
    if node_size < 1 or world_size % node_size:
        raise CourseError(f"{world_size} ranks do not fill nodes of {node_size}.")
    if cards < 1 or node_size % cards:
        raise CourseError(f"{node_size} ranks of a node cannot share {cards} network cards evenly.")
    nodes, sharing = world_size // node_size, node_size // cards
    links = nodes * cards
    in_first, out_first = 2 * links, 2 * links + world_size  # the first links lead out of a node, the next into one

    def route(source: np.ndarray, dest: np.ndarray) -> np.ndarray:
        far = source // node_size != dest // node_size
        up = np.where(far, source // sharing, out_first + source)
        down = np.where(far, links + dest // sharing, in_first + dest)
        return np.stack([up, down])

    def latency(source: np.ndarray, dest: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
        far = source // node_size != dest // node_size
        return np.where(far, _rest(between[0], nbytes, overhead), _rest(inside[0], nbytes, overhead))

    beta = np.concatenate([np.full(2 * links, between[1]), np.full(2 * world_size, inside[1])])
    name = f"{world_size:,} ranks at one switch" if node_size == 1 else f"{nodes:,} nodes of {node_size} ranks"
    return Topology(name, world_size, beta, route, latency, overhead, gamma, burst, work)


def ring_seconds(topology: Topology, nbytes: float) -> float:
    """A ring all-reduce by formula: 2 (P − 1) hops of a block of nbytes / P.

    A rank waits for its left neighbour only, so fast and slow hops balance: a hop counts with the mean of all. Only a
    link that is busy all the time makes everybody wait.
    """
    ranks = np.arange(topology.world_size)
    block = np.full(topology.world_size, nbytes / topology.world_size)
    right = (ranks + 1) % topology.world_size
    busy = topology.beta[topology.route(ranks, right)].max(axis=0) * block
    hops = 2 * topology.overhead + topology.latency(ranks, right, block) + busy
    return float(2 * (topology.world_size - 1) * max(hops.mean(), busy.max()))


def alpha_of(sizes: Sequence[float], seconds: Sequence[float], beta: float) -> Callable[[np.ndarray], np.ndarray]:
    """What measured messages cost beside their bytes, as a function of the size: seconds − β · size, interpolated.

    A real library treats short messages in another way than long ones, so that α is not a single number.

    Args:
        sizes, seconds: of a ping-pong, sizes rising.
    """
    rest = np.asarray(seconds, float) - beta * np.asarray(sizes, float)
    return lambda nbytes: np.interp(nbytes, sizes, rest)


def _rest(alpha: Alpha, nbytes: np.ndarray, overhead: float) -> np.ndarray:
    """The part of alpha that a message is under way: without the work at both ends."""
    cost = alpha(nbytes) if callable(alpha) else np.full(len(nbytes), alpha)
    return np.maximum(0.0, cost - 2 * overhead)
