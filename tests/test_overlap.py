"""Buckets, and gradients that are averaged while the backward pass is at work."""

import functools
import itertools

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

import course_utils as course
from course_utils import training
from course_utils.compression import compress, top_k_with_error_feedback
from course_utils.overlap import accumulate_gradients, make_buckets, overlapped_allreduce
from course_utils.replicas import WAYS, Replica, torch_ddp
from course_utils.scaling import exposed_seconds, scaling_efficiency


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


def accumulated(micro_sizes: list[int]) -> tuple[float, float, int]:
    """Loss, largest difference to the gradient of the whole batch, and how often a bucket was sent."""
    torch.manual_seed(dist.get_rank())
    x, y = torch.randn(sum(micro_sizes), 64, dtype=torch.float64), torch.randint(0, 10, (sum(micro_sizes),))
    sent: list[int] = []

    def count(_, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        sent.append(bucket.index())
        return default_hooks.allreduce_hook(None, bucket)

    gradients = []
    for batches in (list(zip(x.split(micro_sizes), y.split(micro_sizes), strict=True)), [(x, y)]):
        module = torch_ddp(training.digits_mlp(0).double()).module
        module.register_comm_hook(None, count)
        loss = accumulate_gradients(module, batches)
        gradients.append([parameter.grad for parameter in module.parameters()])
    error = max(float((a - b).abs().max()) for a, b in zip(*gradients, strict=True))
    return abs(loss - torch.nn.functional.cross_entropy(module(x), y).item()), error, len(sent)


def test_accumulated_gradients_are_those_of_the_whole_batch_and_travel_once(four_ranks) -> None:
    for loss_error, error, sent in four_ranks.run(accumulated, [5, 1, 7], ranks=2, backend="gloo").results:
        assert loss_error < 1e-12 and error < 1e-12
        assert sent == 2, "one bucket, sent once by each of the two ways"


@pytest.mark.parametrize(
    ("kind", "together", "efficiency"), [("strong", 2.0, 1.0), ("strong", 8.0, 0.25), ("weak", 8.0, 1.0)]
)
def test_scaling_efficiency(kind, together, efficiency) -> None:
    assert scaling_efficiency(8.0, together, 4, kind) == efficiency


@pytest.mark.parametrize("arguments", [(1.0, 1.0, 4, "sideways"), (0.0, 1.0, 4), (1.0, -1.0, 4), (1.0, 1.0, 0)])
def test_scaling_efficiency_refuses_what_makes_no_sense(arguments) -> None:
    with pytest.raises(ValueError):
        scaling_efficiency(*arguments)


def test_exposed_communication_by_hand() -> None:
    ready, sizes = [3.0, 2.0, 1.0], [10, 10, 10]  # the last parameter's gradient is ready first
    assert exposed_seconds(ready, sizes, 3.0, 10, lambda size: size / 20) == 0.5  # all but the last hides
    assert exposed_seconds(ready, sizes, 3.0, 30, lambda size: size / 20) == 1.5  # one bucket hides nothing
    assert exposed_seconds(ready, sizes, 3.0, 10, lambda size: size / 5) == 4.0  # the link is the bottleneck


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_k_sends_the_largest_and_owes_the_rest(dtype, seed) -> None:
    torch.manual_seed(seed)
    gradient, error = torch.randn(50, dtype=dtype), torch.randn(50, dtype=dtype)
    indices, values, left = top_k_with_error_feedback(gradient, error, 7)
    whole = left.clone()
    whole[indices] += values
    assert torch.equal(whole, gradient + error) and len(set(indices.tolist())) == 7
    assert left.abs().max() <= values.abs().min()


def compressed(how: str, data) -> training.History:
    def replicate(model: nn.Module) -> Replica:
        replica = torch_ddp(model)
        compress(replica.module, how, share=0.05)
        return replica

    return training.train_parallel(data, replicate=replicate, epochs=4, rate=0.2)


@pytest.mark.parametrize("how", ["fp16", "top-k", "PowerSGD"])
def test_compressed_gradients_train_and_keep_the_replicas_equal(four_ranks, how) -> None:
    first, second = four_ranks.run(compressed, how, course.data.digits(), ranks=2, backend="gloo").results
    assert torch.equal(first.parameters, second.parameters)
    assert first.losses[-1] < 0.5 * first.losses[0]
