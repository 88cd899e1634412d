"""On how many GPUs a step begins to wait for messages, as a formula for data, FSDP and tensor parallelism."""

from course_utils.errors import CourseError


def break_even(
    parallelism: str,
    tokens: float,
    width: float,
    flops: float,
    bandwidth: float,
    number_bytes: float = 2,
) -> float:
    """Return the number N of GPUs on which sending takes as long as computation that can hide it.

    With fewer GPUs, computing takes longer and can hide the messages. With more GPUs, a step waits
    for messages. Each parameter of a transformer takes 2 operations per token forward, and 4
    backward. In a ring, an all-gather or a reduce-scatter of n bytes takes (N - 1)/N n / bandwidth,
    and an all-reduce takes twice as long. Latency and attention's products are left out.

    - "data": an all-reduce of all gradients, while the backward pass computes.
    - "fsdp": two all-gathers of all parameters and a reduce-scatter of all gradients, while both
      passes compute.
    - "tensor": in each block of 12 width² parameters four all-reduces of tokens · width numbers,
      compared with both passes.

    Args:
        parallelism: "data", "fsdp" or "tensor".
        tokens: of one batch, or of one micro-batch if a step has several, on all GPUs together.
        width: of the model.
        flops: operations that one GPU does per second.
        bandwidth: bytes that one GPU sends per second.
        number_bytes: that a number takes on its way.

    Returns:
        N, not rounded.

    Raises:
        CourseError: there is no such kind of parallelism, or one of the numbers is not above 0,
            even if this kind doesn't need it.

    Source: Austin et al. 2025, "How to Scale Your Model", chapter 5; Korthikanti et al. 2022, §4.2
    (four all-reduces).
    """
    if min(tokens, width, flops, bandwidth, number_bytes) <= 0:
        raise CourseError("Tokens, width, flops, bandwidth and bytes must be above 0.")
    # Both sides of the equation are for one parameter, or for one block, because the model's size cancels.
    sides = {
        "data": (4 * tokens, 2 * number_bytes),
        "fsdp": (6 * tokens, 3 * number_bytes),
        "tensor": (6 * 12 * width**2 * tokens, 4 * 2 * number_bytes * tokens * width),
    }
    if parallelism not in sides:
        raise CourseError(f"There is no parallelism {parallelism!r}. Take one of {', '.join(sides)}.")
    operations, sent = sides[parallelism]
    # operations / N / flops = sent (N - 1)/N / bandwidth
    return 1 + operations * bandwidth / (sent * flops)
