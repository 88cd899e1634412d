"""Layers for one part of their output, of its channels or of its rows, or for a part of the channels that they read."""

import copy

import torch
from torch import nn
from torch.nn.functional import pad

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.strategy_search.graph.operator_graph import Window
from course_utils.lessons.strategy_search.program.tensor_moves import output_rows


def channels_of(layer: nn.Module, parts: int, part: int) -> nn.Module:
    """A layer that makes the channels of one part, from all channels that it reads or, one by one, from the same.

    Its parameters know the whole one that they are cut from (`whole`) and where (`rows`). A layer without weights is
    given back as it is.

    Raises:
        CourseError: its weights do not belong to output channels.
    """
    tensors = {**layer._parameters, **layer._buffers}
    cut = {name: tensor for name, tensor in tensors.items() if tensor is not None and tensor.dim()}
    if parts == 1 or not cut:
        return layer
    if not isinstance(layer, (nn.Linear, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d)):
        raise CourseError(f"{layer} cannot be cut by its output channels. Take parameter=1 for it.")
    bounds = block_bounds(len(next(iter(cut.values()))), parts)
    rows = slice(bounds[part], bounds[part + 1])
    mine = copy.copy(layer)
    mine._parameters, mine._buffers = dict(layer._parameters), dict(layer._buffers)
    for name, whole in cut.items():
        if name in mine._buffers:
            mine._buffers[name] = whole[rows].clone()
            continue
        mine._parameters[name] = nn.Parameter(whole.detach()[rows].clone())
        mine._parameters[name].whole, mine._parameters[name].rows = whole, rows
    for name in ("out_features", "out_channels", "num_features"):
        if hasattr(mine, name):
            setattr(mine, name, rows.stop - rows.start)
    return mine


def inputs_of(layer: nn.Linear, parts: int, part: int) -> nn.Linear:
    """A linear layer that reads one part of its input channels and makes a partial sum; the first one adds the bias.

    Its parameters know the whole one that they are cut from (`whole`) and where (`rows`).
    """
    bounds = block_bounds(layer.in_features, parts)
    columns = slice(None), slice(bounds[part], bounds[part + 1])
    mine = copy.copy(layer)
    mine._parameters = dict(layer._parameters)
    mine.in_features = bounds[part + 1] - bounds[part]
    mine.weight = nn.Parameter(layer.weight.detach()[columns].clone())
    mine.weight.whole, mine.weight.rows = layer.weight, columns
    if part and layer.bias is not None:
        mine.bias = None
    return mine


def rows_of(layer: nn.Module, parts: int, part: int, height: int) -> nn.Module:
    """A convolution or a pool for one part of its output rows: padded only where the image of `height` rows ends."""
    if not isinstance(layer, (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)):
        return layer
    size, stride, padding = (_pair(getattr(layer, name)) for name in ("kernel_size", "stride", "padding"))
    window = Window(size[0], stride[0], padding[0])
    bounds = block_bounds(output_rows(window, height), parts)
    above = max(0, window.padding - bounds[part] * window.stride)
    below = max(0, (bounds[part + 1] - 1) * window.stride - window.padding + window.size - height)
    mine = copy.copy(layer)
    mine.padding = (0, padding[1])
    if not above and not below:
        return mine
    return nn.Sequential(PaddedRows(above, below, -torch.inf if isinstance(layer, nn.MaxPool2d) else 0.0), mine)


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


class PaddedRows(nn.Module):
    """Rows of one value above and below an image: the padding that a convolution or a pool finds at the border."""

    def __init__(self, above: int, below: int, value: float) -> None:
        super().__init__()
        self.above, self.below, self.value = above, below, value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) → (batch, channels, above + height + below, width)."""
        return pad(x, (0, 0, self.above, self.below), value=self.value)
