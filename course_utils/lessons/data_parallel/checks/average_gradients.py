"""The check of `average_gradients`: the mean over all ranks, each gradient sent once and none collected."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.lessons.data_parallel.checks.common import model_of, tensor
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

Gradients = Sequence["Tensor | None"]
ONE_BY_ONE = {"gather", "scatter", "reduce", "all_gather", "all_gather_single", "all_to_all", "send", "recv"}
"""Calls by which a rank gets gradients of others, one by one, or gives its own to one of them."""


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
    function(model)
    gradients = [None if parameter.grad is None else parameter.grad.detach() for parameter in model.parameters()]
    return named(gradients, [parameter.detach() for parameter in model.parameters()])


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
        expected = [named(gradients, weights) for gradients in wanted]
        keys = {"shared": shared, "old-gradient": old, "frozen": frozen, "missing": missing}
        key = next((key for key, is_so in keys.items() if is_so), "")
        return Case(label, arguments, expected, backend="gloo", harness=gradients_after, judge=_sent_once, key=key)

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
    yield case(world_size, [(300,), (400, 300)])


def _bytes_of(case: Case) -> int:
    """The bytes of all gradients that are trained."""
    weights, _, frozen, _ = case.arguments[0]
    return sum(weight.numel() * weight.element_size() for k, weight in enumerate(weights) if k not in frozen)


def _sent_once(outcome: Outcome) -> Finding | None:
    needed = _bytes_of(outcome.case)
    for rank, sent in enumerate(outcome.run.bytes_per_rank):
        others = ONE_BY_ONE & {event.name for event in outcome.run.events if event.rank == rank}
        if others:
            words = "the means are right, but rank {rank} called {call}: gradients travel one by one"
            return own("one-by-one", words, rank=rank, call=min(others))
        if sent > 1.1 * needed + 256:  # a few bytes for bookkeeping are nobody's mistake
            return Finding(Kind.BYTES, rank, got=sent, expected=needed)
    return None


def _one_by_one(case: Case, outcome: Outcome) -> bool:
    """Whether some rank called one of these; a reduce alone leaves out ranks, which is another mistake."""
    events = (event for reply in outcome.attempt.replies for event in reply.events or ())
    return any(event.name in ONE_BY_ONE - {"reduce"} for event in events)


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
        f"{ranks(outcome.world_size)} hold the same mean; each put its {_bytes_of(outcome.case):,} bytes in once, "
        f"in {outcome.run.collectives} collective{'s' if outcome.run.collectives > 1 else ''}"
    ),
)
