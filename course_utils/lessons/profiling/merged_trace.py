"""Makes one Chrome trace of all ranks' traces: a process for each rank, its threads below it, all on one clock.

The timeline begins at 0 with the first rank's first profiled step. What ended before a rank's own first step is left
out, and work that was under way when it began is cut there. A trace in which no step is marked is taken as a whole.
Nothing moves between ranks: it works on the traces.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import args_of, kind_of
from course_utils.words import ranks as so_many_ranks

CLOCK = "course: clock"
"""The event in which a rank has read its clock."""
STEP = f"{event_kinds.STEP}#"
"""Begins the name of the event around each profiled step; TensorBoard looks for the same."""
ROWS = 1000
"""Rows of rank r are counted from r times as many: TensorBoard tells rows apart by their number alone."""
MOST_KNOWN = 0.5
"""If a trace has the calls for a smaller share of the GPU's work than this, they don't tell what belongs to a step."""
_NUMBER = (int, float)
_NUMBERED = event_kinds.CALLS | event_kinds.ON_DEVICE
_ARROWS = ("s", "t", "f")
_OF_TORCH = ("schemaVersion", "distributedInfo", "deviceProperties", "baseTimeNanoseconds")
"""What torch.profiler writes beside the events of a rank, and `merge` doesn't."""


def merge(traces: Sequence[Trace]) -> Trace:
    """Put the traces of the ranks, as `profile_steps` or `read_profile` gives them, on one clock and into one trace.

    Raises:
        CourseError: there is none, one comes twice, or does not say what its clock is.
    """
    if not all("course" in trace for trace in traces):
        line = (
            "merge: a trace does not say what its clock is. course.read_profile reads the files of any torch.profiler."
        )
        raise CourseError(line)
    ordered = sorted(traces, key=lambda trace: trace["course"]["rank"])
    found = [trace["course"]["rank"] for trace in ordered]
    if not found or len(set(found)) < len(found):
        raise CourseError(f"merge: one trace of every rank is needed, and these are of the ranks {found}.")
    shifts = [trace["course"]["shift"] for trace in ordered]
    begins = [first_step(trace) for trace in ordered]
    origin = min(begin + shift for begin, shift in zip(begins, shifts, strict=True))
    events = []
    for rank, trace, begin, shift in zip(found, ordered, begins, shifts, strict=True):
        events += of_rank(rank, trace, begin, shift - origin)
    clock = {"clock": "perf_counter of rank 0", "begin": origin, "error": [t["course"]["error"] for t in ordered]}
    return {
        "displayTimeUnit": "ms",
        "traceName": f"{so_many_ranks(len(found))} on one clock",
        "course": clock,
        "traceEvents": events,
    }


def as_merged(trace: Trace) -> Trace:
    """Return the trace itself, unless it is a rank's own as torch.profiler wrote it; then make a merged one of it."""
    if "rank" in trace.get("course", {}):
        return merge([trace])
    if "course" in trace or not any(key in trace for key in _OF_TORCH):
        return trace
    rank = (trace.get("distributedInfo") or {}).get("rank", 0)
    return merge([trace | {"course": {"rank": rank, "shift": 0.0, "error": None}}])


def first_step(trace: Trace) -> float:
    """When a rank's first profiled step began, or its first event if no step is marked, on the trace's own clock."""
    shown = [
        event for event in trace["traceEvents"] if has_times(event) and kind_of(event) not in event_kinds.NOT_SHOWN
    ]
    begins = [event["ts"] for event in shown if event_kinds.is_step(event)] or [event["ts"] for event in shown]
    if not begins:
        raise CourseError("merge: a trace has no event with a duration, so that there is nothing to merge.")
    return min(begins)


def has_times(event: dict[str, Any]) -> bool:
    """Whether an event has a beginning and a duration."""
    is_complete = event.get("ph") == "X"
    return is_complete and isinstance(event.get("ts"), _NUMBER) and isinstance(event.get("dur"), _NUMBER)


def of_rank(rank: int, trace: Trace, begin: float, shift: float) -> list[dict[str, Any]]:
    """One rank's events in the merged trace: metadata first, then what happened from `begin` on, moved by `shift`."""
    names = thread_names(trace["traceEvents"])
    kept = [cut for event in trace["traceEvents"] if (cut := _from(begin, event))] + steps_on_gpu(trace["traceEvents"])
    whole = _arrows_with_both_ends(kept)
    kept = [event for event in kept if event["ph"] == "X" or _arrow(event) in whole]
    found = dict.fromkeys((event["pid"], event["tid"]) for event in kept)
    rows = {row: number for number, row in enumerate(found, start=ROWS * rank)}
    machine = trace["course"].get("machine")
    events = [
        _named("process_name", rank, 0, name=f"rank {rank}"),
        *([_named("process_labels", rank, 0, labels=machine)] if machine else []),
        _named("process_sort_index", rank, 0, sort_index=rank),
    ]
    for row, number in rows.items():
        events.append(_named("thread_name", rank, number, name=names.get(row, str(row[1]))))
        events.append(_named("thread_sort_index", rank, number, sort_index=number))
    for event in kept:
        moved = dict(event)
        moved["pid"], moved["tid"] = rank, rows[event["pid"], event["tid"]]
        moved["ts"] = round(event["ts"] + shift, 3)
        if event["ph"] == "X":
            moved["dur"] = round(max(0.0, event["dur"]), 3)
        else:
            moved["id"] = f"{rank}.{event['id']}"  # ranks count their arrows alike
        events.append(moved)
    return events


