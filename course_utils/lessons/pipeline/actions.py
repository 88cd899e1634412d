"""What a schedule is made of: for each rank a list of actions, each of one stage and one micro-batch.

The notation is that of `torch.distributed.pipelining`: `2F0` is the forward pass of stage 2 on micro-batch 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError

FORWARD, BACKWARD, INPUT, WEIGHT = "F", "B", "I", "W"
"""Forward; the whole backward pass; its first half, the gradient of the stage's input, which the stage before waits
for; its second half, the gradient of the stage's weights, which no other stage needs."""
SEND_F, RECV_F, SEND_B, RECV_B = "SEND_F", "RECV_F", "SEND_B", "RECV_B"
"""Messages. Activations go from a stage to the next one, gradients of activations to the one before."""
COMPUTATIONS = (FORWARD, BACKWARD, INPUT, WEIGHT)
MESSAGES = (SEND_F, RECV_F, SEND_B, RECV_B)

_WRITTEN = re.compile(r"(\d+)([A-Z_]+?)(\d+)")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a rank does.

    Attributes:
        kind: one of `COMPUTATIONS` or `MESSAGES`.
        stage: which part of the model, from 0. For a message, the stage on the rank that sends or receives it.
        micro_batch: which part of the batch, from 0.
    """

    kind: str
    stage: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro_batch}"

    @property
    def computes(self) -> bool:
        """Whether it is arithmetic, and no message."""
        return self.kind in COMPUTATIONS


Schedule = list[list[Action]]
"""For each rank, the list of its actions in order."""


def parse(text: str) -> Action:
    """The action that is written `2F0` or `1SEND_B3`.

    Raises:
        CourseError: the text is none.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or found[2] not in COMPUTATIONS + MESSAGES:
        raise CourseError(f"{text!r} is not an action. Write stage, kind and micro-batch: 0F3 is stage 0, forward, 3.")
    return Action(found[2], int(found[1]), int(found[3]))


def parse_schedule(lines: Iterable[str]) -> Schedule:
    """A schedule from one line of actions for each rank, "0F0 0F1 0B0 0B1"."""
    return [[parse(word) for word in line.replace(",", " ").split()] for line in lines]


def write_schedule(schedule: Sequence[Sequence[Action]]) -> str:
    """One line for each rank, as `parse_schedule` reads them."""
    return "\n".join(" ".join(map(str, actions)) for actions in schedule)


def rank_of_stages(schedule: Sequence[Sequence[Action]]) -> dict[int, int]:
    """Find the rank of each stage, which is the first one that computes with it."""
    ranks: dict[int, int] = {}
    for rank, actions in enumerate(schedule):
        for action in actions:
            if action.computes:
                ranks.setdefault(action.stage, rank)
    return ranks


def micro_batches_of(schedule: Sequence[Sequence[Action]]) -> int:
    """How many micro-batches the schedule names."""
    return 1 + max((action.micro_batch for actions in schedule for action in actions), default=-1)


def whole_number(name: str, value: int) -> None:
    """Reject what is not a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CourseError(f"{name} is a whole number of at least 1, not {value!r}.")
