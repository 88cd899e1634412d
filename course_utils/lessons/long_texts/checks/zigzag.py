"""The check of `zigzag`: every token once, and on each rank a piece from the front and its counterpart."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor


def dealt(length: int, size: int) -> list["Tensor"]:
    """The shares, piece by piece, as NumPy cuts them."""
    import torch

    pieces = np.array_split(np.arange(length), 2 * size)
    return [torch.tensor([*pieces[rank], *pieces[2 * size - 1 - rank]], dtype=torch.int64) for rank in range(size)]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(length: int, size: int) -> Case:
        label = f"{count(length, 'token')} on {ranks(size)}"
        key = "few-tokens" if length < 2 * size else ""
        return Case(label, [(length, size)], [dealt(length, size)], with_comm=False, key=key)

    yield case(16, 4)
    yield case(8, 2)
    yield case(10 * int(rng.integers(5, 20)), 5)
    yield case(6, 1)
    yield case(19, 4)
    yield case(8 * int(rng.integers(4, 30)) + int(rng.integers(1, 8)), 4)
    yield case(9, 7)
    yield case(4, 4)
    yield case(1, 1)
    yield in_a_row(case(14, 3), case(14, 4))
    yield in_a_row(case(16, 2), case(9, 2))
    yield from rejections("zigzag", [(3, 4), (0, 1), (5, 0), (5, -1)])


EXERCISE = Exercise(
    library="zigzag",
    number=4,
    minutes=10,
    difficulty=1,
    turn="a piece from the front, and which one from the back?",
    title="the same work for every rank",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Cut the text into 2 P pieces. A query in piece 0 sees hardly any keys, and one in the last piece sees nearly "
        "all of them. How can you pair up the pieces so that all pairs see equally many?",
        "With `bounds = block_bounds(length, 2 * world_size)`, piece b is `torch.arange(bounds[b], bounds[b + 1])`. "
        "Rank r has the pieces r and 2 P - 1 - r, joined by `torch.cat`. `check_length` rejects what is too short.",
    ),
    praise=lambda outcome: "every token is there once, and the ranks see equally many pairs, if the length allows it",
)
