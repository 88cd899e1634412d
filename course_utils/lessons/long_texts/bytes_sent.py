r"""What a rank sends in one layer's attention, in bytes: the formulas, to be compared with what the trace counts.

With S the bytes of a rank's own q, (batch, heads, tokens / P, size), and f the heads of k divided by the heads of q:

    ring      forward  2 f S (P - 1)                     backward  twice as much
    Ulysses   forward  2 (1 + f) S (P - 1) / P           backward  the same

In the forward pass, the all-gather sends what the ring sends. In the backward pass it does so if the keys and values
are gathered again, and half of it if they have been kept. The ring sends less than Ulysses while P < 1 + 1 / f. With as
many heads for keys as for queries it never does, and with an eighth of them it does on up to 8 ranks.

Source: Liu et al. 2023, "Ring Attention", §3; Jacobs et al. 2023, "DeepSpeed Ulysses", §3.2.
"""

from dataclasses import dataclass

from course_utils.errors import CourseError


@dataclass(frozen=True)
class Shape:
    """One layer's attention over a whole text.

    Attributes:
        tokens: of the whole text, a multiple of the ranks.
        heads: of queries.
        size: numbers of a head.
        kv_heads: of keys and of values; 0 for as many as of queries.
        batch: texts.
        number_bytes: of a number that is sent forward.
        gradient_bytes: of a gradient of keys and values on its way around the ring; 0 for as many.
    """

    tokens: int
    heads: int
    size: int
    kv_heads: int = 0
    batch: int = 1
    number_bytes: int = 4
    gradient_bytes: int = 0

    def __post_init__(self) -> None:
        if self.kv_heads and self.heads % self.kv_heads:
            raise CourseError(f"{self.heads} heads cannot share {self.kv_heads} heads of keys and values equally.")

    def own(self, world_size: int, heads: int) -> float:
        """Return how many numbers a rank's own share has, with so many heads."""
        return self.batch * heads * self.tokens * self.size / world_size


def ring_bytes(shape: Shape, world_size: int) -> dict[str, float]:
    """Return what each rank sends around the ring, "forward" and "backward"."""
    kv = 2 * shape.own(world_size, shape.kv_heads or shape.heads) * (world_size - 1)
    gradients = kv * (shape.gradient_bytes or shape.number_bytes)
    return {"forward": kv * shape.number_bytes, "backward": kv * shape.number_bytes + gradients}


def ulysses_bytes(shape: Shape, world_size: int, copies: bool = False) -> dict[str, float]:
    """Return what each rank sends to others in Ulysses' all-to-alls, "forward" and "backward".

    Args:
        copies: if there are fewer heads of keys and values than ranks, copy each of them before the all-to-all, so that
            every rank gets one. In the backward pass the gradients of the copies travel, too.

    Raises:
        CourseError: the heads cannot be divided.
    """
    kv_heads = shape.kv_heads or shape.heads
    if copies and kv_heads < world_size and world_size % kv_heads == 0:
        kv_heads = world_size
    if shape.heads % world_size or kv_heads % world_size:
        raise CourseError(f"{shape.heads} and {kv_heads} heads cannot be divided among {world_size} ranks.")
    moved = 2 * (shape.own(world_size, shape.heads) + shape.own(world_size, kv_heads))
    each_way = moved * shape.number_bytes * (world_size - 1) / world_size
    return {"forward": each_way, "backward": each_way}
