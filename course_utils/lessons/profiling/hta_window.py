"""The shares as Holistic Trace Analysis counts them, Meta's tool for traces of GPUs, to compare its numbers with ours.

HTA and `lanes_of` agree on what overlap and idle mean, but they look at different times and at different events:

- **The time.** HTA counts from the GPU's first kernel in the file to its last, so it includes kernels of an earlier
  step that the GPU had not got to yet. `lanes_of` counts from the first step's begin to the last one's end, as the GPU
  works on them.
- **The last step.** HTA leaves out what the last step asks for, unless `include_last_profiler_step=True`, because a
  profiler often cuts it short. With it, HTA 0.5 also counts what the program asks for after the last step. If only one
  step is marked, or none, it takes the whole file, as `lanes_of` does if none is.
- **Communication.** For HTA it is what begins with `nccl` and has `Kernel` in its name. `lanes_of` also counts other
  libraries' kernels, kernels to which the file gives a collective, and gloo's messages between processors.
- **Busy.** For HTA a GPU is busy with whatever has the number of a stream, and that includes waits (`Stream Wait
  Event`, …). For `lanes_of` it is idle then.
- **Rounding.** Newer files have times in thousandths of a microsecond. HTA shortens every event to whole microseconds,
  which for a GPU with many small kernels can be a percent of idle time, unless `HTA_DISABLE_NS_ROUNDING=1` is set.
- **Calls.** HTA leaves out a kernel if the file doesn't have the call that asked for it, as long as steps are marked.

Source: HTA 0.5: `communication_analysis.py`, `breakdown_analysis.py`, `trace.py` (`_filter_irrelevant_gpu_kernels`).
"""

import math
from collections.abc import Sequence
from typing import Any

from course_utils.errors import CourseError
from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import Event, args_of, name_of
from course_utils.lessons.profiling.intervals import union
from course_utils.lessons.profiling.lanes import Lanes, interval
from course_utils.lessons.profiling.merged_trace import has_times

_NO_STREAM = -1
_MEMORY = ("Memcpy", "Memset", "dma")


def lanes_as_hta(trace: Trace, last_step: bool = False) -> Lanes:
    """The lanes of a rank's trace, as torch.profiler wrote it, over the time and with the events that HTA takes.

    Their `idle_share` and `overlap_share` are HTA's `idle_time_pctg` and `comp_comm_overlap_pctg`. What HTA counts
    as neither computing nor communication is among the copies.

    Args:
        trace: of one rank.
        last_step: whether to count the last step, HTA's `include_last_profiler_step`.

    Raises:
        CourseError: the trace is not of a GPU.
    """
    events = [
        event for event in trace["traceEvents"] if has_times(event) and event_kinds.kind_of(event) not in ("", "trace")
    ]
    on_stream = _asked_in_time(events, last_step)
    if not on_stream:
        raise CourseError("lanes_as_hta: HTA counts what a GPU does, and this trace has nothing of a GPU.")
    messages = [event for event in on_stream if _is_nccl(event)]
    work = [event for event in on_stream if _is_work(event)]
    others = [event for event in on_stream if not (_is_nccl(event) or _is_work(event))]
    computing, communication, copies = (union(map(interval, found)) for found in (work, messages, others))
    busy = union([*computing, *communication, *copies])
    rank = (trace.get("distributedInfo") or {}).get("rank", 0)
    return Lanes(rank, busy[0][0], busy[-1][1], computing, communication, {}, copies=copies)


def _asked_in_time(events: Sequence[Event], last_step: bool) -> list[Event]:
    """What the GPU did, if the program asked for it before the last step, or at all."""
    on_stream = [event for event in events if _stream(event) != _NO_STREAM]
    steps = [event for event in events if event_kinds.is_step(event)]
    if len({step["name"] for step in steps}) < 2:
        return on_stream
    end = math.inf if last_step else max(step["ts"] for step in steps)

    def in_time(event: Event) -> bool:
        return event["ts"] < end

    asked = {_call(event) for event in events if _stream(event) == _NO_STREAM and in_time(event)} - {_NO_STREAM}
    return [event for event in on_stream if _call(event) in asked or (_call(event) == _NO_STREAM and in_time(event))]


def _stream(event: Event) -> int:
    return _number(args_of(event).get("stream", _NO_STREAM))


def _call(event: Event) -> int:
    """The number of the call that asked for it, or that it is."""
    return _number(args_of(event).get("correlation", _NO_STREAM))


def _number(value: Any) -> int:
    try:
        return int(value) if not isinstance(value, float) or math.isfinite(value) else _NO_STREAM
    except (TypeError, ValueError):
        return _NO_STREAM


def _is_nccl(event: Event) -> bool:
    return name_of(event).startswith("nccl") and "Kernel" in name_of(event)


def _is_work(event: Event) -> bool:
    name = name_of(event)
    return not (_is_nccl(event) or name.startswith(_MEMORY) or "Memcpy" in name or "Sync" in name)
