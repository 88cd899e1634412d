"""A small transformer on meshes of data, pipeline and tensor: every step as in one process."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import RankError
from course_utils.lessons.hybrid_and_sharded.gradient_clipping import clip_alone, clip_over_mesh
from course_utils.lessons.hybrid_and_sharded.mesh_training import (
    MeshTraining,
    bytes_by_axis,
    train_on_mesh,
    train_serially,
    whole_model,
)
from course_utils.lessons.hybrid_and_sharded.sentences import clip_text, largest_difference
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import character_model
from workshop.bench.ranks import ranks_of
from workshop.bench.sharded_ranks import differences_on_mesh

WIDTH, CONTEXT, BATCH, STEPS = 16, 8, 8, 3
NUMBER = 8  # bytes


@pytest.fixture(scope="module")
def eight_ranks():
    """Eight ranks for this file."""
    with ranks_of(8) as ranks:
        yield ranks


def build() -> nn.Sequential:
    """Four layers in float64."""
    return character_model(len(CHARACTERS), WIDTH, heads=2, depth=2, context=CONTEXT).double()


def batches(steps: int = STEPS) -> list:
    return text_batches(character_text().training, BATCH, CONTEXT, steps)


def largest(results) -> float:
    """Of all differences to the serial run, on all ranks and after all steps."""
    assert all(len(result) == STEPS for result in results)
    return max(max(step.loss, step.parameter) for result in results for step in result)


@pytest.mark.parametrize(
    ("sizes", "micro_batches"),
    [
        ({"data": 2, "tensor": 2}, 1),
        ({"data": 2, "pipeline": 2}, 2),
        ({"tensor": 2, "pipeline": 2}, 4),
        ({"pipeline": 4}, 2),
        ({"data": 4}, 1),
        ({"data": 1}, 2),
        ({"data": 2, "pipeline": 2, "tensor": 2}, 2),
    ],
)
def test_a_mesh_is_the_serial_run_step_for_step(eight_ranks, sizes, micro_batches) -> None:
    world_size = torch.Size(sizes.values()).numel()
    run = eight_ranks.run(differences_on_mesh, sizes, build, batches(), micro_batches, ranks=world_size, backend="gloo")
    assert largest(run.results) <= 1e-10


def test_the_parts_are_a_whole_model_again(eight_ranks) -> None:
    run = eight_ranks.run(train_on_mesh, {"pipeline": 2, "tensor": 2}, build, batches(), ranks=4, backend="gloo")
    serial = train_serially(build, batches())
    assert run.results[-1].losses == pytest.approx(serial.losses, abs=1e-12)
    assert run.results[0].losses == [0.0] * STEPS, "the first stage has no loss"
    model = whole_model(build(), run.results)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.detach(), serial.parameters[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "sizes",
    [{"tensor": 2}, {"pipeline": 2}, {"data": 2, "tensor": 2}, {"data": 2, "pipeline": 2, "tensor": 2}],
)
def test_clipping_over_a_mesh_is_torch_s_in_one_process(eight_ranks, sizes) -> None:
    limit, world_size = 0.5, torch.Size(sizes.values()).numel()
    serial = train_serially(build, batches(), max_norm=limit)
    assert max(serial.norms) > limit, "nothing is clipped"
    clip = partial(clip_over_mesh, max_norm=limit)
    options = {"clip": clip, "ranks": world_size, "backend": "gloo"}
    run = eight_ranks.run(train_on_mesh, sizes, build, batches(), 2, **options)
    assert largest_difference(run.results[-1].losses, serial.losses) <= 1e-12
    for result in run.results:
        assert largest_difference(result.norms, serial.norms) <= 1e-12
        assert all(largest_difference(one, serial.parameters[name]) <= 1e-10 for name, one in result.parameters.items())


def test_ranks_that_clip_alone_train_something_else_without_an_error(eight_ranks) -> None:
    serial = train_serially(build, batches(), max_norm=0.5)
    options = {"clip": partial(clip_alone, max_norm=0.5), "ranks": 4, "backend": "gloo"}
    alone = eight_ranks.run(train_on_mesh, {"pipeline": 2, "tensor": 2}, build, batches(), 2, **options).results
    assert largest_difference(alone[-1].losses, serial.losses) > 1e-6
    told = clip_text(alone, serial.losses)
    assert "clip by their own norms" in told and "copies of a weight by up to" in told
    assert "as one process does" in clip_text(alone, alone[-1].losses)


def test_each_axis_moves_what_the_formulas_say(eight_ranks) -> None:
    """Of 2-D meshes, per rank and step, in bytes."""
    activations = BATCH * CONTEXT * WIDTH * NUMBER  # of a whole batch, at one place in the model
    per_block, loss = 4, 1
    run = eight_ranks.run(train_on_mesh, {"data": 2, "tensor": 2}, build, batches(), ranks=4, backend="gloo")
    cut = [4 * WIDTH * WIDTH + 3 * WIDTH, 8 * WIDTH * WIDTH + 4 * WIDTH]  # of a block: attention and perceptron
    whole = sum(one.numel() for one in build().parameters())
    own = whole - 2 * sum(cut) // 2
    for rank in range(4):
        counted = bytes_by_axis(run.events, rank)
        assert counted["tensor"] == STEPS * 2 * per_block * activations // 2
        assert counted["data"] == STEPS * (own + loss) * NUMBER
        assert counted["pipeline"] == 0
    run = eight_ranks.run(train_on_mesh, {"data": 2, "pipeline": 2}, build, batches(), ranks=4, backend="gloo")
    for rank in range(4):
        assert bytes_by_axis(run.events, rank)["pipeline"] == STEPS * activations // 2
        assert bytes_by_axis(run.events, rank)["tensor"] == 0


def test_meshes_that_do_not_suit_are_rejected(eight_ranks) -> None:
    for sizes, words in [({"data": 2}, "has 2 ranks, and 4 take part"), ({"rows": 4}, "not 'rows'")]:
        with pytest.raises(Exception, match=words):
            eight_ranks.run(train_on_mesh, sizes, build, batches(1), ranks=4, backend="gloo")
    with pytest.raises(Exception, match="cannot be dealt out evenly to 16 ranks"):
        eight_ranks.run(train_on_mesh, {"data": 4}, build, batches(1), 4, ranks=4, backend="gloo")


def one_leaves() -> None:
    """Rank 3 raises before its second step; the others wait for it, each in the group that it shares with it."""
    training = MeshTraining(build(), {"pipeline": 2, "tensor": 2})
    for number, (x, y) in enumerate(batches(2)):
        if number == 1 and dist.get_rank() == 3:
            raise RuntimeError("I am off")
        training.step(x, y)


def test_a_rank_that_leaves_is_named_and_the_next_training_works(eight_ranks) -> None:
    with pytest.raises(RankError, match="rank 3 raised RuntimeError: I am off.* rank 1 is waiting in recv"):
        eight_ranks.run(one_leaves, ranks=4, backend="gloo")
    run = eight_ranks.run(differences_on_mesh, {"pipeline": 2, "tensor": 2}, build, batches(), ranks=4, backend="gloo")
    assert largest(run.results) <= 1e-10
