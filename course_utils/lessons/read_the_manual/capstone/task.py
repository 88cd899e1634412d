"""What the capstone asks for, and the images that each node has. The held-out images never reach a rank."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from course_utils.data import digits_arrays
from course_utils.vgg import PIXELS, vgg11

if TYPE_CHECKING:
    import torch
    from torch import nn

NODES, CLASSES = 4, 10
WIDTH = 0.125
"""Of the network: 145,898 parameters, 584 KB of gradients in float32."""
IMAGES = 240
"""That each node has to train on."""
LINKS = "100 Mbit/s"
"""The rate of each node's link, as `course.start` takes it."""
NAIVE_BATCH, NAIVE_EPOCHS = 16, 4
"""Naive data parallelism: images of a node in a step, and how often it goes through all of them."""
NAIVE_STEPS = NAIVE_EPOCHS * IMAGES // NAIVE_BATCH
FORWARD, BACKWARD = 1, 2
"""Image passes: what one image costs in a forward pass, and in a backward pass, which does about twice the work."""
NAIVE_PASSES = NAIVE_EPOCHS * IMAGES * (FORWARD + BACKWARD)
"""Image passes of naive data parallelism on each node."""


@dataclass(frozen=True)
class Budget:
    """What is asked for.

    Attributes:
        accuracy: the least share of the held-out images that must be recognised.
        bytes: the most that any one node may send.
        passes: the most image passes that any one node may make. They are counted, because a clock would judge the
            machine as well: an epoch of training is 720 of them, and six epochs leave room for two passes more over
            all images without a step.
        near: a model that keeps the budgets and misses the accuracy by no more than this may be a good one that had
            bad luck, so the verdict says so. Good ones reach 94% to 98%.
    """

    accuracy: float = 0.90
    bytes: int = 1_200_000
    passes: int = 4_800
    near: float = 0.04


BUDGET = Budget()


@dataclass(frozen=True)
class Dealt:
    """The images of one check.

    Attributes:
        shards: for each rank (pixels, labels): float32 (n, 64) and int64 (n,), n the same for all.
        held_out: pixels and labels that no rank gets.
    """

    shards: list[tuple[np.ndarray, np.ndarray]]
    held_out: tuple[np.ndarray, np.ndarray]


def deal(rng: np.random.Generator, nodes: int = NODES) -> Dealt:
    """Split the digits anew, and deal images of the training split to the nodes, `IMAGES` to each of this many nodes.

    Which class a digit has is drawn anew as well: only the images of this check teach what its labels mean. All images
    that no node gets are held out, more than 800 of them, so that the accuracy is not a matter of a few images.
    """
    train_x, train_y, test_x, test_y = digits_arrays(int(rng.integers(2**31)))
    classes = rng.permutation(CLASSES)
    order = rng.permutation(len(train_x))
    dealt, rest = order[: nodes * IMAGES].reshape(nodes, IMAGES), order[nodes * IMAGES :]
    shards = [(train_x[own].astype(np.float32), classes[train_y[own]]) for own in dealt]
    pixels, labels = np.concatenate([test_x, train_x[rest]]), np.concatenate([test_y, train_y[rest]])
    return Dealt(shards, (pixels.astype(np.float32), classes[labels]))


def as_images(pixels: np.ndarray) -> "torch.Tensor":
    """Digits of 8 × 8 pixels, (n, 64), resized to what VGG-11 takes: (n, 3, 32, 32)."""
    import torch
    from torch.nn.functional import interpolate

    square = torch.from_numpy(pixels).reshape(-1, 1, 8, 8)
    return interpolate(square, size=(PIXELS, PIXELS), mode="bilinear").expand(-1, 3, -1, -1).contiguous()


def network(seed: int) -> "nn.Sequential":
    """The narrow VGG-11, with first weights of this seed."""
    return vgg11(WIDTH, CLASSES, seed=seed)
