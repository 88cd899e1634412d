"""The check of `average_gradients`: the mean over all ranks, each gradient sent once and none collected."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call, fewer
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.data_parallel.checks.common import calls_of, model_of, one_call_each, tensor
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor

Gradients = Sequence["Tensor | None"]
ONE_BY_ONE = {"gather", "scatter", "all_gather", "all_gather_single", "all_to_all", "send", "recv"}
"""Calls by which a rank gets gradients of others, one by one, or gives its own to one of them."""
IN_PLACE = "whether each gradient was changed in place"


def gradients_after(
    function: Callable, parameters: Sequence["Tensor"], gradients: Gradients, frozen: Sequence[int], shared: bool
) -> dict[str, "Tensor | None"]:
    """Call the learner's function on a model with these gradients; return its gradients and its parameters."""
    model = model_of(parameters)
    if shared:
        model.layers[0].output = model.scale
    for index, (parameter, gradient) in enumerate(zip(model.parameters(), gradients, strict=True)):
        parameter.grad = None if gradient is None else gradient.clone()
        parameter.requires_grad_(index not in frozen)
    before = [parameter.grad for parameter in model.parameters()]
    function(model)
    gradients = [None if parameter.grad is None else parameter.grad.detach() for parameter in model.parameters()]
    found = named(gradients, [parameter.detach() for parameter in model.parameters()])
    trained = [(gradient, parameter.grad) for gradient, parameter in zip(before, model.parameters(), strict=True)]
    found |= are_trained(parameter.requires_grad for parameter in model.parameters())
    return found | {IN_PLACE: all(is_in_place(*both) for both in trained)}


def are_trained(parameters: Iterable[bool]) -> dict[str, bool]:
    """Which parameters are trained, by names that a learner understands."""
    return {f"requires_grad of parameter {k}": is_trained for k, is_trained in enumerate(parameters)}


def is_in_place(before: "Tensor | None", after: "Tensor | None") -> bool:
    """Return whether the tensor that was the gradient holds the new numbers; yes if there was none."""
    return before is None or after is None or bool((before == after).all())


def gradients_of_second_step(function: Callable, parameters: Sequence["Tensor"], *steps: Gradients) -> dict:
    """Call the learner's function once for each of `steps`, on one model; return its gradients in the end."""
    model = model_of(parameters)
    for gradients in steps:
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = None if gradient is None else gradient.clone()
        function(model)
    return named(
        [parameter.grad for parameter in model.parameters()], [parameter.detach() for parameter in model.parameters()]
    )


