"""Keeps of torch.profiler's events what an analysis needs, under the names and in the units of today's torch.

Of a trace with a million events most bytes are the program's call stacks, shapes, and the sizes of kernels' blocks,
which no function of this lesson asks for. They are dropped here, one event after the other, so that a trace takes about
as much memory as its file has bytes.
"""

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from course_utils.lessons.profiling.chrome_trace import Trace

Event = dict[str, Any]
KEPT_ARGS = {
    *("correlation", "stream", "device", "graph id", "graph node id", "cuda_sync_kind", "bytes", "rank"),
    *("Collective name", "Process Group Name", "Process Group Description", "Process Group Ranks", "Group size"),
    *("In msg nelems", "Out msg nelems", "In msg size", "Out msg size", "dtype", "Seq", "Rank", "Src Rank", "Dst Rank"),
    *("wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id"),
}
"""What is kept of an event's arguments."""
KEPT_HEAD = {
    *("schemaVersion", "distributedInfo", "deviceProperties", "baseTimeNanoseconds", "displayTimeUnit", "traceName"),
    *("host_name", "course"),
}
"""What is kept of a trace's head."""
TODAYS_KINDS = {
    **{"Operator": "cpu_op", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset"},
    **{"Runtime": "cuda_runtime", "async_gpu": "async_gpu", "gpu_op": "kernel"},
}
"""Kinds of events as the first versions of Kineto wrote them → as they are written today."""
TORCHS_KINDS = {
    *("cpu_op", "user_annotation", "gpu_user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime"),
    *("cuda_driver", "cuda_sync", "python_function", "cpu_instant_event", "ac2g", "fwdbwd", "overhead"),
    *("cuda_profiler_range", "mtia_ccp_events", "mtia_runtime", "hpu_op", "xpu_runtime", "privateuse1_runtime"),
    *("privateuse1_driver", "glow_runtime", "hip_runtime", "xpu_driver", "phases", "link"),
}
"""Kinds of events that Kineto, or the course, writes and nobody else."""
_TORCHS_NAMES = ("aten::", "ProfilerStep", "autograd::", "c10d::", "nccl:", "gloo:", "Optimizer.")
_BEFORE_KINETO = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}
"""Names of processes, as torch's profiler wrote them before it had Kineto, and what their events are."""
_NOT_KEPT = {"python_function", "cuda_profiler_range"}
_NAMES = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
_STEP = "ProfilerStep"
_LONGEST = 1e13
"""Microseconds, 116 days: no event takes so long; Kineto wrote negative numbers as if they had no sign."""
_DAY = 8.64e10
_RANK = re.compile(r"(?<![a-z])rank[\s_:#.-]*(\d{1,6})(?!\d)", re.IGNORECASE)


