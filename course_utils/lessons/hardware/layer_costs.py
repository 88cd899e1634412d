"""The layers of a network on the roofline: what each has to compute and to move, and how long it takes here."""

from dataclasses import dataclass

import torch
from torch import nn

from course_utils.lessons.hardware.machine_rates import using_threads
from course_utils.lessons.hardware.roofline import arithmetic_intensity, roofline_time
from course_utils.lessons.hardware.work_and_depth import backward_work_depth, layer_work_depth
from course_utils.measuring import Measured, repeat
from course_utils.progress_bar import ProgressBar

CLOSE = 2.0
"""A layer is as fast as predicted if it takes at most this many times as long."""


@dataclass(frozen=True)
class Layer:
    """One layer's forward pass, counted, predicted and measured.

    Attributes:
        kind: "conv", "norm", "relu", "pool" or "linear".
        nbytes: that it moves at least.
        predicted: seconds, by the roofline.
        measured: seconds.
    """

    name: str
    kind: str
    flops: int
    nbytes: int
    predicted: float
    measured: Measured

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.nbytes

    @property
    def rate(self) -> float:
        """FLOP per second that it reached."""
        return self.flops / self.measured.median


def kind_of(layer: nn.Module) -> str | None:
    """Return the kind of a layer, or None if it computes nothing."""
    kinds = {nn.Conv2d: "conv", nn.BatchNorm2d: "norm", nn.ReLU: "relu", nn.MaxPool2d: "pool", nn.Linear: "linear"}
    return kinds.get(type(layer))


def count(layer: nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[int, int]:
    """Return the FLOPs of a layer from x to y, and the bytes that it moves at least.

    Batch norm reads its input twice, once for mean and spread, and does about seven operations per number.
    """
    if kind_of(layer) in ("conv", "linear"):
        return arithmetic_intensity(x.shape, layer.weight.shape, x.element_size())[:2]
    if kind_of(layer) == "norm":
        return 7 * x.numel(), x.element_size() * (2 * x.numel() + y.numel())
    flops = 3 * y.numel() if kind_of(layer) == "pool" else x.numel()  # of four numbers the largest: 3 comparisons
    return flops, x.element_size() * (x.numel() + y.numel())


def count_layers(model: nn.Sequential, x: torch.Tensor) -> dict[str, tuple[int, int]]:
    """Return the FLOPs and the least bytes of all layers of a kind together, for a batch x, by kind."""
    found: dict[str, tuple[int, int]] = {}
    with torch.no_grad():
        for layer in model:
            y = layer(x.clone())
            if kind := kind_of(layer):
                flops, nbytes = count(layer, x, y)
                others = found.get(kind, (0, 0))
                found[kind] = others[0] + flops, others[1] + nbytes
            x = y
    return found


def time_layers(
    model: nn.Sequential, x: torch.Tensor, peak: float, bandwidth: float, threads: int | None = None, repeats: int = 9
) -> list[Layer]:
    """Count, predict and measure the forward pass of each layer, on the output of the layers before it.

    Args:
        x: the batch, (N, C, H, W).
        peak, bandwidth: FLOP and bytes per second, measured with the same number of threads.
        threads: that torch computes with, or None for one per core.
    """
    layers = []
    with torch.no_grad(), using_threads(threads), ProgressBar("timing the layers") as bar:
        for name, layer in model.named_children():
            bar.refresh()
            y = layer(x.clone())  # a clone, because ReLU may work in place
            if kind := kind_of(layer):
                flops, nbytes = count(layer, x, y)
                seconds = repeat(lambda layer=layer, x=x: layer(x), repeats)
                predicted = roofline_time([(flops, nbytes)], peak, bandwidth)
                layers.append(Layer(name, kind, flops, nbytes, predicted, seconds))
            x = y
    return layers


def work_and_depth(model: nn.Sequential, x: torch.Tensor, backward: bool = False) -> list[tuple[str, int, int]]:
    """Return (name, work, depth) of each layer's forward or backward pass, in operations, for layers that have work."""
    of_layer = backward_work_depth if backward else layer_work_depth
    found = []
    with torch.no_grad():
        for name, layer in model.named_children():
            y = layer(x)
            if kind := kind_of(layer):
                kernel = layer.kernel_size if kind in ("conv", "pool") else 1
                side = kernel[0] if isinstance(kernel, tuple) else kernel
                found.append((name, *of_layer(kind, x.shape, y.shape, side)))
            x = y
    return found
