"""The Chrome trace format, which Perfetto, TensorBoard and chrome://tracing read: written, read, and checked.

A trace is a JSON object whose list `traceEvents` holds an object for each event: `ph` is its kind ("X": complete, with
a duration; "M": metadata, such as names; "s", "t" and "f": an arrow's ends; "i": an instant), `ts` when it began and
`dur` how long it took, in microseconds; `pid` and `tid` name the row: here the rank, and a lane of it.

Source: Google, "Trace Event Format".
"""

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Trace = dict[str, Any]
"""A trace as `json` reads it."""
ROUNDING = 1.0
"""Microseconds: Kineto rounds times, and converts them from a processor's own clock, so that a parent may seem to end
that much before its child."""
ON_STREAMS = ("kernel", "gpu_memcpy", "gpu_memset")
"""The kinds of events that say what a GPU did."""
OPERATOR = "cpu_op"
"""The kind of events that say what one of torch's operators did."""
_STACKED = (OPERATOR, "user_annotation")
_NEEDED = {
    "X": ("name", "pid", "tid", "ts", "dur"),
    "M": ("name", "pid", "args"),
    "s": ("name", "pid", "tid", "ts", "id", "cat"),
    "t": ("name", "pid", "tid", "ts", "id", "cat"),
    "f": ("name", "pid", "tid", "ts", "id", "cat"),
    "i": ("name", "pid", "tid", "ts"),
    "B": ("pid", "tid", "ts"),
    "E": ("pid", "tid", "ts"),
}
_OTHER_KINDS = frozenset("ICbneSTpFPNODMVvRc(),") - _NEEDED.keys()
"""Kinds of the format that torch.profiler writes seldom or never: counters, objects, what is asynchronous, …"""
_NAMES = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
_NAMES |= {"thread_sort_index": "sort_index", "process_labels": "labels"}


def write_trace(trace: Trace, path: str | Path) -> Path:
    """Write a trace as JSON; packed where the name ends in `.gz`, which TensorBoard and Perfetto read as well.

    Folders that are missing are made.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(trace, separators=(",", ":"), allow_nan=False).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read_trace(path: str | Path) -> Trace:
    """Read a trace that `write_trace` or torch.profiler wrote, with all that is in it.

    `read_profile` reads traces that are not as they should be, and those of several ranks.
    """
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def problems(trace: Mapping[str, Any], most: int = 10) -> list[str]:
    """What keeps a trace from being read as it is meant: a sentence for each, at most this many; none for a good one.

    Looked at: the fields that every kind of event needs, numbers that are none, negative durations, and operators that
    overlap what is around them in their row. In traces that the course has merged, also arrows with one end and rows
    without a name: torch.profiler's own files have some of both, and whoever shows them leaves them out.
    """
    events = trace.get("traceEvents")
    if not isinstance(events, list):
        return ["traceEvents is missing, or no list."]
    found: list[str] = []
    for index, event in enumerate(events):
        found += _of_event(index, event)
    if not found:
        found = _of_nesting(events)
        if "course" in trace:
            found += [*_of_arrows(events), *_of_names(events)]
    return found[:most]


def _of_event(index: int, event: Any) -> list[str]:
    """What is wrong with one event by itself."""
    if not isinstance(event, dict):
        return [f"Event {index} is not an object."]
    kind, where = event.get("ph"), f"Event {index} ({event.get('name', 'without a name')})"
    if not isinstance(kind, str) or kind not in _NEEDED.keys() | _OTHER_KINDS:
        return [f"{where} has the unknown kind ph={kind!r}."] if event else []  # Chrome ends its lists with {}
    if kind in _OTHER_KINDS:
        return []
    found = [f"{where} lacks {field!r}." for field in _NEEDED[kind] if field not in event]
    for field in {"ts", "dur"} & event.keys():
        number = event[field]
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            found.append(f"{where}: {field} is {number!r}, not a number of microseconds.")
        elif field == "dur" and number < 0:
            found.append(f"{where} takes {number} µs: less than nothing.")
    for field in {"name", "pid", "tid", "cat", "id"} & event.keys():
        if not isinstance(event[field], (str, int, float)):
            found.append(f"{where}: {field} is {event[field]!r}, neither a word nor a number.")
    if kind == "M" and not found and (needed := _NAMES.get(event["name"])) and needed not in (event["args"] or {}):
        found.append(f"{where} lacks args[{needed!r}].")
    return found


def _of_nesting(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Operators that overlap an event of their row, neither inside the other.

    Of operators alone a row is a stack. A GPU's stream may begin a kernel before the last one's end ("programmatic
    dependent launch", CUDA Programming Guide), a mark for a collective ends when that does, and Python's functions are
    noted by a different clock.
    """
    rows: dict[tuple, list[Mapping[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in _STACKED:
            rows[event["pid"], event["tid"]].append(event)
    found = []
    for (pid, tid), row in rows.items():
        around: list[Mapping[str, Any]] = []
        for event in sorted(row, key=lambda event: (event["ts"], -event["dur"])):
            while around and _end(around[-1]) <= event["ts"] + ROUNDING:
                around.pop()
            if around and _end(event) > _end(around[-1]) + ROUNDING and event.get("cat") == OPERATOR:
                found.append(f"In row {tid} of {pid} {event['name']} begins in {around[-1]['name']} and ends after it.")
            around.append(event)
    return found


def _of_arrows(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Arrows without a beginning or without an end."""
    ends: dict[tuple, set[str]] = defaultdict(set)
    for event in events:
        if event.get("ph") in ("s", "f"):
            ends[event["cat"], event["id"]].add(event["ph"])
    return [f"Arrow {number} of {kind} has one end only." for (kind, number), own in ends.items() if len(own) < 2]


def _of_names(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows and processes that nobody has named."""
    named = {event["pid"] for event in events if event.get("name") == "process_name"}
    rows_named = {(event["pid"], event.get("tid")) for event in events if event.get("name") == "thread_name"}
    rows = {(event["pid"], event["tid"]) for event in events if event.get("ph") == "X"}
    found = [f"Process {pid} has no process_name." for pid in sorted({pid for pid, _ in rows} - named, key=str)]
    return found + [f"Row {tid} of {pid} has no thread_name." for pid, tid in sorted(rows - rows_named, key=str)]


def _end(event: Mapping[str, Any]) -> float:
    return event["ts"] + event["dur"]
