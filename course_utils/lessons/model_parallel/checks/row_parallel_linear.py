"""The check of `row_parallel_linear`: against the whole layer, and one all-reduce, in the forward pass."""

from course_utils.checks.exercise import Exercise
from course_utils.lessons.model_parallel.checks.column_parallel_linear import cases, whole
from course_utils.lessons.model_parallel.checks.passes import CuttableLayer, calls, fewer_axes
from course_utils.words import ranks

ROWS = CuttableLayer(
    whole,
    lambda cut, other: {"x": (cut,), "weight": (other, cut), "bias": (other,)},
    {"x": -1, "weight": 1},
    forward=1,
    backward=0,
)


EXERCISE = Exercise(
    library="parallel_linear",
    number=3,
    minutes=15,
    difficulty=2,
    turn="add the terms of all ranks, and bias once",
    title="row cut",
    cases=lambda rng, world_size: cases(ROWS, rng, world_size),
    needs_torch=True,
    hints=(
        "Each rank has one term of y = x₀W₀ + x₁W₁ + … + b. After the sum all ranks go on with the same y. When the "
        "gradient of y comes back, is there any part of it that a rank doesn't have yet?",
        "Use `moved(linear(x, weight), …, unmoved)`, with `partial(all_reduced, group=group)` for the forward pass. "
        "Add the bias after the sum, so that it is added once, and each rank's copy of it gets the whole gradient.",
    ),
    symptoms={"y has fewer axes": fewer_axes},
    praise=lambda outcome: (
        "the numbers of the whole layer, gradients too; one all-reduce forward "
        f"({calls(outcome, 0, 'forward')[0].bytes:,} bytes on each of {ranks(outcome.world_size)}), nothing backward"
    ),
)
