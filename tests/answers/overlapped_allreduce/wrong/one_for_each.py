"""Refused with: How many all-reduces does a bucket need?"""

import torch
import torch.distributed as dist

from course_utils.lessons.overlap.buckets import make_buckets


def overlapped_allreduce(parameters, bucket_bytes=25 * 2**20):
    trained = list(dict.fromkeys(one for one in parameters if one.requires_grad))
    sizes = [one.numel() * one.element_size() for one in trained]
    grouped = [[place] for place in reversed(range(len(sizes)))]
    buckets = [[trained[place] for place in places] for places in grouped]
    ready, works = set(), []

    def send(bucket):
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in bucket]
        vector = torch.cat([gradient.flatten() for gradient in gradients])
        works.append((bucket, vector, dist.all_reduce(vector, async_op=True)))

    def hook(parameter):
        ready.add(parameter)
        while len(works) < len(buckets) and ready.issuperset(buckets[len(works)]):
            send(buckets[len(works)])

    def finish():
        for bucket in buckets[len(works) :]:
            send(bucket)
        for bucket, vector, work in works:
            work.wait()
            vector /= dist.get_world_size()
            for one, piece in zip(bucket, vector.split([one.numel() for one in bucket])):
                one.grad = piece.view(one.shape)
        ready.clear()
        works.clear()

    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(hook)
    return finish
