"""Why no strategy is quicker than so much, as data: whoever has the costs can check it without the search."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """That no strategy takes less than `nanoseconds`. Plain lists of numbers: `json.dumps(asdict(…))` writes it.

    Each list has an item for each operator but the input, in it one for each configuration, in the order of
    `choices_of`.

    Attributes:
        partial: what the operators up to this one leave behind, as pairs (clocks, rest) of nanoseconds: when each
            device is free after their forward passes, and how long each is busy with their backward passes. With the
            same configuration each other partial strategy is no better than one of these, or takes `nanoseconds`.
        follow: for each device i and j, how long at least it is from when j is free, after the operator's forward pass,
            until i is free, before its backward pass. None: i does not wait for j.
        work: nanoseconds that all devices together are busy in between, at least.
    """

    nanoseconds: int
    partial: Sequence[Sequence[Sequence[tuple[Sequence[int], Sequence[int]]]]]
    follow: Sequence[Sequence[Sequence[Sequence[int | None]]]]
    work: Sequence[Sequence[int]]
