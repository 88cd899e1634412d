"""The check of `broadcast_parameters`: every tensor of the model is rank 0's afterwards."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call, fewer
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import collective_calls
from course_utils.lessons.data_parallel.checks import common
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor


def state_after(
    function: Callable,
    parameters: Sequence["Tensor"],
    buffers: Sequence["Tensor"],
    frozen: int | None,
    shared: bool = False,
) -> dict[str, Any]:
    """Call the learner's function on a model and return what its tensors, those the optimizer knows, hold then.

    Beside them, what else must be as it was: which parameters are trained, and whether the model is.

    Args:
        shared: the first parameter belongs to two layers, as tied weights do, and a place for a buffer is empty.
    """
    model = common.model_of(parameters, buffers).eval()
    if frozen is not None:
        list(model.parameters())[frozen].requires_grad_(False)
    if shared:
        model.layers[0].output = model.scale
        model.layers[0].register_buffer("unused", None)
    state = [*model.parameters(), *model.buffers()]
    function(model)
    trained = {f"requires_grad of parameter {k}": state[k].requires_grad for k in range(len(parameters))}
    held = named([values.detach().clone() for values in state], len(parameters))
    return held | trained | {"model.training": model.training}


def named(tensors: Sequence["Tensor"], parameters: int) -> dict[str, "Tensor"]:
    """The tensors of a model by names that a learner understands; the first this many are parameters."""
    names = [f"parameter {k}" if k < parameters else f"buffer {k - parameters}" for k in range(len(tensors))]
    return dict(zip(names, tensors, strict=True))


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int,
        shapes: Sequence[tuple],
        buffers: bool = True,
        frozen: int | None = None,
        dtype: str = "float32",
        shared: bool = False,
    ) -> Case:
        models = []
        for _ in range(size):
            weights = [common.tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
            statistics = [rng.random(5).astype(dtype), rng.integers(2**53, 2**62) | 1] if buffers else []
            models.append((weights, [common.tensor(values) for values in statistics]))
        holds = f"{len(shapes)} parameters{', one of them frozen' if frozen is not None else ''}"
        label = f"{ranks(size)}, {holds}{' and 2 buffers' if buffers else ''}, {dtype}"
        label += ", the first parameter in two layers" * shared
        trained = {f"requires_grad of parameter {k}": k != frozen for k in range(len(shapes))}
        wanted = named([*models[0][0], *models[0][1]], len(shapes)) | trained | {"model.training": False}
        arguments = [(weights, statistics, frozen, shared) for weights, statistics in models]
        more = {"backend": "gloo", "tolerance": 0, "harness": state_after, "judge": _one_broadcast_each}
        key = "shared" if shared else "" if frozen is None else "frozen"
        return Case(label, arguments, [wanted] * size, **more, key=key)

    yield case(world_size, [(3, 4), (3,)], buffers=False)
    yield case(world_size, [(8, 3, 3, 3), (8,), (), (10, 8)], buffers=False, dtype="float64")
    yield case(world_size, [(4, 6), (4,), (2, 4)], frozen=1, buffers=False)
    for size in fewer(world_size):
        dtype = str(rng.choice(["float16", "float32", "float64"]))
        yield case(size, [(int(rng.integers(1, 9)), 5), (0, 2), (5,)], dtype=dtype)
    yield case(world_size, [(30, 20), (20,)], dtype="float64", shared=True)
    another = case(world_size, [(2, 5), (4,), (3, 3)]).arguments
    again = case(world_size, [(6, 2), (6,)])
    again = after_another_call(again, another)
    yield replace(again, label=f"{again.label}, after a call for a different model", key=AFTER_ANOTHER_CALL)
    yield case(world_size, [(300,), (500, 300)], frozen=1)


def _bytes_of_each(case: Case) -> list[int]:
    """The bytes of each tensor of the model that has any number."""
    weights, statistics, *_ = case.arguments[0]
    return [values.numel() * values.element_size() for values in (*weights, *statistics) if values.numel()]


def _one_broadcast_each(outcome: Outcome) -> Finding | None:
    """Find what no tensor shows: other calls than broadcasts, or other vectors than the model's own tensors."""
    needed = _bytes_of_each(outcome.case)
    for rank in range(outcome.world_size):
        events = common.calls_of(outcome, rank)
        others = {event.name for event in events} - {"broadcast"}
        if others:
            words = "the tensors are right, but rank {rank} called {got}; broadcast alone is enough"
            return own("not-by-broadcast", words, rank=rank, got=min(others))
        wrong_number = "the tensors are right, but rank {rank} made {calls}; the model has {expected} tensors"
        wrong_bytes = "the tensors are right, but rank {rank} broadcast {got:,} bytes; its tensors have {expected:,}"
        if found := common.one_call_each(rank, events, needed, "broadcast", wrong_number, wrong_bytes):
            return found
    return None


def _unlike_calls(case: Case, outcome: Outcome) -> bool:
    return len({collective_calls(outcome, rank) for rank in range(outcome.world_size)}) > 1


def _buffers_travel(case: Case, outcome: Outcome) -> bool:
    """Whether every rank broadcast as often as the model has tensors, and yet a buffer is not rank 0's."""
    _, statistics, *_ = case.arguments[0]
    buffers = [f"buffer {k}" for k in range(len(statistics))]
    travelled = all(
        collective_calls(outcome, rank, "broadcast") >= len(_bytes_of_each(case)) for rank in range(outcome.world_size)
    )
    return travelled and outcome.finding.where[0] in buffers


EXERCISE = Exercise(
    library="gradients",
    number=3,
    minutes=5,
    difficulty=1,
    turn="send each of rank 0's tensors to all ranks",
    title="one model for all ranks",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "`dist.broadcast` sends one tensor and writes it in place. Which tensors does a model consist of? Does "
        "`parameters()` give you all of them, for example the running mean of a batch norm?",
        "For every tensor in `[*model.parameters(), *model.buffers()]`: `dist.broadcast(tensor, src=0)`, inside "
        "`torch.no_grad()`. Every rank makes the same calls in the same order.",
    ),
    symptoms={
        "ranks make different calls": _unlike_calls,
        "buffers travel and stay as they were": _buffers_travel,
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold rank 0's model, buffers and all; each tensor took one broadcast"
    ),
)
