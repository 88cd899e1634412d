"""Who sends how much to whom in which round: the algorithms of this lesson as tables, for the simulator.

They say the same as the functions that run on ranks; a test holds each to the messages that its function really sends.
Sizes are not rounded to whole numbers of the vector.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.double_tree import segments_per_half, two_trees

Round = tuple[np.ndarray, np.ndarray, float | np.ndarray, bool]
"""(senders, receivers, bytes of each message, does the receiver add it up?)"""


@dataclass(frozen=True)
class Schedule:
    """Messages by round and rank. In a round a rank sends at most one message and receives at most one.

    Attributes:
        dest: (rounds, ranks): to whom the rank sends; -1 for nobody.
        nbytes: (rounds, ranks): bytes that it sends.
        adds: (rounds, ranks): is what the rank sends added up where it comes?
        lag: a rank waits for what is sent to it in round k after its own send of round k + lag. 0 but for segments.
    """

    dest: np.ndarray
    nbytes: np.ndarray
    adds: np.ndarray
    lag: int = 0

    @classmethod
    def of(cls, world_size: int, rounds: list[Round], lag: int = 0) -> "Schedule":
        """A table from a list of rounds."""
        dest = np.full((len(rounds), world_size), -1, np.int32)
        nbytes = np.zeros((len(rounds), world_size))
        for number, (senders, receivers, size, _) in enumerate(rounds):
            dest[number, senders] = receivers
            nbytes[number, senders] = size
        adds = np.array([adds for *_, adds in rounds], bool)
        return cls(dest, nbytes, np.broadcast_to(adds[:, None], dest.shape), lag)


def gather_broadcast(world_size: int, nbytes: float) -> Schedule:
    """All to rank 0, one after the other, and from it to all."""
    root, others = np.array([0]), [np.array([rank]) for rank in range(1, world_size)]
    there = [(rank, root, nbytes, True) for rank in others]
    return Schedule.of(world_size, there + [(root, rank, nbytes, False) for rank in others])


def tree(world_size: int, nbytes: float) -> Schedule:
    """In pairs at twice the distance each round towards rank 0, and the same way back."""
    ranks, pairs = np.arange(world_size), []
    for distance in _powers(world_size):
        upper = ranks[ranks % (2 * distance) == distance]
        pairs.append((upper, upper - distance))
    there = [(upper, lower, nbytes, True) for upper, lower in pairs]
    return Schedule.of(world_size, there + [(lower, upper, nbytes, False) for upper, lower in reversed(pairs)])


def recursive_doubling(world_size: int, nbytes: float) -> Schedule:
    """Whole vectors in pairs, at twice the distance each round; surplus ranks folded in first."""
    active = np.arange(_largest_power(world_size))
    rounds = [(active, active ^ distance, nbytes, True) for distance in _powers(len(active))]
    return _folded(world_size, nbytes, rounds)


def halving_doubling(world_size: int, nbytes: float) -> Schedule:
    """Halves of what is left in pairs, at half the distance each round, and the same way back."""
    active = np.arange(_largest_power(world_size))
    back = [(active, active ^ d, nbytes * d / len(active), False) for d in _powers(len(active))]
    there = [(*message, True) for *message, _ in reversed(back)]
    return _folded(world_size, nbytes, there + back)


def ring(world_size: int, nbytes: float, segments: int = 1) -> Schedule:
    """A block to the right in every round, in this many segments, each passed on as soon as it has come."""
    ranks, steps = np.arange(world_size), 2 * (world_size - 1) * segments
    shape = (steps, world_size)
    dest = np.broadcast_to(((ranks + 1) % world_size).astype(np.int32), shape)
    size = np.broadcast_to(nbytes / world_size / segments, shape)
    adds = np.broadcast_to((np.arange(steps) < steps // 2)[:, None], shape)
    return Schedule(dest, size, adds, segments - 1)


def asynchronous_ring(world_size: int, nbytes: float) -> Schedule:
    """The ring with the segments of `async_ring_allreduce`."""
    return ring(world_size, nbytes, segments_per_block(round(nbytes), 1, world_size))


def double_tree(world_size: int, nbytes: float, lag: int = 4) -> Schedule:
    """Half of the vector up and down each of two trees, in the segments of `double_tree_allreduce`.

    In each round every rank sends the first part that it has whole and whose receiver has no other message yet.

    Args:
        lag: this many rounds begin while a message is under way, as leaves and sockets do not wait for it.
    """
    number = segments_per_half(round(nbytes), 1)
    trees = [two_trees(rank, world_size) for rank in range(world_size)]
    rounds: list[Round] = []
    for adds in (True, False):
        # What each rank must pass on, to whom, and after how many arrivals; trees in which it is not a leaf come first.
        queues = [
            [
                (tree, index, peer, len(children) if adds else int(parent is not None))
                for index in range(number)
                for tree, (parent, children) in sorted(enumerate(nodes), key=lambda node: -len(node[1][1]))
                for peer in (children if not adds else [] if parent is None else [parent])
            ]
            for nodes in trees
        ]
        arrived, under_way = np.zeros((world_size, 2, number), int), deque([[]] * lag)
        while any(queues):
            messages = []
            for rank, queue in enumerate(queues):
                taken = {peer for _, (_, _, peer, _) in messages}
                for entry in queue:
                    tree, index, peer, needs = entry
                    if peer not in taken and arrived[rank, tree, index] >= needs:
                        messages.append((rank, entry))
                        queue.remove(entry)
                        break
            senders = [rank for rank, _ in messages]
            receivers = [peer for _, (_, _, peer, _) in messages]
            rounds.append((np.array(senders, int), np.array(receivers, int), nbytes / 2 / number, adds))
            under_way.append([(peer, tree, index) for _, (tree, index, peer, _) in messages])
            for place in under_way.popleft():
                arrived[place] += 1
    return Schedule.of(world_size, rounds, min(lag, max(0, len(rounds) - 1)))


def hierarchical(world_size: int, nbytes: float, node_size: int) -> Schedule:
    """A reduce-scatter inside each node, rings between ranks of equal place, an all-gather inside.

    Raises:
        CourseError: the ranks do not fill the nodes.
    """
    if node_size < 1 or world_size % node_size:
        raise CourseError(f"{world_size} ranks do not fill nodes of {node_size}.")
    ranks, nodes = np.arange(world_size), world_size // node_size
    neighbour = ranks // node_size * node_size + (ranks + 1) % node_size
    partner = (ranks + node_size) % world_size
    inside = [(ranks, neighbour, nbytes / node_size)] * (node_size - 1)
    between = [(ranks, partner, nbytes / node_size / nodes)] * (nodes - 1)
    rounds = [(*message, True) for message in inside + between] + [(*message, False) for message in between + inside]
    return Schedule.of(world_size, rounds)


SCHEDULES: dict[str, Callable[[int, float], Schedule]] = {
    "gather-broadcast": gather_broadcast,
    "tree": tree,
    "recursive doubling": recursive_doubling,
    "halving-doubling": halving_doubling,
    "ring": ring,
    "asynchronous ring": asynchronous_ring,
    "double tree": double_tree,
}
"""By the names that `ALGORITHMS` has for them; the double tree, which the lesson's six do not count, beside them."""


def _folded(world_size: int, nbytes: float, rounds: list[Round]) -> Schedule:
    """The rounds of a power of two, with the surplus ranks folded in before and told the result after."""
    active = _largest_power(world_size)
    surplus = np.arange(active, world_size)
    if len(surplus):
        before, after = (surplus, surplus - active, nbytes, True), (surplus - active, surplus, nbytes, False)
        rounds = [before, *rounds, after]
    return Schedule.of(world_size, rounds)


def _largest_power(world_size: int) -> int:
    return 1 << (world_size.bit_length() - 1)


def _powers(world_size: int) -> list[int]:
    """1, 2, 4, … below `world_size`."""
    return [1 << power for power in range((world_size - 1).bit_length())]
