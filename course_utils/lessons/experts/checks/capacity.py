"""The check of `capacity`: places counted choice by choice, with crowded, idle and full experts."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.symptoms import error_of
from course_utils.checks.torch_cases import REUSED, is_new, lies_in
from course_utils.lessons.experts.checks.common import ALL_TO_ONE, IDLE, chosen
from course_utils.words import count

if TYPE_CHECKING:
    from torch import Tensor


KEPT = "what is kept"


def kept(function: Callable, experts: "Tensor", number: int, factor: float) -> object:
    """Call the learner's function; see whether it returns a new tensor."""
    import torch

    found = function(experts, number, factor)
    return {KEPT: found, REUSED: type(found) is torch.Tensor and lies_in([found], [experts])}


def by_hand(experts: "Tensor", number: int, factor: float) -> "Tensor":
    """Seat after seat."""
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
    for factor in (0, -0.5):
        given = (torch.tensor([[0], [1]]), 2, factor)
        more = {"with_comm": False, "harness": error_of, "key": "no-room"}
        yield Case(f"no room, factor {factor:g}", [given], ["CourseError"], **more)


EXERCISE = Exercise(
    library="expert_capacity",
    number=4,
    minutes=15,
    difficulty=2,
    turn="which choices find a free place",
    title="an expert that is full",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "How many rows would each expert get if all were equally busy, and what makes a whole number of it? And who "
        "comes first: token 0's second choice, or token 5's first?",
        "`limit = math.ceil(factor * experts.numel() / number)`. Walk over choice 0 of all tokens, then choice 1; "
        "count for each expert. Without a loop: `experts.T.flatten()`, its `one_hot`, `cumsum(dim=0)`; keep where the "
        "place is at most `limit`.",
    ),
    praise=lambda outcome: "first choices first, earlier tokens first, and −1 for a choice without a place",
)
