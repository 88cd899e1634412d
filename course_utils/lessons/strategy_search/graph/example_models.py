"""Networks to spread over devices: AlexNet, a residual network, a perceptron and a transformer block, of any width."""

from collections import OrderedDict

import torch
from torch import nn

from course_utils.lessons.model_parallel.transformer import Block

ALEXNET_CONVOLUTIONS = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
"""Output channels, side of the window, stride and padding of each convolution."""
ALEXNET_LINEAR = 4096
"""Outputs of each of the two large linear layers."""


def alexnet(
    width: float = 1.0,
    classes: int = 10,
    pixels: int = 224,
    linear: float | None = None,
    dropout: float = 0.0,
    seed: int | None = 0,
) -> nn.Sequential:
    """AlexNet for images of shape (batch, 3, pixels, pixels): five convolutions, three linear layers.

    A flat `nn.Sequential` with readable names: conv1, relu1, pool1, conv2, …, flatten, fc6, relu6, fc7, relu7, fc8. The
    layers are those of torchvision's, without its last pool, which keeps the size of the images it is meant for.

    Args:
        width: factor on the channels of the convolutions and the outputs of the linear layers; 1 as in the paper.
        linear: another factor for the linear layers alone, where most weights are; None: as `width`.
        dropout: share of the entries in front of fc6 and fc7; 0 leaves them out.
        seed: fixes the first weights; None draws them from torch's present state.

    Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks"; `torchvision.models`.
    """
    if seed is not None:
        torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    inputs, side = 3, pixels
    for number, (channels, window, stride, padding) in enumerate(ALEXNET_CONVOLUTIONS, start=1):
        outputs = max(1, round(width * channels))
        layers[f"conv{number}"] = nn.Conv2d(inputs, outputs, window, stride, padding)
        layers[f"relu{number}"] = nn.ReLU(inplace=True)
        inputs, side = outputs, (side + 2 * padding - window) // stride + 1
        if number in (1, 2, 5):
            layers[f"pool{number}"] = nn.MaxPool2d(3, 2)
            side = (side - 3) // 2 + 1
    layers["flatten"] = nn.Flatten()
    inputs, outputs = inputs * side**2, max(1, round((linear or width) * ALEXNET_LINEAR))
    for number in (6, 7):
        if dropout:
            layers[f"drop{number}"] = nn.Dropout(dropout)
        layers[f"fc{number}"] = nn.Linear(inputs, outputs)
        layers[f"relu{number}"] = nn.ReLU(inplace=True)
        inputs = outputs
    layers["fc8"] = nn.Linear(inputs, classes)
    return nn.Sequential(layers)


def mlp(sizes: tuple[int, ...] = (784, 512, 512, 10), seed: int | None = 0) -> nn.Sequential:
    """A multilayer perceptron: fc1, relu1, fc2, …; the last layer without a ReLU.

    Args:
        sizes: inputs, outputs of each layer.
        seed: fixes the first weights; None draws them from torch's present state.
    """
    if seed is not None:
        torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False), start=1):
        layers[f"fc{number}"] = nn.Linear(inputs, outputs)
        if number < len(sizes) - 1:
            layers[f"relu{number}"] = nn.ReLU(inplace=True)
    return nn.Sequential(layers)


def transformer_block(width: int = 64, heads: int = 4, seed: int | None = 0) -> Block:
    """One block of lesson 9's transformer, without dropout, for vectors of shape (batch, positions, width).

    Its operators are norm_1, qkv, core_attention, out, add1, norm_2, up (with its GELU), down and add2. As there is no
    head behind it, its `width` outputs are the logits of as many classes.

    Args:
        width: of the vectors, a multiple of `heads`.
        seed: fixes the first weights; None draws them from torch's present state.
    """
    if seed is not None:
        torch.manual_seed(seed)
    return Block(width, heads, 0.0, torch.Generator())


class Residual(nn.Module):
    """Two convolutions, and what came in added to what comes out: the basic block of a residual network.

    Source: He et al. 2016, "Deep residual learning for image recognition", §3.3 and figure 5, left.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inputs, height, width) → (batch, outputs, height / stride, width / stride)."""
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18(width: float = 1.0, classes: int = 10, seed: int | None = 0) -> nn.Sequential:
    """ResNet-18 for images of shape (batch, 3, pixels, pixels), narrowed so that it can run here.

    Args:
        width: factor on the number of channels.
        seed: fixes the first weights; None draws them from torch's present state.

    Source: He et al. 2016, table 1; `torchvision.models.resnet18`, whose layers it has.
    """
    if seed is not None:
        torch.manual_seed(seed)
    first, *channels = (max(1, round(width * channel)) for channel in (64, 64, 128, 256, 512))
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["conv1"] = nn.Conv2d(3, first, 7, 2, 3, bias=False)
    layers["norm1"] = nn.BatchNorm2d(first)
    layers["relu1"] = nn.ReLU(inplace=True)
    layers["pool1"] = nn.MaxPool2d(3, 2, 1)
    inputs = first
    for stage, outputs in enumerate(channels, start=1):
        layers[f"block{stage}a"] = Residual(inputs, outputs, stride=1 if stage == 1 else 2)
        layers[f"block{stage}b"] = Residual(outputs, outputs, stride=1)
        inputs = outputs
    layers["pool2"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    layers["fc"] = nn.Linear(inputs, classes)
    return nn.Sequential(layers)