def named(gradients: Gradients, parameters: Sequence["Tensor"]) -> dict[str, "Tensor | None"]:
    """Gradients, then parameters, by names that a learner understands."""
    found = {f"the gradient of parameter {k}": gradient for k, gradient in enumerate(gradients)}
    return found | {f"parameter {k}": parameter for k, parameter in enumerate(parameters)}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int,
        shapes: Sequence[tuple],
        dtype: str = "float32",
        frozen: Sequence[int] = (),
        old: bool = False,
        missing: Sequence[int] = (),
        shared: bool = False,
    ) -> Case:
        """`old`: frozen ones have a gradient all the same. `missing`: the ranks that have none for the last."""
        weights = [tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
        local = [[rng.standard_normal(shape).astype(dtype) for shape in shapes] for _ in range(size)]
        for rank in missing:
            local[rank][-1] = np.zeros_like(local[rank][-1])
        means = [np.mean(np.stack(each).astype("float64"), axis=0).astype(dtype) for each in zip(*local, strict=True)]
        given = [[tensor(g) if old or k not in frozen else None for k, g in enumerate(each)] for each in local]
        wanted = [[each[k] if k in frozen else tensor(mean) for k, mean in enumerate(means)] for each in given]
        for rank in missing:
            given[rank][-1] = None
        label = f"{ranks(size)}, gradients of {len(shapes)} parameters"
        label += ", the first in two layers" * shared
        label += ", one frozen" * bool(frozen) + " with an old gradient" * old
        label += f", none for the last on rank {' and '.join(map(str, missing))}" * bool(missing) + f", {dtype}"
        arguments = [(weights, gradients, frozen, shared) for gradients in given]
        trained = are_trained(k not in frozen for k in range(len(weights)))
        expected = [named(gradients, weights) | trained | {IN_PLACE: ...} for gradients in wanted]
        keys = {"shared": shared, "old-gradient": old, "frozen": frozen, "missing": missing}
        key = next((key for key, is_so in keys.items() if is_so), "")
        return Case(
            label, arguments, expected, backend="gloo", harness=gradients_after, judge=_one_all_reduce_each, key=key
        )

    yield case(world_size, [(3, 4), (3,)])
    yield case(world_size, [(8, 1, 3, 3), (8,), (), (5, 8)], dtype="float64")

    def steps(shapes: Sequence[tuple]) -> Case:
        """Two steps on one model; rank 0 has none for the last two parameters, which are alike, in either of them."""
        weights, *given = [[tensor(rng.standard_normal(shape)) for shape in shapes] for _ in range(2 * world_size + 1)]
        for gradients in given[:2]:
            gradients[-2:] = None, None
        second = [
            [0 * weight if each is None else each for each, weight in zip(gradients, weights)] for gradients in given
        ]
        means = [sum(each) / world_size for each in zip(*second[1::2], strict=True)]
        label = (
            f"{ranks(world_size)}, gradients of {len(shapes)} parameters, none for the last two on rank 0, second step"
        )
        arguments = [(weights, *given[k : k + 2]) for k in range(0, len(given), 2)]
        expected = [named(means, weights)] * world_size
        return Case(label, arguments, expected, backend="gloo", harness=gradients_of_second_step, key="missing")

    yield case(world_size, [(4, 6), (4,), (2, 4)], frozen=(1,))
    for size in fewer(world_size):
        dtype = str(rng.choice(["float16", "float32", "float64"]))
        yield case(size, [(int(rng.integers(1, 9)), 5), (0, 2), (5,)], dtype=dtype)
    some = sorted(int(rank) for rank in rng.permutation(world_size)[: max(1, world_size // 2)])
    yield case(world_size, [(6, 2), (6,), (3, 6)], missing=some[:1])
    yield case(world_size, [(6, 2), (6,), (3, 6)], dtype="float64", frozen=(0,), missing=some)
    yield case(world_size, [(6, 2), (6,), (3, 6)], frozen=(1,), old=True)
    yield steps([(6, 2), (3, 6), (3, 6)])
    yield case(world_size, [(30, 20), (20,)], dtype="float64", shared=True)
    another = case(world_size, [(2, 5), (4,), (3, 3)], missing=some).arguments
    again = after_another_call(case(world_size, [(6, 2), (6,), (2, 5)], missing=some[:1]), another)
    yield replace(again, label=f"{again.label}, after a call for a different model", key=AFTER_ANOTHER_CALL)
    yield case(world_size, [(300,), (400, 300)])


def _bytes_of_each(case: Case) -> list[int]:
    """The bytes of each gradient that is trained and has any number."""
    weights, _, frozen, _ = case.arguments[0]
    trained = [weight for k, weight in enumerate(weights) if k not in frozen]
    return [weight.numel() * weight.element_size() for weight in trained if weight.numel()]


def _one_all_reduce_each(outcome: Outcome) -> Finding | None:
    """Find what no mean shows: new tensors, other calls than all-reduces, and other vectors than the gradients."""
    needed = _bytes_of_each(outcome.case)
    for rank, result in enumerate(outcome.results):
        events = calls_of(outcome, rank)
        others = {event.name for event in events} - {"all_reduce"}
        if others & ONE_BY_ONE:
            words = "the means are right, but rank {rank} called {got}: gradients travel one by one"
            return own("one-by-one", words, rank=rank, got=min(others & ONE_BY_ONE))
        if others:
            words = "the means are right, but rank {rank} called {got}; all_reduce alone is enough"
            return own("not-by-all-reduce", words, rank=rank, got=min(others))
        wrong_number = (
            "the means are right, but rank {rank} made {calls}; the number of trained parameters is {expected}"
        )
        wrong_bytes = "the means are right, but rank {rank} sent {got:,} bytes; its gradients have {expected:,}"
        if found := one_call_each(rank, events, needed, "all-reduce", wrong_number, wrong_bytes):
            return found
        if not result[IN_PLACE]:
            words = (
                "the means are right, but on rank {rank} the tensor that was in `grad` before does not hold its mean"
            )
            return own("not-in-place", words, rank=rank)
    return None


def _one_by_one(case: Case, outcome: Outcome) -> bool:
    """Whether some rank called one of these."""
    events = (event for reply in outcome.attempt.replies for event in reply.events or ())
    return any(event.name in ONE_BY_ONE for event in events)


EXERCISE = Exercise(
    library="gradients",
    number=4,
    minutes=10,
    difficulty=2,
    turn="sum over the ranks, then divide",
    title="the mean of all gradients",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "`dist.all_reduce` adds in place. What turns the sum into a mean? And what must a rank do that has nothing to "
        "add, while the others wait for it?",
        "For every parameter with `requires_grad`: if `grad` is None, put `torch.zeros_like(parameter)` there. Then "
        "call `dist.all_reduce(parameter.grad)`, and divide by `dist.get_world_size()`.",
    ),
    symptoms={"gradients travel one by one": _one_by_one},
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the same mean; each put its {sum(_bytes_of_each(outcome.case)):,} bytes in "
        f"once, in {count(outcome.run.collectives, 'all-reduce')}"
    ),
)
