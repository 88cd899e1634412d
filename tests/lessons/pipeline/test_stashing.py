"""A pipeline without a flush: versions kept, staleness, and steps that are those of one process with old weights."""

import pytest
import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.weight_stashing import (
    StashedTraining,
    SteppingStage,
    train_with_delay,
    train_without_flush,
)

STEPS, RATE = 12, 0.3


def layers() -> list[nn.Module]:
    """Eight layers in float64; the same everywhere."""
    torch.manual_seed(3)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()).double() for _ in range(8)]


def data() -> list[torch.Tensor]:
    """Micro-batches of unlike sizes."""
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(1 + index % 3, 6, dtype=torch.float64, generator=generator) for index in range(STEPS)]


def loss(output: torch.Tensor, index: int) -> torch.Tensor:
    """Towards another point for each micro-batch."""
    return (output - index % 2).square().mean()


def trained(comm, stash: bool) -> StashedTraining:
    """A short training on these ranks."""
    return train_without_flush(comm, layers(), data(), loss, RATE, stash)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_stashing_takes_the_steps_of_one_process_with_old_weights(four_ranks, size) -> None:
    results = four_ranks.run(trained, True, ranks=size).results
    delayed = train_with_delay(layers(), size, data(), loss, RATE)
    assert results[-1].losses == pytest.approx(delayed, abs=1e-12)
    assert [one.versions for one in results] == [size - rank for rank in range(size)]
    for rank, one in enumerate(results):
        behind = size - rank - 1
        assert one.staleness == [min(step, behind) for step in range(STEPS)], "steps between forward and own step"


def test_without_stages_there_is_no_delay() -> None:
    model = nn.Sequential(*layers())
    losses = []
    for index, x in enumerate(data()):
        value = loss(model(x), index)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        losses.append(value.item())
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= RATE * gradient
    assert train_with_delay(layers(), 1, data(), loss, RATE) == pytest.approx(losses, abs=1e-12)


def test_without_stashing_the_steps_are_others(four_ranks) -> None:
    results = four_ranks.run(trained, False).results
    delayed = train_with_delay(layers(), 4, data(), loss, RATE)
    assert [one.versions for one in results] == [1] * 4
    apart = [abs(a - b) for a, b in zip(results[3].losses, delayed, strict=True)]
    assert apart[:2] == pytest.approx([0, 0], abs=1e-12), "nobody has stepped yet where it matters"
    assert max(apart) > 1e-6
    assert four_ranks.run(trained, False, ranks=1).results[0].losses == pytest.approx(
        train_with_delay(layers(), 1, data(), loss, RATE), abs=1e-12
    )


def test_versions_in_use_are_not_changed() -> None:
    stage = SteppingStage(nn.Linear(2, 2).double(), rate=0.5)
    x = torch.ones(1, 2, dtype=torch.float64)
    first, second = stage(x), stage(x)
    (used,) = {id(weights) for _, weights in stage.in_flight}
    before = {name: weight.detach().clone() for name, weight in stage.weights.items()}
    first.sum().backward()
    (step,) = stage.take()
    step()
    assert id(stage.weights) != used and stage.version == 1
    for name, weight in stage.in_flight[0][1].items():
        assert torch.equal(weight, before[name])
        assert weight.grad is None, "the second micro-batch begins at zero"
    second.sum().backward()
    step()
    assert stage.staleness == [0, 1]


def test_layers_that_cannot_be_shared_out_are_rejected() -> None:
    with pytest.raises(CourseError, match="8 layers cannot be shared out equally to 3 stages"):
        train_with_delay(layers(), 3, data(), loss, RATE)
