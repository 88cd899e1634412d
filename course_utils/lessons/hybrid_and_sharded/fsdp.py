"""ZeRO, stage 3, through torch: `fully_shard` (FSDP2) leaves each rank a part of every parameter.

Before a layer computes, forward and again backward, its parameters are all-gathered; afterwards they are let go. Its
gradients are reduce-scattered as soon as they are made. The optimizer sees this rank's parts only, and so does its
state.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class ShardMoment:
    """What one rank holds at one moment of a step.

    Attributes:
        name: "forward 1" while the second layer computes, "backward 1" when its backward pass begins.
        weights, gradients: of each layer, the share that is in this rank's memory, from 0 to 1.
    """

    name: str
    weights: tuple[float, ...]
    gradients: tuple[float, ...]


class ShardWatch:
    """Note what a rank holds of each layer while the layers compute. Make it before the layers are sharded.

    Attributes:
        moments: in the order of time.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self.layers, self.moments = list(layers), list[ShardMoment]()
        for number, layer in enumerate(self.layers):
            layer.register_forward_hook(lambda _, __, output, number=number: self._computed(number, output))

    def note(self, name: str) -> None:
        """Note what is there now."""
        weights = tuple(_share(list(layer.parameters()), layer) for layer in self.layers)
        gradients = tuple(_share([p.grad for p in layer.parameters()], layer) for layer in self.layers)
        self.moments.append(ShardMoment(name, weights, gradients))

    def _computed(self, number: int, output: torch.Tensor) -> torch.Tensor:
        """Note that a layer computes. FSDP's own hooks see the product, so that they come before ours going back."""
        self.note(f"forward {number}")
        output.register_hook(lambda _: self.note(f"backward {number}"))
        return output * 1


def _share(tensors: Sequence[torch.Tensor | None], layer: nn.Module) -> float:
    """How much of a layer's numbers these tensors have on this rank."""
    here = sum(_local(tensor).numel() for tensor in tensors if tensor is not None)
    return here / sum(parameter.numel() for parameter in layer.parameters())


def _local(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
