"""Why a call on the ranks came to its end, as a value; the sentence on it is made in `failure_report`."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """Why a call on the ranks came to its end."""

    RETURNED = "returned"
    """Every rank returned, and nothing broke the call off."""
    RAISED = "raised"
    """A rank raised; the others may have been told to stop."""
    DEADLOCK = "deadlock"
    """Ranks wait for what will never come."""
    NO_PROGRESS = "no progress"
    """Nothing moved for `patience` seconds, and nobody can know why."""
    NOT_FINISHED = "not finished"
    """The limit of processor time was reached, or the function slept for many times as long."""
    TOO_BUSY = "too busy"
    """The function wanted to compute, and the machine gave it too little processor time to say anything."""
    STOPPED = "stopped"
    """The user pressed stop."""
    RANK_ENDED = "rank ended"
    """A rank's process is gone, or would not heed the interrupt."""
    UNUSABLE = "unusable"
    """An earlier call has broken MPI."""


@dataclass(frozen=True)
class BrokenOff:
    """Why a call did not go on until every rank had replied.

    Attributes:
        ending: the decision.
        text: a sentence on it, which begins with a small letter and ends with a full stop.
        explanation: a sentence to put behind what each rank does; "" where there is nothing to explain.
    """

    ending: Ending
    text: str
    explanation: str = ""


STOPPED_BY_USER = BrokenOff(Ending.STOPPED, "stopped by you.")


def ending_of(kinds: Iterable[str], cause: BrokenOff | None) -> Ending:
    """How a call ended.

    Args:
        kinds: of its replies, see `engine.reply.Reply`.
        cause: why it was broken off, if it was.
    """
    kinds = set(kinds)
    if "raised" in kinds:
        return Ending.RAISED
    if "unusable" in kinds:
        return Ending.UNUSABLE
    if cause:
        return cause.ending
    if "lost" in kinds:
        return Ending.RANK_ENDED
    return Ending.STOPPED if "interrupted" in kinds else Ending.RETURNED
