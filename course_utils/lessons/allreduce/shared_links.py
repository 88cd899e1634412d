"""How long an all-reduce takes where links are shared: nodes behind links, with sockets that send in the background.

Four things differ from one message at a time. What a rank sends at the same time shares its link, and so does what it
receives: a root that has sent three vectors off delivers all three late. Their latencies overlap. A link that has
rested lets some bytes through at once, which a link that is busy does not: it pays back. And one computer emulates all
nodes: it works for every message of every rank.
"""

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import (
    NAMES,
    Network,
    allreduce_time,
    children,
    combined_bytes,
    messages,
)

Chain = list[tuple[float, float]]
"""What follows each other on a link: (messages at the same time, bytes of each)."""


def predicted_seconds(algorithm: str, world_size: int, nbytes: float, network: Network) -> float:
    """Seconds of an all-reduce on any network: `allreduce_time`, and where links are shared `shared_links_time`.

    Raises:
        CourseError: there is no such algorithm.
    """
    predict = shared_links_time if network.shared else allreduce_time
    return predict(algorithm, world_size, nbytes, network)


def shared_links_time(algorithm: str, world_size: int, nbytes: float, network: Network) -> float:
    """Seconds of an all-reduce where links are shared; `allreduce_time` is for one message at a time.

    Each chain lists what one rank's link carries along the longest path: pairs (messages at the same time, bytes of
    each), one after the other. Fast ranks run ahead: where a rank is folded in, its partner's first message comes at
    the same time, and the result goes out together with the last one.

    Raises:
        CourseError: there is no such algorithm.
    """
    if algorithm not in NAMES:
        raise CourseError(f"There is no algorithm {algorithm!r}. Take one of {', '.join(NAMES)}.")
    if world_size == 1:
        return 0.0
    doublings = world_size.bit_length() - 1
    surplus = world_size - (1 << doublings)
    around, block = 2 * (world_size - 1), nbytes / world_size
    halves = [(1, nbytes / 2**k) for k in range(1, doublings + 1)]
    segments = segments_per_block(int(nbytes), 1, world_size)
    seconds = network.combine_seconds(combined_bytes(algorithm, world_size, nbytes))
    seconds += network.work * messages(algorithm, world_size, segments)
    chains: list[Chain]
    if algorithm == "gather-broadcast":  # rank 0's link into it, then the one out of it
        chains = [[(world_size - 1, nbytes)]] * 2
    elif algorithm == "tree":
        chains = [[(count, nbytes) for count in counts(world_size)] for counts in (gathering, handing_out)]
    elif algorithm == "recursive doubling" and surplus:
        chains = [[(2, nbytes), *[(1, nbytes)] * (doublings - 1), (2, nbytes)]]
    elif algorithm == "recursive doubling":
        chains = [[(1, nbytes)] * doublings]
    elif algorithm == "halving-doubling":
        whole = [*halves, *reversed(halves)]
        chains = [[(2, 0.75 * nbytes), *whole, (1, nbytes)] if surplus else whole]
    elif algorithm == "ring":
        chains = [[(1, block)] * around]
    else:
        return seconds + _pipelined(around, block, segments, network)
    return seconds + sum(chain_seconds(chain, network) for chain in chains)


def chain_seconds(chain: Chain, network: Network) -> float:
    """Seconds of messages over one link, each sent when those before have come.

    `owed` is what the link has let through beyond its rate: it delays the next message, and is paid back meanwhile.
    """
    seconds = owed = 0.0
    for at_once, size in chain:
        taken = network.message_seconds(owed + at_once * size) + (at_once - 1) * network.overhead
        seconds += taken
        owed = max(0.0, owed + at_once * size - taken / network.beta)
    return seconds


def _pipelined(around: int, block: float, segments: int, network: Network) -> float:
    """The ring in segments: a step takes as long as its bytes, or as a segment on its way where that is longer."""
    if segments == 1:
        return chain_seconds([(1, block)] * around, network)
    first = network.message_seconds(block)
    step = max(block * network.beta, network.message_seconds(block / segments))
    return first + (around - 1) * step


def gathering(world_size: int) -> list[int]:
    """How many vectors come over rank 0's link at a time in a binomial reduce, along the longest path.

    As many in all as rank 0 has children; one after the other only as far as the tree is deep.
    """
    depth = max(rank.bit_count() for rank in range(world_size))
    return [(world_size - 1).bit_length() - depth + 1, *[1] * (depth - 1)]


def handing_out(world_size: int, rank: int = 0) -> list[int]:
    """How many vectors each link along the longest path of the way back carries: a rank sends to all at once."""
    below = children(rank, world_size)
    if not below:
        return []
    return [len(below), *max((handing_out(world_size, child) for child in below), key=sum)]