def _from(begin: float, event: dict[str, Any]) -> dict[str, Any] | None:
    """The event as it is kept; None if it is over when the first step begins, or not shown at all."""
    if kind_of(event) in event_kinds.NOT_SHOWN:
        return None
    if event.get("ph") in _ARROWS:
        return event if event.get("ts", begin) >= begin else None
    if not has_times(event):
        return None
    if event["ts"] >= begin:
        return event
    end = event["ts"] + event["dur"]
    goes_on = end > begin and (event_kinds.is_on_device(event) or event_kinds.is_communication(event))
    return event | {"ts": begin, "dur": end - begin} if goes_on else None


def steps_on_gpu(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """When the GPU was at each profiled step: from the first to the last of what the step's calls made it do.

    The program runs ahead: it asks for the kernels of a step while the GPU is still at the one before. Which call asked
    for a kernel both say by a number, `correlation`. The profiler's own mark of a step on the GPU knows the calls of
    one thread alone, and a backward pass calls from another one; it is taken if the trace has no calls. If it lacks
    most of them, the GPU's work is counted to the step during which it ran.
    """
    row = {"ph": "X", "cat": event_kinds.ON_GPU, "pid": "course", "tid": "steps on the GPU"}
    found: dict[str, tuple[float, float]] = {}
    asked = steps_of_calls(events)
    if lacks_calls(events):
        asked = {}
        found = _steps_by_time(events)
    for work in events if asked else ():
        if event_kinds.is_on_device(work) and has_times(work) and (name := asked.get(args_of(work).get("correlation"))):
            begin, end = found.get(name, (math.inf, -math.inf))
            found[name] = min(begin, work["ts"]), max(end, work["ts"] + work["dur"])
    if not found:
        marks = [event for event in events if has_times(event) and event_kinds.is_step_on_gpu(event)]
        found = {mark["name"]: (mark["ts"], mark["ts"] + mark["dur"]) for mark in marks}
    return [row | {"name": name, "ts": begin, "dur": end - begin} for name, (begin, end) in found.items()]


def lacks_calls(events: Iterable[dict[str, Any]]) -> bool:
    """Whether a trace has calls to a GPU's driver, but not those that asked for most of the GPU's work."""
    calls, work = set(), []
    for event in events:
        kind = kind_of(event)
        if kind not in _NUMBERED or (number := args_of(event).get("correlation")) is None:
            continue
        if kind in event_kinds.CALLS:
            calls.add(number)
        else:
            work.append(number)
    return bool(calls) and sum(number in calls for number in work) < MOST_KNOWN * len(work)


def _steps_by_time(events: Sequence[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Step → from the first to the last of what the GPU began while the program was in the step."""
    steps = sorted((event["ts"], event["ts"] + event["dur"], event["name"]) for event in _steps(events))
    found: dict[str, tuple[float, float]] = {}
    for work in filter(has_times, events):
        if event_kinds.is_on_device(work):
            before = bisect_right(steps, (work["ts"], math.inf)) - 1
            if before >= 0 and work["ts"] <= steps[before][1]:
                begin, end = found.get(steps[before][2], (math.inf, -math.inf))
                found[steps[before][2]] = min(begin, work["ts"]), max(end, work["ts"] + work["dur"])
    return found


def steps_of_calls(events: Sequence[dict[str, Any]]) -> dict[Any, str]:
    """The number of each call to the GPU's driver → the name of the step in which the program called; "" for none."""
    steps = sorted((event["ts"], event["ts"] + event["dur"], event["name"]) for event in _steps(events))
    calls = {}
    for event in events:
        if (
            event_kinds.is_call(event)
            and has_times(event)
            and (number := args_of(event).get("correlation")) is not None
        ):
            before = bisect_right(steps, (event["ts"], math.inf)) - 1
            calls[number] = steps[before][2] if before >= 0 and event["ts"] <= steps[before][1] else ""
    return calls


def _steps(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event_kinds.is_step(event) and has_times(event)]


def thread_names(events: Iterable[dict[str, Any]]) -> dict[tuple, str]:
    """(pid, tid) → the thread's name, or the GPU's stream's; of several names the first one."""
    names: dict[tuple, str] = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            names.setdefault((event.get("pid"), event.get("tid")), str(args_of(event).get("name", "")))
    return names


def _arrow(event: dict[str, Any]) -> tuple:
    return event.get("cat"), event.get("id")


def _arrows_with_both_ends(events: Sequence[dict[str, Any]]) -> set[tuple]:
    """Those arrows that begin and end among the events."""
    begun, ended = ({_arrow(event) for event in events if event["ph"] == end} for end in ("s", "f"))
    return begun & ended


def _named(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    """A metadata event."""
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args}
