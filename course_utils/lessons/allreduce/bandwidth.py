"""How fast a collective operation was: by the size of its vector, and by the bytes that passed each link."""

from course_utils.errors import CourseError


def algorithm_bandwidth(nbytes: float, seconds: float) -> float:
    """Return the bytes of the whole vector per second, which tell how long the operation takes.

    Raises:
        CourseError: the time is not above zero, or the bytes are below it.

    Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, "Algorithm bandwidth".
    """
    if seconds <= 0 or nbytes < 0:
        raise CourseError(f"{nbytes} bytes in {seconds} s: a time is above zero, and bytes are at least 0.")
    return nbytes / seconds


def bus_bandwidth(operation: str, world_size: int, nbytes: float, seconds: float) -> float:
    """Return the bytes per second through the busiest rank's link, if it carries only what it must.

    This is the algorithm bandwidth times the part of the vector that the link has to carry in one
    direction: 2(P − 1)/P for an all-reduce; (P − 1)/P for a reduce-scatter, an all-gather or an
    all-to-all, in which each rank keeps one of P blocks; and 1 for a broadcast, a reduce or a send,
    in which the whole vector leaves or reaches one rank. The formulas hold for P = 1, too. If
    switches add (NVLink SHARP), a link carries less, and the bus bandwidth of an all-reduce may be
    above the link's rate.

    Args:
        operation: "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"
            or "send".
        world_size: P, the number of ranks.
        nbytes: bytes of the whole vector, which each rank has after an all-gather and before a
            reduce-scatter.
        seconds: the time that the slowest rank needed.

    Returns:
        Bytes per second. For example, an all-reduce of a single rank gives 0.

    Raises:
        CourseError: the operation is unknown, there is no rank, the time is not above zero, or the
            bytes are below zero.

    Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth".
    """
    if world_size < 1:
        raise CourseError(f"{operation} on {world_size} ranks: there is one at least.")
    all_but_one = (world_size - 1) / world_size
    # How often the vector's bytes must pass the busiest link.
    shares = {
        "all_reduce": 2 * all_but_one,
        "reduce_scatter": all_but_one,
        "all_gather": all_but_one,
        "all_to_all": all_but_one,
        "broadcast": 1.0,
        "reduce": 1.0,
        "send": 1.0,
    }
    if operation not in shares:
        raise CourseError(f"There is no operation {operation!r}. Take one of {', '.join(shares)}.")
    return shares[operation] * algorithm_bandwidth(nbytes, seconds)
