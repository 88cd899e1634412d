"""What the ranks measured, weighed: what do the weights recognise, and what did they cost?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.lessons.read_the_manual.capstone.sent_bytes import LINK
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, NAIVE_STEPS, as_images, network
from course_utils.system import LINUX
from course_utils.words import percent

BYTES, PASSES, ACCURACY = "bytes", "image passes", "accuracy"
"""What can be missed."""
_PASSES = "Image passes: an image counts 1 in a forward pass and 2 in a backward pass"
_HERE = "what the kernel counted on each rank's sockets" if LINUX else "what each rank's trace tells"
COUNTED = {
    True: f"Bytes: what the kernel counted on each node's interface. {_PASSES}.",
    False: f"There are no links here. Bytes: {_HERE}. {_PASSES}.",
}
"""By whether there were links."""


@dataclass(frozen=True)
class CapstoneResult:
    """A training run that was measured.

    Attributes:
        accuracy: the share of the held-out images that rank 0's weights recognise.
        sent: bytes that each node sent.
        passes: image passes of each node; see `ImagePasses` in `on_ranks`.
        naive_sent: bytes that naive data parallelism sends: this many times one of its steps here.
        links: whether every rank was a node behind a link.
    """

    accuracy: float
    sent: list[int]
    passes: list[int]
    naive_sent: float
    links: bool

    def misses(self) -> list[str]:
        """Return those of `BYTES`, `PASSES` and `ACCURACY` that are not as asked for."""
        kept = {
            BYTES: max(self.sent) <= BUDGET.bytes,
            PASSES: max(self.passes) <= BUDGET.passes,
            ACCURACY: self.accuracy >= BUDGET.accuracy,
        }
        return [name for name, well in kept.items() if not well]

    @property
    def nearly(self) -> bool:
        """Whether only the accuracy is missed, and by so little that other images may decide otherwise."""
        return self.misses() == [ACCURACY] and self.accuracy >= BUDGET.accuracy - BUDGET.near


def result_of(measured: Sequence[dict[str, Any]], held_out: tuple[np.ndarray, np.ndarray]) -> CapstoneResult:
    """Put together what the ranks measured; only now are the held-out images used."""
    return CapstoneResult(
        accuracy=recognised(measured[0]["weights"], *held_out),
        sent=[int(result["sent"]) for result in measured],
        passes=[int(result["passes"]) for result in measured],
        naive_sent=NAIVE_STEPS * max(result["naive_sent"] for result in measured),
        links=all(result["where"] == LINK for result in measured),
    )


def recognised(
    weights: dict[str, np.ndarray], pixels: np.ndarray, labels: np.ndarray, running_means: bool = True
) -> float:
    """Return the share of images whose class a VGG-11 with these weights finds.

    Args:
        running_means: whether batch norm uses its running means; False: the means of these images.
    """
    import torch

    model = network(0).train(not running_means)
    model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in weights.items()})
    with torch.no_grad():
        return float((model(as_images(pixels)).argmax(dim=1).numpy() == labels).mean())


def used(result: CapstoneResult) -> str:
    """Return a line with what was reached and used, next to what is asked for."""
    return (
        f"{percent(result.accuracy, 1)} of the held-out images are recognised (asked for: "
        f"{percent(BUDGET.accuracy, 1)}); a node sent {megabytes_text(max(result.sent))} (budget: "
        f"{megabytes_text(BUDGET.bytes)}) and made {passes_text(max(result.passes))} (budget: {BUDGET.passes:,})"
    )


def megabytes_text(number: float) -> str:
    """Bytes in MB, with digits that tell just below from just above."""
    return f"{number / 1e6:.2f} MB"


def passes_text(number: int) -> str:
    """Image passes, by their number."""
    return f"{number:,} image passes"
