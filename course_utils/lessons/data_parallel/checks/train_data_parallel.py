"""The check of `train_data_parallel`: the losses and weights of one process, with a share of the work on each rank."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.data_parallel.checks.common import tensor
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor, nn

Weights = Sequence["Tensor"]
FEATURES, HIDDEN, CLASSES = 5, 6, 3
SHAPES = ((HIDDEN, FEATURES), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
NAMES = ("the first layer's weights", "the first layer's bias", "the last layer's weights", "the last layer's bias")
IMAGES = "the number of images that the model has computed"


def network(weights: Weights) -> "nn.Module":
    """A network with one hidden layer and these weights."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES)).to(weights[0].dtype)
    with torch.no_grad():
        for parameter, values in zip(model.parameters(), weights, strict=True):
            parameter.copy_(values)
    return model


def trained(
    function: Callable, weights: Weights, x: "Tensor", y: "Tensor", batches: Sequence["Tensor"], rate: float
) -> dict[str, Any]:
    """Let the learner's function train a network with these weights; return the losses and what the network is then."""
    model = network(weights)
    computed = []
    model.register_forward_pre_hook(lambda _, inputs: computed.append(len(inputs[0])))
    losses = function(model, x, y, batches, rate)
    parameters = [parameter.detach().clone() for parameter in model.parameters()]
    return {"losses": losses, **dict(zip(NAMES, parameters, strict=True)), IMAGES: sum(computed)}


def trained_alone(
    weights: Weights, x: "Tensor", y: "Tensor", batches: Sequence["Tensor"], rate: float
) -> dict[str, Any]:
    """What one process finds, which computes every batch by itself."""
    import torch
    from torch.nn.functional import cross_entropy

    model, losses = network(weights), []
    for batch in batches:
        loss = cross_entropy(model(x[batch]), y[batch])
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter -= rate * gradient
        losses.append(loss.item())
    parameters = [parameter.detach() for parameter in model.parameters()]
    return {"losses": losses, **dict(zip(NAMES, parameters, strict=True))}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def case(size: int, shares: Sequence[int], dtype: str = "float64", same_start: bool = False, key: str = "") -> Case:
        """`shares`: how many images of each batch a rank gets. `same_start`: all ranks have rank 0's weights."""
        lengths = [share * size for share in shares]
        images = sum(lengths) + 3  # some are in no batch
        x, y = rng.standard_normal((images, FEATURES)).astype(dtype), rng.integers(0, CLASSES, images)
        drawn = [[tensor(rng.standard_normal(shape).astype(dtype)) for shape in SHAPES] for _ in range(size)]
        own = [drawn[0]] * size if same_start else drawn
        order = rng.permutation(images)
        batches = [tensor(order[end - length : end]) for end, length in zip(np.cumsum(lengths), lengths, strict=True)]
        rate = round(float(rng.uniform(0.2, 0.9)), 2)
        data = (tensor(x), tensor(y), batches, rate)
        found = trained_alone(own[0], *data) | {IMAGES: sum(shares)}
        sizes = " and ".join(map(str, dict.fromkeys(lengths)))
        label = f"{ranks(size)}, {count(len(shares), 'step')}, batches of {sizes}, {dtype}"
        label += ", the same weights on all ranks" * same_start
        arguments = [(weights, *data) for weights in own]
        tolerance = None if dtype == "float64" else 1e-5  # the losses are Python's floats: they do not tell it
        return Case(
            label, arguments, [found] * size, backend="gloo", harness=trained, tolerance=tolerance, key=key or dtype
        )

    yield case(world_size, [4], same_start=True, key="one-step")
    yield case(world_size, [4, 4, 4], same_start=True, key="steps")
    yield case(world_size, [2, 2, 2, 2, 2])
    for size in fewer(world_size):
        yield case(size, [3, 3], key="fewer")
    yield case(world_size, [4, 1, 2], key="unequal")
    yield case(world_size, [3, 3], dtype="float32")


EXERCISE = Exercise(
    library="training_loop",
    number=1,
    minutes=20,
    difficulty=2,
    turn="train as one process would",
    title="the training loop",
    cases=_cases,
    needs_torch=True,
    picture=False,
    hints=(
        "Write the loop of one process first: loss, zero_grad, backward, step. What must the ranks have in common "
        "before the first step? Which images of a batch are yours? And what must happen between `backward` and the "
        "step?",
        "Before the loop, `dist.broadcast(parameter.data, src=0)` for every parameter. In it, `mine = "
        "batch[rank::world_size]`; after `backward`, `dist.all_reduce(parameter.grad)` and a division by the number of "
        "ranks, for every parameter; then the step. The mean of the ranks' losses is found in the same way.",
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} train as one: each loss and all weights are those of a single process"
    ),
)
