"""The check of `column_parallel_linear`: against the whole layer, and one all-reduce, in the backward pass."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.model_parallel.checks.passes import CuttableLayer, calls, case_of, fewer_axes
from course_utils.words import ranks


def whole(x, weight, bias=None):
    """The layer that is cut."""
    from torch.nn.functional import linear

    return linear(x, weight, bias)


COLUMNS = CuttableLayer(
    whole,
    lambda cut, other: {"x": (other,), "weight": (cut, other), "bias": (cut,)},
    {"y": -1, "weight": 0, "bias": 0},
    forward=0,
    backward=1,
)


def cases(layer: CuttableLayer, rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    """A linear layer cut in one way or the other."""
    yield case_of(rng, layer, [2] * min(2, world_size), backward=False)
    yield case_of(rng, layer, [2] * min(2, world_size))
    yield case_of(rng, layer, [3] * world_size, rows=(2, 3), other=int(rng.integers(4, 9)))
    yield case_of(rng, layer, [2] * world_size, bias=False)
    yield case_of(rng, layer, [int(n) for n in rng.permutation(np.arange(1, world_size + 1))])
    yield case_of(rng, layer, [4] * min(2, world_size), rows=(3, 4), turned=True, again=True)
    yield case_of(rng, layer, [2] * min(2, world_size), rows=(4,), x_learns=False)
    yield case_of(rng, layer, [1] * min(2, world_size), rows=(0,), other=1)
    yield case_of(rng, layer, [int(rng.integers(1, 9))])
    yield case_of(rng, layer, [3] * min(3, world_size), dtype="float16")
    yield case_of(rng, layer, [2] * min(2, world_size), rows=(2, 1, 3), dtype="float32")
    if world_size > 4:
        yield case_of(rng, layer, [2] * 5, rows=(3, 2), turned=True)
    yield case_of(rng, layer, [2, 3], groups=2)
    yield case_of(rng, layer, [3, 1], rows=(2, 1, 3), bias=False, dtype="float32", again=True, groups=2)
    yield case_of(rng, layer, [4] * world_size, rows=(8,), other=16, dtype="float32")


EXERCISE = Exercise(
    library="parallel_linear",
    number=2,
    minutes=15,
    difficulty=2,
    turn="this rank's outputs; and what of x's gradient?",
    title="column cut",
    cases=lambda rng, world_size: cases(COLUMNS, rng, world_size),
    needs_torch=True,
    hints=(
        "In the forward pass every rank has all of x already. In the backward pass, autograd finds one term of the "
        "gradient of x on each rank. What does the layer before this one need?",
        "Give the linear layer `moved(x, unmoved, …)` instead of x. Forward it is the same x, and backward it "
        "applies `partial(all_reduced, group=group)` to the gradient. The gradients of weight and bias belong to "
        "this rank alone, so leave them as they are.",
    ),
    symptoms={"y has fewer axes": fewer_axes},
    praise=lambda outcome: (
        "the numbers of the whole layer, gradients too; nothing moved forward, one all-reduce backward "
        f"({calls(outcome, 0, 'backward')[0].bytes:,} bytes on each of {ranks(outcome.world_size)})"
    ),
)
