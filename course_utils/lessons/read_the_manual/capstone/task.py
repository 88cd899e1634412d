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
RATE = 100_000_000
"""Bits per second of each node's link."""
LINKS = "100 Mbit/s"
"""The same as `course.start` takes it."""
NAIVE_BATCH, NAIVE_EPOCHS = 16, 4
"""Naive data parallelism: images of a node in a step, and how often it goes through all of them."""
NAIVE_STEPS = NAIVE_EPOCHS * IMAGES // NAIVE_BATCH
STEP_SECONDS = 0.015
"""A node's processor takes no longer for a naive step. Where a rank's takes longer, as the machine is slow or has other
work, all its seconds are shortened alike: the budget judges a training, and not a machine."""


@dataclass(frozen=True)
class Budget:
    """What is asked for.

    Attributes:
        accuracy: the least share of the held-out images that must be recognised.
        bytes: the most that any one node may send.
        seconds: the most that the training may take, as a share of what naive data parallelism takes on these ranks.
    """

    accuracy: float = 0.90
    bytes: int = 1_200_000
    seconds: float = 0.30


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

    Which class a digit has is drawn anew as well: only the images of this check teach what its labels mean.
    """
    train_x, train_y, test_x, test_y = digits_arrays(int(rng.integers(2**31)))
    classes = rng.permutation(CLASSES)
    order = rng.permutation(len(train_x))[: nodes * IMAGES]
    shards = [(train_x[own].astype(np.float32), classes[train_y[own]]) for own in order.reshape(nodes, IMAGES)]
    return Dealt(shards, (test_x.astype(np.float32), classes[test_y]))


def as_images(pixels: np.ndarray) -> "torch.Tensor":
    """Digits of 8 × 8 pixels, (n, 64), resized to what VGG-11 takes: (n, 3, 32, 32)."""
    import torch
    from torch.nn.functional import interpolate

    square = torch.from_numpy(pixels).reshape(-1, 1, 8, 8)
    return interpolate(square, size=(PIXELS, PIXELS), mode="bilinear").expand(-1, 3, -1, -1).contiguous()


def network(seed: int) -> "nn.Sequential":
    """The narrow VGG-11, with first weights of this seed."""
    return vgg11(WIDTH, CLASSES, seed=seed)
