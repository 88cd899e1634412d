"""What a device reaches in a product of two large matrices, and which share of that a training step reaches.

The product is measured by turns with the steps, because a GPU changes its clock with its temperature and its power: on
one H200, products within ten minutes reached between 738 and 775 TFLOP/s.
"""

import itertools
import platform
import time
from collections.abc import Callable, Sequence

import torch

from course_utils.measuring import Measured

SIDE = 8192
"""Of the matrices whose product shows what a GPU can do."""
PRODUCT = "a product of two large matrices"


def mean_seconds(step: Callable[[], object], steps: int, device: str) -> float:
    """Of a step, the mean of this many; the GPU is at rest before and done afterwards."""

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    wait()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return (time.perf_counter() - began) / steps


def product_rate(
    device: str = "cuda", side: int = 0, kind: torch.dtype = torch.bfloat16, repeats: int = 5, warm_ups: int = 2
) -> float:
    """FLOP/s of a product of two square matrices: the fastest of some, after some that do not count.

    Args:
        side: of the matrices; `SIDE` without, and a 64th of it on a processor.
    """
    side = side or (SIDE if device == "cuda" else SIDE // 64)
    left, right, product = torch.randn(3, side, side, device=device).to(kind)
    taken = [mean_seconds(lambda: torch.mm(left, right, out=product), 1, device) for _ in range(warm_ups + repeats)]
    return 2 * side**3 / min(taken[warm_ups:])


def shares_of_peak(flops: float, seconds: Sequence[float], peaks: Sequence[float]) -> Measured:
    """FLOP/s as a share of the peak, in each round.

    Args:
        flops: of what was measured.
        seconds: that it took, in each round.
        peaks: FLOP/s of the peak in each round. If there is a single value of either, it counts for all rounds.
    """
    rounds = range(max(len(seconds), len(peaks)))
    pairs = zip(rounds, itertools.cycle(seconds), itertools.cycle(peaks), strict=False)
    return Measured(tuple(flops / taken / peak for _, taken, peak in pairs))


def machine_text(device: str = "cuda") -> str:
    """The device and the versions that a figure depends on, in a line."""
    name = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
    cuda = f", CUDA {torch.version.cuda}" if device == "cuda" else ""
    return f"{name}, torch {torch.__version__.split('+')[0]}{cuda}"
