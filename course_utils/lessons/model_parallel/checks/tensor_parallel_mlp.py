"""The check of `tensor_parallel_mlp`: against the whole perceptron, and one all-reduce in each direction."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, says
from course_utils.lessons.model_parallel.checks import LESSON
from course_utils.lessons.model_parallel.checks.passes import (
    AFTER,
    CuttableLayer,
    becomes,
    calls,
    case_of,
    changed_in_place,
    gradient,
    in_groups,
    is_missing,
    is_wrong,
    times,
    wrong,
)
from course_utils.words import ranks


def whole(x, up_weight, up_bias, down_weight, down_bias):
    """The perceptron that is cut."""
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
    yield case_of(rng, PERCEPTRON, [4] * two)
    yield case_of(rng, PERCEPTRON, [3] * world_size, rows=(2, 3), other=int(rng.integers(4, 9)))
    yield case_of(rng, PERCEPTRON, [int(n) for n in rng.permutation(np.arange(1, world_size + 1))])
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(3, 4), turned=True, again=True)
    yield case_of(rng, PERCEPTRON, [2] * two, rows=(0,))
    yield case_of(rng, PERCEPTRON, [2, 3], groups=2)
    yield case_of(rng, PERCEPTRON, [int(rng.integers(1, 9))])
    yield case_of(rng, PERCEPTRON, [16] * world_size, rows=(8,), other=16, dtype="float32")


Parts = list[dict]


def _from(formula: Callable[[Parts, int], object]) -> Recogniser:
    """A recogniser of y as `formula(arguments of all ranks, rank)` gives it."""
    return becomes("y", lambda case, rank: formula([given for given, *_ in case.arguments], rank))


def _up(given: dict):
    """This rank's hidden numbers, before gelu."""
    return given["x"] @ given["up_weight"].T + given["up_bias"]


def _down(hidden: object, given: dict):
    """This rank's term of y."""
    return hidden @ given["down_weight"].T


def _joined(act: Callable) -> Callable[[Parts, int], object]:
    """y with another function in gelu's place."""
    return lambda parts, rank: sum(_down(act(_up(one)), one) for one in parts) + parts[0]["down_bias"]


def _gelu(values: object, approximate: str = "none"):
    from torch.nn.functional import gelu

    return gelu(values, approximate=approximate)


def _by_tanh(values: object):
    return _gelu(values, "tanh")


def _gelu_of_the_sum(parts: Parts, rank: int):
    return _gelu(sum(_down(_up(one), one) for one in parts) + parts[0]["down_bias"])


def _hidden_summed(parts: Parts, rank: int):
    """Hidden numbers of all ranks added up, before gelu: they are different ones."""
    hidden = _gelu(sum(map(_up, parts)))
    return sum(_down(hidden, one) for one in parts) + parts[0]["down_bias"]


def _gelu_summed(parts: Parts, rank: int):
    hidden = sum(_gelu(_up(one)) for one in parts)
    return sum(_down(hidden, one) for one in parts) + parts[0]["down_bias"]


def _rows_first(parts: Parts, rank: int):
    """The two cuts in the other order: different numbers are summed, and terms are not."""
    total = sum(one["x"] @ one["up_weight"].T for one in parts)
    return _down(_gelu(total + parts[rank]["up_bias"]), parts[rank]) + parts[rank]["down_bias"]


def _one_term(parts: Parts, rank: int):
    return _down(_gelu(_up(parts[rank])), parts[rank]) + parts[rank]["down_bias"]


def _bias_on_every_rank(parts: Parts, rank: int):
    return _joined(_gelu)(parts, rank) + (len(parts) - 1) * parts[0]["down_bias"]


def _mean(parts: Parts, rank: int):
    return (_joined(_gelu)(parts, rank) - parts[0]["down_bias"]) / len(parts) + parts[0]["down_bias"]


def _without_up_bias(parts: Parts, rank: int):
    return _joined(_gelu)([{**one, "up_bias": 0.0} for one in parts], rank)


def _without_down_bias(parts: Parts, rank: int):
    return _joined(_gelu)(parts, rank) - parts[0]["down_bias"]


def _x_alone(case: Case, outcome: Outcome) -> bool:
    """Whether x's gradient is wrong, and every weight's is right."""
    weights = [name for name in case.arguments[0][0] if name != "x"]
    return wrong(outcome, gradient("x")) and not any(wrong(outcome, gradient(name)) for name in weights)


TENSOR_PARALLEL_MLP = Exercise(
    name="tensor_parallel_mlp",
    library="course_utils.lessons.model_parallel.parallel_block:tensor_parallel_mlp",
    lesson=LESSON,
    place=4,
    minutes=10,
    difficulty=2,
    turn="two cut layers and gelu; which cut comes first?",
    title="two layers, one all-reduce each way",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "After the first layer, gelu works on single numbers, and the second layer needs as its input what this rank "
        "has. Which of the two cuts leaves complete numbers on each rank, and which one takes parts in?",
        "`column_parallel_linear` with `up_weight` and `up_bias`, then `gelu`, then `row_parallel_linear` with "
        "`down_weight` and `down_bias`; hand `group` to both.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", is_missing("y")),
        Mistake("Whose tensor is x: may this function change it?", is_wrong(AFTER)),
        Mistake("Whose tensor is x: may this function change it?", changed_in_place),
        Mistake("Which ranks share this layer: all of them, or those of `group`?", in_groups),
        Mistake("Where are the terms of the other ranks?", _from(_one_term)),
        Mistake("Is gelu of a sum the sum of gelus: where must it stand?", _from(_gelu_of_the_sum)),
        Mistake("Are the ranks' hidden numbers terms of one sum, or different numbers?", _from(_hidden_summed)),
        Mistake("Are the ranks' hidden numbers terms of one sum, or different numbers?", _from(_gelu_summed)),
        Mistake("Are the ranks' hidden numbers terms of one sum, or different numbers?", _from(_rows_first)),
        Mistake("What stands between the two layers?", _from(_joined(lambda values: values))),
        Mistake("Which of the two forms of gelu is it, the exact one or tanh's?", _from(_joined(_by_tanh))),
        Mistake("gelu or relu?", _from(_joined(lambda values: values.relu()))),
        Mistake("How often does down_bias stand in the sum?", _from(_bias_on_every_rank)),
        Mistake("A sum of terms, or their mean?", _from(_mean)),
        Mistake("Where does each bias belong?", _from(_without_up_bias)),
        Mistake("Where does each bias belong?", _from(_without_down_bias)),
        Mistake("Can the gradient find its way back to x?", is_missing(gradient("x"))),
        Mistake(
            "Each rank has the gradient of y whole, once. What would a sum over ranks make of it?",
            times(gradient("down_weight"), lambda size: size),
        ),
        Mistake("Every rank's hidden numbers ask for a change of x. Who adds up what they ask for?", _x_alone),
        Mistake("After a step, is down_bias still the same on all ranks?", is_wrong(gradient("down_bias"))),
        Mistake("One all-reduce each way is enough: which of yours does nothing?", says("all-reduces")),
        Mistake("Must every rank see each term, or only the sum?", says("called")),
    ),
    praise=lambda outcome: (
        f"the numbers of the whole perceptron on {ranks(outcome.world_size)}, gradients too; "
        f"{len(calls(outcome, 0, 'forward'))} all-reduce forward, {len(calls(outcome, 0, 'backward'))} backward"
    ),
)
