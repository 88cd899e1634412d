"""On how many GPUs a step begins to wait for messages, as a formula: parallel over data, FSDP, and tensors."""

from course_utils.errors import CourseError


def break_even(
    parallelism: str,
    tokens: float,
    width: float,
    flops: float,
    bandwidth: float,
    number_bytes: float = 2,
) -> float:
    """The number N of GPUs on which messages take as long as the arithmetic that they belong to.

    On fewer GPUs the arithmetic takes longer, and can hide them; on more the step waits for
    messages. A transformer's parameters each take 2 operations a token forward and 4 backward.
    Messages go round rings: an all-gather or a reduce-scatter of n bytes takes (N - 1)/N n /
    bandwidth, an all-reduce twice that. Latency and attention are left out.

    - "data": an all-reduce of all gradients, against the backward pass.
    - "fsdp": two all-gathers of all parameters and a reduce-scatter of all gradients, against both
      passes.
    - "tensor": in each block of 12 width² parameters four all-reduces of a number for each token
      and place of the width, against both passes.

    Args:
        parallelism: "data", "fsdp" or "tensor".
        tokens: of one micro-batch, on all GPUs together.
        width: of the model, h.
        flops: that one GPU computes in a second.
        bandwidth: bytes that one GPU sends in a second.
        number_bytes: of a number on its way.

    Returns:
        N, not rounded.

    Raises:
        CourseError: no such way, or a number is not above 0.

    Source: Austin et al. 2025, "How to Scale Your Model", chapter 5; Korthikanti et al. 2022, §4.2
    (four all-reduces).
    """
    if min(tokens, width, flops, bandwidth, number_bytes) <= 0:
        raise CourseError("Tokens, width, flops, bandwidth and bytes must be above 0.")
    # On both sides of the equation what stands for one parameter, or for one block, times N; the model's size cancels.
    sides = {
        "data": (4 * tokens, 2 * number_bytes),
        "fsdp": (6 * tokens, 3 * number_bytes),
        "tensor": (6 * 12 * width**2 * tokens, 4 * 2 * number_bytes * tokens * width),
    }
    if parallelism not in sides:
        raise CourseError(f"There is no way {parallelism!r}. Take one of {', '.join(sides)}.")
    operations, sent = sides[parallelism]
    # operations / N / flops = sent (N - 1)/N / bandwidth
    return 1 + operations * bandwidth / (sent * flops)
