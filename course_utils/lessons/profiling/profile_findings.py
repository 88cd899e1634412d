"""What a profile shows, as values: where each rank's time went, who is waited for, and which of five reasons fits.

**The last rank to a collective** is the one that spends the least time in it, because all ranks are through at about
the same time, and those that began earlier have waited. So durations are enough, and no clocks are compared. What the
others spent more than the last rank is waiting; the rest is transfer. **The slowest rank** is the one for which the
others have waited longest, over all collectives. It is clearly so if that is at least half of all waiting, and if it
is the same rank in most steps: a rank that something has disturbed once is not.

Source: Holistic Trace Analysis (`analyzers/straggler.py`) finds stragglers by the same assumption, that a collective
ends everywhere at about the same time, but compares when it began. The five reasons are those of lesson 14.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from course_utils.lessons.profiling import event_kinds
from course_utils.lessons.profiling.chrome_trace import Trace
from course_utils.lessons.profiling.critical_path import Piece, critical_path
from course_utils.lessons.profiling.gpu_record import GpuRecord, gpu_record_of
from course_utils.lessons.profiling.intervals import Interval, difference, intersection, length, union
from course_utils.lessons.profiling.lanes import Lanes, interval
from course_utils.lessons.profiling.matched_collectives import MatchedCollective, Matching, RankPart, matching, parts_of
from course_utils.lessons.profiling.merged_trace import lacks_calls
from course_utils.lessons.profiling.one_clock import ClockCheck

CLEAR = 0.15
"""Shares of the time below this don't tell which reason a program is slow for."""
MOST = 2 / 3
"""If this share of something is of one kind, it counts as of that kind."""
LONG_GAP, SHORT_GAP = 1e-3, 1e-4
"""Seconds: a gap is long if no operator takes that long to call, and short if calling one may take that long."""
ONE_GAP = 0.5
"""If so much of the idle time is in each rank's longest gap, it is one event and no pattern."""
INSIDE = 3
"""An operator in which more than so many others begin is no single one."""
FEW = 1000
"""Messages of at most so many numbers take as long as an empty one."""
OFTEN = 0.05
"""From this share of the steps on, waiting for the slowest rank is worth mentioning."""


class SlowReason(Enum):
    """Why a program is slow: lesson 14's five, and others that a trace shows."""

    INPUT = "a"
    SMALL_OPERATIONS = "b"
    NO_OVERLAP = "c"
    UNBALANCED = "d"
    WAITS_FOR_NUMBERS = "e"
    LAST_RANK_CHANGES = "f"
    COPIES = "g"
    CALLS = "h"
    ONE_CALL = "i"


class NoPath(Enum):
    """Why the critical path can't be followed from rank to rank."""

    ONE_RANK = auto()
    SEVERAL_RUNS = auto()
    NO_COLLECTIVES = auto()
    MANY_UNMATCHED = auto()
    CLOCKS = auto()


@dataclass(frozen=True)
class RankShares:
    """Where a rank's time went, as shares of its steps from 0 to 1; they add up to 1.

    Attributes:
        exposed: communication was under way, and the rank neither computed nor copied.
        waiting: the part of `exposed` in which it waited for the last rank; None if that isn't known.
        hidden: the share of its communication that is hidden; None if it has none.
    """

    rank: int
    computing: float
    copying: float
    exposed: float
    idle: float
    waiting: float | None = None
    hidden: float | None = None


@dataclass(frozen=True)
class SlowestRank:
    """The rank for which the others have waited longest.

    Attributes:
        rank: which it is.
        last_to: to how many collectives it came last.
        collectives: in how many it took part.
        slow_in: in how many steps the others waited longer for it than for any other rank.
        steps: how many steps there are in which anyone waited.
        caused: the share of all waiting that was for it, from 0 to 1.
        waited: how long the others waited for it, as a share of their steps, on average.
    """

    rank: int
    last_to: int
    collectives: int
    slow_in: int
    steps: int
    caused: float
    waited: float

    @property
    def is_clear(self) -> bool:
        """Whether it is the same rank that the others wait for in most steps, and for long enough to matter."""
        return self.caused >= 0.5 and self.waited >= OFTEN and self.slow_in >= MOST * self.steps


