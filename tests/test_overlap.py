"""Buckets, and gradients that are averaged while the backward pass is at work."""

import functools
import itertools

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

import course_utils as course
from course_utils import training
from course_utils.overlap import make_buckets, overlapped_allreduce
from course_utils.replicas import WAYS, torch_ddp


def test_buckets_hold_every_gradient_once_the_last_first(seed) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        sizes = [int(size) for size in rng.integers(1, 50, rng.integers(0, 20))]
        limit = int(rng.integers(1, 80))
        buckets = make_buckets(sizes, limit)
        assert [place for bucket in buckets for place in bucket] == list(reversed(range(len(sizes))))
        for bucket, following in itertools.zip_longest(buckets, buckets[1:]):
            held = sum(sizes[place] for place in bucket)
            assert held <= limit or len(bucket) == 1
            assert following is None or held + sizes[following[0]] > limit, "a bucket is closed only when it must be"


class Strange(nn.Module):
    """A weight used twice, a frozen one, one that no batch uses, and two that only odd batches use."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(6, 6)
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.unused = nn.Linear(6, 6)
        self.odd = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, step: int) -> torch.Tensor:
        x = self.frozen(self.shared(self.shared(x)).tanh())
        return self.odd(x) if step % 2 else x


def differences(bucket_bytes: int, steps: int) -> float:
    """The largest difference to the mean of all ranks' gradients, and of the ranks among each other."""
    torch.manual_seed(0)
    model = Strange().double()
    finish = overlapped_allreduce(list(model.parameters()), bucket_bytes)
    largest = 0.0
    for step in range(steps):
        inputs = torch.randn(dist.get_world_size(), 5, 6, dtype=torch.float64)
        model.zero_grad()
        model(inputs[dist.get_rank()], step).square().sum().backward()
        finish()
        reference = Strange().double()
        reference.load_state_dict(model.state_dict())
        sum(reference(one, step).square().sum() for one in inputs).div(dist.get_world_size()).backward()
        for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
            if ours.requires_grad:
                wanted = torch.zeros_like(ours) if theirs.grad is None else theirs.grad
                largest = max(largest, float((ours.grad - wanted).abs().max()))
        assert model.frozen.weight.grad is None
    return largest


@pytest.mark.parametrize("bucket_bytes", [1, 300, 10**6])
def test_overlapped_gradients_are_the_means_whatever_the_buckets(four_ranks, bucket_bytes) -> None:
    run = four_ranks.run(differences, bucket_bytes, 4, backend="gloo")
    assert max(run.results) < 1e-12


def histories(way: str, data, steps_of: int):
    return training.train_parallel(data, replicate=WAYS[way], epochs=1, batch_size=steps_of, rate=0.2)


def test_all_ways_train_alike_step_for_step_as_one_process_does(four_ranks) -> None:
    data = course.data.digits("float64")
    serial = training.train_serial(data, epochs=1, batch_size=128, rate=0.2)
    for way in WAYS:
        for history in four_ranks.run(histories, way, data, 128, backend="gloo").results:
            assert torch.allclose(history.parameters, serial.parameters, rtol=0, atol=1e-12), way
            assert history.test_accuracy == serial.test_accuracy, way


def strange_gradients(way: str, step: int) -> list[torch.Tensor | None]:
    torch.manual_seed(0)
    model = Strange().double()
    make = functools.partial(torch_ddp, unused=True) if way == "DDP" else WAYS[way]
    replica = make(model)
    replica.module(torch.randn(4, 5, 6, dtype=torch.float64)[dist.get_rank()], step).square().sum().backward()
    replica.finish()
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("way", WAYS)
def test_tied_frozen_and_unused_weights(four_ranks, way) -> None:
    wanted = four_ranks.run(strange_gradients, "all-reduce, each", 0, backend="gloo").results[0]
    for gradients in four_ranks.run(strange_gradients, way, 0, backend="gloo").results:
        for ours, theirs in zip(gradients, wanted, strict=True):
            assert (ours is None) == (theirs is None) or way == "DDP"  # DDP leaves what nobody used without a gradient
            if ours is not None:
                assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_a_batch_that_does_not_divide_is_refused(four_ranks) -> None:
    data = course.data.digits("float64")
    with pytest.raises(course.RankError, match="a global batch of 65 does not divide among 4 ranks"):
        four_ranks.run(histories, "DDP", data, 65, backend="gloo")
