"""The check of `kv_cache_bytes`: what the caches of several texts take, whole and divided among ranks."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.words import bytes_text, count, ranks


def held(texts: list[int], layers: int, heads: int, size: int, itemsize: int, world_size: int) -> int:
    """Head by head, as the busiest rank holds them."""
    own = [head for head in range(heads) if head * world_size // heads == 0] if world_size < heads else [0]
    return sum(tokens * itemsize * size for tokens in texts for _ in own for _ in range(layers) for _ in "kv")


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(
        texts: list[int], layers: int, heads: int, size: int, itemsize: int = 2, world_size: int = 1, key: str = ""
    ) -> Case:
        given = (texts, layers, heads, size, *((itemsize,) if itemsize != 2 or world_size > 1 else ()))
        given += (world_size,) if world_size > 1 else ()
        label = f"{count(len(texts), 'text')}, {count(layers, 'layer')}, {count(heads, 'KV head')} of {size}"
        label += f", {itemsize} bytes a number, {ranks(world_size)}"
        return Case(label, [given], [held(texts, layers, heads, size, itemsize, world_size)], with_comm=False, key=key)

    yield case([1], 32, 8, 128)
    yield case([8192], 32, 8, 128)
    yield case([1], 3, 1, 5, 4)
    yield case([100, 7, 30], 2, 4, 16)
    lengths = [int(tokens) for tokens in rng.integers(1, 5000, 6)]
    yield case(lengths, int(rng.integers(2, 90)), 8, 128, 1)
    yield case(lengths, 80, 8, 128, 2, 4)
    yield case(lengths, 4, 8, 32, 4, 8)
    yield case([50, 60], 4, 2, 32, 2, 4, "more-ranks")
    yield case([int(rng.integers(1, 99))], 80, 8, 128, 2, 64, "more-ranks")
    yield case([], 80, 8, 128, key="no-text")
    yield case([0, 3], 2, 2, 2, key="empty-text")
    yield case([10**7], 126, 8, 128)
    yield in_a_row(case([9], 3, 4, 5), case([9], 3, 4, 6))
    yield from rejections("kv_cache_bytes", [([5], 2, 8, 16, 2, 3), ([5], 2, 3, 16, 2, 2), ([5], 2, 4, 16, 2, 6)])


def _praise(outcome: Outcome) -> str:
    token = bytes_text(2 * 32 * 8 * 128 * 2)
    return (
        f"every number of the caches is counted once, on one rank and on several; a token of Llama 3 8B takes {token}"
    )


EXERCISE = Exercise(
    library="kv_cache",
    number=1,
    minutes=10,
    difficulty=1,
    turn="keys and values, of which heads, for how many tokens?",
    title="how many bytes a cache takes",
    cases=_cases,
    hints=(
        "For one token in one layer, which two vectors does a head keep, and how many numbers do they have? How many "
        "heads does a rank hold if the ranks share them, and how many if there are more ranks than heads?",
        "Multiply 2, the layers, a rank's own heads, the head size, the bytes of a number and the sum of the texts' "
        "tokens. A rank's own heads are `max(1, kv_heads // world_size)`. If neither `kv_heads % world_size` nor "
        "`world_size % kv_heads` is 0, raise a CourseError.",
    ),
    praise=_praise,
)
