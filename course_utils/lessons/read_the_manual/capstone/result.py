"""What the ranks measured, weighed: what do the weights recognise, and what did they cost?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_utils.lessons.read_the_manual.capstone.sent_bytes import LINK
from course_utils.lessons.read_the_manual.capstone.task import (
    BUDGET,
    LINKS,
    NAIVE_STEPS,
    STEP_SECONDS,
    as_images,
    network,
)
from course_utils.system import LINUX
from course_utils.words import percent

_SECONDS = f"Seconds: a rank's processor (a naive step is {1000 * STEP_SECONDS:g} ms at most), and its bytes at {LINKS}"
_HERE = "what the kernel counted on each rank's sockets" if LINUX else "what each rank's trace tells"
COUNTED = {
    True: f"Bytes: what the kernel counted on each node's interface. {_SECONDS}; the clock's if fewer.",
    False: f"No links here. Bytes: {_HERE}. {_SECONDS}.",
}
"""By whether there were links."""


@dataclass(frozen=True)
class CapstoneResult:
    """A training that was measured.

    Attributes:
        accuracy: the share of the held-out images that rank 0's weights recognise.
        sent: bytes that each node sent.
        seconds: of the node that took longest.
        naive_sent, naive_seconds: what naive data parallelism takes: this many times one of its steps here.
        links: whether every rank was a node behind a link.
    """

    accuracy: float
    sent: list[int]
    seconds: float
    naive_sent: float
    naive_seconds: float
    links: bool

    @property
    def share_of_time(self) -> float:
        """Of what naive data parallelism takes."""
        return self.seconds / self.naive_seconds

    def misses(self) -> list[str]:
        """Of "bytes", "seconds" and "accuracy" those that are not as asked for."""
        kept = {
            "bytes": max(self.sent) <= BUDGET.bytes,
            "seconds": self.share_of_time <= BUDGET.seconds,
            "accuracy": self.accuracy >= BUDGET.accuracy,
        }
        return [name for name, well in kept.items() if not well]


def result_of(measured: Sequence[dict[str, Any]], held_out: tuple[np.ndarray, np.ndarray]) -> CapstoneResult:
    """Put together what the ranks measured; the held-out images are looked at here for the first time."""
    return CapstoneResult(
        accuracy=recognised(measured[0]["weights"], *held_out),
        sent=[int(result["sent"]) for result in measured],
        seconds=max(result["seconds"] for result in measured),
        naive_sent=NAIVE_STEPS * max(result["naive_sent"] for result in measured),
        naive_seconds=NAIVE_STEPS * max(result["naive_seconds"] for result in measured),
        links=all(result["where"] == LINK for result in measured),
    )


def recognised(
    weights: dict[str, np.ndarray], pixels: np.ndarray, labels: np.ndarray, running_means: bool = True
) -> float:
    """The share of images whose class a VGG-11 with these weights finds.

    Args:
        running_means: those of batch norm are used; False: the means of these images.
    """
    import torch

    model = network(0).train(not running_means)
    model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in weights.items()})
    with torch.no_grad():
        return float((model(as_images(pixels)).argmax(dim=1).numpy() == labels).mean())


def used(result: CapstoneResult) -> str:
    """In a line: what was reached and used, beside what is asked for."""
    return (
        f"{percent(result.accuracy, 1)} of the held-out images are recognised (asked for: "
        f"{percent(BUDGET.accuracy, 1)}); a node sent {megabytes_text(max(result.sent))} (budget: "
        f"{megabytes_text(BUDGET.bytes)}) and took {time_text(result.seconds)} (budget: "
        f"{time_text(BUDGET.seconds * result.naive_seconds)}, {percent(BUDGET.seconds)} of the time of {NAIVE_STEPS} "
        "steps of naive data parallelism)"
    )


def megabytes_text(number: float) -> str:
    """Bytes in MB, with digits that tell just below from just above."""
    return f"{number / 1e6:.2f} MB"


def time_text(seconds: float) -> str:
    """Seconds, with digits that tell just below from just above."""
    return f"{seconds:.2f} s"
