"""Meshes, two kinds of parallelism in one network, and state that is divided among the ranks."""

import math

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network, allreduce_time
from course_utils.lessons.autodiff_and_optimizers.optimizers import adam_step
from course_utils.lessons.hybrid_and_sharded.communication_bound import break_even
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups, place_of
from course_utils.lessons.hybrid_and_sharded.hybrid_step import drifting_gradients, equal_shards, hybrid_step
from course_utils.lessons.hybrid_and_sharded.zero1 import adam_shard, shard_length, zero1_step
from course_utils.lessons.hybrid_and_sharded.zero_formulas import fits, zero_memory, zero_traffic


def test_a_mesh_of_two_by_three() -> None:
    assert mesh_groups({"data": 2, "tensor": 3}) == {
        "data": [[0, 3], [1, 4], [2, 5]],
        "tensor": [[0, 1, 2], [3, 4, 5]],
    }


@pytest.mark.parametrize("sizes", [{"a": 1}, {"a": 2, "b": 2, "c": 2}, {"a": 3, "b": 1, "c": 4}, {"a": 5}])
def test_every_rank_is_in_one_group_of_each_axis_and_at_its_place(sizes) -> None:
    total = math.prod(sizes.values())
    for axis, groups in mesh_groups(sizes).items():
        assert sorted(rank for group in groups for rank in group) == list(range(total))
        for group in groups:
            assert [place_of(rank, sizes)[axis] for rank in group] == list(range(sizes[axis]))
            for other in set(sizes) - {axis}:
                assert len({place_of(rank, sizes)[other] for rank in group}) == 1
    assert np.array_equal(
        [list(place_of(rank, sizes).values()) for rank in range(total)], list(np.ndindex(*sizes.values()))
    )


@pytest.mark.parametrize("sizes", [{}, {"a": 0}, {"a": 2, "b": -1}])
def test_what_is_no_mesh_is_rejected(sizes) -> None:
    with pytest.raises(CourseError, match="at least one"):
        mesh_groups(sizes)


def test_a_rank_that_is_not_on_the_mesh_is_rejected() -> None:
    with pytest.raises(CourseError, match="Rank 4"):
        place_of(4, {"a": 2, "b": 2})


def sharded_training(n: int, steps: int) -> tuple[np.ndarray, int]:
    """Weights after some steps, and how many numbers of Adam's state this rank keeps."""
    parameters = torch.linspace(-1, 1, n, dtype=torch.float64)
    state = adam_shard(parameters)
    for step in range(steps):
        zero1_step(parameters, gradient_of(parameters, step, dist.get_rank()), state, rate=0.05)
    return parameters.numpy(), state.mean.numel() + state.square.numel()


def gradient_of(parameters: torch.Tensor, step: int, rank: int) -> torch.Tensor:
    """Some gradient, unlike on all ranks."""
    return parameters * (rank + 1) + math.sin(step + rank + 1)


@pytest.mark.parametrize(("n", "world_size"), [(12, 4), (10, 4), (3, 4), (1, 2), (7, 1)])
def test_zero1_is_adam_with_a_part_of_its_state_on_each_rank(four_ranks, n, world_size) -> None:
    run = four_ranks.run(sharded_training, n, 5, ranks=world_size, backend="gloo")
    weights = np.linspace(-1, 1, n)
    mean, square = np.zeros(n), np.zeros(n)
    for step in range(5):
        gradients = [gradient_of(torch.from_numpy(weights), step, rank).numpy() for rank in range(world_size)]
        adam_step([weights], [sum(gradients) / world_size], [mean], [square], step + 1, rate=0.05)
    for got, kept in run.results:
        np.testing.assert_allclose(got, weights, rtol=0, atol=1e-12)
        assert kept == 2 * shard_length(n, world_size)
    for rank in range(world_size):
        names = [event.name for event in run.events if event.kind == "collective" and event.rank == rank]
        assert names == ["reduce_scatter_single", "all_gather_single"] * 5


def test_memory_and_traffic_are_the_papers() -> None:
    """Figure 1: 7.5 billion parameters on 64 ranks, in GB."""
    wanted = {0: 120.0, 1: 31.4, 2: 16.6, 3: 1.9}
    for stage, gigabytes in wanted.items():
        assert zero_memory(7.5e9, 64, stage) / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert zero_traffic(1e9, 64, 2) == zero_traffic(1e9, 64, 0) == pytest.approx(2 * 63 / 64 * 2e9)
    assert zero_traffic(1e9, 64, 3) / zero_traffic(1e9, 64, 1) == pytest.approx(1.5)
    assert zero_traffic(1e9, 1, 3) == 0
    assert fits(7e9, 8, 3, 80e9) and not fits(7e9, 1, 3, 80e9)
    assert not fits(7e9, 8, 3, 80e9, activations=70e9)


@pytest.mark.parametrize(("stage", "ranks"), [(4, 2), (-1, 2), (1, 0)])
def test_unknown_stages_are_rejected(stage, ranks) -> None:
    with pytest.raises(CourseError):
        zero_memory(1e9, ranks, stage)
    with pytest.raises(CourseError):
        zero_traffic(1e9, ranks, stage)


