"""Corrects the clocks of ranks by their collectives, if nobody has compared the clocks and the collectives contradict.

Clocks that contradict nothing are left as they are: on machines that keep time with NTP or PTP they may be right to the
microsecond, and the collectives can't tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.clock_bounds import ClockBounds, clock_bounds
from course_utils.lessons.profiling.matched_collectives import collectives_of
from course_utils.lessons.profiling.merged_trace import merge

TOLERANCE = 20e-6
"""Seconds: a GPU's times are converted to the processor's clock, and are wrong by a few microseconds after that."""


class ClockState(Enum):
    """What is known of the clocks of several ranks."""

    COMPARED = auto()
    """They have been compared, or there is one rank."""
    POSSIBLE = auto()
    """Nobody has compared them; no collective contradicts them."""
    CORRECTED = auto()
    """They contradicted collectives, and have been corrected by these."""
    CONTRADICTORY = auto()
    """They contradict collectives, and no correction agrees with all of these."""
    UNKNOWN = auto()
    """Nobody has compared them, and there is no collective by which one could."""


@dataclass(frozen=True)
class ClockCheck:
    """The clocks of several ranks, as far as they are known.

    Attributes:
        state: what is known.
        apart: the clocks in the files differ by at least this many seconds.
        error: by how many seconds the times of two ranks may be wrong now; None if that isn't known.
    """

    state: ClockState
    apart: float = 0.0
    error: float | None = None

    @property
    def can_compare(self) -> bool:
        """Whether moments of different ranks can be compared at all."""
        return self.state not in (ClockState.CONTRADICTORY, ClockState.UNKNOWN)


def on_one_clock(traces: Sequence[Trace]) -> tuple[list[Trace], ClockCheck]:
    """Return the ranks' traces with clocks that are as right as they can be made, and what is known of these.

    Args:
        traces: as `profile_steps` or `read_profile` gives them.
    """
    errors = [trace["course"]["error"] for trace in traces]
    if len(traces) < 2 or None not in errors:
        return list(traces), ClockCheck(ClockState.COMPARED, error=1e-6 * max([0.0, *filter(None, errors)]))
    ranks = sorted(trace["course"]["rank"] for trace in traces)
    found = clock_bounds(collectives_of(merge(traces)).collectives, ranks)
    check = _check(found)
    if check.state is not ClockState.CORRECTED or (corrections := found.corrections) is None:
        return list(traces), check
    moved = [_moved(trace, corrections[trace["course"]["rank"]], found.error) for trace in traces]
    return moved, check


def _check(found: ClockBounds) -> ClockCheck:
    if found.apart <= TOLERANCE:
        known = found.corrections is not None
        error = max((abs(bound) for both in found.bounds.values() for bound in both), default=0.0) if known else None
        return ClockCheck(ClockState.POSSIBLE if known else ClockState.UNKNOWN, error=error)
    if found.corrections is None:
        return ClockCheck(ClockState.CONTRADICTORY, found.apart)
    return ClockCheck(ClockState.CORRECTED, found.apart, found.error)


def _moved(trace: Trace, seconds: float, error: float) -> Trace:
    clock = trace["course"]
    return trace | {"course": clock | {"shift": clock["shift"] + 1e6 * seconds, "error": 1e6 * error}}