@dataclass(frozen=True)
class HostWork:
    """What programs do while their GPUs are idle, as shares of the idle time from 0 to 1.

    Attributes:
        drives_gpu: whether there is a GPU at all.
        in_operators: at work in torch's operators, which launch kernels, or in calls.
        in_calls: in calls to the GPU's driver.
        longest_call: the one that they are in for longest; "" if there is none.
        longest_gap: the share of the idle time that is in one gap of each rank, its longest.
        gap_seconds: how long the longest of all gaps is.
        gap_call: the call or operator that a program is in for most of this gap; "" if there is no single one.
        idle_per_kernel: seconds of idle time for each kernel.
        is_recorded: whether the trace has the programs' operators, and the calls that asked for the GPUs' work.
    """

    drives_gpu: bool = False
    in_operators: float = 0.0
    in_calls: float = 0.0
    longest_call: str = ""
    longest_gap: float = 0.0
    gap_seconds: float = 0.0
    gap_call: str = ""
    idle_per_kernel: float = 0.0
    is_recorded: bool = True


@dataclass(frozen=True)
class Findings:
    """What a profile shows.

    Attributes:
        shares: of each rank.
        clocks: what is known of the ranks' clocks.
        matching: the collectives of the ranks.
        path: the critical path; empty if it can't be followed.
        path_problem: why it can't; None if it can.
        slowest: None if there is no collective of several ranks.
        reason: None if the numbers don't tell.
        program: what the programs do while their GPUs are idle.
        record: what is recorded of the ranks' GPUs.
        is_one_run: whether the ranks are of one run; otherwise nothing is compared.
    """

    shares: list[RankShares]
    clocks: ClockCheck
    matching: Matching
    path: list[Piece]
    path_problem: NoPath | None
    slowest: SlowestRank | None
    reason: SlowReason | None
    program: HostWork
    record: GpuRecord
    is_one_run: bool = True

    @property
    def can_judge(self) -> bool:
        """Whether enough is recorded to tell what the time went into."""
        return self.is_one_run and self.record.is_enough


def findings(trace: Trace, lanes: Sequence[Lanes], clocks: ClockCheck, is_one_run: bool = True) -> Findings:
    """Return what a merged trace shows.

    Args:
        trace: of all ranks.
        lanes: its lanes, as `lanes_of` gives them.
        clocks: what is known of them, as `on_one_clock` finds out.
        is_one_run: whether the ranks are of one run; those of several have nothing in common.
    """
    parts, ranks = parts_of(trace)
    found = matching(parts, ranks) if is_one_run else Matching([])
    common = [collective for collective in found.collectives if collective.is_for_all]
    waits = waits_of_ranks(common)
    known = bool(common) and found.unmatched <= len(common)
    shares = [shares_of(own, waits.get(own.rank, []) if known else None) for own in lanes]
    slowest = slowest_rank_of(common, lanes)
    program = program_of(trace, lanes)
    record = gpu_record_of(trace, lanes)
    problem = _path_problem(lanes, found, clocks) if is_one_run else NoPath.SEVERAL_RUNS
    can_judge = is_one_run and record.is_enough
    return Findings(
        shares=shares,
        clocks=clocks,
        matching=found,
        path=[] if problem else critical_path(lanes, found.times),
        path_problem=problem,
        slowest=slowest,
        reason=reason_of(shares, lanes, slowest, small_share(parts), program) if can_judge else None,
        program=program,
        record=record,
        is_one_run=is_one_run,
    )


def shares_of(lanes: Lanes, waits: Sequence[Interval] | None) -> RankShares:
    """Return where a rank's time went; `waits` are the times in which it waited for the last rank, if known."""
    whole = lanes.seconds or 1.0
    exposed = difference(lanes.exposed, lanes.copies)
    waiting = None if waits is None else length(intersection(exposed, waits)) / whole
    return RankShares(
        rank=lanes.rank,
        computing=length(lanes.computing) / whole,
        copying=length(difference(lanes.copies, lanes.computing)) / whole,
        exposed=length(exposed) / whole,
        idle=lanes.idle_share,
        waiting=waiting,
        hidden=lanes.overlap_share if lanes.communication else None,
    )


def waits_of_ranks(collectives: Sequence[MatchedCollective]) -> dict[int, list[Interval]]:
    """Rank → when it was in a collective and, as far as durations tell, waited for the last rank."""
    waits: dict[int, list[Interval]] = defaultdict(list)
    for collective in collectives:
        shortest = min(end - begin for begin, end in collective.times.values())
        for rank, (begin, end) in collective.times.items():
            waits[rank].append((begin, max(begin, end - shortest)))
    return waits