@pytest.mark.parametrize(("way", "stage", "operations"), [("data", 0, 4), ("fsdp", 3, 6)])
def test_at_break_even_messages_take_as_long_as_the_arithmetic(way, stage, operations) -> None:
    """Whatever the model's size; a tensor-parallel block likewise, whatever the batch."""
    gpus = break_even(way, tokens=1e6, width=1024, flops=4e14, bandwidth=5e10)
    for parameters in (1e6, 7e9):
        working = operations * parameters * 1e6 / gpus / 4e14
        assert zero_traffic(parameters, gpus, stage) / 5e10 == pytest.approx(working)
    assert break_even(way, 1e6, 2048, 4e14, 5e10) == gpus
    assert break_even(way, 2e6, 1024, 4e14, 5e10) == pytest.approx(2 * gpus - 1)


def test_a_wider_model_may_be_cut_over_more_gpus_whatever_the_batch() -> None:
    gpus, tokens, width = break_even("tensor", 4096, 1024, 4e14, 4e11), 4096, 1024
    network = Network(alpha=0, beta=1 / 4e11)
    messages = 4 * allreduce_time("ring", 3, 2 * tokens * width, network) * (gpus - 1) / gpus * 3 / 2
    assert messages == pytest.approx(6 * 12 * width**2 * tokens / gpus / 4e14)
    assert break_even("tensor", 9, 1024, 4e14, 4e11) == pytest.approx(gpus)
    assert break_even("tensor", 9, 2048, 4e14, 4e11) == pytest.approx(2 * gpus - 1)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (("stages", 1, 1, 1, 1), "no parallelism 'stages'"),
        (("data", 0, 1, 1, 1), "above 0"),
        (("data", 1, 1, -1, 1), "above 0"),
    ],
)
def test_what_has_no_break_even_is_rejected(given, match) -> None:
    with pytest.raises(CourseError, match=match):
        break_even(*given)


def parts(seed: int = 0) -> tuple[nn.Module, nn.Module]:
    """Convolutions and fully connected layers in float64."""
    torch.manual_seed(seed)
    convolutions = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.Flatten()).double()
    return convolutions, nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 5)).double()


def examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Eight images and their classes."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(8, 1, 8, 8, dtype=torch.float64, generator=generator)
    return x, torch.randint(5, (8,), generator=generator)


@torch.no_grad()
def descend(*modules: nn.Module) -> None:
    """One step against the gradients, which are forgotten; what has none stays."""
    for one in [one for module in modules for one in module.parameters() if one.grad is not None]:
        one -= 0.1 * one.grad
        one.grad = None


def hybrid_training(way: str, steps: int) -> tuple[list[float], torch.Tensor, torch.Tensor]:
    """Losses, and the weights of both parts at the end."""
    convolutions, dense = parts()
    x, y = (all_.chunk(dist.get_world_size())[dist.get_rank()] for all_ in examples())
    losses = []
    for _ in range(steps):
        if way == "hybrid":
            losses.append(hybrid_step(convolutions, dense, x, y, nn.functional.cross_entropy))
        else:
            loss = nn.functional.cross_entropy(dense(convolutions(x)), y)
            loss.backward()
            drifting_gradients(convolutions, dense)
            losses.append(loss.item())
        descend(convolutions, dense)
    flat = nn.utils.parameters_to_vector
    return losses, flat(convolutions.parameters()).detach(), flat(dense.parameters()).detach()


@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_a_hybrid_is_the_serial_network_step_for_step(four_ranks, world_size) -> None:
    convolutions, dense = parts()
    x, y = examples()
    serial = []
    for _ in range(4):
        loss = nn.functional.cross_entropy(dense(convolutions(x)), y)
        loss.backward()
        serial.append(loss.item())
        descend(convolutions, dense)
    results = four_ranks.run(hybrid_training, "hybrid", 4, ranks=world_size, backend="gloo").results
    assert results[0][0] == pytest.approx(serial, abs=1e-12)
    flat = nn.utils.parameters_to_vector
    torch.testing.assert_close(results[0][2], flat(dense.parameters()).detach(), rtol=0, atol=1e-12)
    for _, weights, _ in results:
        torch.testing.assert_close(weights, flat(convolutions.parameters()).detach(), rtol=0, atol=1e-12)


def test_the_reports_own_version_drifts(four_ranks) -> None:
    (_, first, dense_0), (_, second, dense_1) = four_ranks.run(
        hybrid_training, "report", 4, ranks=2, backend="gloo"
    ).results
    assert torch.equal(first, second), "the convolutions agree"
    assert (dense_0 - dense_1).abs().max() > 1e-3, "the fully connected layers do not"


def test_shards_of_unlike_length_are_rejected() -> None:
    equal_shards(8, 4)
    with pytest.raises(CourseError, match="8 examples cannot be dealt out evenly to 3"):
        equal_shards(8, 3)
