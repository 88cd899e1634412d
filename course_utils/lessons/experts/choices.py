"""What dispatch hands to combine: which rows have arrived, and where their answers have to go."""

from typing import NamedTuple

import torch

from course_utils.errors import CourseError


class Dispatched(NamedTuple):
    """The rows that have arrived at a rank's experts, and what is needed to send the answers back.

    Attributes:
        rows: (R, width), sorted by the rank that sent them, then by expert, then in the order of that rank's tokens.
        expert: (R,) of int64, which of this rank's experts each row is for, from 0.
        order: the choices that this rank has sent, in the order of sending, as positions in `experts.flatten()`.
        sent, received: the number of rows to, and from, each rank of the group.
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
