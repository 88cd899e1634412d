"""The check of `column_parallel_linear`: against the whole layer, and one all-reduce, in the backward pass."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, says
from course_utils.lessons.model_parallel.checks import LESSON
from course_utils.lessons.model_parallel.checks.passes import (
    AFTER,
    CuttableLayer,
    becomes,
    calls,
    case_of,
    gradient,
    in_groups,
    is_missing,
    is_wrong,
    times,
    whole_shape,
    without_bias,
)
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
    yield case_of(rng, layer, [2] * min(2, world_size))
    yield case_of(rng, layer, [3] * world_size, rows=(2, 3), other=int(rng.integers(4, 9)))
    yield case_of(rng, layer, [2] * world_size, bias=False)
    yield case_of(rng, layer, [int(n) for n in rng.permutation(np.arange(1, world_size + 1))])
    yield case_of(rng, layer, [4] * min(2, world_size), rows=(3, 4), turned=True, again=True)
    yield case_of(rng, layer, [1] * min(2, world_size), rows=(0,), other=1)
    yield case_of(rng, layer, [2, 3], groups=2)
    yield case_of(rng, layer, [int(rng.integers(1, 9))])
    yield case_of(rng, layer, [4] * world_size, rows=(8,), other=16, dtype="float32")


def _own_part(case: Case, rank: int):
    """The gradient of x that this rank's part alone asks for."""
    given, upstream, elsewhere, _ = case.arguments[rank]
    own = upstream @ given["weight"]
    return own if elsewhere is None else own + elsewhere


def _everything_that_comes_back(case: Case, rank: int):
    """The sum over ranks of what comes back to x, other uses included."""
    elsewhere = case.arguments[rank][2]
    return case.expected[rank][gradient("x")] + (len(case.arguments) - 1) * elsewhere


def _summed(case: Case, rank: int):
    """The sum of all ranks' outputs."""
    return sum(wanted["y"] for wanted in case.expected)


def _sums_of_weights(case: Case, rank: int):
    return sum(wanted[gradient("weight")] for wanted in case.expected)


def _forward(case: Case, outcome: Outcome) -> bool:
    return any(calls(outcome, rank, "forward") for rank in range(outcome.world_size))


COLUMN_PARALLEL_LINEAR = Exercise(
    name="column_parallel_linear",
    library="course_utils.lessons.model_parallel.parallel_linear:column_parallel_linear",
    lesson=LESSON,
    place=2,
    minutes=15,
    difficulty=2,
    turn="this rank's outputs; and what of x's gradient?",
    title="some outputs, from the whole input",
    cases=lambda rng, world_size: cases(COLUMNS, rng, world_size),
    needs_torch=True,
    picture=False,
    hints=(
        "Forward, every rank has all of x already. Backward, each rank knows only how its own outputs want x to "
        "change. What has the layer before to hear?",
        "Give the linear layer not x but `moved(x, unmoved, …)`: the same numbers forward; backward "
        "`all_reduced(gradient, group)`. The gradients of weight and bias belong to this rank alone.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", is_missing("y")),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("What if there is no bias?", without_bias),
        Mistake("Whose tensor is x: may this function change it?", is_wrong(AFTER)),
        Mistake("Does each rank hold all outputs, or those of its own rows of weight?", whole_shape),
        Mistake("Are the ranks' outputs terms of one sum, or different outputs?", becomes("y", _summed)),
        Mistake("Where does bias belong?", is_wrong("y")),
        Mistake("Can the gradient find its way back to x?", is_missing(gradient("x"))),
        Mistake("Which ranks share this layer: all of them, or those of `group`?", in_groups),
        Mistake(
            "Every rank's outputs ask for a change of x. Who adds up what they ask for?",
            becomes(gradient("x"), _own_part),
        ),
        Mistake(
            "Whose gradient is summed: that of this layer, or all that comes back to x from anywhere?",
            becomes(gradient("x"), _everything_that_comes_back),
        ),
        Mistake("The sum of what all ranks ask for, or the mean?", times(gradient("x"), lambda size: 1 / size)),
        Mistake(
            "Have the other ranks the same rows of weight, that their gradients belong together?",
            is_wrong(gradient("weight")),
        ),
        Mistake("Does every rank have all of x already?", _forward),
        Mistake("How often must the gradient of x travel?", says("all-reduces backward")),
        Mistake("Must every rank see each other rank's part of the gradient, or only the sum?", says("called")),
    ),
    praise=lambda outcome: (
        "the numbers of the whole layer, gradients too; nothing moved forward, one all-reduce backward "
        f"({calls(outcome, 0, 'backward')[0].bytes:,} bytes on each of {ranks(outcome.world_size)})"
    ),
)
