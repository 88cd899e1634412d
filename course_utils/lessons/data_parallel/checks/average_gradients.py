"""The check of `average_gradients`: the mean over all ranks, each gradient sent once and none collected."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import collective_calls, hangs, raised
from course_utils.lessons.data_parallel.checks import LESSON
from course_utils.lessons.data_parallel.checks.common import all_same, entries, model_of, same, tensor
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

Gradients = Sequence["Tensor | None"]


def gradients_after(
    function: Callable, parameters: Sequence["Tensor"], gradients: Gradients, frozen: Sequence[int]
) -> dict[str, "Tensor | None"]:
    """Call the learner's function on a model with these gradients; return its gradients and its parameters."""
    model = model_of(parameters)
    for index, (parameter, gradient) in enumerate(zip(model.parameters(), gradients, strict=True)):
        parameter.grad = None if gradient is None else gradient.clone()
        parameter.requires_grad_(index not in frozen)
    function(model)
    gradients = [None if parameter.grad is None else parameter.grad.detach() for parameter in model.parameters()]
    return named(gradients, [parameter.detach() for parameter in model.parameters()])


def named(gradients: Gradients, parameters: Sequence["Tensor"]) -> dict[str, "Tensor | None"]:
    """Gradients, then parameters, by names that a learner understands."""
    found = {f"the gradient of parameter {k}": gradient for k, gradient in enumerate(gradients)}
    return found | {f"parameter {k}": parameter for k, parameter in enumerate(parameters)}


