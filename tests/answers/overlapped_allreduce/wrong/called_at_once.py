"""Refused with: What does the training loop call after `backward()`: what do you return?"""

from course_utils.lessons.overlap.buckets import Bucket, make_buckets


def overlapped_allreduce(parameters, bucket_bytes=25 * 2**20):
    trained = list(dict.fromkeys(one for one in parameters if one.requires_grad))
    sizes = [one.numel() * one.element_size() for one in trained]
    grouped = make_buckets(sizes, bucket_bytes, [one.dtype for one in trained])
    buckets = [Bucket([trained[place] for place in places]) for places in grouped]
    bucket_of = {one: bucket for bucket in buckets for one in bucket.parameters}

    def ready(parameter):
        bucket_of[parameter].missing -= 1
        for bucket in buckets:
            if bucket.missing > 0:
                break
            if bucket.work is None:
                bucket.start()

    def finish():
        for bucket in buckets:
            if bucket.work is None:
                bucket.start()
        for bucket in buckets:
            bucket.finish()

    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(ready)
    return finish()
