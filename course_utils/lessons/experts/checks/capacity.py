"""The check of `capacity`: counted choice by choice, with crowded, idle and full experts."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row, rejected
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.torch_cases import REUSED, is_new, lies_in
from course_utils.lessons.experts.checks.common import ALL_TO_ONE, IDLE, chosen
from course_utils.words import count

if TYPE_CHECKING:
    from torch import Tensor


KEPT = "the result"


def kept(function: Callable, experts: "Tensor", number: int, factor: float) -> object:
    """Call the learner's function; see whether it returns a new tensor."""
    import torch

    found = function(experts, number, factor)
    return {KEPT: found, REUSED: type(found) is torch.Tensor and lies_in([found], [experts])}


def by_hand(experts: "Tensor", number: int, factor: float) -> "Tensor":
    """Go through the choices one by one."""
    import torch

    free = [math.ceil(factor * experts.numel() / number)] * number
    kept = torch.full_like(experts, -1)
    for choice in range(experts.shape[1]):
        for token in range(len(experts)):
            wanted = int(experts[token, choice])
            if free[wanted]:
                free[wanted] -= 1
                kept[token, choice] = wanted
    return kept


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    import torch

    def case(experts: "Tensor", number: int, factor: float, about: str = "", key: str = "") -> Case:
        tokens, k = experts.shape
        label = f"{count(tokens, 'token')}, k = {k}, {count(number, 'expert')}, factor {factor:g}{about}"
        expected = {KEPT: by_hand(experts, number, factor), REUSED: ...}
        more = {"with_comm": False, "harness": kept, "judge": is_new, "key": key}
        return Case(label, [(experts, number, factor)], [expected], **more)

    yield case(torch.tensor([[0], [0], [1], [0], [0], [1]]), 2, 1.0)
    yield case(torch.tensor([[0, 1], [0, 1], [0, 2], [1, 0], [2, 1], [1, 2]]), 3, 0.5)
    yield case(chosen(rng, 7, 1, 3, ALL_TO_ONE), 3, 1.0, ", all to one expert")
    yield case(chosen(rng, 8, 2, 4, IDLE), 4, 1.0, ", an expert gets nothing")
    yield case(chosen(rng, 9, 2, 3), 4, 1.0, ", the last expert gets nothing")
    yield case(chosen(rng, 10, 2, 4), 4, 0.25)
    yield case(chosen(rng, 10, 1, 4, ALL_TO_ONE), 4, 1.5, ", all to one expert")
    yield case(chosen(rng, 9, 3, 4, ALL_TO_ONE), 4, 0.75, ", all to one expert")
    yield case(chosen(rng, int(rng.integers(30, 60)), 2, 6), 6, 1.25)
    yield case(chosen(rng, 12, 2, 5), 5, 4.0, ", room for all")
    yield case(torch.tensor([[0, 1], [0, 1], [1, 0], [1, 2]]), 4, 0.5, ", a second choice before the last first one")
    yield case(chosen(rng, 6, 2, 3), 3, 9.0, ", room for all several times", "ample-room")
    yield case(chosen(rng, 5, 1, 1), 1, 1.0)
    yield case(chosen(rng, 0, 2, 4), 4, 1.0)
    yield in_a_row(case(chosen(rng, 8, 2, 4), 4, 1.0), case(chosen(rng, 8, 2, 4), 4, 1.0))
    yield in_a_row(case(chosen(rng, 5, 2, 4), 4, 1.0), case(chosen(rng, 9, 1, 5), 5, 0.5))
    for factor in (0, -0.5):
        given = (torch.tensor([[0], [1]]), 2, factor)
        yield rejected(f"no room, factor {factor:g}", given, key="no-room")


EXERCISE = Exercise(
    library="expert_capacity",
    number=4,
    minutes=15,
    difficulty=2,
    turn="count the choices of each expert",
    title="an expert that is full",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "How many rows would each expert get if all were equally busy, and how do you round it? Which comes first, "
        "the second choice of token 0 or the first choice of token 5?",
        "`limit = math.ceil(factor * experts.numel() / number)`. Go through choice 0 of all tokens, then through "
        "choice 1, and count for each expert. To do it without a loop, take `experts.T.flatten()`, its `one_hot`, and "
        "`cumsum(dim=0)`, which numbers the choices of each expert. Keep those up to `limit`.",
    ),
    praise=lambda outcome: "first choices and earlier tokens are kept first, and what is above the limit is dropped",
)
