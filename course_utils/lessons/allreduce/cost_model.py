"""What an all-reduce costs: rounds, messages and bytes, exactly as the trace counts them, and the time that they take.

`algorithm` is a name in `ALGORITHMS`. P is the number of ranks, `world_size`; `length` counts elements, `itemsize` the
bytes of one. Costs of a recursive algorithm where P is not a power of two are those with the surplus ranks folded in.
"""

from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.blocks import block_bounds

NAMES = ("gather-broadcast", "tree", "recursive doubling", "halving-doubling", "ring", "asynchronous ring")


def powers(world_size: int) -> tuple[int, int, int]:
    """The largest power of two that is at most P, its logarithm, and how many ranks are beyond it."""
    doublings = world_size.bit_length() - 1
    return 1 << doublings, doublings, world_size - (1 << doublings)


def named(algorithm: str, table: dict):
    """The algorithm's entry in a table.

    Raises:
        CourseError: there is no such algorithm.
    """
    if algorithm not in table:
        raise CourseError(f"There is no algorithm {algorithm!r}. Take one of {', '.join(table)}.")
    return table[algorithm]


def rounds(algorithm: str, world_size: int, segments: int = 1) -> int:
    """Rounds when each rank sends one message and receives one at a time: the longest chain of messages.

    Args:
        segments: per block, for the asynchronous ring (`segments_per_block`).
    """
    active, doublings, surplus = powers(world_size)
    return named(
        algorithm,
        {
            "gather-broadcast": 2 * (world_size - 1),
            "tree": 2 * (world_size - 1).bit_length(),
            "recursive doubling": doublings + 2 * (surplus > 0),
            "halving-doubling": 2 * doublings + 2 * (surplus > 0),
            "ring": 2 * (world_size - 1),
            "asynchronous ring": 2 * (world_size - 1) * segments,
        },
    )


def messages(algorithm: str, world_size: int, segments: int = 1) -> int:
    """Messages of all ranks together; `segments` as in `rounds`."""
    active, doublings, surplus = powers(world_size)
    return named(
        algorithm,
        {
            "gather-broadcast": 2 * (world_size - 1),
            "tree": 2 * (world_size - 1),
            "recursive doubling": active * doublings + 2 * surplus,
            "halving-doubling": 2 * active * doublings + 2 * surplus,
            "ring": 2 * (world_size - 1) * world_size,
            "asynchronous ring": 2 * (world_size - 1) * world_size * segments,
        },
    )


def children(rank: int, world_size: int) -> list[int]:
    """The ranks that hand their sums to this rank in a binomial tree, and get the result from it."""
    reach = rank & -rank if rank else world_size  # the lowest bit that is set
    return [rank + (1 << k) for k in range(reach.bit_length()) if 1 << k < reach and rank + (1 << k) < world_size]


def bytes_per_rank(algorithm: str, world_size: int, length: int, itemsize: int = 4) -> list[int]:
    """Bytes that each rank sends, in rank order."""
    active, doublings, surplus = powers(world_size)
    bounds, halves = block_bounds(length, world_size), block_bounds(length, active)

    def by_tree(rank: int) -> int:
        return ((rank > 0) + len(children(rank, world_size))) * length

    def folded(rank: int, within: int) -> int:
        """A rank sends so much within the power of two, and a vector more where it takes part in the folding."""
        return length if rank >= active else within + (rank < surplus) * length

    def by_halving(rank: int) -> int:
        sent = 0
        for distance in (1 << k for k in range(doublings)):
            mine, theirs = rank // distance * distance, (rank ^ distance) // distance * distance
            sent += sum(halves[first + distance] - halves[first] for first in (mine, theirs))
        return sent

    def by_ring(rank: int) -> int:
        right = (rank + 1) % world_size
        return 2 * length - sum(bounds[block + 1] - bounds[block] for block in (rank, right))

    elements = named(
        algorithm,
        {
            "gather-broadcast": lambda rank: (world_size - 1 if rank == 0 else 1) * length,
            "tree": by_tree,
            "recursive doubling": lambda rank: folded(rank, doublings * length),
            "halving-doubling": lambda rank: folded(rank, by_halving(rank) if rank < active else 0),
            "ring": by_ring,
            "asynchronous ring": by_ring,
        },
    )
    return [elements(rank) * itemsize if world_size > 1 else 0 for rank in range(world_size)]


