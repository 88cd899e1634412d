"""What more ranks gain: scaling efficiency, and how much communication is exposed."""

from collections.abc import Callable, Sequence

from course_utils.lessons.overlap.buckets import make_buckets


def scaling_efficiency(
    seconds_alone: float,
    seconds_together: float,
    world_size: int,
    kind: str = "strong",
) -> float:
    """Return the useful share of the time that P ranks take; 1 is perfect. Nothing is sent.

    Args:
        seconds_alone: the time of one rank.
        seconds_together: the time of `world_size` ranks.
        kind: "strong" if together they do the work of the one rank, at best in 1/P of its time;
            "weak" if each of them does as much work as the one rank, at best in the same time.

    Raises:
        ValueError: `kind` is neither of these, or a number is zero or negative.

    Source: Amdahl 1967 (strong) and Gustafson 1988, "Reevaluating Amdahl's law" (weak).
    """
    if min(seconds_alone, seconds_together, world_size) <= 0:
        raise ValueError("seconds and ranks are above zero")
    if kind == "strong":
        return seconds_alone / (world_size * seconds_together)
    if kind == "weak":
        return seconds_alone / seconds_together
    raise ValueError(f'kind is "strong" or "weak", not {kind!r}')


def exposed_seconds(
    ready: Sequence[float],
    sizes: Sequence[int],
    backward_seconds: float,
    bucket_bytes: int,
    all_reduce_seconds: Callable[[int], float],
) -> float:
    """Calculate how long a step waits for messages after its backward pass, with buckets of a given size.

    A bucket starts when its last gradient is ready and the bucket before it has been sent, because the link carries one
    after the other. What is sent after the end of the backward pass is exposed.

    Args:
        ready: seconds after the beginning of the backward pass at which each gradient is ready, in the order of
            `model.parameters()`.
        sizes: bytes of each gradient, in the same order.
        backward_seconds: how long the backward pass takes by itself.
        bucket_bytes: see `make_buckets`.
        all_reduce_seconds: bytes → seconds of one all-reduce, such as alpha + beta · bytes.
    """
    free = 0.0
    for places in make_buckets(sizes, bucket_bytes):
        start = max(free, *(ready[index] for index in places))
        free = start + all_reduce_seconds(sum(sizes[index] for index in places))
    return max(0.0, free - backward_seconds)
