"""The check of `tensor_parallel_mlp`: against the whole MLP, and one all-reduce in each direction."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.model_parallel.checks.passes import CuttableLayer, calls, case_of
from course_utils.words import ranks


def whole(x, up_weight, up_bias, down_weight, down_bias):
    """The MLP that is cut."""
    from torch.nn.functional import gelu, linear

    return linear(gelu(linear(x, up_weight, up_bias)), down_weight, down_bias)


PERCEPTRON = CuttableLayer(
    whole,
    lambda cut, other: {
        **{"x": (other,), "up_weight": (cut, other), "up_bias": (cut,)},
        **{"down_weight": (other, cut), "down_bias": (other,)},
    },
    {"up_weight": 0, "up_bias": 0, "down_weight": 1},
    forward=1,
    backward=1,
)


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    two = min(2, world_size)
    yield case_of(rng, PERCEPTRON, [4] * two, backward=False)
    yield case_of(rng, PERCEPTRON, [4] * two)
    yield case_of(rng, PERCEPTRON, [3] * world_size, rows=(2, 3), other=int(rng.integers(4, 9)))
    yield case_of(rng, PERCEPTRON, [int(n) for n in rng.permutation(np.arange(1, world_size + 1))])
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(3, 4), turned=True, again=True)
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(4,), x_learns=False)
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(0,))
    yield case_of(rng, PERCEPTRON, [int(rng.integers(1, 9))])
    yield case_of(rng, PERCEPTRON, [3] * min(3, world_size), dtype="float16")
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(2, 1, 3), dtype="float32")
    if world_size > 4:
        yield case_of(rng, PERCEPTRON, [2] * 5, rows=(3, 2), turned=True)
    yield case_of(rng, PERCEPTRON, [2, 3], groups=2)
    yield case_of(rng, PERCEPTRON, [3, 1], rows=(2, 1, 3), dtype="float32", again=True, groups=2)
    yield case_of(rng, PERCEPTRON, [16] * world_size, rows=(8,), other=16, dtype="float32")


EXERCISE = Exercise(
    library="parallel_block",
    number=4,
    minutes=10,
    difficulty=2,
    turn="two cut layers and gelu; which cut comes first?",
    title="two layers, one all-reduce each way",
    cases=_cases,
    needs_torch=True,
    hints=(
        "gelu needs complete numbers, not terms of a sum. Which of the two cuts leaves complete numbers on each "
        "rank? And which one can use some of the columns of its input?",
        "Call `column_parallel_linear` with `up_weight` and `up_bias`, then `gelu`, then `row_parallel_linear` with "
        "`down_weight` and `down_bias`. Pass `group` to both.",
    ),
    praise=lambda outcome: (
        f"the numbers of the whole MLP on {ranks(outcome.world_size)}, gradients too; "
        f"{len(calls(outcome, 0, 'forward'))} all-reduce forward, {len(calls(outcome, 0, 'backward'))} backward"
    ),
)
