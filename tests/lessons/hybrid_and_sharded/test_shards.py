"""What FSDP2 has in memory when, what micro-batches cost with ZeRO, and the pictures of both."""

import pytest
import torch
from torch import nn

from course_utils.lessons.hybrid_and_sharded import shard_pictures
from course_utils.lessons.hybrid_and_sharded.fsdp import ShardMoment, ShardWatch, shard_fully
from course_utils.lessons.hybrid_and_sharded.mesh_training import train_serially
from course_utils.lessons.hybrid_and_sharded.zero_stages import sent_by_rank, train_sharded
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import character_model


def build() -> nn.Sequential:
    """Four layers in float64."""
    return character_model(len(CHARACTERS), 16, heads=2, depth=2, context=8).double()


@pytest.mark.parametrize(("stage", "halves"), [(0, 2), (1, 2), (2, 5), (3, 12)])
def test_with_micro_batches_stage_2_and_3_send_more_and_train_the_same(four_ranks, stage, halves) -> None:
    """Halves of an all-reduce, with four micro-batches: 2 once a step; m + 1; 3 m."""
    batches = text_batches(character_text().training, batch=16, context=8, steps=2)
    serial = train_serially(build, batches)
    run = four_ranks.run(train_sharded, stage, build, batches, micro_batches=4, backend="gloo")
    for result in run.results:
        for name, parameter in result.parameters.items():
            torch.testing.assert_close(parameter, serial.parameters[name], rtol=0, atol=1e-10)
    losses = torch.tensor([result.losses for result in run.results], dtype=torch.float64).mean(0)
    assert losses.tolist() == pytest.approx(serial.losses, abs=1e-10)
    size = sum(parameter.numel() * 8 for parameter in build().parameters())
    for counted in sent_by_rank(run.events, 4, 2):
        assert counted == pytest.approx(halves * 0.75 * size, rel=0.02)  # parts that are not equal are filled up


def watched() -> list[ShardMoment]:
    """A step of three sharded layers."""
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(3)])
    watch = ShardWatch(model)
    shard_fully(model)
    watch.note("before")
    loss = model(torch.ones(4, 8)).sum()
    watch.note("loss")
    loss.backward()
    watch.note("after")
    return watch.moments


def test_a_layer_is_whole_while_it_computes_and_only_then(four_ranks) -> None:
    runs = four_ranks.run(watched, backend="gloo").results
    names = ["before", "forward 0", "forward 1", "forward 2", "loss", "backward 2", "backward 1", "backward 0", "after"]
    for moments in runs:
        assert [moment.name for moment in moments] == names
        for moment in moments:
            computing = {int(moment.name[-1])} if moment.name[-1].isdigit() else set()
            assert moment.weights == tuple(1.0 if layer in computing else 0.25 for layer in range(3))
        assert [sum(moment.gradients) for moment in moments] == [0, 0, 0, 0, 0, 0, 0.25, 0.5, 0.75]
    text = shard_pictures.gathers(runs).alt_text
    assert "Each layer is gathered twice in a step, and at most one layer has all of its weights at a time" in text
    kept = [[ShardMoment(m.name, (1.0, 1.0, 1.0), m.gradients) for m in moments] for moments in runs]
    assert (
        "gathered once in a step, and at most 3 layers have all of their weights at a time"
        in shard_pictures.gathers(kept).alt_text
    )


def test_the_picture_of_a_step_shows_whose_numbers_are_where() -> None:
    weights, size = torch.arange(8.0), 4
    gradients = [torch.full((8,), 2.0**rank) for rank in range(size)]
    sums, updated = [torch.full((2,), 15.0)] * size, list((weights - 1.5).chunk(size))
    text = shard_pictures.zero1_blocks(gradients, sums, updated, [weights - 1.5] * size).alt_text
    assert text.startswith("Each rank adds up and updates one block")
    lacking = [torch.full((2,), 13.0), *sums[1:]]
    text = shard_pictures.zero1_blocks(gradients, lacking, updated, [weights - 1.5] * size).alt_text
    assert text.startswith("Not every block is the sum") and "rank 0: 0+2+3" in text
    text = shard_pictures.zero1_blocks(gradients, sums, updated, [weights - 1.5] * 3 + [weights]).alt_text
    assert text.startswith("Not every block is the sum") and "no sum" in text


def test_the_picture_of_the_stages_counts_what_is_kept() -> None:
    assert "keeps 100%, 62.5%, 43.75% and 25% with stages 0 to 3" in shard_pictures.stages(4).alt_text
    assert "keeps 100%, 75%, 62.5% and 50% with stages 0 to 3" in shard_pictures.stages(2).alt_text
