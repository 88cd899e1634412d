"""What a profile says, in a sentence: written here once, chosen by the numbers."""

import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.profiling.critical_path import TRANSFER, Piece, share_of_ranks
from course_utils.lessons.profiling.flight_recorder import Mismatch
from course_utils.lessons.profiling.intervals import difference, length
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.step_memory import StepMemory
from course_utils.lessons.profiling.trace_difference import IDLE, Change
from course_utils.measuring import BUSY, Measured, is_busy, unless_busy
from course_utils.words import bytes_text, number_text, percent, seconds_text, wrapped

if TYPE_CHECKING:
    from course_utils.lessons.profiling.feeding import Fed

LITTLE = 0.05
"""Shares of the time below this are not worth a word."""
FORWARD_CONVOLUTION, BACKWARD_CONVOLUTION = "aten::mkldnn_convolution", "aten::convolution_backward"
"""What torch calls them where oneDNN computes them (once called MKL-DNN)."""
Operator = tuple[str, int, float, float]
"""Name, calls, µs in it and in nothing that it calls, µs with what it calls: as `key_averages()` has them."""


def exposed_share(lanes: Lanes) -> float:
    """Exposed communication as a share of the rank's steps."""
    return lanes.exposed_seconds / lanes.seconds


def profile_text(lanes: Sequence[Lanes]) -> str:
    """Where the time of the ranks went, on average: the largest of what is not computing."""
    exposed = statistics.fmean(exposed_share(rank_lanes) for rank_lanes in lanes)
    idle = statistics.fmean(rank_lanes.idle_share for rank_lanes in lanes)
    computing = statistics.fmean(length(rank_lanes.computing) / rank_lanes.seconds for rank_lanes in lanes)
    copying = statistics.fmean(
        length(difference(rank_lanes.copies, rank_lanes.computing)) / rank_lanes.seconds for rank_lanes in lanes
    )
    text = f"{'The ranks compute' if len(lanes) > 1 else 'The rank computes'} {percent(computing)} of the time"
    if max(exposed, idle, copying) < LITTLE:
        return f"{text}: little is lost"
    if copying > max(exposed, idle):
        return f"{text}; {percent(copying)} is copies that it waits for"
    if exposed >= idle:
        return f"{text}; {percent(exposed)} is exposed communication"
    return f"{text}; {percent(idle)} is idle: no computing, no messages"


def overlap_text(before: Sequence[Lanes], after: Sequence[Lanes], name: str) -> str:
    """How much of the communication is hidden in one profile and in another one, whose `name` is said."""
    if is_busy_profile(after):
        return BUSY
    first, second = (statistics.fmean(rank_lanes.overlap_share for rank_lanes in lanes) for lanes in (before, after))
    text = f"Hidden: {percent(first)} of the communication before, {percent(second)} with {name}"
    if second > first + LITTLE:
        return text
    return f"{text}. Nothing is gained here"


def is_busy_profile(lanes: Sequence[Lanes]) -> bool:
    """Whether what ranks hide scatters too much to compare a profile, for all have the same work (`is_busy`)."""
    return is_busy([[rank_lanes.overlap_share for rank_lanes in lanes]])


def convolutions_text(rows: Sequence[Operator]) -> str:
    """How long convolutions take backward, beside forward; nothing where torch has other names for them."""
    own = {name: microseconds for name, _, microseconds, _ in rows}
    forward, backward = own.get(FORWARD_CONVOLUTION, 0), own.get(BACKWARD_CONVOLUTION, 0)
    if not (forward and backward):
        return ""
    return f"Convolutions: the backward pass takes {number_text(backward / forward)} times as long as the forward pass"


def operators_table(rows: Sequence[Operator], most: int = 8) -> str:
    """The operators with most time of their own, one a line."""
    longest = sorted(rows, key=lambda row: -row[2])[:most]
    width = max(len(name) for name, *_ in longest)
    lines = [f"{'operator':{width}}  calls      self  with what it calls"]
    for name, calls, own, total in longest:
        lines.append(f"{name:{width}}  {calls:5}  {seconds_text(1e-6 * own):>8}  {seconds_text(1e-6 * total):>8}")
    return "\n".join(lines)


def orders_text(lanes: Sequence[Lanes]) -> str:
    """A title: how long a GPU waits for its orders, one by one and as one graph."""
    one_by_one, graph = (percent(rank_lanes.idle_share) for rank_lanes in lanes)
    return f"Ordered kernel by kernel, the GPU is idle for {one_by_one} of a step; ordered once, for {graph}"


def peak_place(held: StepMemory) -> tuple[str, str]:
    """In which phase most memory is allocated, and "early" or "late" in it; two empty texts before all phases."""
    begun = [(*when, name) for name, each in held.phases.items() for when in each if when[0] <= held.peak_time]
    if not begun:
        return "", ""
    begin, end, name = max(begun)
    return name, "early" if held.peak_time < (begin + end) / 2 else "late"


def peak_letter(held: StepMemory) -> str:
    """When most is allocated: "a" early in the forward pass, "b" around its end, "c" later, "d" in the optimizer."""
    name, half = peak_place(held)
    if name in ("forward", "backward"):
        return {"forwardearly": "a", "backwardlate": "c"}.get(name + half, "b")
    return {"communication": "c", "step": "d"}.get(name, "a")


