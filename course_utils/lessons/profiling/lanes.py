"""Reads in a merged trace when each rank computed and when communication of its was under way.

On a GPU both are kernels: NCCL's are communication, all others computing. Copies between the memories of processor and
GPU are neither, nor is the GPU idle meanwhile. A step is there what the GPU does of it.

On a CPU torch's operators (`aten::…`) are computing, in whatever thread they run, and what gloo's threads do
(`gloo:all_reduce`, …) is communication. A thread that waits, or runs Python, does neither. An all-reduce is under way
until the last rank has come: waiting for others is in it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from course_utils.lessons.overlap.played_names import COMPUTING
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.intervals import Interval, difference, length, union
from course_utils.lessons.profiling.merged_trace import ON_GPU, STEP
from course_utils.lessons.profiling.time_shares import exposed_communication, idle_share, overlap_share

COPIES = ("gpu_memcpy", "gpu_memset")
"""Kinds of events that move or fill a GPU's memory without a kernel."""


@dataclass(frozen=True)
class Lanes:
    """What one rank did in its profiled steps; all times in seconds since the trace's beginning.

    Attributes:
        rank: whose lanes these are.
        begin, end: of its profiled steps.
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

    @property
    def exposed(self) -> list[Interval]:
        """When communication was under way and the rank did not compute."""
        return exposed_communication(self.computing, self.communication)

    @property
    def exposed_seconds(self) -> float:
        """Exposed communication of all profiled steps."""
        return length(self.exposed)

    @property
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
    """The lanes of every rank of a merged trace, in the ranks' order."""
    by_rank: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            by_rank[event["pid"]].append(event)
    return [_of_rank(rank, by_rank[rank]) for rank in sorted(by_rank)]


def _of_rank(rank: int, events: Sequence[dict[str, Any]]) -> Lanes:
    on_gpu = any(event.get("cat") == "kernel" for event in events)
    steps = [event for event in events if event["name"].startswith(STEP)]
    steps = [event for event in steps if on_gpu and event.get("cat") == ON_GPU] or steps
    each_step = sorted(_interval(event) for event in steps)
    computing = [_interval(event) for event in events if is_computing(event, on_gpu)]
    copies = [_interval(event) for event in events if event.get("cat") in COPIES]
    communication = [_interval(event) for event in events if is_communication(event)]
    begin, end = each_step[0][0], max(end for _, end in each_step)
    if on_gpu:
        end = max([end, *(last for _, last in [*computing, *communication])])  # kernels run on behind the step
    phases: dict[str, list[Interval]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "phases":
            phases[event["name"]].append(_interval(event))
    return Lanes(rank, begin, end, union(computing), union(communication), dict(phases), each_step, union(copies))


def is_computing(event: dict[str, Any], on_gpu: bool) -> bool:
    """Whether it is work of the network: a kernel, on a CPU an operator, or computing that is emulated by waiting."""
    if on_gpu:
        return event.get("cat") == "kernel" and not is_communication(event)
    return event["name"].startswith("aten::") or event["name"] == COMPUTING


def is_communication(event: dict[str, Any]) -> bool:
    """Whether it is a collective or a message under way: one of NCCL's kernels, or of gloo's tasks."""
    if event.get("cat") == "kernel":
        return event["name"].startswith("nccl")
    return event.get("cat") == "link" or event["name"].startswith("gloo:")


def _interval(event: dict[str, Any]) -> Interval:
    """In seconds."""
    return 1e-6 * event["ts"], 1e-6 * (event["ts"] + event["dur"])
