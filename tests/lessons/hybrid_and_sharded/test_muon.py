"""Muon over ranks that keep rows of each matrix: three ways are Muon of one process, and one is not."""

import pytest
import torch

from course_utils import data
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded import sentences, shard_pictures
from course_utils.lessons.hybrid_and_sharded.muon import (
    SIZE,
    by_shard,
    first_matrices,
    gathered,
    of_whole,
    orthogonalised,
    owned,
    sent_for,
    times_orthogonalised,
    torchs_muon,
    train_muon,
    train_muon_serially,
)

STEPS = 4
WAYS = {"own rows": by_shard, "gather": gathered, "owner": owned, "replicate": of_whole}


def batches(steps: int = STEPS) -> list[tuple[torch.Tensor, torch.Tensor]]:
    digits = data.digits("float64")
    cuts = [slice(32 * step, 32 * step + 32) for step in range(steps)]
    return [(digits.train_x[cut], digits.train_y[cut]) for cut in cuts]


@pytest.mark.parametrize("shape", [(16, 16), (16, 40), (40, 16)])
def test_singular_vectors_stay_and_singular_values_come_near_1(shape) -> None:
    matrix = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    update = orthogonalised(matrix)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    diagonal = left.T @ update @ right.T
    assert (diagonal - torch.diag(diagonal.diag())).abs().max() < 1e-9
    assert diagonal.diag()[values > 0.01 * values.norm()].min() > 0.6 and diagonal.max() < 1.21
    assert torch.equal(orthogonalised(torch.zeros(shape)), torch.zeros(shape))


@pytest.mark.parametrize("name", ["gather", "owner", "replicate"])
@pytest.mark.parametrize(("world_size", "matrices"), [(1, 4), (2, 4), (4, 4), (4, 8)])
def test_three_ways_are_muon_of_one_process_after_every_step(four_ranks, name, world_size, matrices) -> None:
    serial = train_muon_serially(batches(), matrices=matrices)
    is_sharded, more = name != "replicate", {"ranks": world_size, "backend": "gloo"}
    run = four_ranks.run(train_muon, WAYS[name], batches(), is_sharded, matrices=matrices, **more)
    for result in run.results:
        for weights, expected in zip(result.weights, serial.weights, strict=True):
            torch.testing.assert_close(weights, expected, rtol=0, atol=1e-10)
    nbytes, others = matrices * SIZE * SIZE * 8, world_size - 1
    added = {"gather": others / world_size, "owner": 2 * others / world_size**2, "replicate": 0}
    assert sent_for(run.events, "Muon", world_size, STEPS) == pytest.approx(added[name] * nbytes)
    assert sent_for(run.events, "weights", world_size, STEPS) == pytest.approx(
        is_sharded * others / world_size * nbytes
    )
    halves = 1 if is_sharded else 2
    assert sent_for(run.events, "gradients", world_size, STEPS) == pytest.approx(halves * others / world_size * nbytes)
    share = world_size if name == "owner" else 1
    assert times_orthogonalised(run.events, STEPS, rank=world_size - 1) == matrices / share
    assert run.results[0].kept == 2 * nbytes / (world_size if is_sharded else 1)


def test_own_rows_train_something_else_and_singular_values_show_it(four_ranks) -> None:
    serial = train_muon_serially(batches())
    result = four_ranks.run(train_muon, by_shard, batches(), backend="gloo").results[0]
    assert result.losses[-1] < result.losses[0]
    assert (result.weights[-1] - serial.weights[-1]).abs().max() > 0.01
    largest = [torch.linalg.matrix_norm(updates, ord=2) for updates in (serial.updates, result.updates)]
    assert largest[0].max() < 1.21 and largest[1].min() > 1.5
    alone = four_ranks.run(train_muon, by_shard, batches(), ranks=1, backend="gloo").results[0]
    torch.testing.assert_close(alone.weights[-1], serial.weights[-1], rtol=0, atol=1e-10)


def owned_or_error() -> str:
    try:
        owned(first_matrices(3), orthogonalised)
    except CourseError as error:
        return str(error)
    return ""


def test_matrices_have_to_be_dealt_out_evenly(four_ranks) -> None:
    assert "3 matrices" in four_ranks.run(owned_or_error, ranks=2, backend="gloo").results[1]


def test_torchs_muon_is_ours_but_for_bfloat16() -> None:
    ours, first = train_muon_serially(batches()).weights, torch.stack(first_matrices())
    for weights, expected in zip(torchs_muon(batches()), ours, strict=True):
        assert (weights - expected).norm() < 0.2 * (expected - first).norm()


def test_the_picture_finds_who_has_whole_matrices(four_ranks) -> None:
    one_step = {
        name: four_ranks.run(train_muon, way, batches(1), name != "replicate", backend="gloo").results
        for name, way in WAYS.items()
    }
    picture = shard_pictures.muon(one_step, train_muon_serially(batches(1)))
    assert "with gather, owner and replicate, but not with own rows" in picture.alt_text
    for text in ("own rows: rank 0 has a part of 4", "owner: rank 0 has 1 matrix whole", "gather: rank 0 has 4 matr"):
        assert text in picture.alt_text
    assert (
        "No rank has"
        in shard_pictures.muon({"own rows": one_step["own rows"]}, train_muon_serially(batches(1))).alt_text
    )


def test_sentences_about_muon() -> None:
    text = sentences.muon_drift_text([4.0, 1.0], [4.0, 2.0], 0.5)
    assert text == (
        "The loss of the wrong Muon falls even faster, but its weights miss those of one process by 50% of the "
        "distance that these moved"
    )
    assert "falls as well, but" in sentences.muon_drift_text([4.0, 3.0], [4.0, 2.0], 0.5)
    assert "doesn't fall, and" in sentences.muon_drift_text([4.0, 5.0], [4.0, 2.0], 0.5)
    assert "has the weights of one process" in sentences.muon_drift_text([4.0, 2.0], [4.0, 2.0], 0.0)
    sent = {"gather": {"Muon": 3.0}, "owner": {"Muon": 2.0}, "replicate": {"gradients": 1.0}}
    computed = {"gather": 4.0, "owner": 1.0, "replicate": 4.0}
    text = sentences.muon_ways_text(sent, computed)
    assert text == "Replicate sends the least, but with owner a rank orthogonalises 1 instead of 4 matrices"
    del sent["replicate"]
    assert sentences.muon_ways_text(sent, computed).startswith("Owner sends the least, and lets")
