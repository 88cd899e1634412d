"""How long a text fits into a rank's memory: what training keeps, solved for the length."""

import math

from course_utils.errors import CourseError


def longest_text(
    memory: float,
    fixed: float,
    per_token: float,
    per_pair: float = 0.0,
    world_size: int = 1,
) -> int:
    """Return the most tokens with which training fits on each of `world_size` ranks sharing a text.

    A rank has n / P of the n tokens. It keeps `per_token` bytes for each of them and, if
    attention keeps its weights, `per_pair` bytes for each pair of one of them with a token
    anywhere in the text.

    Args:
        memory: bytes that a rank has.
        fixed: bytes for parameters, gradients and optimizer, whatever the length; each rank has
            all of them.
        per_token, per_pair: bytes, for all layers together; per_token is above 0.

    Returns:
        n, a multiple of 2 P, as a zig-zag needs; 0 if not even 2 P tokens fit. A text that needs
        all of the memory fits, and this holds for a tiny `per_pair`, too.

    Raises:
        CourseError: `fixed` alone is more than the memory, or there is no rank.

    Source: `course_utils.lessons.model_parallel.activation_memory`; Korthikanti et al. 2022, §4
    (bytes for each token and pair); Liu et al. 2023, §3, table 1 (without pairs).
    """
    if world_size < 1:
        raise CourseError(f"There is at least one rank, not {world_size!r}.")
    if fixed > memory:
        raise CourseError(f"Without any text there are {fixed:,.0f} bytes already, and a rank has {memory:,.0f}.")
    room = (memory - fixed) * world_size
    # per_pair n² + per_token n = room. In this form of the root, nothing is divided
    # by per_pair, which may be 0.
    most = 2 * room / (per_token + math.sqrt(per_token**2 + 4 * per_pair * room))
    pieces = 2 * world_size
    return int(most / pieces) * pieces
