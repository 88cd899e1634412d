"""ZeRO, stage 3, through torch: `fully_shard` (FSDP2) leaves each rank a part of every parameter.

Before a layer computes, forward and again backward, its parameters are all-gathered; afterwards they are let go. Its
gradients are reduce-scattered as soon as they are made. The optimizer sees this rank's parts only, and so does its
state.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from course_utils.lessons.model_parallel.dtensor import mesh_device


def whole_mesh() -> DeviceMesh:
    """torch's name for all ranks in one row."""
    return init_device_mesh(mesh_device(), (dist.get_world_size(),), mesh_dim_names=("data",))


def shard_fully(model: nn.Sequential, mesh: DeviceMesh | None = None) -> nn.Sequential:
    """Divide every layer's parameters among the ranks, in place; parameters become DTensors.

    One all-gather for each layer forward and one backward, one reduce-scatter of its gradients, which are averaged over
    the ranks. Each parameter is cut along its first dimension; parts that are not equally long are filled up.

    Args:
        model: layers; equal on all ranks.
        mesh: of one axis; None for all ranks.

    Source: Rajbhandari et al. 2020, §5.3; Zhao et al. 2023, "PyTorch FSDP"; `torch.distributed.fsdp.fully_shard`.
    """
    mesh = mesh or whole_mesh()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@torch.no_grad()
def whole_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor, all-gathered where it is a DTensor; then every rank has to call it."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().clone()
