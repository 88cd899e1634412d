"""Where everything stands in a timeline: the stretch of time that is shown, and a place for each operation."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from course_utils.draw import style
from course_utils.draw.message_timeline.timeline_text import collective_groups, extent, is_message
from course_utils.trace.events import Event, pair_messages
from course_utils.words import seconds_text

HALF = 0.23  # of a row: half the height of the boxes
_LANES = 4  # operations of one rank drawn one under the other when they overlap in time
_MOST = {"phase": 100, "operation": 160}  # on one rank in one picture: more of them would be thinner than a line


@dataclass(eq=False)
class TimelineMark:
    """An operation as it is drawn: `start`, `end`, `waits_until` in seconds on the picture's axis, the rest in rows."""

    event: Event
    start: float
    end: float
    waits_until: float = -math.inf
    top: float = 0.0
    bottom: float = 0.0
    row: int = 0

    @property
    def stuck(self) -> bool:
        """It never ended."""
        return not math.isfinite(self.event.end)

    @property
    def in_background(self) -> bool:
        """A nonblocking operation (Isend, Irecv, …): the rank goes on meanwhile."""
        return self.event.name[:1] in ("I", "i") and len(self.event.name) > 1

    @property
    def waits(self) -> bool:
        """Some of its time passed waiting for another rank."""
        return self.waits_until > self.start and not self.in_background and not self.stuck

    @property
    def colour(self) -> str:
        """The colour of its kind."""
        kinds = {"send": style.SEND, "recv": style.RECEIVE, "collective": style.TOGETHER}
        return kinds.get(self.event.kind, style.COLOURS["idle"])


@dataclass
class Rows:
    """The part of a run that lies between `origin` and `origin + span` seconds of its clock, laid out in rows.

    Attributes:
        ranks: the rank of each row.
    """

    events: Sequence[Event]
    ranks: Sequence[int]
    origin: float
    span: float
    marks: list[TimelineMark] = field(default_factory=list)
    phases: list[TimelineMark] = field(default_factory=list)
    groups: list[list[TimelineMark]] = field(default_factory=list)
    messages: list[tuple[TimelineMark, TimelineMark]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._row_of = {rank: row for row, rank in enumerate(self.ranks)}
        marks = {id(event): self._mark(event) for event in self.events}
        self.marks = [mark for mark in marks.values() if mark.event.kind != "phase" and self.shows(mark)]
        self.phases = [mark for mark in marks.values() if mark.event.kind == "phase" and self.shows(mark)]
        stack_lanes(self.marks)
        pairs = [(marks[id(send)], marks[id(got)]) for send, got in pair_messages(self.events)]
        self.messages = [pair for pair in pairs if self.shows(pair[0]) and self.shows(pair[1]) and not pair[1].stuck]
        for send, got in self.messages:
            got.waits_until = min(send.start, got.end)
            if send.end > got.start:
                send.waits_until = got.start
        groups = [[marks[id(event)] for event in group] for group in collective_groups(self.events)]
        self.groups = [group for group in groups if any(self.shows(mark) for mark in group)]
        for group in self.groups:
            last = max(mark.start for mark in group)
            for mark in group:
                mark.waits_until = last if mark.end >= last else -math.inf

    @property
    def known(self) -> float:
        """Up to when times were measured: not beyond the last event that ended; 0 where nothing ended."""
        ended = [event.end - self.origin for event in self.events if math.isfinite(event.end)]
        return max(ended, default=0.0) if any(mark.stuck for mark in self.marks) else self.span

    def _mark(self, event: Event) -> TimelineMark:
        """The event on the picture's axis; what never ended goes on to the right edge."""
        end = event.end - self.origin if math.isfinite(event.end) else self.span
        row = self._row_of[event.rank]
        return TimelineMark(event, event.start - self.origin, end, top=row - HALF, bottom=row + HALF, row=row)

    def shows(self, mark: TimelineMark) -> bool:
        """Does any of it lie in the part that is shown?"""
        return mark.end >= 0 and mark.start <= self.span


def stack_lanes(marks: Sequence[TimelineMark]) -> None:
    """Give each operation its place in its rank's row: all of the height, or a lane where several overlap in time."""
    by_rank: dict[int, list[TimelineMark]] = defaultdict(list)
    for mark in sorted(marks, key=lambda mark: mark.start):
        by_rank[mark.event.rank].append(mark)
    for own in by_rank.values():
        cluster: list[TimelineMark] = []
        for mark in own:
            if cluster and mark.start >= max(other.end for other in cluster):
                share_row(cluster)
                cluster = []
            cluster.append(mark)
        share_row(cluster)


def share_row(cluster: Sequence[TimelineMark]) -> None:
    """Put operations that overlap in lanes, sends above receives above the rest."""
    until: dict[str, list[float]] = {"send": [], "recv": [], "other": []}
    positions: list[tuple[str, int]] = []
    for mark in cluster:
        kind = mark.event.kind if is_message(mark.event) else "other"
        lanes = until[kind]
        lane = next((lane for lane, end in enumerate(lanes) if end <= mark.start), len(lanes))
        if lane == len(lanes) and lane >= _LANES:
            lane = min(range(len(lanes)), key=lanes.__getitem__)
        lanes[lane : lane + 1] = [max(mark.end, *lanes[lane : lane + 1], mark.end)]
        positions.append((kind, lane))
    order = [(kind, lane) for kind, lanes in until.items() for lane in range(len(lanes))]
    height = 2 * HALF / len(order)
    for mark, position in zip(cluster, positions, strict=True):
        mark.top = mark.row - HALF + order.index(position) * height
        mark.bottom = mark.top + height * (1 if len(order) == 1 else 0.86)


def lay_out(runs: Sequence[list[Event]], ranks: Sequence[Sequence[int]]) -> tuple[list[Rows], str]:
    """Place several runs on one axis of time, and say in words what of them is shown where it is not everything.

    Each run begins at 0 with its first event. Where there are more events than can be told apart, the picture shows
    as much as can; a wait without end is always shown, and goes on beyond the right edge.

    Args:
        ranks: of each run, those that have a row.
    """
    stuck = [any(not math.isfinite(event.end) for event in events) for events in runs]
    ends = [extent(events) for events in runs]
    full = max((end - start for start, end in ends), default=0.0)
    span = min([full, *[clear_span(events, last=hangs) for events, hangs in zip(runs, stuck, strict=True)]])
    origins = [
        max(start, end - span) if hangs and span < full else start
        for (start, end), hangs in zip(ends, stuck, strict=True)
    ]
    note = ""
    if span < full:
        note = f"Shown: the {'last' if any(stuck) else 'first'} {seconds_text(span)} of {seconds_text(full)}."
    if any(stuck):
        ended = any(math.isfinite(event.end) for events in runs for event in events)
        span *= 1.35 if ended else 4
    span = span if span > 0 else 1e-3
    laid_out = [Rows(*each, span) for each in zip(runs, ranks, origins, strict=True)]
    return laid_out, note


def clear_span(events: Sequence[Event], last: bool) -> float:
    """The longest stretch from a run's beginning (or back from its end) in which bars and boxes can be told apart."""
    start, end = extent(events)
    times: dict[tuple[int, str], list[float]] = defaultdict(list)
    for event in events:
        kind = "phase" if event.kind == "phase" else "operation"
        times[event.rank, kind].append(end - event.start if last else event.start - start)
    cuts = [sorted(own)[_MOST[kind]] for (_, kind), own in times.items() if len(own) > _MOST[kind]]
    return min((cut for cut in cuts if cut > 0), default=math.inf)
