"""Reads in a merged trace when each rank computed and when communication of its was under way, within its steps.

On a GPU both are kernels: NCCL's are communication, all others computing. Copies between the memories of processor and
GPU are neither, nor is the GPU idle meanwhile. A step is there what the GPU does of it.

On a CPU torch's operators (`aten::…`) are computing, in whatever thread they run, and what gloo's threads do
(`gloo:all_reduce`, …) is communication. A thread that waits, or runs Python, does neither. An all-reduce is under way
until the last rank has come: waiting for others is in it.

Only the time from the first step's begin to the last one's end counts. What reaches beyond is cut there: a kernel of an
earlier step on which the GPU is still at work, one that runs on after the last step. A trace in which no step is marked
counts from its first event to its last.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import Event
from course_utils.lessons.profiling.intervals import Interval, difference, intersection, length
from course_utils.lessons.profiling.merged_trace import as_merged
from course_utils.lessons.profiling.time_shares import exposed_communication, idle_share, overlap_share


@dataclass(frozen=True)
class Lanes:
    """What one rank did in its profiled steps; all times in seconds since the trace's beginning.

    Attributes:
        rank: whose lanes these are.
        begin, end: of its profiled steps; without any, of its trace.
        computing, communication: sorted, without overlaps.
        phases: name → when: "forward", "backward", "communication", "step", where the program names them.
        each_step: from when to when, step by step.
        copies: into a GPU's memory, out of it, and within it; sorted, without overlaps.
    """

    rank: int
    begin: float
    end: float
    computing: list[Interval]
    communication: list[Interval]
    phases: dict[str, list[Interval]]
    each_step: list[Interval] = field(default_factory=list)
    copies: list[Interval] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """How many were profiled."""
        return max(1, len(self.each_step))

    @property
    def seconds(self) -> float:
        """Of all profiled steps."""
        return self.end - self.begin

    @cached_property
    def exposed(self) -> list[Interval]:
        """When communication was under way and the rank did not compute."""
        return exposed_communication(self.computing, self.communication)

    @property
    def exposed_seconds(self) -> float:
        """Exposed communication of all profiled steps."""
        return length(self.exposed)

    @cached_property
    def idle(self) -> list[Interval]:
        """When the rank neither computed nor copied nor communicated."""
        return difference([(self.begin, self.end)], [*self.computing, *self.copies, *self.communication])

    @property
    def overlap_share(self) -> float:
        """Which share of the communication time is hidden behind computing."""
        return overlap_share(self.computing, self.communication)

    @property
    def idle_share(self) -> float:
        """Which share of the steps the rank neither computed nor copied nor communicated."""
        return idle_share([*self.computing, *self.copies], self.communication, self.begin, self.end)


def lanes_of(trace: Trace) -> list[Lanes]:
    """The lanes of every rank of a merged trace, in the ranks' order; of the one rank of a trace as torch wrote it."""
    by_rank: dict[int, list[Event]] = defaultdict(list)
    for event in as_merged(trace)["traceEvents"]:
        if event["ph"] == "X" and event_kinds.kind_of(event) not in event_kinds.NOT_SHOWN - {event_kinds.ON_GPU}:
            by_rank[event["pid"]].append(event)
    return [_of_rank(rank, by_rank[rank]) for rank in sorted(by_rank)]


def _of_rank(rank: int, events: Sequence[Event]) -> Lanes:
    on_gpu = event_kinds.uses_gpu(events)
    each_step = sorted(interval(event) for event in steps_of(events, on_gpu))
    counted = each_step or [interval(event) for event in events if event_kinds.is_on_device(event) or not on_gpu]
    begin, end = min(begin for begin, _ in counted), max(end for _, end in counted)

    def within(found: Iterable[Event]) -> list[Interval]:
        return intersection([(begin, end)], (interval(event) for event in found))

    phases: dict[str, list[Interval]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "phases":
            phases[event["name"]].append(interval(event))
    computing = within(event for event in events if event_kinds.is_computing(event, on_gpu))
    communication = within(event for event in events if event_kinds.is_communication(event))
    copies = within(event for event in events if event_kinds.is_copy(event))
    return Lanes(rank, begin, end, computing, communication, dict(phases), each_step, copies)


def steps_of(events: Sequence[Event], on_gpu: bool) -> list[Event]:
    """The events that mark a rank's steps: on a GPU what it did of them, if a trace tells."""
    of_gpu = [event for event in events if on_gpu and event_kinds.is_step_on_gpu(event)]
    return of_gpu or [event for event in events if event_kinds.is_step(event)]


def interval(event: Event) -> Interval:
    """From when to when, in seconds."""
    return 1e-6 * event["ts"], 1e-6 * (event["ts"] + event["dur"])
