"""What makes a training slow: where the ranks' time goes that is not spent on the model itself."""

from collections.abc import Sequence
from enum import Enum

from course_utils.lessons.profiling.intervals import difference, intersection, length
from course_utils.lessons.profiling.lanes import Lanes


class Cause(Enum):
    """What the time of a step can be lost to."""

    MESSAGES = "exposed messages"
    STRAGGLER = "a slow rank"
    BUBBLE = "the pipeline's bubble"
    INPUT = "waiting for input"
    AGAIN = "computing again"
    OPTIMIZER = "the optimizer"


def find_bottleneck(lanes: Sequence[Lanes]) -> tuple[Cause, int | None]:
    """Return what most of the ranks' time is lost to, and which rank is to blame for it.

    Every second counts on the rank on which it is lost. If a rank waits in an all-reduce for a
    slower rank, this waiting is lost to the slow rank and not to the messages.

    Args:
        lanes: of every rank, in any order. `phases` has "forward", "backward", "optimizer", and if
            there is such a phase "input" and "again".

    Returns:
        The cause with the most seconds on all ranks together. The rank is None unless the cause is
        `Cause.STRAGGLER`.
    """
    lost = dict.fromkeys(Cause, 0.0)
    # An all-reduce begins on each rank when that rank is ready, and ends everywhere at once.
    # So the slowest rank has the least exposed communication, and it waits for no other rank.
    exposed = {own.rank: own.exposed_seconds for own in lanes}
    slowest = min(exposed, key=lambda rank: exposed[rank])
    for own in lanes:
        lost[Cause.MESSAGES] += exposed[slowest]
        lost[Cause.STRAGGLER] += exposed[own.rank] - exposed[slowest]
        input_phase = own.phases.get("input", [])
        lost[Cause.INPUT] += length(intersection(own.idle, input_phase))
        lost[Cause.BUBBLE] += length(difference(own.idle, input_phase))
        lost[Cause.AGAIN] += length(intersection(own.computing, own.phases.get("again", [])))
        lost[Cause.OPTIMIZER] += length(intersection(own.computing, own.phases.get("optimizer", [])))
    cause = max(lost, key=lambda each: lost[each])
    return cause, slowest if cause is Cause.STRAGGLER else None
