"""Finds in a merged trace which events of different ranks are the same collective.

No file says it outright. What helps is what NCCL's kernels, or the operators that asked for them, have among their
`args`: the collective's name, its group and the ranks in it, the number of its elements and, in newer files, its number
in the group (`Seq`). With a number, events with the same one belong together. Without, the first of a kind in a step
belongs to the first of this kind in the same step on the other ranks, and so on, because all ranks of a group begin
their collectives in the same order. This holds only if each of them has begun as many in that step.

What can't be matched is counted and left out: messages between two ranks, whose sides are called differently, and
collectives of which a rank has more or fewer than another one, because its file was cut, or because they belong to
several groups and the file names none.

Source: torch, `torch/csrc/profiler/util.h` for the names of the `args`.
"""

import json
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.event_kinds import Event, args_of, name_of
from course_utils.lessons.profiling.intervals import Interval
from course_utils.lessons.profiling.merged_trace import as_merged, steps_of_calls
from course_utils.lessons.profiling.message_kernels import operation_of

_BETWEEN_TWO = ("send", "recv", "sendrecv")
"""Messages between two ranks. NCCL's kernel `SendRecv` is also what an all-to-all is made of."""
_FOR_ALL = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")
"""How those begin that need something of every rank: no rank is through before all have begun."""
_OF_OWN_SIZE = ("alltoall", "gather", "scatter")
"""Of these each rank may have another number of elements."""


@dataclass(frozen=True)
class RankPart:
    """A rank's part in a collective.

    Attributes:
        rank: whose it is.
        when: in seconds.
        operation: "allreduce", "broadcast", …, as far as the trace tells, in small letters without underscores.
        group: the name of the group of ranks; "" if the trace has none.
        members: the ranks of the group; none if the trace doesn't say.
        step: in which it was asked for; "" outside of all steps.
        elements: how many numbers the rank gives; None if the trace doesn't say.
        number: in its group; None if the trace doesn't say.
    """

    rank: int
    when: Interval
    operation: str
    group: str = ""
    members: tuple[int, ...] = ()
    step: str = ""
    elements: int | None = None
    number: int | None = None


@dataclass(frozen=True)
class MatchedCollective:
    """A collective, and when it was under way on each of its ranks that there is a trace of.

    Attributes:
        operation: "allreduce", …
        times: rank → when, in seconds.
        missing: how many ranks of its group there is no trace of, as far as is known.
        step: in which the first of its ranks asked for it; "" if no step is marked.
    """

    operation: str
    times: dict[int, Interval]
    missing: int = 0
    step: str = ""

    @property
    def is_for_all(self) -> bool:
        """Whether no rank can be through it before every other one has begun."""
        return self.operation.startswith(_FOR_ALL) and not self.operation.startswith("alltoallv")  # may send nothing


@dataclass(frozen=True)
class Matching:
    """The collectives of several ranks.

    Attributes:
        collectives: those that could be matched, in the order of their ends.
        between_two: how many events are messages between two ranks, or may be.
        unmatched: how many events are of collectives of which ranks have begun different numbers.
    """

    collectives: list[MatchedCollective]
    between_two: int = 0
    unmatched: int = 0

    @property
    def times(self) -> list[dict[int, Interval]]:
        """For each collective when it was under way on each rank, in seconds."""
        return [collective.times for collective in self.collectives]


def collectives_of(trace: Trace) -> Matching:
    """Match the collectives of the ranks of a merged trace, in its steps; in the whole trace if no step is marked."""
    parts, ranks = parts_of(trace)
    return matching(parts, ranks)


def parts_of(trace: Trace) -> tuple[list[RankPart], set[int]]:
    """The parts in collectives, and the messages, of the ranks of a merged trace; and which ranks there are."""
    by_rank: dict[int, list[Event]] = defaultdict(list)
    for event in as_merged(trace)["traceEvents"]:
        if event["ph"] == "X":
            by_rank[event["pid"]].append(event)
    return [part for rank, events in by_rank.items() for part in _parts_of_rank(rank, events)], set(by_rank)


def matching(parts: Iterable[RankPart], present: set[int]) -> Matching:
    """Match the parts of the ranks that there are traces of."""
    alike: dict[tuple, dict[int, list[RankPart]]] = defaultdict(lambda: defaultdict(list))
    between_two = unmatched = 0
    in_group: dict[str, set[int]] = defaultdict(set)
    for part in sorted(parts, key=lambda part: part.when):
        in_group[part.group].add(part.rank)
        if part.operation in _BETWEEN_TWO:
            between_two += 1
        else:
            alike[_kind(part)][part.rank].append(part)
    found: list[MatchedCollective] = []
    for own in alike.values():
        first = next(iter(own.values()))[0]
        ranks = present & set(first.members) or (in_group[first.group] if first.group else present)
        if len(ranks) < 2:
            continue  # nobody else's trace is here, or it is a group of one
        if ranks != set(own) or len({len(each) for each in own.values()}) > 1:
            unmatched += sum(len(each) for each in own.values())
            continue
        missing = max(0, len(first.members) - len(ranks))
        for each in zip(*own.values(), strict=True):
            times = {part.rank: part.when for part in each}
            found.append(MatchedCollective(first.operation, times, missing, each[0].step))
    found.sort(key=lambda collective: max(end for _, end in collective.times.values()))
    return Matching(found, between_two, unmatched)


