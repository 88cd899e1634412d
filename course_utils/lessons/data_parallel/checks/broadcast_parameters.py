"""The check of `broadcast_parameters`: every tensor of the model is rank 0's afterwards."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import collective_calls
from course_utils.lessons.data_parallel.checks import common
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor


def state_after(
    function: Callable, parameters: Sequence["Tensor"], buffers: Sequence["Tensor"], frozen: int | None
) -> dict[str, Any]:
    """Call the learner's function on a model and return what its tensors, those the optimizer knows, hold then.

    Beside them, what else must be as it was: which parameters are trained, and whether the model is.
    """
    model = common.model_of(parameters, buffers).eval()
    if frozen is not None:
        list(model.parameters())[frozen].requires_grad_(False)
    state = [*model.parameters(), *model.buffers()]
    function(model)
    trained = [parameter.requires_grad for parameter in state[: len(parameters)]]
    held = named([values.detach().clone() for values in state], len(parameters))
    return held | {"the list of which are trained": trained, "model.training": model.training}


def named(tensors: Sequence["Tensor"], parameters: int) -> dict[str, "Tensor"]:
    """The tensors of a model by names that a learner understands; the first this many are parameters."""
    names = [f"parameter {k}" if k < parameters else f"buffer {k - parameters}" for k in range(len(tensors))]
    return dict(zip(names, tensors, strict=True))


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int, shapes: Sequence[tuple], buffers: bool = True, frozen: int | None = None, dtype: str = "float32"
    ) -> Case:
        models = []
        for _ in range(size):
            weights = [common.tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
            statistics = [rng.random(5).astype(dtype), rng.integers(2**53, 2**62) | 1] if buffers else []
            models.append((weights, [common.tensor(values) for values in statistics]))
        holds = f"{len(shapes)} parameters{', one of them frozen' if frozen is not None else ''}"
        label = f"{ranks(size)}, {holds}{' and 2 buffers' if buffers else ''}, {dtype}"
        trained = {"the list of which are trained": [index != frozen for index in range(len(shapes))]}
        wanted = named([*models[0][0], *models[0][1]], len(shapes)) | trained | {"model.training": False}
        arguments = [(weights, statistics, frozen) for weights, statistics in models]
        more = {"backend": "gloo", "tolerance": 0, "harness": state_after, "judge": _once}
        return Case(label, arguments, [wanted] * size, **more, key="" if frozen is None else "frozen")

    yield case(world_size, [(3, 4), (3,)], buffers=False)
    yield case(world_size, [(8, 3, 3, 3), (8,), (), (10, 8)], buffers=False, dtype="float64")
    yield case(world_size, [(4, 6), (4,), (2, 4)], frozen=1, buffers=False)
    for size in fewer(world_size):
        dtype = str(rng.choice(["float16", "float32", "float64"]))
        yield case(size, [(int(rng.integers(1, 9)), 5), (0, 2), (5,)], dtype=dtype)
    yield case(world_size, [(300,), (500, 300)], frozen=1)


def _once(outcome: Outcome) -> Finding | None:
    case, events = outcome.case, outcome.run.events
    weights, statistics, _ = case.arguments[0]
    needed = sum(values.numel() * values.element_size() for values in (*weights, *statistics))
    for rank in range(1, outcome.world_size):
        received = sum(event.bytes for event in events if event.rank == rank and event.kind in ("recv", "collective"))
        if received > 1.1 * needed + 8192:  # a pickled model says more than its numbers
            words = "the tensors are right, but rank {rank} received {got:,} bytes; the model has {expected:,}"
            return own("too-many-bytes", words, rank=rank, got=received, expected=needed)
    return None


def _unlike_calls(case: Case, outcome: Outcome) -> bool:
    return len({collective_calls(outcome, rank) for rank in range(outcome.world_size)}) > 1


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
    symptoms={"ranks make different calls": _unlike_calls},
    praise=lambda outcome: f"{ranks(outcome.world_size)} hold rank 0's model, buffers and all",
)