def memory_text(held: StepMemory) -> str:
    """A title: where in the step most memory is allocated, how much, and what took it, where one operator took much."""
    name, half = peak_place(held)
    phase = {"forward": "the forward pass", "backward": "the backward pass", "step": "the optimizer's step"}
    where = (
        f"{half} in {phase.get(name, name)}" if name else f"after {percent(held.peak_time / held.seconds)} of the step"
    )
    text = f"Most memory {where}: {bytes_text(held.peak)}"
    if held.last_taken > LITTLE * held.peak:
        return f"{text}, of which {held.operator or 'one allocation'} has just taken {bytes_text(held.last_taken)}"
    if held.peak - held.allocated[0] < LITTLE * held.peak:
        return f"{text}, little more than when the step begins"
    return f"{text}, {number_text(held.peak / max(1, held.allocated[0]))} times as much as when the step begins"


def kept_text(held: StepMemory) -> str:
    """Whose memory it is, and what the forward pass leaves to the backward pass where the trace names it."""
    if not (forward := held.phases.get("forward")):
        return f"Memory of {held.device}"
    left = max(0, held.at(forward[-1][1]) - held.allocated[0])
    return (
        f"Memory of {held.device}: the forward pass leaves {bytes_text(left)} on top of {bytes_text(held.allocated[0])}"
    )


def fed_times(fed: "Fed") -> dict[str, float]:
    """How many times as long a step takes as one whose images lie on the GPU; all pinned, where there is a choice."""
    (never,) = fed.seconds["on the GPU from the beginning"].values()
    makers = {"this_process": "made by this process", "four_workers": "made by 4 workers", "copy": "made before"}
    return {
        name: statistics.median(fed.seconds[maker]["pinned"]) / statistics.median(never)
        for name, maker in makers.items()
    }


def fed_text(fed: "Fed") -> str:
    """A title: what it costs to make the batches, and to copy them."""
    times = {name: number_text(value) for name, value in fed_times(fed).items()}
    own_process = f"Where the training process makes its batches, a step takes {times['this_process']} times as long"
    text = f"{own_process}; with four workers {times['four_workers']}, with the copy alone {times['copy']}"
    return unless_busy(is_busy_feed(fed), text)


def is_busy_feed(fed: "Fed") -> bool:
    """Whether the steps scatter too much to compare ways to feed them (`is_busy`)."""
    return is_busy(seconds for ways in fed.seconds.values() for seconds in ways.values())


def fed_bars(fed: "Fed") -> dict[str, dict[str, Measured]]:
    """The seconds of a step by who makes the batches and how they are copied, as `course.draw.measured_bars` takes."""
    return {
        maker: {f"{maker}, {transfer}": Measured(tuple(seconds)) for transfer, seconds in ways.items()}
        for maker, ways in fed.seconds.items()
    }


def critical_text(path: Sequence[Piece], ranks: int) -> str:
    """A title: who is on the critical path for most of the time."""
    own, transfers = share_of_ranks(path, ranks), sum(share_of_ranks(path, ranks, TRANSFER))
    most = max(range(ranks), key=own.__getitem__)
    if transfers > own[most]:
        return f"The critical path: {percent(transfers)} of it is transfers"
    return f"Rank {most} works for {percent(own[most])} of the critical path; {percent(transfers)} is transfers"


def path_shares_text(path: Sequence[Piece], ranks: int) -> str:
    """Each rank's own work on the path."""
    own = share_of_ranks(path, ranks)
    return ", ".join(f"{rank}: {percent(share)}" for rank, share in enumerate(own))


def changes_text(changes: Sequence[Change]) -> str:
    """A title: how much a rank's run has become shorter or longer, and by what most."""
    total = sum(change.seconds for change in changes)
    shorter = total < 0
    largest = min(changes, key=lambda change: change.seconds if shorter else -change.seconds)
    text = f"{seconds_text(abs(total))} {'less' if shorter else 'more'} on average over the ranks"
    return f"{text}; what changed most: {largest.name}, {seconds_text(abs(largest.seconds))} {_direction(largest)}"


def changed_most(changes: Sequence[Change]) -> str:
    """ "a" where operators' own time has changed most, "b" exposed communication, "c" idle time."""
    seconds = dict.fromkeys("abc", 0.0)
    for change in changes:
        seconds["c" if change.name == IDLE else "b" if change.name.endswith(", exposed") else "a"] += change.seconds
    return max(seconds, key=lambda letter: abs(seconds[letter]))


def _direction(change: Change) -> str:
    return "less" if change.seconds < 0 else "more"


def agree(mismatch: Mismatch | None, report: str) -> bool:
    """Whether fr_trace and the course's report name the same rank, and the same collective of the others."""
    if mismatch is None or mismatch.operation not in report:
        return False
    own = re.search(rf"\brank {mismatch.rank} (\w+)", report)
    return bool(own) and own[1] != mismatch.operation


def both_reports_text(mismatch: Mismatch | None, report: str) -> str:
    """The course's report of a hang, and what torchfrtrace says of it, one below the other."""
    theirs = (
        f"culprit rank {mismatch.rank}, the others in {mismatch.operation}. {mismatch.error}"
        if mismatch
        else "no culprit"
    )
    same = "Both name the same rank and operation." if agree(mismatch, report) else "They do not name the same."
    return wrapped(f"the course: {report}\n\ntorchfrtrace: {theirs}\n\n{same}")


def culprit_letter(mismatch: Mismatch | None, rank: int) -> str:
    """ "a" where torchfrtrace calls this rank the culprit, "b" another one, "c" nobody."""
    return "c" if mismatch is None else "a" if mismatch.rank == rank else "b"