class EventKeeper:
    """Takes the events of a trace, and keeps what is needed of each.

    Attributes:
        lost: how many events say neither what nor when.
        is_torchs: whether an event is one that only torch.profiler writes.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._names: dict[str, str] = {}
        self._open: dict[tuple, list[Event]] = defaultdict(list)
        self._kinds: set[str] = set()
        self.lost = 0
        self.is_torchs = False

    def take(self, event: Any) -> None:
        """Keep what is needed of an event."""
        if not isinstance(event, dict):
            self.lost += 1
            return
        match event.get("ph"):
            case "X":
                self._take_complete(event)
            case "s" | "t" | "f":
                self._take_arrow(event)
            case "M":
                self._take_name(event)
            case "B" | "E" as edge:
                self._take_edge(event, edge)
            case None if event:  # Chrome ends its lists with an empty event
                self.lost += 1

    def kept(self) -> list[Event]:
        """All events that were kept, but for those whose times are days away from the others'."""
        times = [event["ts"] for event in self._events if event["ph"] == "X"]
        if not times:
            return self._events
        middle = statistics.median_low(times)
        kept = [event for event in self._events if event["ph"] == "M" or abs(event["ts"] - middle) < _DAY]
        self.lost += len(self._events) - len(kept)
        return kept

    @property
    def kinds(self) -> set[str]:
        """Of the events, as their writer calls them."""
        return self._kinds

    def _take_complete(self, event: Event) -> None:
        kind = event.get("cat")
        if isinstance(kind, str) and kind in _NOT_KEPT:
            self.is_torchs = True
            return
        begin, duration = number_of(event.get("ts")), number_of(event.get("dur"))
        if begin is None or duration is None:
            self.lost += 1
            return
        kept = self._kept_fields("X", event, begin)
        kept["dur"] = duration if 0 <= duration < _LONGEST else 0
        if (args := event.get("args")) and isinstance(args, dict):
            needed = {self._known(key): self._known_value(args[key]) for key in KEPT_ARGS & args.keys()}
            if needed:
                kept["args"] = needed
        self._events.append(kept)

    def _take_arrow(self, event: Event) -> None:
        begin, number = number_of(event.get("ts")), event.get("id")
        if begin is None or not isinstance(number, (int, str)):
            self.lost += begin is None
            return
        kept = self._kept_fields(event["ph"], event, begin)
        kept["id"] = number
        kept.setdefault("cat", "")
        if "bp" in event:
            kept["bp"] = "e"
        self._events.append(kept)

    def _take_name(self, event: Event) -> None:
        """Keep what a row or a process is called."""
        args = event.get("args")
        if event.get("name") in _NAMES and isinstance(args, dict):
            kept = self._kept_fields("M", event, 0)
            kept.pop("cat", None)
            named = {key: _clean(value) if isinstance(value, str) else value for key, value in args.items()}
            kept["args"] = {key: value for key, value in named.items() if isinstance(value, (str, int, float))}
            if kept["args"]:
                self._events.append(kept)

    def _take_edge(self, event: Event, edge: str) -> None:
        """Make one event of a beginning and the end that belongs to it."""
        at = number_of(event.get("ts"))
        if at is None:
            self.lost += 1
            return
        row = self._open[_number_or_word(event.get("pid")), _number_or_word(event.get("tid"))]
        if edge == "B":
            row.append(event | {"ts": at})
        elif row:
            begun = row.pop()
            args = [each for each in (begun.get("args"), event.get("args")) if isinstance(each, dict)]
            whole = {key: value for each in args for key, value in each.items()}
            self._take_complete(begun | {"dur": max(0, at - begun["ts"]), "args": whole})

    def _kept_fields(self, kind: str, event: Event, begin: float) -> Event:
        """The fields that every event has."""
        name = event.get("name", "")
        name = self._known(name if isinstance(name, str) else str(name))
        pid, tid = event.get("pid", 0), event.get("tid", 0)
        kept = {
            "ph": kind,
            "name": name,
            "pid": pid if type(pid) is int else self._known_value(_number_or_word(pid)),
            "tid": tid if type(tid) is int else self._known_value(_number_or_word(tid)),
            "ts": begin,
        }
        category = event.get("cat", "")
        if not isinstance(category, str):
            category = ""
        if not category and isinstance(pid, str) and pid in _BEFORE_KINETO:
            category = _BEFORE_KINETO[pid]
        if category:
            category = self._known(category)
            if category not in self._kinds:
                self._kinds.add(category)
            category = TODAYS_KINDS.get(category, category)
            if kind == "X" and category == "cpu_op" and name.startswith(_STEP):
                category = "user_annotation"
            kept["cat"] = category
        self.is_torchs = self.is_torchs or category in TORCHS_KINDS or name.startswith(_TORCHS_NAMES)
        return kept

    def _known(self, text: str) -> str:
        """The same text, as one object for all events."""
        if (known := self._names.get(text)) is None:
            known = self._names[text] = _clean(text)
        return known

    def _known_value(self, value: Any) -> Any:
        """An argument's value; lists and what is in them as text."""
        if isinstance(value, str):
            return self._known(value)
        return self._known(str(value)) if isinstance(value, (list, dict)) else value


def number_of(value: Any) -> int | float | None:
    """A number, perhaps one that is written as text; None if it is none, or has no size."""
    if type(value) is str:
        try:
            value = float(value)
        except ValueError:
            return None
    if type(value) is not float and type(value) is not int:
        return None
    return value if -1e18 < value < 1e18 else None


def _number_or_word(value: Any) -> int | str:
    """A process's or a thread's number, or its name."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return value if type(value) is int or isinstance(value, str) else 0 if value is None else str(value)


def _clean(text: str) -> str:
    """A text without what a terminal would take for an order, and without halves of characters."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "�" for each in text)


def traces_of_ranks(trace: Trace) -> dict[int, Trace]:
    """The traces of the ranks that were merged into one; none if it is the trace of one rank.

    They are told apart by the names of their processes, "rank 3", or by an argument `rank` that all events have.
    """
    events = trace["traceEvents"]
    ranks = _ranks_of_processes(events)
    if ranks:
        owner = [ranks.get(event["pid"]) for event in events]
    else:
        owner = [_rank_argument(event) for event in events]
        of_events = [rank for rank, event in zip(owner, events, strict=True) if event["ph"] == "X"]
        if len(set(of_events)) < 2 or None in of_events:
            return {}
    split: dict[int, list[Event]] = {rank: [] for rank in sorted({rank for rank in owner if rank is not None})}
    for rank, event in zip(owner, events, strict=True):
        if rank is not None:
            split[rank].append(event)
    return {
        rank: trace | {"traceEvents": own} for rank, own in split.items() if any(event["ph"] == "X" for event in own)
    }


def _ranks_of_processes(events: Iterable[Event]) -> dict[int | str, int]:
    """Process → rank, for the processes that are named after one."""
    found: dict[int | str, int] = {}
    for event in events:
        texts = [event["pid"]] if isinstance(event["pid"], str) else []
        if event["ph"] == "M" and event["name"] in ("process_name", "process_labels"):
            texts += [text for text in event["args"].values() if isinstance(text, str)]
        for text in texts:
            if match := _RANK.search(text):
                found.setdefault(event["pid"], int(match[1]))
    return found


def _rank_argument(event: Event) -> int | None:
    rank = (event.get("args") or {}).get("rank")
    return rank if type(rank) is int and rank >= 0 else None