def _halves(result: dict) -> tuple[list, list]:
    """(gradients, parameters) of a result."""
    values = entries(result)
    return values[: len(values) // 2], values[len(values) // 2 :]


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int,
        shapes: Sequence[tuple],
        dtype: str = "float32",
        frozen: Sequence[int] = (),
        missing: Sequence[int] = (),
    ) -> Case:
        """`missing`: the ranks that have no gradient for the last parameter."""
        weights = [tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
        local = [[rng.standard_normal(shape).astype(dtype) for shape in shapes] for _ in range(size)]
        for rank in missing:
            local[rank][-1] = np.zeros_like(local[rank][-1])
        means = [np.mean(np.stack(each).astype("float64"), axis=0).astype(dtype) for each in zip(*local, strict=True)]
        given = [[None if index in frozen else tensor(g) for index, g in enumerate(each)] for each in local]
        for rank in missing:
            given[rank][-1] = None
        wanted = [None if index in frozen else tensor(mean) for index, mean in enumerate(means)]
        special = (", one frozen" if frozen else "") + (f", none for the last on rank {missing[0]}" if missing else "")
        label = f"{ranks(size)}, gradients of {len(shapes)} parameters{special}, {dtype}"
        arguments = [(weights, gradients, frozen) for gradients in given]
        expected = [named(wanted, weights)] * size
        judge = _sent_once
        return Case(label, arguments, expected, backend="gloo", harness=gradients_after, judge=judge)

    yield case(world_size, [(3, 4), (3,)])
    yield case(world_size, [(8, 1, 3, 3), (8,), (), (5, 8)], dtype="float64")
    yield case(world_size, [(4, 6), (4,), (2, 4)], frozen=(1,))
    for size in range(world_size - 1, 0, -1):
        yield case(size, [(int(rng.integers(1, 9)), 5), (0, 2), (5,)], dtype=str(rng.choice(["float32", "float64"])))
    yield case(world_size, [(6, 2), (6,), (3, 6)], missing=(world_size - 1,))
    yield case(world_size, [(400, 300), (300,)])


def _bytes_of(case: Case) -> int:
    """The bytes of all gradients that are trained."""
    gradients, _ = _halves(case.expected[0])
    return sum(gradient.numel() * gradient.element_size() for gradient in gradients if gradient is not None)


def _sent_once(outcome: Outcome) -> str | None:
    needed = _bytes_of(outcome.case)
    for rank, sent in enumerate(outcome.run.bytes_per_rank):
        if sent > 1.1 * needed + 256:  # a few bytes for bookkeeping are nobody's mistake
            return f"the means are right, but rank {rank} put in {sent:,} bytes; its gradients have {needed:,}"
    return None


def _gathers(case: Case, outcome: Outcome) -> bool:
    names = {event.name for reply in outcome.attempt.replies for event in reply.events or ()}
    return bool(names & {"gather", "scatter", "all_gather", "all_gather_single", "send", "recv", "reduce"})


def _scaled(factor: Callable[[int], float]) -> Callable[[Case, Outcome], bool]:
    """A recogniser of the mean times a factor that depends on the number of ranks."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        size = outcome.world_size
        gradients, weights = _halves(case.expected[0])
        wrong = [None if gradient is None else gradient * factor(size) for gradient in gradients]
        return size > 1 and all_same(outcome, [named(wrong, weights)] * size)

    return recognises


def _own(case: Case, outcome: Outcome) -> bool:
    given = [named(gradients, weights) for weights, gradients, _ in case.arguments]
    return outcome.world_size > 1 and all_same(outcome, given)


def _first_only(case: Case, outcome: Outcome) -> bool:
    wanted = entries(case.expected[0])[0]
    return all(same(entries(result)[0], wanted) for result in outcome.results)


def _weights_changed(case: Case, outcome: Outcome) -> bool:
    return any(
        result is not NO_RESULT and not same(_halves(result)[1], _halves(case.expected[0])[1], 0)
        for result in outcome.results
    )


def _frozen(case: Case, outcome: Outcome) -> bool:
    stuck = raised(outcome) or any(
        gradient is not None and index in case.arguments[0][2]
        for result in outcome.results
        for index, gradient in enumerate(_halves(result)[0])
    )
    return bool(case.arguments[0][2]) and stuck


def _missing(case: Case) -> list[int]:
    return [rank for rank, (_, gradients, frozen) in enumerate(case.arguments) if gradients[-1] is None and not frozen]


def _left_out(case: Case, outcome: Outcome) -> bool:
    return bool(_missing(case)) and (hangs(case, outcome) or raised(outcome))


def _without_the_missing(case: Case, outcome: Outcome) -> bool:
    return bool(_missing(case)) and any(
        same(_halves(result)[0][:-1], _halves(case.expected[0])[0][:-1]) for result in outcome.results
    )


def _rank_0_alone(case: Case, outcome: Outcome) -> bool:
    results: list[Any] = outcome.results
    return outcome.world_size > 1 and same(results[0], case.expected[0]) and not same(results[1], case.expected[1])


def _no_calls(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size > 1 and collective_calls(outcome, 0) == 0 and not _gathers(case, outcome)


AVERAGE_GRADIENTS = Exercise(
    name="average_gradients",
    library="course_utils.lessons.data_parallel.gradients:average_gradients",
    lesson=LESSON,
    place=3,
    minutes=10,
    difficulty=2,
    turn="sum over the ranks, then divide",
    title="the mean of all gradients",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "`dist.all_reduce` adds in place. What is missing from a sum to be a mean? And what must a rank do that has "
        "nothing to add, while the others wait for it?",
        "For every parameter with `requires_grad`: where `grad` is None, put `torch.zeros_like(parameter)` there; then "
        "`dist.all_reduce(parameter.grad)` and divide by `dist.get_world_size()`.",
    ),
    mistakes=(
        Mistake("Does a parameter that is not trained have a gradient?", _frozen),
        Mistake("What does a rank put in that has no gradient for this parameter?", _left_out),
        Mistake("By how many is it divided, and did all put something in?", _without_the_missing),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("Who changes the weights: this function, or the optimizer?", _weights_changed),
        Mistake("Must all gradients pass through one rank?", _gathers),
        Mistake("What do the other ranks know of this rank's gradient?", _no_calls),
        Mistake("Was the sum divided by the number of ranks?", _scaled(lambda size: size)),
        Mistake("How often was it divided by the number of ranks?", _scaled(lambda size: 1 / size)),
        Mistake("Is the result in `parameter.grad`, where the optimizer looks for it?", _own),
        Mistake("Do all ranks have it in the end?", _rank_0_alone),
        Mistake("Is every gradient averaged?", _first_only),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the same mean; each put its {_bytes_of(outcome.case):,} bytes in once, "
        f"in {outcome.run.collectives} collective{'s' if outcome.run.collectives > 1 else ''}"
    ),
)
