"""What changed between two runs: every moment of a rank goes to one name, and the two sums are compared name by name.

At each moment of its profiled steps a rank is in one of three states. It computes: then the moment belongs to the
operator that began last, for the others wait for it. It does not, and communication is under way: the moment belongs to
that, as exposed. Neither: it is idle. So the names' seconds add up to the length of the steps, and their changes to the
change of that length.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import is_communication, is_computing, name_of, uses_gpu
from course_utils.lessons.profiling.lanes import Lanes, lanes_of
from course_utils.lessons.profiling.merged_trace import as_merged

IDLE = "idle"
Moments = tuple[float, float, str]
"""From when to when, and the name."""


@dataclass(frozen=True)
class Change:
    """What became of a name; seconds on average over the ranks."""

    name: str
    before: float
    after: float

    @property
    def seconds(self) -> float:
        """Below zero where time was gained."""
        return self.after - self.before


def changes(before: Trace, after: Trace) -> list[Change]:
    """What changed from one merged trace to another one: the names with the largest change first."""
    first, second = seconds_by_name(before), seconds_by_name(after)
    found = [Change(name, first.get(name, 0.0), second.get(name, 0.0)) for name in {**first, **second}]
    return sorted(found, key=lambda change: -abs(change.seconds))


def together(found: Sequence[Change], most: int) -> list[Change]:
    """The first ones, at most this many; if there are more, the last of them is all others together."""
    if len(found) <= most:
        return list(found)
    rest = found[most - 1 :]
    others = Change(f"{len(rest)} others", sum(change.before for change in rest), sum(change.after for change in rest))
    return [*found[: most - 1], others]


def seconds_by_name(trace: Trace) -> dict[str, float]:
    """Where the steps of a merged trace went, in seconds, on average over its ranks."""
    by_rank: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    merged = as_merged(trace)
    for event in merged["traceEvents"]:
        if event["ph"] == "X":
            by_rank[event["pid"]].append(event)
    lanes = lanes_of(merged)
    total: dict[str, float] = defaultdict(float)
    for own in lanes:
        for name, seconds in seconds_of_rank(own, by_rank[own.rank]).items():
            total[name] += seconds / len(lanes)
    return dict(total)


def seconds_of_rank(lanes: Lanes, events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Where one rank's steps went: the seconds of each name; together they are `lanes.seconds`."""
    on_gpu = uses_gpu(events)
    work, messages = [], []
    for event in events:
        begin, end = max(lanes.begin, 1e-6 * event["ts"]), min(lanes.end, 1e-6 * (event["ts"] + event["dur"]))
        if begin < end and is_computing(event, on_gpu):
            work.append((begin, end, name_of(event)))
        elif begin < end and is_communication(event):
            messages.append((begin, end, f"{name_of(event)}, exposed"))
    found: dict[str, float] = defaultdict(float)
    moments = sorted({lanes.begin, lanes.end, *(moment for interval in work + messages for moment in interval[:2])})
    at_work, under_way = _Latest(work), _Latest(messages)
    for begin, end in zip(moments, moments[1:], strict=False):
        found[at_work.name(begin) or under_way.name(begin) or IDLE] += end - begin
    return dict(found)


class _Latest:
    """Tells, moment after moment, which of those under way began last."""

    def __init__(self, times: Sequence[Moments]) -> None:
        self._waiting = sorted(times, key=lambda interval: (interval[0], -interval[1]), reverse=True)
        self._begun: list[tuple[float, float, str]] = []  # the latest begin first

    def name(self, moment: float) -> str:
        """Of what is under way at a moment, "" for nothing; the moments that are asked for never go back."""
        while self._waiting and self._waiting[-1][0] <= moment:
            begin, end, name = self._waiting.pop()
            heapq.heappush(self._begun, (-begin, end, name))  # of equal begins the one that ends first is the inner one
        while self._begun and self._begun[0][1] <= moment:
            heapq.heappop(self._begun)
        return self._begun[0][2] if self._begun else ""
