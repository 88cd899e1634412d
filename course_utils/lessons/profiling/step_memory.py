"""Reads in a trace how many bytes are allocated while a step runs: torch.profiler notes each allocation and each free.

On a GPU these are torch's allocator's. It gives memory out when the program orders a kernel, so all times are the
program's; the GPU comes to the kernel later.

What the process held before the profile began is not the step's, on a processor or on a GPU, and is not counted.

Such a trace is about twice as large as another one, so `memory_of_step` records one step of its own.

Source: docs.pytorch.org, `torch.profiler`, `profile_memory`.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.intervals import Interval
from course_utils.lessons.profiling.merged_trace import STEP
from course_utils.lessons.profiling.record_profiles import profile_memory

MEMORY = "[memory]"
"""The name of an event that says how many bytes were allocated or freed."""
TOTAL = "Total Allocated"
"""What of its arguments holds the sum: all bytes that are allocated then."""
CUDA = 1
"""The type of a GPU's memory in such an event; 0 is the processor's."""


@dataclass(frozen=True)
class StepMemory:
    """The bytes that are allocated while a step runs; times in seconds since it began.

    Attributes:
        device: whose memory it is: "the processor", or "GPU 0".
        seconds: how long the step takes.
        times: 0, and when bytes were allocated or freed; in order.
        allocated: how many bytes were allocated from each of these times on, weights included.
        phases: name → when, where the program names them: "forward", "backward", "step".
        operator: the operator that had the last of the memory at the peak allocated; "" outside of all.
        before: how many bytes the process held when the profile began; they are not in `allocated`.
    """

    device: str
    seconds: float
    times: list[float]
    allocated: list[int]
    phases: dict[str, list[Interval]]
    operator: str
    before: int = 0

    @property
    def peak(self) -> int:
        """The most bytes that are allocated at once."""
        return max(self.allocated)

    @property
    def peak_time(self) -> float:
        """When that is, the first time."""
        return self.times[self.allocated.index(self.peak)]

    @property
    def last_taken(self) -> int:
        """How many bytes the allocation took that led to the peak."""
        at = self.allocated.index(self.peak)
        return self.allocated[at] - self.allocated[at - 1] if at else 0

    def at(self, time: float) -> int:
        """How many bytes are allocated at a time from 0 on."""
        return self.allocated[bisect_right(self.times, time) - 1]

    def released_from(self, time: float) -> int:
        """How many bytes are freed from a time on, until something is allocated again."""
        held = self.at(time)
        for allocated in self.allocated[bisect_right(self.times, time) :]:
            if allocated > held:
                break
            held = allocated
        return self.at(time) - held


def memory_of_step(make_step: Callable[..., Callable[[], Any]], *args: Any, **kwargs: Any) -> StepMemory:
    """On a rank: make a training step, take it twice, and profile the memory of the second; see `profile_memory`."""
    return read_memory(profile_memory(make_step, *args, **kwargs))


def read_memory(trace: Trace) -> StepMemory:
    """The memory of the last profiled step in a rank's trace: of its GPU if it used one, else of the processor.

    Raises:
        CourseError: the trace has no profiled step, or nothing of memory.
    """
    events = [event for event in trace["traceEvents"] if "name" in event]
    steps = [event for event in events if event["name"].startswith(STEP) and event["ph"] == "X"]
    notes = [event for event in events if event["name"] == MEMORY]
    if not steps or not notes:
        raise CourseError("read_memory: the trace has no step or no memory. Make it with profile_memory.")
    begin, end = _from_to(max(steps, key=lambda event: event["ts"]))
    device, notes = _used_memory(notes, begin, end)
    inside = [event for event in notes if begin <= event["ts"] <= end]
    before = _total_before(notes[0]) if notes[0]["ts"] < begin else 0  # a trace of the step alone does not tell
    allocated = [_total_before(inside[0]) - before, *(event["args"][TOTAL] - before for event in inside)]
    times = [0.0, *(1e-6 * (event["ts"] - begin) for event in inside)]
    phases: dict[str, list[Interval]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "phases" and begin <= event["ts"] <= end:
            since, until = _from_to(event)
            phases[event["name"]].append((1e-6 * (since - begin), 1e-6 * (until - begin)))
    highest = allocated.index(max(allocated))
    operator = _operator_around(inside[highest - 1], events) if highest else ""
    return StepMemory(device, 1e-6 * (end - begin), times, allocated, dict(phases), operator, before)


def _used_memory(notes: Sequence[dict[str, Any]], begin: float, end: float) -> tuple[str, list[dict[str, Any]]]:
    """Which memory the step used, and all that was noted of it, in the order of time.

    Of several GPUs, that which the step asked most often.
    """
    of_device: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in sorted(notes, key=lambda event: event["ts"]):
        of_device[event["args"]["Device Type"], event["args"]["Device Id"]].append(event)

    def in_step(device: tuple[int, int]) -> tuple[bool, int]:
        number = sum(begin <= event["ts"] <= end for event in of_device[device])
        return device[0] == CUDA and number > 0, number

    device = max(of_device, key=in_step)
    if not in_step(device)[1]:
        raise CourseError("read_memory: the step allocates nothing.")
    return f"GPU {device[1]}" if device[0] == CUDA else "the processor", of_device[device]


def _total_before(note: dict[str, Any]) -> int:
    """How many bytes were allocated just before; a processor's count since the process's first profile."""
    return note["args"][TOTAL] - note["args"]["Bytes"]


def _operator_around(note: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """The operator in which something was allocated: the innermost in the same thread that does more than allocate."""
    shortest, name = math.inf, ""
    for event in events:
        is_operator = event.get("cat") == "cpu_op" and event["name"].startswith("aten::")
        if is_operator and event["tid"] == note["tid"] and not event["name"].startswith("aten::empty"):
            begin, end = _from_to(event)
            if begin <= note["ts"] <= end and end - begin < shortest:
                shortest, name = end - begin, event["name"]
    return name


def _from_to(event: dict[str, Any]) -> Interval:
    return event["ts"], event["ts"] + event["dur"]
