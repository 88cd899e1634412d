"""The digits through a pipeline: micro-batches that add up to their batch, stages where the schedule puts them."""

import pytest
import torch
from torch import nn

from course_utils.lessons.pipeline.digits_pipeline import (
    BATCH,
    STREAMED,
    digit_batches,
    digit_layers,
    digit_stream,
    largest_difference,
    own_stages,
    step_by_step,
    step_by_step_alone,
    timed_runs,
    train_alone,
)
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.run_schedule import run_schedule
from course_utils.lessons.pipeline.schedules import gpipe_schedule
from course_utils.lessons.pipeline.split_backward import Stage
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule


@pytest.mark.parametrize("micro_batches", [1, 3, 8])
def test_shares_of_the_loss_add_up(micro_batches) -> None:
    model = nn.Sequential(*digit_layers())
    ((whole,), loss), *_ = digit_batches(2, 1)
    _, (images, parts) = digit_batches(2, micro_batches)
    assert len(images) == micro_batches and sum(map(len, images)) == BATCH == len(whole)
    first, shares = next(digit_batches(1, micro_batches))
    together = sum(shares(model(x), index).item() for index, x in enumerate(first))
    assert together == pytest.approx(loss(model(whole), 0).item(), abs=1e-12)
    assert not torch.equal(images[0], first[0]), "the second step has other images"
    assert parts(model(images[-1]), micro_batches - 1).item() > 0


def test_a_stream_gives_every_micro_batch_its_own_targets() -> None:
    model = nn.Sequential(*digit_layers())
    images, loss = digit_stream(5, STREAMED)
    assert [len(one) for one in images] == [STREAMED] * 5
    for index, ((whole,), alone) in enumerate(digit_batches(5, 1, STREAMED)):
        assert loss(model(images[index]), index).item() == alone(model(whole), 0).item()


def test_stages_lie_where_the_schedule_puts_them() -> None:
    layers = digit_layers()
    for rank in range(2):
        stages = own_stages(interleaved_schedule(2, 2, 2), rank, layers)
        assert list(stages) == [rank, rank + 2]
        assert all(type(stage) is nn.Sequential and len(stage) == 2 for stage in stages.values())


def test_stages_can_cut_their_backward_pass_if_the_schedule_does() -> None:
    layers, schedule = digit_layers(), zb_h1_schedule(2, 2)
    for rank in range(2):
        stages = own_stages(schedule, rank, layers)
        assert all(isinstance(stage, Stage) and len(stage) == 4 for stage in stages.values())
        plain = own_stages(schedule, rank, layers, plain=True)
        assert all(type(stage) is nn.Sequential for stage in plain.values())
        assert largest_difference(
            [{stage: part.parameters() for stage, part in stages.items()}],
            (weight for part in plain.values() for weight in part.parameters()),
        ) == pytest.approx(0)


def test_differences_are_found_whatever_rank_holds_them() -> None:
    expected = [torch.zeros(2), torch.ones(3)]
    held = [{1: [torch.ones(3)]}, {0: [torch.tensor([0.0, 0.25])]}]
    assert largest_difference(held, expected) == 0.25
    with pytest.raises(ValueError, match="longer"):
        largest_difference(held[1:], expected)


def one_step(comm) -> tuple[float, list[torch.Tensor]]:
    """The loss of a batch through this pipeline, and what the first stage learned."""
    schedule = gpipe_schedule(comm.size, 3)
    stages = own_stages(schedule, comm.rank, digit_layers())
    ((images, loss),) = digit_batches(1, 3)
    value = run_schedule(comm, schedule, stages, images, loss)
    return value, [weight.grad for weight in stages[comm.rank].parameters()]


def test_alone_and_in_a_pipeline_it_is_one_training(four_ranks) -> None:
    results = four_ranks.run(one_step).results
    model, losses = train_alone(1, rate=1.0)
    assert results[3][0] == pytest.approx(losses[0], abs=1e-12)
    before = nn.Sequential(*digit_layers())
    steps = [a.detach() - b.detach() for a, b in zip(before.parameters(), model.parameters(), strict=True)]
    held = [{rank: gradients} for rank, (_, gradients) in enumerate(results)]
    assert largest_difference(held, steps) < 1e-12


def test_the_run_in_the_middle_comes_first(four_ranks) -> None:
    runs = timed_runs(four_ranks, gpipe_schedule(4, 2), 0.001, runs=3)
    shares = [run.idle_share for run in runs]
    assert sorted(shares)[1] == shares[0] and len(shares) == 3


def test_a_training_without_a_flush_is_one_with_a_delay(four_ranks) -> None:
    losses = four_ranks.run(step_by_step, 20).results[3].losses
    assert losses == pytest.approx(step_by_step_alone(20, delay=3), abs=1e-12)
    assert losses != pytest.approx(step_by_step_alone(20), abs=1e-6)
