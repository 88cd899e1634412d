"""ZeRO, stage 2, by hand: no rank keeps a whole gradient, not even while the backward pass makes it.

Gradients are collected in buckets, as in lesson 7. A bucket that is full is added up over the ranks and dealt out, each
rank keeps its part, and the memory of the whole bucket is free again for the next one.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector

from course_utils.lessons.data_parallel.replicas import BUCKET_BYTES
from course_utils.lessons.hybrid_and_sharded.zero1 import BETAS, EPS, Betas, adam_shard
from course_utils.lessons.model_parallel.memory_counter import bytes_of
from course_utils.lessons.overlap.buckets import make_buckets


class ShardedBucket:
    """Some parameters whose gradients are added up and dealt out together.

    Attributes:
        parameters: in the order in which their gradients are made, all of one dtype.
        state: Adam's, for this rank's part of the bucket.
        missing: how many gradients have not come yet in this backward pass.
        whole: what has come, as one vector; None before the first one and once it is dealt out.
        mine: this rank's part of the mean over the ranks; None until then.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        ends = list(accumulate(parameter.numel() for parameter in self.parameters))
        self._slices = {
            parameter: slice(end - parameter.numel(), end) for parameter, end in zip(self.parameters, ends, strict=True)
        }
        self.total = ends[-1]
        self.state = adam_shard(self.parameters[0].new_empty(self.total))
        self.begin()

    def begin(self) -> None:
        """Forget the gradients of the last backward pass."""
        self.missing = len(self.parameters)
        self.whole: torch.Tensor | None = None
        self.mine: torch.Tensor | None = None

    def add(self, parameter: nn.Parameter) -> None:
        """Take a gradient over from the parameter, which is left without one."""
        if self.whole is None:
            self.whole = self.state.mean.new_zeros(dist.get_world_size() * len(self.state.mean))
        self.whole[self._slices[parameter]] = parameter.grad.flatten()
        parameter.grad = None
        self.missing -= 1

    def deal_out(self) -> None:
        """Reduce-scatter: of the mean over the ranks each keeps its part. A gradient that did not come counts as 0."""
        if self.whole is None:
            self.whole = self.state.mean.new_zeros(dist.get_world_size() * len(self.state.mean))
        self.mine = torch.empty_like(self.state.mean)
        dist.reduce_scatter_single(self.mine, self.whole)
        self.mine /= dist.get_world_size()
        self.whole = None

    @torch.no_grad()
    def update(self, rate: float, betas: Betas, eps: float) -> None:
        """Adam on this rank's part; then an all-gather of the parameters."""
        length, rank = len(self.state.mean), dist.get_rank()
        everything = self.state.mean.new_zeros(dist.get_world_size() * length)
        everything[: self.total] = parameters_to_vector(self.parameters)
        own = everything[rank * length : (rank + 1) * length] + self.state.change(self.mine, rate, betas, eps)
        dist.all_gather_single(everything, own)
        for parameter, part in self._slices.items():
            parameter.copy_(everything[part].view_as(parameter))


class Zero2State:
    """The buckets of a training run, and what they hold.

    Attributes:
        buckets: in the order in which they fill up.
        bucket_of: where each parameter's gradient goes.
        most: the most bytes of gradients that this rank has had at any time, whole ones and parts.
    """

    def __init__(self, buckets: Sequence[ShardedBucket]) -> None:
        self.buckets, self.most = list(buckets), 0
        self.bucket_of = {parameter: bucket for bucket in self.buckets for parameter in bucket.parameters}

    def ready(self, parameter: nn.Parameter) -> None:
        """A gradient has been made: into its bucket with it, and deal out what is full, in order on every rank."""
        self.bucket_of[parameter].add(parameter)
        for bucket in self.buckets:
            if bucket.missing:
                break
            if bucket.mine is None:
                self._record_peak()
                bucket.deal_out()

    def gradients(self) -> list[torch.Tensor]:
        """All that this rank has of gradients at this moment."""
        here = [tensor for bucket in self.buckets for tensor in (bucket.whole, bucket.mine)]
        here += [parameter.grad for bucket in self.buckets for parameter in bucket.parameters]
        return [tensor for tensor in here if tensor is not None]

    def _record_peak(self) -> None:
        self.most = max(self.most, bytes_of(self.gradients()))


def zero2_state(parameters: Iterable[nn.Parameter], bucket_bytes: int = BUCKET_BYTES) -> Zero2State:
    """Prepare a training run with `zero2_step`: from now on every backward pass deals its gradients out.

    Args:
        parameters: same shapes and order on all ranks. Frozen ones are left out.
        bucket_bytes: the most that a bucket may hold, see `make_buckets`.
    """
    trained = list(dict.fromkeys(parameter for parameter in parameters if parameter.requires_grad))
    sizes = [parameter.numel() * parameter.element_size() for parameter in trained]
    grouped = make_buckets(sizes, bucket_bytes, [parameter.dtype for parameter in trained])
    state = Zero2State([ShardedBucket([trained[index] for index in places]) for places in grouped])
    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(state.ready)
    return state


def zero2_step(
    loss: torch.Tensor,
    state: Zero2State,
    rate: float = 0.001,
    betas: Betas = BETAS,
    eps: float = EPS,
) -> None:
    """Backward pass and one step of Adam, of which each rank does its part; no rank keeps a whole gradient.

    While gradients are made, each full bucket is reduce-scattered. Then each rank updates its part of every bucket, and
    the parameters are all-gathered. As much moves as in an all-reduce.

    Args:
        loss: this rank's, of its shard of the batch. The step is made with the mean over the ranks.
        state: of `zero2_state(model.parameters())`; changed.

    Source: Rajbhandari et al. 2020, "ZeRO", §5.2 and §7.1.
    """
    zero2_backward(loss, state)
    zero2_update(state, rate, betas, eps)


def zero2_backward(loss: torch.Tensor, state: Zero2State) -> None:
    """Run a backward pass and reduce-scatter each bucket as soon as it is full; parts are in `bucket.mine`."""
    for bucket in state.buckets:
        bucket.begin()
    loss.backward()
    for bucket in state.buckets:
        if bucket.mine is None:
            bucket.deal_out()


def zero2_update(state: Zero2State, rate: float = 0.001, betas: Betas = BETAS, eps: float = EPS) -> None:
    """Take a step of Adam, of which each rank does its part of every bucket, and all-gather the parameters."""
    for bucket in state.buckets:
        bucket.update(rate, betas, eps)
