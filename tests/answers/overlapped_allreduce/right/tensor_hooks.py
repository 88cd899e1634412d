"""Hooks that are handed the gradient, before it lies in grad."""

import torch
import torch.distributed as dist

from course_utils.lessons.overlap.buckets import make_buckets


def overlapped_allreduce(parameters, bucket_bytes=25 * 2**20):
    trained = list({id(p): p for p in parameters if p.requires_grad}.values())
    buckets = make_buckets([p.nbytes for p in trained], bucket_bytes, [p.dtype for p in trained])
    came, works = {}, []

    def send(bucket):
        parts = [came.get(place, torch.zeros_like(trained[place])).flatten() for place in bucket]
        vector = torch.cat(parts).detach()
        works.append((bucket, vector, dist.all_reduce(vector, async_op=True)))

    def hook_for(place):
        def hook(gradient):
            came[place] = gradient.clone()
            while len(works) < len(buckets) and all(other in came for other in buckets[len(works)]):
                send(buckets[len(works)])

        return hook

    def finish():
        for bucket in buckets[len(works) :]:
            send(bucket)
        for bucket, vector, work in works:
            work.wait()
            vector.div_(dist.get_world_size())
            for place, piece in zip(bucket, vector.split([trained[place].numel() for place in bucket])):
                trained[place].grad = piece.view_as(trained[place])
        came.clear()
        works.clear()

    for place, parameter in enumerate(trained):
        parameter.register_hook(hook_for(place))
    return finish
