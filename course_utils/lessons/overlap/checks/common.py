"""What the checks of lesson 7 share. torch is imported where it is used: a list of exercises must not wait for it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from course_utils.checks.exercise import NO_RESULT, Outcome

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.trace.events import Event

LESSON = "07_overlap"


def drawn(rng: Any, *shape: int, dtype: str = "float64") -> "Tensor":
    """A tensor of standard normal numbers."""
    import torch

    return torch.tensor(rng.standard_normal(shape).astype(dtype))


def marked(values: "Tensor", note: Callable[[], None]) -> "Tensor":
    """The same values; `note` is called when the backward pass comes by."""
    import torch

    class NotedBackward(torch.autograd.Function):
        @staticmethod
        def forward(_, given: "Tensor") -> "Tensor":
            return given.view_as(given)

        @staticmethod
        def backward(_, gradient: "Tensor") -> "Tensor":
            note()
            return gradient

    return NotedBackward.apply(values)


def collectives(outcome: Outcome, rank: int) -> list["Event"]:
    """The collective calls of `rank` that were waited for, in the order in which they began."""
    events = outcome.attempt.replies[rank].events or ()
    return sorted((event for event in events if event.kind == "collective"), key=lambda event: event.start)


def none_returned(outcome: Outcome) -> bool:
    """Whether not one rank came to its end."""
    return all(result is NO_RESULT for result in outcome.results)


def mean_of(gradients: Sequence[Sequence["Tensor | None"]]) -> list["Tensor"]:
    """For each parameter the mean of the ranks' gradients, where None counts as zeros and somebody has one."""
    means = []
    for each in zip(*gradients, strict=True):
        there = [gradient for gradient in each if gradient is not None]
        means.append(sum(there) / len(each) if there else None)
    return means
