"""Adam in one process, whole or with one thing left out: what `zero1_step` is compared with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Settings = dict[str, Any]
"""Rate, betas and eps by name; where one is missing, that of `DEFAULTS`."""
DEFAULTS: Settings = {"rate": 0.001, "betas": (0.9, 0.999), "eps": 1e-8}


def parts_of(n: int, world_size: int) -> list[slice]:
    """Which numbers of a vector of n belong to each rank: equal parts, of which the last reach over the end."""
    length = -(-n // world_size)
    return [slice(min(n, rank * length), min(n, (rank + 1) * length)) for rank in range(world_size)]


def adam(weights: "Tensor", gradients: Sequence["Tensor"], settings: Settings, without: str = "") -> "Tensor":
    """The weights after one step for each gradient.

    Args:
        without: "correction" (of the bias), "root" (of the square), or "eps outside" (it then stands under the root).
    """
    settings = DEFAULTS | settings
    weights, mean, square = weights.clone().contiguous(), 0 * weights, 0 * weights
    for step, gradient in enumerate(gradients, start=1):
        corrections = [1.0 if without == "correction" else 1 - beta**step for beta in settings["betas"]]
        mean = mean + (1 - settings["betas"][0]) * (gradient - mean)
        square = square + (1 - settings["betas"][1]) * (gradient**2 - square)
        below = square / corrections[1]
        if without == "eps outside":
            below = (below + settings["eps"]).sqrt()
        else:
            below = (below if without == "root" else below.sqrt()) + settings["eps"]
        weights = weights - settings["rate"] * (mean / corrections[0]) / below
    return weights
