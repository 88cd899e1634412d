"""Makes one Chrome trace of all ranks' traces: a process for each rank, its threads below it, all on rank 0's clock.

The timeline begins at 0 with the first rank's first profiled step; what began before a rank's own first step is left
out. Nothing moves between ranks: it works on the traces.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.lessons.profiling.chrome_trace import ON_STREAMS, Trace
from course_utils.words import ranks as so_many_ranks

CLOCK = "course: clock"
"""The event in which a rank has read its clock."""
STEP = "ProfilerStep#"
"""Begins the name of the event around each profiled step; TensorBoard looks for the same."""
ROWS = 1000
"""Rows of rank r are counted from r times as many: TensorBoard tells rows apart by their number alone."""
ON_GPU = "gpu_user_annotation"
"""The kind of event that says when the GPU was at what the program names, which may be long after the program."""
_CALLS = ("cuda_runtime", "cuda_driver")
_LEFT_OUT = ("Trace", ON_GPU, "python_function", "overhead")  # not in a row of their own, not asked for, the profiler
_ARROWS = ("s", "t", "f")


def merge(traces: Sequence[Trace]) -> Trace:
    """Put the traces of all ranks, as `profile_steps` gives them, on one clock and into one trace.

    Raises:
        CourseError: a trace is missing, comes twice, or is none of `profile_steps`.
    """
    if not all("course" in trace for trace in traces):
        raise CourseError("merge: a trace does not say what its clock is. Make it with profile_steps.")
    ordered = sorted(traces, key=lambda trace: trace["course"]["rank"])
    found = [trace["course"]["rank"] for trace in ordered]
    if not found or found != list(range(len(found))):
        raise CourseError(f"merge: the trace of every rank is needed once, and these are of the ranks {found}.")
    shifts = [trace["course"]["shift"] for trace in ordered]
    begins = [first_step(trace) for trace in ordered]
    origin = min(begin + shift for begin, shift in zip(begins, shifts, strict=True))
    events = []
    for rank, trace in enumerate(ordered):
        events += of_rank(rank, trace, begins[rank], shifts[rank] - origin)
    clock = {"clock": "perf_counter of rank 0", "begin": origin, "error": [t["course"]["error"] for t in ordered]}
    return {
        "displayTimeUnit": "ms",
        "traceName": f"{so_many_ranks(len(found))} on one clock",
        "course": clock,
        "traceEvents": events,
    }


def first_step(trace: Trace) -> float:
    """When a rank's first profiled step began, on the trace's own clock."""
    begins = [event["ts"] for event in trace["traceEvents"] if str(event.get("name", "")).startswith(STEP)]
    if not begins:
        raise CourseError("merge: a trace has no profiled step. Ask profile_steps for one step at least.")
    return min(begins)


def of_rank(rank: int, trace: Trace, begin: float, shift: float) -> list[dict[str, Any]]:
    """One rank's events in the merged trace: metadata first, then what happened from `begin` on, moved by `shift`."""
    names = thread_names(trace["traceEvents"])
    kept = [
        event for event in trace["traceEvents"] if event.get("ph") in ("X", *_ARROWS) and event.get("ts", 0) >= begin
    ]
    kept = [event for event in kept if event.get("cat") not in _LEFT_OUT] + steps_on_gpu(trace["traceEvents"])
    whole = _arrows_with_both_ends(kept)
    kept = [event for event in kept if event["ph"] == "X" or _arrow(event) in whole]
    found = dict.fromkeys((event["pid"], event["tid"]) for event in kept)
    rows = {row: number for number, row in enumerate(found, start=ROWS * rank)}
    machine = trace["course"].get("machine") or "this machine"
    events = [
        _named("process_name", rank, 0, name=f"rank {rank}"),
        _named("process_labels", rank, 0, labels=machine),
        _named("process_sort_index", rank, 0, sort_index=rank),
    ]
    for row, number in rows.items():
        events.append(_named("thread_name", rank, number, name=names.get(row, str(row[1]))))
        events.append(_named("thread_sort_index", rank, number, sort_index=number))
    for event in kept:
        moved = event | {"pid": rank, "tid": rows[event["pid"], event["tid"]], "ts": round(event["ts"] + shift, 3)}
        if event["ph"] == "X":
            moved["dur"] = round(max(0.0, event["dur"]), 3)
        else:
            moved["id"] = f"{rank}.{event['id']}"  # ranks count their arrows alike
        events.append(moved)
    return events


def steps_on_gpu(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """When the GPU was at each profiled step: from the first to the last of what the step's calls made it do.

    The program runs ahead: it asks for the kernels of a step while the GPU is still at the one before. Which call asked
    for a kernel both say by a number, `correlation`. The profiler's own mark of a step on the GPU knows the calls of
    one thread alone, and a backward pass calls from another one.
    """
    steps = [event for event in events if event.get("cat") == "user_annotation" and event["name"].startswith(STEP)]
    asked = {}
    for call in events:
        if call.get("cat") in _CALLS and (number := call.get("args", {}).get("correlation")) is not None:
            around = (step["name"] for step in steps if step["ts"] <= call["ts"] <= step["ts"] + step["dur"])
            asked[number] = next(around, "")
    found: dict[str, tuple[float, float]] = {}
    for work in events:
        if work.get("cat") in ON_STREAMS and (name := asked.get(work.get("args", {}).get("correlation"))):
            begin, end = found.get(name, (math.inf, -math.inf))
            found[name] = min(begin, work["ts"]), max(end, work["ts"] + work["dur"])
    row = {"ph": "X", "cat": ON_GPU, "pid": "course", "tid": "steps on the GPU"}
    return [row | {"name": name, "ts": begin, "dur": end - begin} for name, (begin, end) in found.items()]


def thread_names(events: Iterable[dict[str, Any]]) -> dict[tuple, str]:
    """(pid, tid) → the thread's name, or the GPU's stream's; of several names the first one."""
    names: dict[tuple, str] = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") == "thread_name":
            names.setdefault((event["pid"], event["tid"]), event["args"]["name"])
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