def slowest_rank_of(collectives: Sequence[MatchedCollective], lanes: Sequence[Lanes]) -> SlowestRank | None:
    """Return the rank for which the others have waited longest; None if there is no collective."""
    caused: dict[int, float] = defaultdict(float)
    in_step: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    last_to: dict[int, int] = defaultdict(int)
    took_part: dict[int, int] = defaultdict(int)
    for collective in collectives:
        seconds = {rank: end - begin for rank, (begin, end) in collective.times.items()}
        last = min(seconds, key=seconds.__getitem__)
        waited = sum(seconds.values()) - len(seconds) * seconds[last]
        caused[last] += waited
        in_step[collective.step][last] += waited
        last_to[last] += 1
        for rank in seconds:
            took_part[rank] += 1
    if not caused:
        return None
    rank = max(caused, key=caused.__getitem__)
    steps = statistics.fmean(own.seconds for own in lanes) or 1.0
    return SlowestRank(
        rank=rank,
        last_to=last_to[rank],
        collectives=took_part[rank],
        slow_in=sum(max(each, key=each.__getitem__) == rank for each in in_step.values()),
        steps=len(in_step),
        caused=caused[rank] / (sum(caused.values()) or 1.0),
        waited=caused[rank] / (len(lanes) - 1) / steps,
    )


def reason_of(
    shares: Sequence[RankShares],
    lanes: Sequence[Lanes],
    slowest: SlowestRank | None,
    small: float | None,
    program: HostWork,
) -> SlowReason | None:
    """Return which reason a profile looks like; None if the numbers don't tell.

    Args:
        small: the share of the communication time that is of messages with few numbers; None if sizes aren't known.
        program: what the programs do while their GPUs are idle.
    """
    exposed, idle, copying = (
        statistics.fmean(getattr(own, part) for own in shares) for part in ("exposed", "idle", "copying")
    )
    if max(exposed, idle, copying) < CLEAR:
        return None
    if copying > max(exposed, idle):
        return SlowReason.COPIES
    if idle >= exposed:
        return _reason_of_gaps(lanes, program)
    if small is not None and small >= MOST:
        return SlowReason.WAITS_FOR_NUMBERS
    waiting = [own.waiting for own in shares if own.waiting is not None]
    if len(waiting) < len(shares) or len(shares) < 2:
        return None
    if statistics.fmean(waiting) >= MOST * exposed:
        return SlowReason.UNBALANCED if slowest and slowest.is_clear else SlowReason.LAST_RANK_CHANGES
    return SlowReason.NO_OVERLAP if statistics.fmean(waiting) <= (1 - MOST) * exposed else None


def _reason_of_gaps(lanes: Sequence[Lanes], program: HostWork) -> SlowReason | None:
    """Return why ranks are idle, by what the program does meanwhile, or on a processor by the length of the gaps."""
    if not program.is_recorded:
        return None
    gaps = [end - begin for own in lanes for begin, end in own.idle]
    long = sum(gap for gap in gaps if gap >= LONG_GAP) / (sum(gaps) or 1.0)
    short = sum(gap for gap in gaps if gap <= SHORT_GAP) / (sum(gaps) or 1.0)
    if program.longest_gap >= ONE_GAP and program.gap_seconds >= LONG_GAP and program.gap_call:
        return SlowReason.ONE_CALL
    if program.in_calls >= MOST and "Launch" not in program.longest_call:
        return SlowReason.CALLS
    if program.in_operators >= MOST and program.idle_per_kernel > LONG_GAP:
        return None  # a few operators that take long
    if program.in_operators >= MOST or (short >= MOST and not program.drives_gpu):
        return SlowReason.SMALL_OPERATIONS
    return SlowReason.INPUT if long >= MOST and program.in_operators <= 1 - MOST else None


