"""A class that keeps the count itself."""

import torch
import torch.distributed as dist


class Reducer:
    def __init__(self, parameters, limit):
        self.groups = []
        for parameter in reversed(parameters):
            size = parameter.nbytes
            group = self.groups[-1] if self.groups else None
            if group and group["bytes"] + size <= limit and group["members"][0].dtype == parameter.dtype:
                group["members"].append(parameter)
                group["bytes"] += size
            else:
                self.groups.append({"members": [parameter], "bytes": size})
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self.arrived)
        self.reset()

    def reset(self):
        self.here = set()
        self.sent = []

    def send_next(self):
        members = self.groups[len(self.sent)]["members"]
        parts = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in members]
        vector = torch.cat([part.detach() for part in parts])
        self.sent.append((vector, dist.all_reduce(vector, async_op=True)))

    def arrived(self, parameter):
        self.here.add(id(parameter))
        while len(self.sent) < len(self.groups):
            if any(id(p) not in self.here for p in self.groups[len(self.sent)]["members"]):
                return
            self.send_next()

    def __call__(self):
        while len(self.sent) < len(self.groups):
            self.send_next()
        for group, (vector, work) in zip(self.groups, self.sent):
            work.wait()
            vector /= dist.get_world_size()
            start = 0
            for p in group["members"]:
                p.grad = vector[start : start + p.numel()].reshape(p.shape).clone()
                start += p.numel()
        self.reset()


def overlapped_allreduce(parameters, bucket_bytes=25 * 2**20):
    unique = []
    for parameter in parameters:
        if parameter.requires_grad and all(parameter is not other for other in unique):
            unique.append(parameter)
    return Reducer(unique, bucket_bytes)
