"""What dispatch and combine hand each other: whose rows came, and how they find their way back."""

from typing import NamedTuple

import torch

from course_utils.errors import CourseError


class Dispatched(NamedTuple):
    """What came to a rank's experts, and how it finds its way back.

    Attributes:
        rows: (R, width), by the rank that they come from, then by expert, then in the order of that rank's tokens.
        expert: (R,) of int64, which of this rank's experts each row is for, from 0.
        order: the choices that this rank sent, in the order of sending, as places in `experts.flatten()`.
        sent, received: rows to, and from, each rank of the group.
    """

    rows: torch.Tensor
    expert: torch.Tensor
    order: torch.Tensor
    sent: list[int]
    received: list[int]


def check_choices(tokens: torch.Tensor, experts: torch.Tensor, number: int) -> None:
    """Reject choices that do not fit.

    Raises:
        CourseError: there is no such expert, or not one row of choices for each token.
    """
    if len(tokens) != len(experts):
        raise CourseError(f"{len(tokens)} tokens came with choices for {len(experts)}. Route the same tokens.")
    if experts.numel() and not (int(experts.min()) >= -1 and int(experts.max()) < number):
        strange = int(experts.max()) if int(experts.max()) >= number else int(experts.min())
        raise CourseError(f"There is no expert {strange}: they are 0 to {number - 1}, and −1 means dropped.")
