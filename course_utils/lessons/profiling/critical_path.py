"""The critical path of a run on several ranks: the chain of work and messages that its length consists of.

It is walked from the end backwards. A rank that ended last did its own work until then, or it waited for a collective;
that one waited for the rank that came to it last, and the path goes on there. What is not on the path costs nothing: to
make it faster changes nothing.

Source: Yang and Miller 1988, "Critical path analysis for the execution of parallel and distributed programs".
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.intervals import Interval
from course_utils.lessons.profiling.lanes import Lanes, is_communication

OWN, TRANSFER = "own work", "transfer"
_SAME = 1e-8
"""Seconds: moments that are no further apart are the same one; a trace's times have three digits of a microsecond."""


@dataclass(frozen=True)
class Piece:
    """A part of the path.

    Attributes:
        rank: who is on it; of a transfer, the rank that all others waited for.
        begin, end: in seconds.
        kind: `OWN`, computing and whatever else the rank does, or `TRANSFER`.
    """

    rank: int
    begin: float
    end: float
    kind: str


def collectives_of(trace: Trace, ranks: int) -> list[list[Interval]]:
    """For each collective of a merged trace when it was under way on each rank, in seconds.

    All ranks begin them in the same order, so the first of each rank belong together, and so on.

    Raises:
        CourseError: not every rank has begun as many; the trace has been cut.
    """
    begun: dict[int, list[Interval]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and is_communication(event):
            begun[event["pid"]].append((1e-6 * event["ts"], 1e-6 * (event["ts"] + event["dur"])))
    counts = [len(begun[rank]) for rank in range(ranks)]
    if len(set(counts)) > 1:
        raise CourseError(f"critical path: the ranks began {counts} collectives; every rank must take part in each.")
    return [list(each) for each in zip(*(sorted(begun[rank]) for rank in range(ranks)), strict=True)]


def critical_path(lanes: Sequence[Lanes], collectives: Sequence[Sequence[Interval]]) -> list[Piece]:
    """The path from the first rank's beginning to the last rank's end, in the order of time and without gaps.

    Args:
        lanes: of all ranks, on one clock.
        collectives: for each one when it was under way on each rank, as `collectives_of` gives them.
    """
    rank = max(range(len(lanes)), key=lambda candidate: lanes[candidate].end)
    moment = lanes[rank].end
    path: list[Piece] = []
    while waited := _last_wait(lanes[rank], collectives, moment):
        end = waited[rank][1]
        last = max(
            range(len(lanes)), key=lambda candidate: waited[candidate][0]
        )  # it came last: the others waited for it
        begin = min(waited[last][0], end)
        path += [Piece(rank, end, moment, OWN), Piece(last, begin, end, TRANSFER)]
        rank, moment = last, begin
    path.append(Piece(rank, lanes[rank].begin, moment, OWN))
    return [piece for piece in reversed(path) if piece.end - piece.begin > _SAME]


def share_of_ranks(path: Sequence[Piece], ranks: int, kind: str = OWN) -> list[float]:
    """Which share of the path is each rank's; of its own work, unless told otherwise. From 0 to 1."""
    whole = math.fsum(piece.end - piece.begin for piece in path) or 1.0
    own = [
        math.fsum(piece.end - piece.begin for piece in path if (piece.rank, piece.kind) == (r, kind))
        for r in range(ranks)
    ]
    return [seconds / whole for seconds in own]


def _last_wait(lanes: Lanes, collectives: Sequence[Sequence[Interval]], moment: float) -> Sequence[Interval] | None:
    """The last collective that the rank has waited for before a moment; None where there is none.

    A rank has waited for it where exposed communication ends with it. Otherwise the rank computed when it ended: what
    it did then did not hang on it.
    """
    exposed = [end for _, end in lanes.exposed]
    found = None
    for each in collectives:
        begin, end = each[lanes.rank]
        last_begin = max(start for start, _ in each)
        if begin < lanes.begin or end > moment + _SAME or last_begin >= moment - _SAME:
            continue  # not of these steps, later, or it would not lead back in time
        if any(abs(end - exposed_end) <= _SAME for exposed_end in exposed) and (
            found is None or end >= found[lanes.rank][1]
        ):
            found = each
    return found
