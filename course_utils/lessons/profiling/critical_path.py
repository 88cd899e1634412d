"""The critical path of a run on several ranks: the chain of work and messages that its length consists of.

It is walked from the end backwards. A rank that ended last did its own work until then, or it waited for a collective;
that one waited for the rank that came to it last, and the path goes on there. What is not on the path costs nothing: to
make it faster changes nothing.

It is right as far as the ranks' clocks are, and as far as the collectives are known: a wait for a message that could
not be matched, or for a rank without a trace, counts as the waiting rank's own work.

Source: Yang and Miller 1988, "Critical path analysis for the execution of parallel and distributed programs".
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.lessons.profiling.intervals import Interval
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.matched_collectives import collectives_of

__all__ = ["OWN", "TRANSFER", "Piece", "collectives_of", "critical_path", "share_of_ranks"]

OWN, TRANSFER = "own work", "transfer"
_SAME = 1e-8
"""Seconds: moments that are no further apart are the same one; a trace's times have three digits of a microsecond."""
Collectives = Sequence[Mapping[int, Interval]]
"""For each collective, rank → when it was under way there."""


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


def critical_path(lanes: Sequence[Lanes], collectives: Collectives) -> list[Piece]:
    """The path from the first rank's beginning to the last rank's end, in the order of time and without gaps.

    Args:
        lanes: of all ranks, on one clock.
        collectives: for each one when it was under way on each of its ranks, as `collectives_of` finds them.
    """
    by_rank = {rank_lanes.rank: rank_lanes for rank_lanes in lanes}
    waits = {rank: _waits(rank_lanes, collectives) for rank, rank_lanes in by_rank.items()}
    rank = max(by_rank, key=lambda candidate: by_rank[candidate].end)
    moment = by_rank[rank].end
    path: list[Piece] = []
    while waited := _last_wait(waits[rank], rank, moment):
        end = waited[rank][1]
        last = _last_to_begin(waited)  # the others waited for it
        begin = min(waited[last][0], end)
        path += [Piece(rank, end, moment, OWN), Piece(last, begin, end, TRANSFER)]
        rank, moment = last, begin
    path.append(Piece(rank, min(by_rank[rank].begin, moment), moment, OWN))
    return [piece for piece in reversed(path) if piece.end - piece.begin > _SAME]


def share_of_ranks(path: Sequence[Piece], ranks: Iterable[int], kind: str = OWN) -> list[float]:
    """Which share of the path is each rank's; of its own work, unless told otherwise. From 0 to 1."""
    whole = math.fsum(piece.end - piece.begin for piece in path) or 1.0
    own = [
        math.fsum(piece.end - piece.begin for piece in path if (piece.rank, piece.kind) == (rank, kind))
        for rank in ranks
    ]
    return [seconds / whole for seconds in own]


def _last_to_begin(collective: Mapping[int, Interval]) -> int:
    return max(collective, key=lambda candidate: collective[candidate][0])


def _waits(lanes: Lanes, collectives: Collectives) -> list[Mapping[int, Interval]]:
    """The collectives that the rank has waited for, in the order of their ends there.

    A rank has waited for one where exposed communication ends with it. Otherwise the rank computed when it ended: what
    it did then did not hang on it.
    """
    exposed = [end for _, end in lanes.exposed]

    def waited_for(begin: float, end: float) -> bool:
        after = bisect_left(exposed, end - _SAME)
        return begin >= lanes.begin - _SAME and after < len(exposed) and exposed[after] <= end + _SAME

    found = [
        collective for collective in collectives if lanes.rank in collective and waited_for(*collective[lanes.rank])
    ]
    return sorted(found, key=lambda collective: collective[lanes.rank][1])


def _last_wait(waits: Sequence[Mapping[int, Interval]], rank: int, moment: float) -> Mapping[int, Interval] | None:
    """The last collective that the rank has waited for before a moment; None if there is none."""
    before = bisect_right(waits, moment + _SAME, key=lambda collective: collective[rank][1])
    for place in range(before - 1, -1, -1):
        collective = waits[place]
        if max(begin for begin, _ in collective.values()) < moment - _SAME:
            return collective  # one that the last rank began later would not lead back in time
    return None
