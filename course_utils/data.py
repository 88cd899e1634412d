"""The data of the course, split and normalised: handwritten digits that need no network, CIFAR-10 and MNIST.

Real images only. Where CIFAR-10 or MNIST can be neither found nor fetched, the digits in the same shape stand in for
them, and a printed line says so.
"""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from course_utils.download import data_folder, fetch
from course_utils.errors import CourseError
from course_utils.torchvision_repair import load_torchvision

if TYPE_CHECKING:
    import torch

TEST_SHARE = 0.2
CLASSES = 10
SHAPES = {"MNIST": (1, 28, 28), "CIFAR10": (3, 32, 32)}
"""Channels, height and width of an image."""


class Split(NamedTuple):
    """Images and the class of each, for training and for testing."""

    train_x: "torch.Tensor"
    train_y: "torch.Tensor"
    test_x: "torch.Tensor"
    test_y: "torch.Tensor"


def digits(dtype: "torch.dtype | str" = "float32", seed: int = 0) -> Split:
    """The 1,797 handwritten digits of scikit-learn: 1,437 to train on, 360 to test on, every class in proportion.

    The images have shape (count, 64), row by row, with the training images' mean 0 and standard deviation 1; the labels
    are int64. The same seed gives the same split on every rank.

    Source: Alpaydin & Kaynak 1998, UCI "Optical recognition of handwritten digits".
    """
    import torch

    train_x, train_y, test_x, test_y = digits_arrays(seed)
    as_dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return Split(
        torch.from_numpy(train_x).to(as_dtype),
        torch.from_numpy(train_y),
        torch.from_numpy(test_x).to(as_dtype),
        torch.from_numpy(test_y),
    )


def digits_arrays(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What `digits` gives, as NumPy arrays in float64 and without importing torch.

    scikit-learn's file is read, but scikit-learn not imported: that takes every process a second and more.
    """
    package = find_spec("sklearn")
    if package is None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    file = Path(package.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(file, delimiter=",")
    x, y = table[:, :-1], table[:, -1].astype(np.int64)
    train, test = _split_of(y, seed)
    mean, deviation = x[train].mean(), x[train].std()
    return (x[train] - mean) / deviation, y[train], (x[test] - mean) / deviation, y[test]


def _split_of(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions to train on and to test on, every class in proportion: those of scikit-learn's train_test_split."""
    random, counts = np.random.RandomState(seed), np.bincount(labels)
    tests = math.ceil(TEST_SHARE * len(labels))
    in_train = _in_proportion(counts, len(labels) - tests, random)
    in_test = _in_proportion(counts - in_train, tests, random)
    train, test = [], []
    for label, (first, more) in enumerate(zip(in_train, in_test, strict=True)):
        own = np.flatnonzero(labels == label)[random.permutation(counts[label])]
        train.extend(own[:first])
        test.extend(own[first : first + more])
    return random.permutation(train), random.permutation(test)


def _in_proportion(counts: np.ndarray, total: int, random: np.random.RandomState) -> np.ndarray:
    """Whole numbers in proportion to the counts, with this sum; the largest remainders are rounded up."""
    exact = counts / counts.sum() * total
    rounded = np.floor(exact).astype(int)
    remainders = exact - rounded
    for remainder in np.unique(remainders)[::-1]:
        if missing := total - rounded.sum():
            equal = np.flatnonzero(remainders == remainder)
            rounded[random.choice(equal, min(len(equal), missing), replace=False)] += 1
    return rounded


def cifar10(limit: int | None = None) -> Split:
    """CIFAR-10: images of shape (count, 3, 32, 32) in float32, ten classes; 50,000 to train on and 10,000 to test on.

    Args:
        limit: at most this many training images, and a fifth as many test images.

    Source: Krizhevsky 2009, "Learning multiple layers of features from tiny images".
    """
    return _images("CIFAR10", limit)


def cifar10_folder() -> Path:
    """The folder that holds CIFAR-10 as `torchvision.datasets.CIFAR10` reads it; fetched first if it is not there.

    Raises:
        CourseError: it is not there and cannot be fetched.
    """
    try:
        _load("CIFAR10", train=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise CourseError(str(error)) from error
    return data_folder()


def mnist(limit: int | None = None) -> Split:
    """MNIST: images of shape (count, 1, 28, 28) in float32, ten classes; 60,000 to train on and 10,000 to test on.

    Args:
        limit: at most this many training images, and a sixth as many test images.

    Source: LeCun, Cortes & Burges 1998, "The MNIST database of handwritten digits".
    """
    return _images("MNIST", limit)


def _images(name: str, limit: int | None) -> Split:
    try:
        train, test = _load(name, train=True), _load(name, train=False)
    except (CourseError, OSError, RuntimeError, ValueError) as error:
        print(f"{name} is not here, so the handwritten digits stand in, resized to its shape. ({error})")
        return _stand_in(SHAPES[name], limit)
    test_limit = None if limit is None else max(1, limit * len(test.targets) // len(train.targets))
    return _normalised(*_tensors(train, limit), *_tensors(test, test_limit))


def _load(name: str, train: bool) -> Any:
    """The data set of torchvision, from $COURSE_DATA or fetched into it."""
    load_torchvision()
    from torchvision import datasets

    dataset, folder = getattr(datasets, name), data_folder()
    try:
        return dataset(folder, train=train)
    except RuntimeError:  # torchvision's word for "not found"
        _fetch(dataset, folder)
        return dataset(folder, train=train, download=True)  # finds the archives, and unpacks them


def _fetch(dataset: Any, folder: Any) -> None:
    """Bring the archives that torchvision's class names."""
    if dataset.__name__ == "CIFAR10":
        fetch(dataset.url, folder / dataset.filename, dataset.tgz_md5)
        return
    for file, md5 in dataset.resources:
        fetch(dataset.mirrors[0] + file, folder / dataset.__name__ / "raw" / file, md5)


def _tensors(dataset: Any, limit: int | None) -> "tuple[torch.Tensor, torch.Tensor]":
    """The first `limit` images as (count, channels, height, width), values 0 to 1, and their labels."""
    import torch

    pixels = torch.as_tensor(dataset.data[:limit]).float() / 255
    pixels = pixels.unsqueeze(1) if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2).contiguous()
    return pixels, torch.as_tensor(dataset.targets[:limit], dtype=torch.int64)


def _normalised(
    train_x: "torch.Tensor", train_y: "torch.Tensor", test_x: "torch.Tensor", test_y: "torch.Tensor"
) -> Split:
    """Every channel with the training images' mean 0 and standard deviation 1."""
    mean = train_x.mean(dim=(0, 2, 3), keepdim=True)
    deviation = train_x.std(dim=(0, 2, 3), keepdim=True)
    return Split((train_x - mean) / deviation, train_y, (test_x - mean) / deviation, test_y)


def _stand_in(shape: tuple[int, int, int], limit: int | None) -> Split:
    """The digits, resized to `shape`."""
    from torch.nn.functional import interpolate

    def resized(x: "torch.Tensor") -> "torch.Tensor":
        square = x.reshape(-1, 1, 8, 8)
        return interpolate(square, size=shape[1:], mode="bilinear").expand(-1, *shape).contiguous()

    train_x, train_y, test_x, test_y = digits()
    test_limit = None if limit is None else max(1, limit // 4)
    return _normalised(resized(train_x[:limit]), train_y[:limit], resized(test_x[:test_limit]), test_y[:test_limit])
