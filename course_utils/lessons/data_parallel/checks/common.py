"""What the checks of lesson 6 share. torch is imported where it is used: a list of exercises must not wait for it."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_utils.checks.exercise import Outcome
from course_utils.checks.finding import Finding, own
from course_utils.trace.events import Event
from course_utils.words import count

if TYPE_CHECKING:
    from torch import Tensor, nn


def tensor(array: Any) -> "Tensor":
    """A tensor of its own with the array's numbers and dtype."""
    import torch

    return torch.tensor(array)


def model_of(parameters: Sequence["Tensor"], buffers: Sequence["Tensor"] = ()) -> "nn.Module":
    """A model that holds these parameters and buffers: the first of each itself, the others in modules within.

    The first buffer is not persistent, so a state dict doesn't hold it.
    """
    from torch import nn

    first, *others = [nn.Parameter(values.clone()) for values in parameters]
    model = nn.Module()
    model.scale = first
    model.layers = nn.ModuleList([nn.Module()])
    model.layers[0].weights = nn.ParameterList(others)
    for index, values in enumerate(buffers):
        holder = model.layers[0] if index else model
        holder.register_buffer(f"buffer_{index}", values.clone(), persistent=index > 0)
    return model


def calls_of(outcome: Outcome, rank: int) -> list[Event]:
    """What a rank has called."""
    return [event for event in outcome.run.events if event.rank == rank and event.kind != "phase"]


def one_call_each(
    rank: int, calls: Sequence[Event], needed: Sequence[int], call: str, wrong_number: str, wrong_bytes: str
) -> Finding | None:
    """Find out whether each of some tensors travelled once, in a call of its own.

    Args:
        rank: whose calls these are.
        calls: that moved them; empty tensors do not count.
        needed: the bytes of each tensor.
        call: what one is called, "broadcast".
        wrong_number, wrong_bytes: the sentences, with values in braces: {calls} and {expected}, {got} and {expected}.
    """
    sent = [event.bytes for event in calls if event.bytes]
    if len(sent) != len(needed):
        key = f"too-{'many' if len(sent) > len(needed) else 'few'}-{call}s"
        return own(key, wrong_number, rank=rank, expected=len(needed), got=len(sent), calls=count(len(sent), call))
    if Counter(sent) != Counter(needed):
        return own("other-bytes", wrong_bytes, rank=rank, got=sum(sent), expected=sum(needed))
    return None
