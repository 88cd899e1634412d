"""The check of `dispatch`: row by row in one process, forward and backward; every row may go to one rank only."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row, rejected
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.torch_cases import drawn, gradient_for, not_contiguous
from course_utils.lessons.experts.checks.common import (
    ALL_TO_ONE,
    DROPPED,
    IDLE,
    SCATTERED,
    back,
    bytes_of_rows,
    case_maker,
    chosen,
    gradient_of,
    group_of,
    ways,
)
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

FIELDS = tuple(f"Dispatched.{name}" for name in ("rows", "expert", "order", "sent", "received"))
GRADIENT = "the gradient of tokens"


def dispatched(
    function: Callable, tokens: "Tensor", experts: "Tensor", here: int, upstream: "Tensor", group_size: int
) -> object:
    """Call the learner's function, then go backward from the rows that have arrived."""
    group, given, tokens = group_of(group_size), tokens, tokens.clone().requires_grad_()
    result = function(tokens, experts, here) if group is None else function(tokens, experts, here, group)
    given.copy_(tokens.detach())  # whoever changed them changed the caller's
    if not isinstance(result, (tuple, list)) or len(result) != len(FIELDS):
        return {FIELDS[0]: result}
    found = dict(zip(FIELDS, result, strict=True))
    rows = found[FIELDS[0]]
    if getattr(rows, "requires_grad", False):
        (rows * gradient_for(rows, upstream)).sum().backward()
        found[FIELDS[0]] = rows.detach()
    return found | {GRADIENT: gradient_of(tokens)}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def of_group(lengths: Sequence[int], k: int, here: int, how: str, dtype: str, width: int) -> tuple:
        tokens = [drawn(rng, n, width).to(getattr(torch, dtype)) for n in lengths]
        experts = [chosen(rng, n, k, here * len(lengths), how) for n in lengths]
        if how == SCATTERED:
            experts = [not_contiguous(choices) for choices in experts]
        every = ways(tokens, experts, here)
        ups = [drawn(rng, len(dispatched.rows), width).to(tokens[0].dtype) for dispatched in every]
        given, expected, enough = [], [], []
        for rank, (dispatched, up) in enumerate(zip(every, back(ups, every), strict=True)):
            gradient = torch.zeros_like(tokens[rank]).index_add(0, dispatched.order // k, up)
            expected.append(dict(zip(FIELDS, dispatched, strict=True)) | {GRADIENT: gradient})
            enough.append(bytes_of_rows(dispatched, width * up.element_size()))
            given.append((tokens[rank], experts[rank], here, ups[rank]))
        return given, expected, enough

    case = case_maker(dispatched, of_group, all_to_alls=3)
    two, most = min(2, world_size), world_size
    yield case([4] * two, 1, 1)
    yield case([6] * most, 2, 2)
    yield case([5] * two, 2, 3)
    yield case([int(n) for n in rng.permutation([3, 0, 5, 7])[:most]], 2, 1 if most > 1 else 2)
    yield case([6] * most, 2, 2, DROPPED)
    yield case([6], 2, 3, DROPPED)
    yield case([5] * two, 2, 2, SCATTERED)
    yield case([4] * most, 1, 2, ALL_TO_ONE)
    yield case([4] * most, 1, 2, IDLE)
    yield case([5], 2, 3)
    yield case([4] * two, 2, 2, dtype="float16")
    yield case([4] * two, 2, 2, dtype="bfloat16")
    yield case([4, 4], 2, 2, groups=2)
    for strange in (4, -2):
        given = (torch.zeros(2, 3), torch.tensor([[strange], [0]]), 4)
        yield rejected(f"no expert of number {strange}", given, backend="gloo", key="no-such-expert")
    given = (torch.zeros(3, 3), torch.tensor([[1], [0]]), 4)
    yield rejected("3 tokens, choices for 2", given, backend="gloo", key="choices-missing")
    yield case([16] * most, 2, 2, width=32)
    yield in_a_row(case([6] * two, 2, 2), case([6] * two, 2, 2))
    yield in_a_row(case([4] * two, 2, 2 // two), case([5] * two, 3, 4 // two))


EXERCISE = Exercise(
    library="expert_layer",
    number=2,
    minutes=25,
    difficulty=3,
    turn="sort by expert, exchange the counts, send the rows",
    title="tokens to their experts",
    cases=_cases,
    needs_torch=True,
    hints=(
        "The rows for rank 0 have to come first, then those for rank 1. How do you sort the choices, and how does a "
        "rank find out how many rows the others will send it?",
        "`order = flat.argsort(stable=True)`, without the choices that are −1. Choice i belongs to token `i // k`. "
        "`torch.bincount` counts the rows for each expert, and an all-to-all of these counts tells each rank how many "
        "will arrive. Sum the counts over each rank's experts to get `sent` and `received` for `exchanged`.",
    ),
    praise=lambda outcome: (
        f"every row reaches its expert on {ranks(outcome.world_size)}, travels only once, and its gradient comes back"
    ),
)
