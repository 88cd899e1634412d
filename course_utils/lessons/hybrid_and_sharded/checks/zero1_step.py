"""The check of `zero1_step`: torch's Adam on the mean gradient, a part of its state on each rank, two collectives."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, collectives, hangs, raised, same, says
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.hybrid_and_sharded.checks import LESSON
from course_utils.lessons.hybrid_and_sharded.checks.adam import DEFAULTS, Settings, adam, parts_of
from course_utils.lessons.hybrid_and_sharded.checks.steps import (
    GIVEN,
    KEPT,
    MEAN,
    SQUARE,
    STEPS,
    WEIGHTS,
    after_steps,
    in_a_matrix,
)
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

RIGHT = "the parameters are right, but"
KINDS = ("reduce_scatter", "all_gather")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(size: int, n: int, steps: int, about: str = "", dtype: str = "float64", plain: bool = False) -> Case:
        weights = drawn(rng, n, dtype=dtype)
        gradients = [[drawn(rng, n, dtype=dtype) * 3 for _ in range(steps)] for _ in range(size)]
        settings = {} if plain else _settings(rng)
        if "column" in about:
            weights, gradients = in_a_matrix(weights), [[in_a_matrix(one) for one in own] for own in gradients]
        given = [(weights, own, settings) for own in gradients]
        label = f"{ranks(size)}, {count(n, f'{dtype} number')}, {count(steps, 'step')}{about}"
        more = {"backend": "gloo", "harness": after_steps, "judge": _two_collectives}
        tolerance = 1e-8 if dtype == "float64" else 1e-4
        return Case(label, given, _expected(given), tolerance=tolerance, **more)

    yield case(min(2, world_size), 6, 1)
    yield case(world_size, 4 * world_size, 2)
    yield case(world_size, 2 * world_size + 1, 3)
    yield case(world_size, max(1, world_size - 1), 2)
    yield case(min(3, world_size), 1, 2)
    yield case(world_size, 3 * world_size - 1, 2, ", a column of a matrix")
    yield case(min(3, world_size), int(rng.integers(300, 900)), 2, dtype="float32")
    yield case(1, 5, 2)
    yield case(world_size, 4000, 2, ", with the rate, betas and eps of the docstring", plain=True)


def _settings(rng: np.random.Generator) -> Settings:
    """Rate, betas and eps that show themselves in the very first steps."""
    betas = float(rng.uniform(0.5, 0.9)), float(rng.uniform(0.6, 0.95))
    return {"rate": float(rng.uniform(0.01, 0.2)), "betas": betas, "eps": float(rng.uniform(0.05, 0.5))}


def _means(given: Sequence[tuple]) -> list["Tensor"]:
    """For each step the mean of the ranks' gradients."""
    return [sum(each) / len(each) for each in zip(*(gradients for _, gradients, _ in given), strict=True)]


def _expected(given: Sequence[tuple]) -> list[dict]:
    """What each rank must have, by torch's Adam in one process."""
    import torch

    weights, gradients, settings = given[0]
    settings = DEFAULTS | settings
    whole = torch.nn.Parameter(weights.clone().contiguous())
    one = torch.optim.Adam([whole], lr=settings["rate"], betas=settings["betas"], eps=settings["eps"])
    for mean in _means(given):
        whole.grad = mean.contiguous()
        one.step()
    state, parts = one.state[whole], parts_of(len(whole), len(given))
    more = {WEIGHTS: whole.detach(), STEPS: len(gradients), KEPT: ...}
    return [
        {GIVEN: [each.clone() for each in given[rank][1]]}
        | more
        | {MEAN: state["exp_avg"][own].clone(), SQUARE: state["exp_avg_sq"][own].clone()}
        for rank, own in enumerate(parts)
    ]


def _two_collectives(outcome: Outcome) -> str | None:
    """Where the numbers are right: what has it cost, in calls, in bytes and in memory?"""
    part, steps = _part_bytes(outcome.case), len(outcome.case.arguments[0][1])
    for rank in range(outcome.world_size):
        calls = collectives(outcome, rank)
        names = [call.name for call in calls]
        if "all_reduce" in names:
            return (
                f"{RIGHT} rank {rank} called all_reduce, which is a reduce-scatter and an all-gather of the gradient: "
                "in rings, twice the traffic that its own part needs"
            )
        for kind in KINDS:
            made = sum(name.startswith(kind) for name in names)
            if made != steps:
                often = f"{count(made, 'time')} in {count(steps, 'step')}"
                return f"{RIGHT} rank {rank} called {kind} {often}, expected one in each"
        others = [name for name in names if not name.startswith(KINDS)]
        if others:
            return f"{RIGHT} rank {rank} called {others[0]} too; a reduce-scatter and an all-gather are enough"
        sent, most = sum(call.bytes for call in calls), steps * part * (outcome.world_size + 1)
        if sent > most:
            return f"{RIGHT} rank {rank} put in {sent:,} bytes; {most:,} are enough"
        kept = outcome.results[rank][KEPT]
        if kept > 2 * part:
            return f"{RIGHT} rank {rank} keeps {kept:,} bytes of state; mean and square of its part are {2 * part:,}"
    return None


