"""VGG-11 at CIFAR size: eight convolutions and one linear layer, 9.2 million parameters.

The network of the CS744 report that several lessons measure. Images of 32 × 32 pixels shrink to one pixel on the way,
so a single linear layer of 512 → 10 follows, where the network for ImageNet has three large ones.
"""

from collections import OrderedDict

import torch
from torch import nn

CHANNELS = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool")
"""Output channels of each convolution, and where the image is halved. (Simonyan & Zisserman, table 1, column A.)"""
PIXELS = 32
"""Height and width of an image; it has three channels."""


def vgg11(width: float = 1.0, classes: int = 10, norm: bool = True, seed: int | None = None) -> nn.Sequential:
    """VGG-11 for images of shape (batch, 3, 32, 32); returns (batch, classes), before the softmax.

    A flat `nn.Sequential` with readable names, in the order in which they run: conv1, norm1, relu1, pool1, conv2, …,
    conv8, norm8, relu8, pool8, flatten, linear. (A pool follows conv1, conv2, conv4, conv6 and conv8.)

    Args:
        width: factor on the number of channels; 0.25 has 1/16 of the parameters, about 0.6 million.
        classes: outputs of the last layer.
        norm: batch norm after every convolution, as in the report's network.
        seed: fixes the first weights; None draws them from torch's present state.

    Source: Simonyan & Zisserman 2014, "Very deep convolutional networks", table 1, column A; the CS744 report.
    """
    if seed is not None:
        torch.manual_seed(seed)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    inputs, number = 3, 0
    for step in CHANNELS:
        if step == "pool":
            layers[f"pool{number}"] = nn.MaxPool2d(2)
            continue
        number += 1
        outputs = max(1, round(width * int(step)))
        layers[f"conv{number}"] = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
        if norm:
            layers[f"norm{number}"] = nn.BatchNorm2d(outputs)
        layers[f"relu{number}"] = nn.ReLU(inplace=True)
        inputs = outputs
    layers["flatten"] = nn.Flatten()
    layers["linear"] = nn.Linear(inputs, classes)
    return nn.Sequential(layers)


def random_images(images: int, classes: int = 10, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Made-up images (images, 3, 32, 32) and their classes (images,): a step takes as long whatever they show."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(images, 3, PIXELS, PIXELS, generator=generator)
    return x, torch.randint(classes, (images,), generator=generator)


def parameter_count(model: nn.Module) -> int:
    """How many numbers the model learns; a float32 of 4 bytes each."""
    return sum(parameter.numel() for parameter in model.parameters())