def program_of(trace: Trace, lanes: Sequence[Lanes]) -> HostWork:
    """Return what the programs do while their GPUs are idle; nothing of ranks that compute on a processor."""
    idle = {own.rank: own.idle for own in lanes}
    on_gpu: set[int] = set()
    kernels = 0
    operators: dict[int, list[Interval]] = defaultdict(list)
    calls: dict[str, dict[int, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        kind = event_kinds.kind_of(event)
        if kind in event_kinds.KERNELS:
            on_gpu.add(event["pid"])
            kernels += 1
        elif kind in event_kinds.CALLS:
            calls[event_kinds.name_of(event)][event["pid"]].append(interval(event))
        elif kind == "cpu_op":
            operators[event["pid"]].append(interval(event))
    ranks = on_gpu & set(idle)
    whole = sum(length(idle[rank]) for rank in ranks) or 1.0
    in_operators = in_calls = 0.0
    for rank in ranks:
        of_rank = union(time for times in calls.values() for time in times[rank])
        in_operators += length(intersection(idle[rank], [*union(operators[rank]), *of_rank]))
        in_calls += length(intersection(idle[rank], of_rank))
    gaps = {rank: max(idle[rank], key=_seconds) for rank in ranks if idle[rank]}
    rank = max(gaps, key=lambda each: _seconds(gaps[each]), default=None)
    return HostWork(
        drives_gpu=bool(on_gpu),
        in_operators=in_operators / whole,
        in_calls=in_calls / whole,
        longest_call=_longest_call(idle, {name: {rank: own[rank] for rank in ranks} for name, own in calls.items()}),
        longest_gap=sum(map(_seconds, gaps.values())) / whole,
        gap_seconds=0.0 if rank is None else _seconds(gaps[rank]),
        gap_call="" if rank is None else _call_in(gaps[rank], rank, trace),
        idle_per_kernel=whole / (kernels or 1),
        is_recorded=not on_gpu or bool(on_gpu & set(operators)) and not lacks_calls(trace["traceEvents"]),
    )


def _longest_call(idle: Mapping[int, list[Interval]], calls: Mapping[str, Mapping[int, list[Interval]]]) -> str:
    """The name of the calls that programs are in for longest while their GPUs are idle; "" if there is none."""
    whole = {name: sum(_seconds(time) for times in own.values() for time in times) for name, own in calls.items()}
    longest, most = "", 0.0
    for name in sorted(whole, key=whole.__getitem__, reverse=True):
        if longest and whole[name] <= most:
            break  # all of it couldn't be more
        seconds = sum(length(intersection(idle[rank], times)) for rank, times in calls[name].items())
        if not longest or seconds > most:
            longest, most = name, seconds
    return longest


def _seconds(time: Interval) -> float:
    return time[1] - time[0]


def _call_in(gap: Interval, rank: int, trace: Trace) -> str:
    """The name of the single call or operator that covers most of a rank's gap, the innermost one; "" if none does."""
    begin, end = 1e6 * gap[0], 1e6 * gap[1]
    within = [
        event
        for event in trace["traceEvents"]
        if event["ph"] == "X"
        and event["pid"] == rank
        and event["ts"] < end
        and event["ts"] + event["dur"] > begin
        and (event_kinds.is_call(event) or event_kinds.kind_of(event) == "cpu_op")
    ]

    def covered(event: event_kinds.Event) -> float:
        return min(event["ts"] + event["dur"], end) - max(event["ts"], begin)

    covering = [event for event in within if covered(event) >= MOST * (end - begin)]
    if not covering:
        return ""
    inner = min(covering, key=lambda event: event["dur"])
    others = sum(inner["ts"] < event["ts"] < inner["ts"] + inner["dur"] for event in within)
    return event_kinds.name_of(inner) if others <= INSIDE else ""


def small_share(parts: Sequence[RankPart]) -> float | None:
    """Return which share of the communication time is of messages with few numbers; None if a size isn't known."""
    if not parts or any(part.elements is None for part in parts):
        return None
    seconds = [(part.when[1] - part.when[0], (part.elements or 0) <= FEW) for part in parts]
    return sum(long for long, is_few in seconds if is_few) / (sum(long for long, _ in seconds) or 1.0)


def _path_problem(lanes: Sequence[Lanes], found: Matching, clocks: ClockCheck) -> NoPath | None:
    if len(lanes) < 2:
        return NoPath.ONE_RANK
    parts = sum(len(collective.times) for collective in found.collectives)
    if not parts:
        return NoPath.MANY_UNMATCHED if found.unmatched or found.between_two else NoPath.NO_COLLECTIVES
    if found.unmatched + found.between_two > parts:
        return NoPath.MANY_UNMATCHED
    return None if clocks.can_compare else NoPath.CLOCKS
