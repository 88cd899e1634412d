"""The check of `broadcast_parameters`: every tensor of the model is rank 0's afterwards."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import collective_calls, hangs, raised
from course_utils.lessons.data_parallel.checks import LESSON, common
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor


def state_after(
    function: Callable, parameters: Sequence["Tensor"], buffers: Sequence["Tensor"], frozen: int | None
) -> dict[str, "Tensor"]:
    """Call the learner's function on a model and return what its tensors, those the optimizer knows, hold then."""
    model = common.model_of(parameters, buffers)
    if frozen is not None:
        model.weights[frozen].requires_grad_(False)
    state = [*model.parameters(), *model.buffers()]
    function(model)
    return named([values.detach().clone() for values in state], len(parameters))


def named(tensors: Sequence["Tensor"], parameters: int) -> dict[str, "Tensor"]:
    """The tensors of a model by names that a learner understands; the first so many are parameters."""
    names = [f"parameter {k}" if k < parameters else f"buffer {k - parameters}" for k in range(len(tensors))]
    return dict(zip(names, tensors, strict=True))


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(
        size: int, shapes: Sequence[tuple], buffers: bool = True, frozen: int | None = None, dtype: str = "float32"
    ) -> Case:
        models = []
        for _ in range(size):
            weights = [common.tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
            statistics = (
                [common.tensor(rng.random(5).astype(dtype)), common.tensor(rng.integers(1, 10**9))] if buffers else []
            )
            models.append((weights, statistics))
        holds = f"{len(shapes)} parameters{', one of them frozen' if frozen is not None else ''}"
        label = f"{ranks(size)}, {holds}{' and 2 buffers' if buffers else ''}, {dtype}"
        wanted = named([*models[0][0], *models[0][1]], len(shapes))
        arguments = [(weights, statistics, frozen) for weights, statistics in models]
        return Case(label, arguments, [wanted] * size, backend="gloo", tolerance=0, harness=state_after)

    yield case(world_size, [(3, 4), (3,)], buffers=False)
    yield case(world_size, [(8, 3, 3, 3), (8,), (), (10, 8)], buffers=False, dtype="float64")
    yield case(world_size, [(4, 6), (4,), (2, 4)], frozen=1)
    for size in range(world_size - 1, 0, -1):
        yield case(size, [(int(rng.integers(1, 9)), 5), (0, 2), (5,)], dtype=str(rng.choice(["float32", "float64"])))
    yield case(world_size, [(500, 300), (300,)])


def _tensors(case: Case, rank: int) -> list:
    parameters, buffers, _ = case.arguments[rank]
    return [*parameters, *buffers]


def _held(case: Case, outcome: Outcome, which: Callable[[list], list], of_rank: int) -> bool:
    """Whether a selection of tensors is that of `of_rank` on every rank but rank 0."""
    wanted = which(_tensors(case, of_rank))
    return all(common.same(which(common.entries(result)), wanted) for result in outcome.results[1:])


def _unchanged(case: Case, outcome: Outcome) -> bool:
    return common.all_same(outcome, [_tensors(case, rank) for rank in range(outcome.world_size)])


def _only_rank_0_called(case: Case, outcome: Outcome) -> bool:
    return len({collective_calls(outcome, rank) for rank in range(outcome.world_size)}) > 1


def _other_root(case: Case, outcome: Outcome) -> bool:
    return any(
        common.all_same(outcome, [_tensors(case, rank)] * outcome.world_size) for rank in range(1, outcome.world_size)
    )


def _own_buffers(case: Case, outcome: Outcome) -> bool:
    return bool(case.arguments[0][1]) and all(
        common.same(common.entries(result)[-2:], list(case.arguments[rank][1]))
        for rank, result in enumerate(outcome.results)
    )


def _own_frozen(case: Case, outcome: Outcome) -> bool:
    frozen = case.arguments[0][2]
    return frozen is not None and all(
        common.same(common.entries(result)[frozen], _tensors(case, rank)[frozen])
        for rank, result in enumerate(outcome.results)
    )


def _rank_0_changed(case: Case, outcome: Outcome) -> bool:
    return outcome.results[0] is not NO_RESULT and not common.same(outcome.results[0], _tensors(case, 0), 0)


def _some(case: Case, outcome: Outcome) -> bool:
    return _held(case, outcome, lambda tensors: tensors[:1], 0)


def _nothing_sent(case: Case, outcome: Outcome) -> bool:
    return collective_calls(outcome, 0) == 0 and all(not reply.events for reply in outcome.attempt.replies)


BROADCAST_PARAMETERS = Exercise(
    name="broadcast_parameters",
    library="course_utils.lessons.data_parallel.gradients:broadcast_parameters",
    lesson=LESSON,
    place=2,
    minutes=5,
    difficulty=1,
    turn="send each of rank 0's tensors to all",
    title="one model for all",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "`dist.broadcast` works on one tensor and in place. Which tensors does a model consist of? "
        "Does `parameters()` give all of them, the running mean of a batch norm for one?",
        "For every tensor in `[*model.parameters(), *model.buffers()]`: `dist.broadcast(tensor, src=0)`, inside "
        "`torch.no_grad()`. Every rank makes the same calls in the same order.",
    ),
    mistakes=(
        Mistake("Does autograd have to know of this?", lambda case, outcome: raised(outcome, "requires grad")),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("Does every rank make the same calls?", _only_rank_0_called),
        Mistake("Can a rank know rank 0's weights when nothing was sent?", _nothing_sent),
        Mistake("Do the model's own tensors hold what arrived?", _unchanged),
        Mistake("Whose weights are to be everybody's?", _other_root),
        Mistake("May rank 0's own weights change?", _rank_0_changed),
        Mistake("Is a parameter that is not trained part of the model?", _own_frozen),
        Mistake("Which tensors does a model have besides its parameters?", _own_buffers),
        Mistake("Does every tensor of the model travel?", _some),
    ),
    praise=lambda outcome: f"{ranks(outcome.world_size)} hold rank 0's model, buffers and all",
)
