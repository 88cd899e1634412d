"""Numbers of 8 bits with scales: how far off they are, and an all-reduce that sends nothing else."""

import pytest
import torch
import torch.distributed as dist

from course_utils.lessons.overlap import sentences
from course_utils.lessons.overlap.checks.float8_all_reduce import blocks_of, expected
from course_utils.lessons.overlap.float8 import dequantise, float8_all_reduce, quantise
from course_utils.lessons.overlap.pictures import float8_blocks


@pytest.mark.parametrize("size", [1e-20, 1e-3, 1.0, 1e20])
def test_rounding_is_off_by_a_seventeenth_at_most_whatever_the_size(size) -> None:
    values = size * (1 + 99 * torch.rand(4096, generator=torch.Generator().manual_seed(0)))
    numbers, scales = quantise(values, 32)
    assert numbers.element_size() == 1 and scales.shape == (128,)
    assert ((dequantise(numbers, scales, 32) - values).abs() / values).max() <= 1 / 17 + 1e-6


def test_an_outlier_spoils_its_own_block_and_zeros_stay_zeros() -> None:
    values = torch.cat([torch.zeros(8), torch.full((8,), 0.5), torch.tensor([1e9] + [1.0] * 7)])
    rounded = dequantise(*quantise(values, 8), 8)
    assert torch.equal(rounded[:16], values[:16])
    assert (rounded[17:] == 0).all() and abs(rounded[16] - 1e9) < 1e3


def summed(n: int, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    vector = torch.randn(n, generator=torch.Generator().manual_seed(dist.get_rank()))
    exact = vector.clone()
    dist.all_reduce(exact)
    return float8_all_reduce(vector, block), exact


@pytest.mark.parametrize(("n", "block", "world_size"), [(4096, 128, 4), (1000, 32, 3), (5, 16, 4), (64, 64, 1)])
def test_all_ranks_have_the_same_sum_for_a_quarter_of_the_bytes(four_ranks, n, block, world_size) -> None:
    run = four_ranks.run(summed, n, block, ranks=world_size, backend="gloo")
    sums, exact = zip(*run.results, strict=True)
    assert all(torch.equal(each, sums[0]) for each in sums)
    assert (sums[0] - exact[0]).norm() < 0.06 * exact[0].norm()
    padded = -(-n // (world_size * block)) * block * world_size
    calls = [event for event in run.events if event.kind == "collective" and event.rank == 0]
    in_bytes = [(event.name, event.bytes) for event in calls if event.name != "all_reduce"]
    half = [padded, padded // block * 4]
    assert in_bytes == [
        *(("all_to_all_single", nbytes) for nbytes in half),
        *(("all_gather_single", nbytes // world_size) for nbytes in half),
    ]


def of_rank(vectors: list[torch.Tensor], block: int) -> torch.Tensor:
    return float8_all_reduce(vectors[dist.get_rank()], block)


def test_the_check_expects_what_is_summed(four_ranks, seed) -> None:
    import numpy as np

    rng = np.random.default_rng(seed)
    vectors = [blocks_of(rng, 77, 8) for _ in range(4)]
    for each in four_ranks.run(of_rank, vectors, 8, backend="gloo").results:
        assert torch.equal(each, expected(vectors, 8))


def test_the_picture_says_what_is_where() -> None:
    vectors = [2.0 ** (rank + 3 * torch.arange(3)).repeat_interleave(2) for rank in range(3)]
    arrived = [torch.stack([vector.view(3, 2)[rank] for vector in vectors]) for rank in range(3)]
    sums = [parts.sum(0) for parts in arrived]
    picture = float8_blocks(vectors, arrived, sums, [torch.cat(sums)] * 3)
    assert "adds it up, and shares the sum" in picture.alt_text
    one_part_missing = torch.cat([sums[0], sums[1], vectors[0].view(3, 2)[2]])
    wrong = float8_blocks(vectors, arrived, sums, [torch.cat(sums), one_part_missing, torch.cat(sums)])
    assert "Not every rank ends up" in wrong.alt_text


def test_sentences_about_blocks_and_losses() -> None:
    assert sentences.block_size_text([16, 64], [[0.02, 0.03], [0.03, 0.9]]) == (
        "The other numbers are 90% off with one scale for all, but 3% with a scale for 16 numbers"
    )
    assert "as well as" in sentences.block_size_text([16, 64], [[0.03, 0.03]])
    losses = {"none": [2.0, 1.0], "float8": [2.1, 0.9], "PowerSGD": [2.0, 2.0]}
    text = sentences.learning_text(losses, "none")
    assert text == "The loss is 0.1 with float8 and 0.5 with PowerSGD away from that of plain gradients, on average"
