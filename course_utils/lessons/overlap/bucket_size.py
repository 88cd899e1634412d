"""How large a bucket should be: the step time over the bucket size, calculated from three measurements.

They are the times at which gradients are ready (lesson 2), the time alpha + beta · n of an all-reduce of n bytes
(lesson 5), and the time for computing. Small buckets start early and pay alpha often; large ones pay it rarely and
start late.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.autodiff_and_optimizers.ready_order import BackwardTimes, measure_ready_order
from course_utils.lessons.overlap.buckets import make_buckets
from course_utils.lessons.overlap.scaling import exposed_seconds
from course_utils.lessons.overlap.step_times import small_vgg
from course_utils.vgg import random_images


@dataclass(frozen=True)
class BucketModel:
    """What has to be known to calculate the time of a step.

    Attributes:
        names: of the parameters, in the order of `model.parameters()`.
        sizes: bytes of each gradient, in that order.
        ready: seconds after the beginning of the backward pass at which each gradient is ready, in that order.
        forward, backward: seconds of the two passes by themselves.
        alpha, beta: an all-reduce of n bytes takes alpha + beta · n seconds.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    ready: tuple[float, ...]
    forward: float
    backward: float
    alpha: float
    beta: float

    @classmethod
    def of(cls, times: BackwardTimes, order: Sequence[str], alpha: float, beta: float) -> "BucketModel":
        """Put the measurements together. The names in `order` are in the order of `model.named_parameters()`."""
        sizes = dict(zip(times.names, times.bytes, strict=True))
        ready = dict(zip(times.names, times.median.tolist(), strict=True))
        names = tuple(name for name in order if name in sizes)
        forward = statistics.median(times.forwards.tolist())
        return cls(names, tuple(map(sizes.get, names)), tuple(map(ready.get, names)), forward, times.end, alpha, beta)

    def all_reduce(self, nbytes: float) -> float:
        """Return the seconds of one all-reduce."""
        return self.alpha + self.beta * nbytes

    def communication(self, bucket_bytes: int) -> float:
        """Return the seconds of all the buckets' all-reduces, one after the other."""
        buckets = make_buckets(self.sizes, bucket_bytes)
        return sum(self.all_reduce(sum(self.sizes[index] for index in places)) for places in buckets)

    def exposed(self, bucket_bytes: int) -> float:
        """Return for how many seconds a step waits after its backward pass."""
        return exposed_seconds(self.ready, self.sizes, self.backward, bucket_bytes, self.all_reduce)

    def step(self, bucket_bytes: int) -> float:
        """Return the seconds of a step: forward, backward, and exposed communication."""
        return self.forward + self.backward + self.exposed(bucket_bytes)

    def best(self, candidates: Sequence[int]) -> int:
        """Return the bucket size with the shortest step. Of several within 2% of it, return the middle one."""
        shortest = min(map(self.step, candidates))
        good = [size for size in sorted(candidates) if self.step(size) <= 1.02 * shortest]
        return good[len(good) // 2]


def sizes_to_try(model: BucketModel) -> tuple[int, list[int]]:
    """Return the best bucket size, and sizes to compare it with, from about one gradient each to all in one."""
    whole = sum(model.sizes)
    between, ends = ([in_thousands(whole * share) for share in shares] for shares in ((0.03, 0.12, 0.3), (0.002, 1.05)))
    best = model.best(sorted({*map(in_thousands, np.geomspace(whole / 500, whole, 200).tolist()), *between, *ends}))
    tried = [size for size in between if not 0.45 < size / best < 2.2]
    tried += [size for size in ends if not 0.75 < size / best < 1.33]
    return best, sorted({best, *tried})  # far enough apart for a picture to label them


def in_thousands(nbytes: float) -> int:
    """Round to the nearest thousand, but at least to one thousand."""
    return max(1000, 1000 * round(nbytes / 1000))


def backward_times(
    batch: int, repeats: int, build: Callable[[int], nn.Module] = small_vgg
) -> tuple[BackwardTimes, list[str]]:
    """Measure on every rank, without messages, when gradients are ready; also return the parameters' names in order."""
    model = build(0).train()
    x, y = random_images(batch)

    def loss() -> torch.Tensor:
        dist.barrier()  # ranks that share cores must be at work at the same time, as in a step
        return cross_entropy(model(x), y)

    return measure_ready_order(model, loss, repeats), [name for name, _ in model.named_parameters()]
