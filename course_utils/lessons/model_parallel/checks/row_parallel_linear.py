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
    title="every output, from some of the inputs",
    cases=lambda rng, world_size: cases(ROWS, rng, world_size),
    needs_torch=True,
    hints=(
        "y = x₀W₀ᵀ + x₁W₁ᵀ + … + b, one term on each rank. After the sum all ranks go on with the same y. When y's "
        "gradient comes back, which part of it does a rank still lack?",
        "`moved(linear(x, weight), …, unmoved)`: forward `all_reduced(term, group)`, backward nothing. Add bias after "
        "the sum, where all ranks have the same: then each copy of it gets the whole gradient.",
    ),
    symptoms={"y has fewer axes": fewer_axes},
    praise=lambda outcome: (
        "the numbers of the whole layer, gradients too; one all-reduce forward "
        f"({calls(outcome, 0, 'forward')[0].bytes:,} bytes on each of {ranks(outcome.world_size)}), nothing backward"
    ),
)
