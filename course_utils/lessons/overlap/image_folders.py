"""Pictures for `train.py`, the program of the lesson. CIFAR-10 if there is one, and otherwise handwritten digits."""

from pathlib import Path

import numpy as np

from course_utils.data import cifar10_folder, digits_arrays
from course_utils.errors import CourseError


def images_for_training(folder: Path) -> Path:
    """Return the folder that `train.py` takes as `--data`, and print what it holds.

    Args:
        folder: an existing folder, for the digits if they are needed.
    """
    try:
        found = cifar10_folder()
    except CourseError as error:
        digits_as_pictures(folder)
        print(f"CIFAR-10 is not here. The program trains on handwritten digits instead. ({error})")
        return folder
    print("The program trains on CIFAR-10.")
    return found


def digits_as_pictures(folder: Path, train: int | None = None, test: int | None = None) -> None:
    """Write the digits as files that torchvision's `ImageFolder` reads: `train/7/0012.png` and so on.

    Args:
        train, test: at most so many; None: all, 1,437 and 360.
    """
    from PIL import Image

    train_x, train_y, test_x, test_y = digits_arrays()
    darkest, brightest = train_x.min(), train_x.max()
    for part, x, y in (("train", train_x[:train], train_y[:train]), ("test", test_x[:test], test_y[:test])):
        pixels = np.rint(255 * (x - darkest) / (brightest - darkest)).clip(0, 255).astype(np.uint8)
        for number, (picture, digit) in enumerate(zip(pixels.reshape(-1, 8, 8), y.tolist(), strict=True)):
            of_digit = folder / part / str(digit)
            of_digit.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(of_digit / f"{number:04}.png")
