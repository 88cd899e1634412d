"""Buckets, and gradients that are averaged while the backward pass is at work."""

import itertools

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

import course_utils as course
from course_utils.lessons.data_parallel import training
from course_utils.lessons.data_parallel.replicas import Replica, torch_ddp, train_replicas
from course_utils.lessons.overlap.buckets import accumulate_gradients, make_buckets, overlapped_allreduce
from course_utils.lessons.overlap.compression import compress, top_k_with_error_feedback
from course_utils.lessons.overlap.scaling import exposed_seconds, scaling_efficiency


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


def test_a_bucket_holds_one_dtype() -> None:
    assert make_buckets([4, 4, 8, 8, 4], 100, ["f4", "f4", "f8", "f8", "f4"]) == [[4], [3, 2], [1, 0]]
    assert make_buckets([4, 4], 100, ["f4", "f8"]) == [[1], [0]]


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


def two_dtypes_in_any_order() -> list[torch.Tensor]:
    """Gradients of layers that odd ranks use the other way round, in buckets of one; rank r's loss weighs r + 1."""
    dtypes = {2.0: torch.float64, 3.0: torch.float64, 5.0: torch.float32}
    weights = [nn.Parameter(torch.full((2,), value, dtype=dtype)) for value, dtype in dtypes.items()]
    finish = overlapped_allreduce(weights, 1)
    product = torch.full((2,), float(dist.get_rank() + 1), dtype=torch.float64)
    for weight in weights[:: -1 if dist.get_rank() % 2 else 1]:
        product = product * weight
    product.sum().backward()
    finish()
    return [weight.grad for weight in weights]


def test_buckets_leave_in_the_same_order_on_ranks_whose_gradients_come_in_another(four_ranks) -> None:
    for gradients in four_ranks.run(two_dtypes_in_any_order, backend="gloo").results:
        for gradient, others, dtype in zip(gradients, (15, 10, 6), (torch.float64, torch.float64, torch.float32)):
            assert torch.equal(gradient, torch.full((2,), 2.5 * others, dtype=dtype))


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
def test_scaling_efficiency_rejects_what_makes_no_sense(arguments) -> None:
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

    return train_replicas(data, replicate, epochs=4, rate=0.2)


@pytest.mark.parametrize("how", ["fp16", "float8", "top-k", "PowerSGD"])
def test_compressed_gradients_train_and_keep_the_replicas_equal(four_ranks, how) -> None:
    first, second = four_ranks.run(compressed, how, course.data.digits(), ranks=2, backend="gloo").results
    assert torch.equal(first.parameters, second.parameters)
    assert first.losses[-1] < 0.5 * first.losses[0]
