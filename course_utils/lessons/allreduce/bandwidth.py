"""How fast a collective operation was: by what was asked for, and by what the links had to carry for it."""

from course_utils.errors import CourseError


def algorithm_bandwidth(nbytes: float, seconds: float) -> float:
    """Bytes of the whole vector per second: from it follows how long the operation takes, not how full a link was.

    Raises:
        CourseError: the time is not above zero, or the bytes are below it.

    Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md, "Algorithm bandwidth".
    """
    if seconds <= 0 or nbytes < 0:
        raise CourseError(f"{nbytes} bytes in {seconds} s: a time is above zero, and bytes are at least 0.")
    return nbytes / seconds


def bus_bandwidth(operation: str, world_size: int, nbytes: float, seconds: float) -> float:
    """Bytes per second that would have to pass each rank's link if the operation were done the best
    way.

    The algorithm bandwidth of an all-reduce gets worse with more ranks even where every link is
    busy all the time. Times the bytes that each link must carry at least, as a share of the vector,
    it can be compared with the link's own rate, whatever the number of ranks P: 2(P − 1)/P for an
    all-reduce, (P − 1)/P where every rank keeps one block of P to itself, 1 where one rank's link
    carries all. Where switches add (NVLink SHARP), a link carries less, and the bus bandwidth of an
    all-reduce may exceed its rate.

    Args:
        operation: "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"
            or "send".
        world_size: P, the number of ranks.
        nbytes: bytes of the whole vector: for an all-gather what each rank has in the end, for a
            reduce-scatter what each rank has at the beginning.
        seconds: that the operation took, on the slowest rank.

    Returns:
        Bytes per second; 0 for an all-reduce of a single rank, whose link carries nothing.

    Raises:
        CourseError: there is no such operation, there are no ranks, the time is not above zero, or
            the bytes are below it.

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