def _kind(part: RankPart) -> tuple:
    """What parts of the same collective share."""
    if part.number is not None:
        return part.group, part.members, part.operation, part.number
    elements = None if part.operation.startswith(_OF_OWN_SIZE) else part.elements
    return part.group, part.members, part.operation, part.step, elements


def _parts_of_rank(rank: int, events: Sequence[Event]) -> list[RankPart]:
    """A rank's parts in collectives, and its messages, in its steps; in the whole trace if no step is marked."""
    steps = sorted(
        (event["ts"], event["ts"] + event["dur"], event["name"]) for event in events if event_kinds.is_step(event)
    )
    of_call = steps_of_calls(list(events))
    asked_by = _operators_of_calls(events)
    found = []
    for event in events:
        if not event_kinds.is_communication(event):
            continue
        number = args_of(event).get("correlation")
        if event_kinds.is_kernel(event) and number in of_call:
            step = of_call[number]
        else:
            before = bisect_right(steps, (event["ts"], float("inf"))) - 1
            step = steps[before][2] if before >= 0 and event["ts"] <= steps[before][1] else ""
        if step or not steps:
            args = args_of(event) if "Collective name" in args_of(event) else asked_by.get(number, args_of(event))
            found.append(_part(rank, event, args, step))
    return found


def _part(rank: int, event: Event, args: Mapping[str, Any], step: str) -> RankPart:
    operation = str(args.get("Collective name") or _operation_of(event)).replace("_", "").lower()
    operation = operation.removesuffix("base").removesuffix("intotensor")
    operation = {"reducescattertensor": "reducescatter"}.get(operation, operation)
    number = args.get("Seq")
    return RankPart(
        rank=rank,
        when=(1e-6 * event["ts"], 1e-6 * (event["ts"] + event["dur"])),
        operation=operation,
        group=str(args.get("Process Group Name", "")),
        members=_members(args.get("Process Group Ranks")),
        step=step,
        elements=_elements(args),
        number=number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None,
    )


def _operation_of(event: Event) -> str:
    """The collective's name in the event's: "AllReduce" in `ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)`."""
    name = name_of(event)
    return operation_of(name) if event_kinds.is_kernel(event) else name.partition(":")[2]


def _elements(args: Mapping[str, Any]) -> int | None:
    """How many numbers a rank gives; gloo's tasks have only the shapes of their tensors."""
    given, shapes = args.get("In msg nelems"), args.get("Input Dims")
    if isinstance(given, int):
        return given
    is_list = isinstance(shapes, list) and shapes and all(isinstance(shape, list) for shape in shapes)
    if not is_list or not all(isinstance(side, int) for shape in shapes for side in shape):
        return None
    return sum(math.prod(shape) for shape in shapes)


def _members(ranks: Any) -> tuple[int, ...]:
    """The ranks of a group, which are written as a list in a text; none if the text has been cut."""
    try:
        found = json.loads(ranks) if isinstance(ranks, str) else ranks
    except json.JSONDecodeError:
        return ()
    return tuple(found) if isinstance(found, list) and all(isinstance(rank, int) for rank in found) else ()


def _operators_of_calls(events: Sequence[Event]) -> dict[Any, Mapping[str, Any]]:
    """The number of each call to the driver → what the operator around it knows of its collective.

    NVIDIA's kernels have it among their own `args`, AMD's don't.
    """
    asked: dict[Any, list[tuple[float, float, int]]] = defaultdict(list)
    known = [event for event in events if "Collective name" in args_of(event) and not event_kinds.is_kernel(event)]
    for place, event in enumerate(known):
        asked[event["tid"]].append((event["ts"], event["ts"] + event["dur"], place))
    for each in asked.values():
        each.sort()
    found: dict[Any, Mapping[str, Any]] = {}
    for event in events:
        if (
            event_kinds.is_call(event)
            and event["tid"] in asked
            and (number := args_of(event).get("correlation")) is not None
        ):
            row = asked[event["tid"]]
            before = bisect_right(row, (event["ts"], float("inf"), 0)) - 1
            if before >= 0 and event["ts"] <= row[before][1]:
                found[number] = args_of(known[row[before][2]])
    return found