@dataclass(frozen=True)
class Network:
    """What messages and additions cost, measured or assumed. Fitted by `fit_network`.

    Attributes:
        alpha: seconds of a message without content.
        beta: seconds per byte of a long message, the inverse of the bandwidth.
        gamma: seconds per byte to combine two vectors.
        segments: what the library does at different sizes: (from this many bytes on, alpha, beta), the first from 0 on.
            Empty where one line does for all.
        shared: messages that a rank sends or receives at the same time share its link, and a link that has rested
            lets some bytes through at once: nodes behind links, `start(4, link=…)`. Otherwise a rank has one message
            at a time under way each way, as the textbooks have it.
        overhead: where links are shared, seconds that each further message at the same time costs beside its bytes.
        work: where links are shared, seconds that the computer on which all nodes are emulated works for a message.
            Its few cores serve the messages of all nodes, so that more ranks make each message slower. Real nodes
            have no such cost.
    """

    alpha: float
    beta: float
    gamma: float = 0.0
    segments: tuple[tuple[float, float, float], ...] = ()
    shared: bool = False
    overhead: float = 0.0
    work: float = 0.0

    def message_seconds(self, nbytes: float) -> float:
        """Seconds of one message."""
        lines = self.segments or ((0, self.alpha, self.beta),)
        _, alpha, beta = [line for line in lines if line[0] <= nbytes][-1]
        return alpha + beta * nbytes

    def combine_seconds(self, nbytes: float) -> float:
        """Seconds to combine two vectors of this many bytes."""
        return self.gamma * nbytes


def allreduce_time(
    algorithm: str,
    world_size: int,
    nbytes: float,
    network: Network,
) -> float:
    """Predict the seconds of an all-reduce: a message for each round, and the additions.

    Recursive doubling takes log₂ P (α + nβ); halving-doubling
    2 log₂ P α + 2 (P − 1)/P nβ, of which the first round sends half the vector, the next
    a quarter, and so on.

    Args:
        algorithm: a name in `ALGORITHMS`.
        nbytes: bytes of the vector.
        network: what a message of each size takes, one at a time. Where links are shared,
            `shared_links` says what that changes.

    Raises:
        CourseError: there is no such algorithm.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4.
    """
    active, doublings, surplus = powers(world_size)
    around, block = 2 * (world_size - 1), nbytes / world_size
    folding = [nbytes, nbytes] if surplus else []
    halves = [nbytes / 2**k for k in range(1, doublings + 1)]
    segments = segments_per_block(int(nbytes), 1, world_size)
    sizes = {  # of the messages that follow each other
        "gather-broadcast": [nbytes] * around,
        "tree": [nbytes] * 2 * (world_size - 1).bit_length(),
        "recursive doubling": folding + [nbytes] * doublings,
        "halving-doubling": folding + halves + halves,
        "ring": [block] * around,
        "asynchronous ring": [block / segments] * segments * around,
    }
    # No message starts before the one before it has come, so their times add up.
    sent = sum(map(network.message_seconds, named(algorithm, sizes)))
    return sent + network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))


def adding_switch_time(nbytes: float, network: Network) -> float:
    """Seconds of an all-reduce in a switch that adds: each rank sends its vector once and receives the sum once.

    The vector travels in short segments. The switch adds each segment as soon as it has come from every rank, and sends
    the sum back while the next segments are under way, so both directions of a link are busy at once: α + βn, whatever
    P. The adding itself is taken to cost nothing.

    Args:
        nbytes: bytes of the vector.
        network: what a message costs from one rank to another, through the switch.

    Source: Graham and others 2016, "Scalable Hierarchical Aggregation Protocol (SHArP)", for InfiniBand's switches.
    """
    return network.message_seconds(nbytes)


def combined_bytes(algorithm: str, world_size: int, nbytes: float) -> float:
    """Bytes that are combined one after the other; in a ring of two segments and more all but one wait for nobody."""
    active, doublings, surplus = powers(world_size)
    shares = (world_size - 1) / world_size
    segments = segments_per_block(int(nbytes), 1, world_size)
    vectors = {
        "gather-broadcast": world_size - 1,
        "tree": (world_size - 1).bit_length(),
        "recursive doubling": doublings + (surplus > 0),
        "halving-doubling": (active - 1) / active + (surplus > 0),
        "ring": shares,
        "asynchronous ring": shares if segments == 1 or world_size == 1 else 1 / (world_size * segments),
    }
    return named(algorithm, vectors) * nbytes