def _part_bytes(case: Case) -> int:
    """The bytes of one rank's part of the parameters."""
    weights = case.arguments[0][0]
    return -(-len(weights) // len(case.arguments)) * weights.element_size()


def _variant(name: str) -> Recogniser:
    """A recogniser of weights that come from Adam with one thing left out."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        weights, _, settings = case.arguments[0]
        wrong = adam(weights, _means(case.arguments), settings, without=name)
        return all(same(result[WEIGHTS], wrong, case.tolerance) for result in outcome.results)

    return recognises


def _state_is(factor: Callable[[int], float]) -> Recogniser:
    """A recogniser of means that are a multiple of the right ones."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        size, pairs = outcome.world_size, zip(outcome.results, case.expected, strict=True)
        return size > 1 and all(same(got[MEAN], one[MEAN] * factor(size), case.tolerance) for got, one in pairs)

    return recognises


def _own_gradients(case: Case, outcome: Outcome) -> bool:
    """The mean of one rank's own gradients, not of all ranks'."""
    weights, _, settings = case.arguments[0]
    parts, (beta, _) = parts_of(len(weights), outcome.world_size), (DEFAULTS | settings)["betas"]
    for own, part, result in zip(case.arguments, parts, outcome.results, strict=True):
        mean = 0 * own[1][0]
        for gradient in own[1]:
            mean = mean + (1 - beta) * (gradient - mean)
        if not same(result[MEAN], mean[part].contiguous(), case.tolerance):
            return False
    return outcome.world_size > 1


def _as_they_were(case: Case, outcome: Outcome) -> bool:
    return all(same(result[WEIGHTS], case.arguments[0][0].contiguous()) for result in outcome.results)


def _only_its_part(case: Case, outcome: Outcome) -> bool:
    """Each rank's own part is right, the others' are not."""
    wanted, parts = case.expected[0][WEIGHTS], parts_of(len(case.arguments[0][0]), outcome.world_size)
    own = [same(got[WEIGHTS][part], wanted[part], case.tolerance) for got, part in zip(outcome.results, parts)]
    return all(own) and not all(same(got[WEIGHTS], wanted, case.tolerance) for got in outcome.results)


def _gradient_changed(case: Case, outcome: Outcome) -> bool:
    pairs = [pair for pair in zip(outcome.results, case.expected, strict=True) if pair[0] is not NO_RESULT]
    return any(not same(got[GIVEN], wanted[GIVEN], 0) for got, wanted in pairs)


def _whole_state(case: Case, outcome: Outcome) -> bool:
    most = 2 * _part_bytes(case)
    return any(result is not NO_RESULT and result[KEPT] > most for result in outcome.results)


def _steps_wrong(case: Case, outcome: Outcome) -> bool:
    return any(result[STEPS] != case.expected[0][STEPS] for result in outcome.results)


def _other_dtype(case: Case, outcome: Outcome) -> bool:
    return raised(outcome, "dtype")


def _ragged(case: Case, outcome: Outcome) -> bool:
    weights, _, _ = case.arguments[0]
    return len(weights) % outcome.world_size != 0 and "the parameters are right" not in outcome.wrong


ZERO1_STEP = Exercise(
    name="zero1_step",
    library="course_utils.lessons.hybrid_and_sharded.zero1:zero1_step",
    lesson=LESSON,
    place=3,
    minutes=20,
    difficulty=3,
    turn="reduce-scatter, change your part, all-gather",
    title="Adam's state divided among the ranks",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "An all-reduce is a reduce-scatter and an all-gather. What does a rank have between the two, and what could "
        "be gathered in place of gradients?",
        "`filled = pad(gradient, (0, P * length - n))`; `dist.reduce_scatter_single(mine, filled)`, divided by P; "
        "`own`, the slice of the parameters from `rank * length`, padded in the same way, plus "
        "`state.change(mine, rate, betas, eps)`; `dist.all_gather_single(everything, own)`, and the first n numbers "
        "of it into `parameters`.",
    ),
    mistakes=(
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("Which dtype have the tensors that you made yourself?", _other_dtype),
        Mistake("Whose gradient did you change?", _gradient_changed),
        Mistake("Do the parameters change in the tensor that you were given?", _as_they_were),
        Mistake("Which part of Adam's state does this rank keep?", _whole_state),
        Mistake("How long is the part of each rank where P does not divide n?", _ragged),
        Mistake("How does a rank learn what the others have made of their parts?", _only_its_part),
        Mistake("Who has added up all ranks' gradients of your part?", _own_gradients),
        Mistake(
            "Is it the mean over the ranks? Adam hides it: what becomes of its step when the gradient doubles?",
            _state_is(lambda size: size),
        ),
        Mistake("How often was it divided by the number of ranks?", _state_is(lambda size: 1 / size)),
        Mistake("How many steps does the state know of after the first?", _steps_wrong),
        Mistake("Mean and square begin with zeros: how far off are they in the first steps?", _variant("correction")),
        Mistake("What is the root taken of, and where does eps stand?", _variant("root")),
        Mistake("What is the root taken of, and where does eps stand?", _variant("eps outside")),
        Mistake("How much of the sum of all gradients does a rank need?", says("called all_reduce")),
        Mistake("How many numbers does a rank bring into each collective?", says("bytes; ")),
        Mistake("Which two collectives are the two halves of an all-reduce?", says("called ")),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} take torch's steps of Adam; each keeps {outcome.results[0][KEPT]:,} of "
        f"{2 * outcome.world_size * _part_bytes(outcome.case):,} bytes of state; one reduce-scatter and one all-gather "
        "in each step"
    ),
)
