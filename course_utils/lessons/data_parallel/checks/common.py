"""What the checks of lesson 6 share. torch is imported where it is used: a list of exercises must not wait for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn


def tensor(array: Any) -> "Tensor":
    """A tensor of its own with the array's numbers and dtype."""
    import torch

    return torch.tensor(array)


def model_of(parameters: Sequence["Tensor"], buffers: Sequence["Tensor"] = ()) -> "nn.Module":
    """A model that holds these parameters and buffers: the first of each itself, the others in modules within.

    The first buffer is not persistent, so a state dict doesn't hold it.
    """
    from torch import nn

    first, *others = [nn.Parameter(values.clone()) for values in parameters]
    model = nn.Module()
    model.scale = first
    model.layers = nn.ModuleList([nn.Module()])
    model.layers[0].weights = nn.ParameterList(others)
    for index, values in enumerate(buffers):
        holder = model.layers[0] if index else model
        holder.register_buffer(f"buffer_{index}", values.clone(), persistent=index > 0)
    return model
