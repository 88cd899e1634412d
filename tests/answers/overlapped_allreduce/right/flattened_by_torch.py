"""torch's own helpers for flat vectors; divides before the sum."""

import functools

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from course_utils.lessons.overlap.buckets import make_buckets


def overlapped_allreduce(parameters, bucket_bytes=25 * 2**20):
    trained = [p for k, p in enumerate(parameters) if p.requires_grad and not any(p is q for q in parameters[:k])]
    groups = make_buckets([p.numel() * p.element_size() for p in trained], bucket_bytes, [p.dtype for p in trained])
    buckets = [[trained[place] for place in group] for group in groups]
    state = {"missing": [len(bucket) for bucket in buckets], "sent": []}

    def send():
        bucket = buckets[len(state["sent"])]
        for p in bucket:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        flat = _flatten_dense_tensors([p.grad for p in bucket]) / dist.get_world_size()
        state["sent"].append((flat, dist.all_reduce(flat, op=dist.ReduceOp.SUM, async_op=True)))

    def ready(number, _):
        state["missing"][number] -= 1
        while len(state["sent"]) < len(buckets) and state["missing"][len(state["sent"])] == 0:
            send()

    for number, bucket in enumerate(buckets):
        for p in bucket:
            p.register_post_accumulate_grad_hook(functools.partial(ready, number))

    def finish():
        while len(state["sent"]) < len(buckets):
            send()
        for bucket, (flat, work) in zip(buckets, state["sent"], strict=True):
            work.wait()
            for p, mean in zip(bucket, _unflatten_dense_tensors(flat, bucket), strict=True):
                p.grad.copy_(mean)
        state["missing"] = [len(bucket) for bucket in buckets]
        state["sent"] = []

    return finish
