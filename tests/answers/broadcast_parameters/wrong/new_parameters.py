"""Refused with: Do the model's own tensors hold what arrived?

The model has new parameters, but the optimizer knows the old ones.
"""

import torch
import torch.distributed as dist


def broadcast_parameters(model):
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            fresh = torch.nn.Parameter(parameter.detach().clone())
            dist.broadcast(fresh.data, src=0)
            setattr(module, name, fresh)
