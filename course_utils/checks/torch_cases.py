"""What cases with torch are made of. torch is imported where it is used: a list of exercises must not wait for it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from course_utils.checks.finding import Finding, own

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.checks.exercise import Outcome


def drawn(rng: Any, *shape: int, dtype: str = "float64") -> "Tensor":
    """A tensor of standard normal numbers."""
    import torch

    return torch.tensor(rng.standard_normal(shape).astype(dtype))


def gradient_for(result: "Tensor", upstream: "Tensor") -> "Tensor":
    """`upstream`, the gradient of the right result, in this result's shape; ones where it has more or fewer numbers.

    So every rank goes backward. If one did not, the others would wait in the collectives of their backward passes.
    """
    return upstream.reshape(result.shape) if result.numel() == upstream.numel() else result.detach() * 0 + 1


def not_contiguous(values: "Tensor") -> "Tensor":
    """The same values, in memory one column after the other, as a transposition leaves them."""
    return values.transpose(-1, -2).contiguous().transpose(-1, -2)


REUSED = "memory of an argument"
"""Under this name a harness gives what `lies_in` says of a result."""


def lies_in(found: Iterable["Tensor"], given: Iterable["Tensor"]) -> bool:
    """Whether a tensor of `found` lies in the memory of one of `given`: whoever changes one then changes both."""
    places = {tensor.untyped_storage().data_ptr() for tensor in given if tensor.numel()}
    return any(tensor.numel() and tensor.untyped_storage().data_ptr() in places for tensor in found)


def is_new(outcome: "Outcome") -> Finding | None:
    """Judge results that are right, by name: are they new tensors?"""
    words = "the numbers are right, but {who} returned memory of an argument, so a change of one changes the other"
    reused = (rank for rank, result in enumerate(outcome.results) if result[REUSED])
    return next((own("memory-of-an-argument", words, rank=rank) for rank in reused), None)


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


def averaging_hook(_, bucket):  # noqa: ANN001 - DDP rejects a hook whose annotations are texts
    """A communication hook as DDP's own, (state, GradBucket) → Future[Tensor], whose messages are counted."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(bucket.buffer())
    done: torch.futures.Future = torch.futures.Future()
    done.set_result(bucket.buffer().div_(dist.get_world_size()))
    return done
