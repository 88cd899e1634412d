"""The five ways to keep replicas equal: the same losses step for step, whatever the model and the batches are like."""

import functools

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

import course_utils as course
from course_utils.lessons.data_parallel import training
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.replicas import torch_ddp, train_replicas
from course_utils.lessons.overlap.buckets import ALL_WAYS

OPTIONS = {"epochs": 2, "batch_size": 48, "rate": 0.2}


@pytest.fixture(scope="module")
def data() -> training.Data:
    """A part of the digits, in float64; the last of four batches of 48 has 11."""
    train_x, train_y, test_x, test_y = course.data.digits("float64")
    return train_x[:155], train_y[:155], test_x, test_y


class Tied(nn.Module):
    """One matrix used twice, forwards and backwards, a frozen layer, and one that nothing uses."""

    def __init__(self, with_unused: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64, bias=False)
        self.back = nn.Linear(64, 64, bias=False)
        self.back.weight = self.inner.weight
        self.frozen = nn.Linear(64, 64).requires_grad_(False)
        self.unused = nn.Linear(64, 3).requires_grad_(with_unused)
        self.last = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.frozen(self.back(self.inner(x).tanh())).tanh())


def tied(seed: int, with_unused: bool = False) -> nn.Module:
    torch.manual_seed(seed)
    return Tied(with_unused)


def with_unused(seed: int) -> nn.Module:
    return tied(seed, with_unused=True)


MODELS = {"mlp": training.digits_mlp, "tied and frozen": tied, "unused": with_unused}


def train(way: str, data: training.Data, model: str, **options) -> training.History:
    make = functools.partial(torch_ddp, unused=True) if (way, model) == ("DDP", "unused") else ALL_WAYS[way]
    build = functools.partial(training.own_weights, build=MODELS[model])
    return train_replicas(data, make, build, **OPTIONS, **options)


def global_losses(run: course.Run, keep_last: bool, examples: int) -> np.ndarray:
    """The mean loss over each global batch, from the ranks' own."""
    losses = np.array([history.losses for history in run.results])
    shares = np.full(losses.shape, 1 / run.world_size)
    if keep_last:
        left_over = examples % OPTIONS["batch_size"]
        own = [len(range(rank, left_over, run.world_size)) / left_over for rank in range(run.world_size)]
        shares[:, examples // OPTIONS["batch_size"] :: losses.shape[1] // OPTIONS["epochs"]] = np.array(own)[:, None]
    return (losses * shares).sum(axis=0)


@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_losses_are_those_of_one_process_step_for_step(four_ranks, data, way, model) -> None:
    serial = training.train_serial(data, MODELS[model], **OPTIONS)
    run = four_ranks.run(train, way, data, model, backend="gloo")
    assert len(serial.losses) == 6
    assert np.abs(global_losses(run, False, 155) - serial.losses).max() < 1e-12
    for history in run.results:  # each had drawn first weights of its own
        assert torch.allclose(history.parameters, serial.parameters, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("way", "world_size"), [*((way, 3) for way in ALL_WAYS), ("overlapped", 4)])
def test_an_uneven_last_batch_counts_by_its_examples(four_ranks, data, way, world_size) -> None:
    serial = training.train_serial(data, **OPTIONS, keep_last=True)
    run = four_ranks.run(train, way, data, "mlp", keep_last=True, ranks=world_size, backend="gloo")
    assert len(serial.losses) == 8
    assert np.abs(global_losses(run, True, 155) - serial.losses).max() < 1e-12
    for history in run.results:
        assert torch.allclose(history.parameters, serial.parameters, rtol=0, atol=1e-12)


def test_a_last_batch_with_fewer_examples_than_ranks_is_rejected(four_ranks, data) -> None:
    few = (data[0][:51], data[1][:51], *data[2:])
    with pytest.raises(course.RankError, match=r"the last batch has 3 for 4 ranks.*keep_last=False"):
        four_ranks.run(train, "DDP", few, "mlp", keep_last=True, backend="gloo")


def leave_alone(model: nn.Module) -> None:
    """Send nothing."""


@pytest.mark.parametrize("way", ALL_WAYS)
def test_only_the_broadcast_makes_unlike_ranks_equal(four_ranks, data, way) -> None:
    run = four_ranks.run(train, way, data, "mlp", broadcast=leave_alone, ranks=2, backend="gloo")
    first, second = (history.parameters for history in run.results)
    assert torch.allclose(first, second) == (way == "DDP")  # DDP broadcasts by itself


def first_weights(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's weights and running means before the broadcast, and after it."""
    model = training.local_norm_mlp(seed + dist.get_rank())
    for buffer in model.buffers():
        buffer.fill_(dist.get_rank())
    before = torch.cat([tensor.detach().flatten().float() for tensor in (*model.parameters(), *model.buffers())])
    broadcast_parameters(model)
    after = torch.cat([tensor.detach().flatten().float() for tensor in (*model.parameters(), *model.buffers())])
    return before, after


def test_the_broadcast_gives_all_ranks_rank_0s_weights_and_buffers(four_ranks) -> None:
    results = four_ranks.run(first_weights, 7, backend="gloo").results
    assert len({tuple(before.tolist()) for before, _ in results}) == 4
    assert all(torch.equal(after, results[0][0]) for _, after in results)


def train_ddp_as_it_comes(data: training.Data) -> training.History:
    return train_replicas(data, torch_ddp, with_unused, **OPTIONS)


def test_ddp_says_what_it_waits_for(four_ranks, data) -> None:
    with pytest.raises(course.RankError, match=r"this batch did not use unused\..*torch_ddp\(model, unused=True\)"):
        four_ranks.run(train_ddp_as_it_comes, data, ranks=2, backend="gloo")


def step_with_nothing_to_train(way: str) -> bool:
    replica = ALL_WAYS[way](nn.Linear(3, 1).requires_grad_(False))
    replica.finish()
    return all(parameter.grad is None for parameter in replica.module.parameters())


@pytest.mark.parametrize("way", [way for way in ALL_WAYS if way != "DDP"])
def test_nothing_to_train_is_nothing_to_send(four_ranks, way) -> None:
    run = four_ranks.run(step_with_nothing_to_train, way, ranks=2, backend="gloo")
    assert run.results == [True, True] and run.bytes == 0


class Mixed(nn.Module):
    """Two layers of unlike dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Linear(6, 6), nn.Linear(6, 2).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(self.narrow(x).double())


def mixed_gradients(way: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    replica = ALL_WAYS[way](Mixed())
    replica.module(torch.randn(4, 5, 6)[dist.get_rank()]).square().sum().backward()
    replica.finish()
    return [parameter.grad for parameter in replica.module.parameters()]


def test_gradients_of_unlike_dtypes_keep_them(four_ranks) -> None:
    wanted = four_ranks.run(mixed_gradients, "all-reduce, each", ranks=2, backend="gloo").results[0]
    for way in ALL_WAYS:
        for gradients in four_ranks.run(mixed_gradients, way, ranks=2, backend="gloo").results:
            assert all(torch.allclose(ours, one) for ours, one in zip(gradients, wanted, strict=True)), way
            assert [one.dtype for one in gradients] == [torch.float32] * 2 + [torch.float64] * 2, way
