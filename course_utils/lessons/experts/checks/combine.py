"""The check of `combine`: what comes back is weighted and added for each token, forward and backward."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.torch_cases import drawn, gradient_for, not_contiguous
from course_utils.lessons.experts.checks.common import (
    ALL_TO_ONE,
    DROPPED,
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

Y, OF_MADE, OF_WEIGHTS = "y", "the gradient of made", "the gradient of weights"


def combined(
    function: Callable, made: "Tensor", weights: "Tensor", dispatched: tuple, upstream: "Tensor", group_size: int
) -> object:
    """Call the learner's function, then go backward from y."""
    from course_utils.lessons.experts.choices import Dispatched

    group = group_of(group_size)
    given = made, weights
    made, weights = made.clone().requires_grad_(), weights.clone().requires_grad_()
    more = () if group is None else (group,)
    y = function(made, weights, Dispatched(*dispatched), *more)
    for tensor, now in zip(given, (made, weights), strict=True):
        tensor.copy_(now.detach())  # whoever changed it changed the caller's
    if getattr(y, "requires_grad", False):
        (y * gradient_for(y, upstream)).sum().backward()
    return {
        Y: y.detach() if hasattr(y, "detach") else y,
        OF_MADE: gradient_of(made),
        OF_WEIGHTS: gradient_of(weights),
    }


def in_one(
    made: Sequence["Tensor"], weights: Sequence["Tensor"], every: Sequence, ups: Sequence["Tensor"]
) -> list[dict]:
    """Do the same in one process, by autograd."""
    import torch

    made = [tensor.clone().requires_grad_() for tensor in made]
    weights = [tensor.clone().requires_grad_() for tensor in weights]
    outputs = []
    for rank, rows in enumerate(back(made, every)):
        tokens, k = weights[rank].shape
        of_choice = rows.new_zeros(tokens * k, rows.shape[1]).index_copy(0, every[rank].order, rows)
        outputs.append(
            (of_choice.view(tokens, k, -1 if tokens else rows.shape[1]) * weights[rank].unsqueeze(2)).sum(dim=1)
        )
    torch.autograd.backward([(y * up).sum() for y, up in zip(outputs, ups, strict=True)])
    return [
        {Y: y.detach(), OF_MADE: rows.grad, OF_WEIGHTS: weight.grad}
        for y, rows, weight in zip(outputs, made, weights, strict=True)
    ]


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def of_group(lengths: Sequence[int], k: int, here: int, how: str, dtype: str, width: int) -> tuple:
        kind = getattr(torch, dtype)
        tokens = [drawn(rng, n, width).to(kind) for n in lengths]
        every = ways(tokens, [chosen(rng, n, k, here * len(lengths), how) for n in lengths], here)
        made = [drawn(rng, len(dispatched.rows), width).to(kind) for dispatched in every]
        weights = [torch.tensor(rng.uniform(0.2, 1.0, (n, k))).to(kind) for n in lengths]
        if how == SCATTERED:
            weights = [not_contiguous(tensor) for tensor in weights]
        ups = [drawn(rng, n, width).to(kind) for n in lengths]
        given = list(zip(made, weights, map(tuple, every), ups, strict=True))
        return (
            given,
            in_one(made, weights, every, ups),
            [bytes_of_rows(dispatched, width * kind.itemsize) for dispatched in every],
        )

    case = case_maker(combined, of_group, all_to_alls=2)
    two, most = min(2, world_size), world_size
    yield case([4] * two, 1, 1)
    yield case([6] * most, 2, 2)
    yield case([int(n) for n in rng.permutation([3, 1, 5, 7])[:most]], 2, 1 if most > 1 else 2)
    yield case([0, 5, 3][:most] if most > 1 else [5], 2, 2)
    yield case([5] * two, 2, 2, SCATTERED)
    yield case([6] * most, 2, 2, DROPPED)
    yield case([4] * most, 1, 2, ALL_TO_ONE)
    yield case([5], 3, 3)
    yield case([4] * two, 2, 2, dtype="float16")
    yield case([4] * two, 2, 2, dtype="bfloat16")
    yield case([4, 4], 2, 2, groups=2)
    yield case([16] * most, 2, 2, width=32, dtype="float32")
    yield in_a_row(case([6] * two, 2 * two, 2), case([6] * two, 2 * two, 2))
    yield in_a_row(case([6] * two, 1, 2), case([6] * two, 1, 2))
    yield in_a_row(case([3] * two, 2, 2 // two), case([5] * two, 2, 2))


EXERCISE = Exercise(
    library="expert_layer",
    number=3,
    minutes=15,
    difficulty=2,
    turn="send the answers back, then add them up for each token",
    title="the answers, back to the tokens",
    cases=_cases,
    needs_torch=True,
    hints=(
        "A rank now sends as many rows to each rank as it received from it, and they arrive in the order in which you "
        "had sent them. Which token, and which of its choices, does row i belong to?",
        "`back = exchanged(made, dispatched.received, dispatched.sent, group)`. Row i has the weight "
        "`weights.flatten()[dispatched.order[i]]` and belongs to token `dispatched.order[i] // k`. With `index_add` "
        "you add up the answers of each token.",
    ),
    praise=lambda outcome: (
        f"every token gets the weighted sum of its answers, on {ranks(outcome.world_size)}, and so do the gradients"
    ),
)
