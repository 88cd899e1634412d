"""Slow program 1: the processor reads and decodes the same photos again in every epoch."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.training import Sgd
from course_utils.lessons.hardware.photos import SHRUNK, decode, jpeg_digits

PHOTOS, BATCH = 48, 16


def write_photos(folder: Path, count: int = PHOTOS) -> list[Path]:
    """Write the first digits as JPEG files into a folder, and return their paths."""
    paths = [folder / f"{number:04d}.jpeg" for number in range(count)]
    for path, photo in zip(paths, jpeg_digits(count), strict=True):
        path.write_bytes(photo)
    return paths


def slow_1(paths: Sequence[Path], labels: torch.Tensor, epochs: int = 4, device: str = "cpu") -> list[float]:
    """Train a linear network on photos in files, the same batches in every epoch.

    Args:
        paths: one JPEG file for each photo.
        labels: their classes, int64 of shape (photos,).

    Returns:
        The loss before each step.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SHRUNK * SHRUNK, 10)).to(device)
    optimizer = Sgd(model.parameters(), rate=0.01)
    losses = []
    for _ in range(epochs):
        for start in range(0, len(paths), BATCH):
            photos = [decode(path.read_bytes()) for path in paths[start : start + BATCH]]
            x, y = torch.stack(photos).to(device), labels[start : start + BATCH].to(device)
            loss = cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses).tolist()


def speed_up_1(
    paths: Sequence[Path],
    labels: torch.Tensor,
    epochs: int = 4,
    device: str = "cpu",
) -> list[float]:
    """Train as `slow_1` does, with the same losses, but read and decode every photo only once.

    Args:
        paths: one JPEG file for each photo.
        labels: their classes, int64 of shape (photos,).

    Returns:
        The loss before each step.
    """
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * SHRUNK * SHRUNK, 10)).to(device)
    optimizer = Sgd(model.parameters(), rate=0.01)
    # Read and decoded once, before the first epoch: the photos do not change.
    photos = torch.stack([decode(path.read_bytes()) for path in paths]).to(device)
    labels = labels.to(device)
    losses = []
    for _ in range(epochs):
        for x, y in zip(photos.split(BATCH), labels.split(BATCH), strict=True):
            loss = cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return torch.stack(losses).tolist()
