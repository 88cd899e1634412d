"""The check of `row_parallel_linear`: against the whole layer, and one all-reduce, in the forward pass."""

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, same, says
from course_utils.lessons.model_parallel.checks import LESSON
from course_utils.lessons.model_parallel.checks.column_parallel_linear import cases, whole
from course_utils.lessons.model_parallel.checks.passes import (
    AFTER,
    CuttableLayer,
    becomes,
    calls,
    gradient,
    in_groups,
    is_missing,
    is_wrong,
    numbers,
    times,
    whole_shape,
    without_bias,
    wrong,
)
from course_utils.words import ranks

ROWS = CuttableLayer(
    whole,
    lambda cut, other: {"x": (cut,), "weight": (other, cut), "bias": (other,)},
    {"x": -1, "weight": 1},
    forward=1,
    backward=0,
)


def _bias(case: Case, rank: int):
    bias = case.arguments[rank][0]["bias"]
    return 0.0 if bias is None else bias


def _term(case: Case, rank: int):
    """What this rank alone makes of its inputs, without bias."""
    given = case.arguments[rank][0]
    return given["x"] @ given["weight"].T


def _bias_on_every_rank(case: Case, rank: int):
    return case.expected[rank]["y"] + (len(case.arguments) - 1) * _bias(case, rank)


def _mean(case: Case, rank: int):
    return (case.expected[rank]["y"] - _bias(case, rank)) / len(case.arguments) + _bias(case, rank)


def _one_term(case: Case, outcome: Outcome) -> bool:
    """Whether some rank has only its own term of the sum, with bias or without."""
    return outcome.world_size > 1 and any(
        same(y, _term(case, rank) + bias, 10 * case.tolerance)
        for rank, y in enumerate(numbers(outcome, "y"))
        for bias in (0.0, _bias(case, rank))
    )


def _of_bias(case: Case, outcome: Outcome) -> bool:
    """Whether some rank's gradient of bias is wrong, and y is right."""
    return wrong(outcome, gradient("bias")) and not wrong(outcome, "y")


def _backward(case: Case, outcome: Outcome) -> bool:
    return any(calls(outcome, rank, "backward") for rank in range(outcome.world_size))


ROW_PARALLEL_LINEAR = Exercise(
    name="row_parallel_linear",
    library="course_utils.lessons.model_parallel.parallel_linear:row_parallel_linear",
    lesson=LESSON,
    place=3,
    minutes=15,
    difficulty=2,
    turn="add the terms of all ranks, and bias once",
    title="every output, from some of the inputs",
    cases=lambda rng, world_size: cases(ROWS, rng, world_size),
    needs_torch=True,
    picture=False,
    hints=(
        "y = x₀W₀ᵀ + x₁W₁ᵀ + … + b, one term on each rank. After the sum all ranks go on with the same y. When y's "
        "gradient comes back, what of it does a rank not have yet?",
        "`moved(linear(x, weight), …, unmoved)`: forward `all_reduced(term, group)`, backward nothing. Add bias after "
        "the sum, where all ranks have the same: then each copy of it gets the whole gradient.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", is_missing("y")),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("What if there is no bias?", without_bias),
        Mistake("Whose tensor is x: may this function change it?", is_wrong(AFTER)),
        Mistake("Do the ranks hold different outputs, or terms of the same ones?", whole_shape),
        Mistake("Which ranks share this layer: all of them, or those of `group`?", in_groups),
        Mistake("Where are the terms of the other ranks?", _one_term),
        Mistake("How often does bias stand in the sum?", becomes("y", _bias_on_every_rank)),
        Mistake("A sum of terms, or their mean?", becomes("y", _mean)),
        Mistake(
            "Where does bias belong?", becomes("y", lambda case, rank: case.expected[rank]["y"] - _bias(case, rank))
        ),
        Mistake("Can the gradient find its way back to x?", is_missing(gradient("x"))),
        Mistake(
            "Each rank has the gradient of y whole, once. What would a sum over ranks make of it?",
            times(gradient("weight"), lambda size: size),
        ),
        Mistake("What is the slope of y in one term of the sum?", times(gradient("weight"), lambda size: 1 / size)),
        Mistake("After a step, is bias still the same on all ranks?", _of_bias),
        Mistake("What has a rank not got yet of the gradient of y?", _backward),
        Mistake("Must every rank see each term, or only the sum?", says("called")),
        Mistake("How many sums over ranks does y need?", says("all-reduces forward")),
    ),
    praise=lambda outcome: (
        "the numbers of the whole layer, gradients too; one all-reduce forward "
        f"({calls(outcome, 0, 'forward')[0].bytes:,} bytes on each of {ranks(outcome.world_size)}), nothing backward"
    ),
)
