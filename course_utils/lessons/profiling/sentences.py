"""What a profile shows, in a sentence that the numbers choose."""

import re
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.profiling.critical_path import TRANSFER, Piece, share_of_ranks
from course_utils.lessons.profiling.dumps.flight_recorder import Mismatch
from course_utils.lessons.profiling.foreign.note_sentences import note_text
from course_utils.lessons.profiling.foreign.profile_notes import NoteKind
from course_utils.lessons.profiling.intervals import difference, length
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.profile_report import WIDTH, lanes_report
from course_utils.lessons.profiling.trace_difference import IDLE, Change
from course_utils.measuring import BUSY, Compared, Measured, is_busy, unless_busy
from course_utils.words import bytes_text, count, number_text, percent, seconds_text, wrapped

if TYPE_CHECKING:
    from course_utils.lessons.profiling.feeding import Fed
    from course_utils.lessons.profiling.profiled_ranks import Profile
    from course_utils.lessons.profiling.step_memory import StepMemory

FIRST = (NoteKind.SEVERAL_RUNS, NoteKind.HOURS_APART, NoteKind.CUT_SHORT)
"""Notes that come before the numbers, because they restrict what these show."""
LITTLE = 0.05
"""Shares of the time below this are not worth mentioning."""
FORWARD_CONVOLUTION, BACKWARD_CONVOLUTION = "aten::mkldnn_convolution", "aten::convolution_backward"
"""Torch's names for convolutions that oneDNN computes, which was called MKL-DNN once."""
Operator = tuple[str, int, float, float]
"""Name, number of calls, self time and total time in microseconds, as `key_averages()` gives them."""


def profile_report(profile: "Profile") -> str:
    """Return what `print` shows of a profile: where each rank's time went, what that shows, and what to do next."""
    missing = sum(len(note.ranks) for note in profile.notes if note.kind is NoteKind.RANKS_MISSING)
    first = [note_text(note) for note in profile.notes if note.kind in FIRST]
    is_cut = any(note.kind is NoteKind.CUT_SHORT for note in profile.notes)
    report = lanes_report(profile.lanes, profile.findings, profile.hardware, missing, first, is_cut)
    # What is said of the clocks tells more than the note that nobody has compared them.
    later = [note for note in profile.notes if note.kind not in (*FIRST, NoteKind.CLOCKS_NOT_ALIGNED)]
    notes = [note_text(note) for note in later]
    return "\n".join([report, *(wrapped(note, WIDTH) for note in notes)])


def exposed_share(lanes: Lanes) -> float:
    """Return exposed communication as a share of the rank's steps."""
    return lanes.exposed_seconds / (lanes.seconds or 1.0)


def profile_text(lanes: Sequence[Lanes]) -> str:
    """Say where the ranks' time went, on average: computing, and the largest part of the rest."""
    exposed = statistics.fmean(exposed_share(rank_lanes) for rank_lanes in lanes)
    idle = statistics.fmean(rank_lanes.idle_share for rank_lanes in lanes)
    computing = statistics.fmean(length(rank_lanes.computing) / (rank_lanes.seconds or 1.0) for rank_lanes in lanes)
    copying = statistics.fmean(
        length(difference(rank_lanes.copies, rank_lanes.computing)) / (rank_lanes.seconds or 1.0)
        for rank_lanes in lanes
    )
    text = f"{'The ranks compute' if len(lanes) > 1 else 'The rank computes'} {percent(computing)} of the time"
    if max(exposed, idle, copying) < LITTLE:
        return f"{text}: little is lost"
    if copying > max(exposed, idle):
        return f"{text}; for {percent(copying)} {'they wait' if len(lanes) > 1 else 'it waits'} for copies"
    if exposed >= idle:
        return f"{text}; for {percent(exposed)}, communication is exposed"
    return f"{text} and {'are' if len(lanes) > 1 else 'is'} idle for {percent(idle)}"


def overlap_text(before: Sequence[Lanes], after: Sequence[Lanes], name: str) -> str:
    """Compare how much of the communication is hidden in two profiles; `name` is what the second one uses."""
    if is_busy_profile(after):
        return BUSY
    first, second = (statistics.fmean(rank_lanes.overlap_share for rank_lanes in lanes) for lanes in (before, after))
    text = f"Hidden: {percent(first)} of the communication before, {percent(second)} with {name}"
    if second > first + LITTLE:
        return text
    return f"{text}, so nothing is gained here"


def is_busy_profile(lanes: Sequence[Lanes]) -> bool:
    """Whether the ranks, which have equal work, hide shares that differ too much to compare the profile (`is_busy`)."""
    return is_busy([[rank_lanes.overlap_share for rank_lanes in lanes]])


def convolutions_text(rows: Sequence[Operator]) -> str:
    """Compare convolutions in the two passes; return nothing if torch has different names for them here."""
    own = {name: microseconds for name, _, microseconds, _ in rows}
    forward, backward = own.get(FORWARD_CONVOLUTION, 0), own.get(BACKWARD_CONVOLUTION, 0)
    if not (forward and backward):
        return ""
    times = number_text(backward / forward)
    return f"In the backward pass, convolutions take {times} times as long as in the forward pass"


def operators_table(rows: Sequence[Operator], most: int = 8) -> str:
    """Return a table of the operators with the most self time, a line for each."""
    longest = sorted(rows, key=lambda row: -row[2])[:most]
    width = max(len(name) for name, *_ in longest)
    lines = [f"{'operator':{width}}  calls      self     total"]
    for name, calls, own, total in longest:
        lines.append(f"{name:{width}}  {calls:5}  {seconds_text(1e-6 * own):>8}  {seconds_text(1e-6 * total):>8}")
    return "\n".join(lines)


def clock_text(rank: int, ahead: float, error: float, simulated: float) -> str:
    """Say how far a rank's clock is ahead of rank 0's, by at most how much that is wrong, and what was simulated.

    Args:
        ahead, error, simulated: in seconds; below zero is behind.
    """
    found = f"rank {rank}'s clock: {_ahead_text(ahead)}, give or take {1000 * error:.2f} ms"
    return f"{found} (simulated: {_ahead_text(simulated)})"


def _ahead_text(seconds: float) -> str:
    return f"{1000 * abs(seconds):.2f} ms {'behind' if seconds < 0 else 'ahead'}"


def cured_texts(number: int, taken: Compared, drawn: Sequence[Lanes]) -> tuple[str, str]:
    """Return the title and subtitle of a picture of a slow program and a better one.

    Args:
        taken: the race of the better program, first, with the slow one.
        drawn: lanes of one profiled run of each, the slow one first; it is a run of its own, so its ratio may differ.
    """
    slow, better = (lanes.seconds for lanes in drawn)
    below = f"Rank 0, one more run of each; here the slow one takes {slow / better:.1f} times as long"
    if taken.is_busy or not taken.first_is_faster:
        return f"Program {number}: {taken}", below
    ratios, (better_name, slow_name) = taken.ratios, taken.names
    rounds = count(len(ratios.values), "round")
    return (
        f"Program {number}: {better_name} is {ratios.median:.1f} times as fast as {slow_name}",
        f"{ratios.low:.1f} to {ratios.high:.1f} times in {rounds}. {below}",
    )


def launches_text(lanes: Sequence[Lanes]) -> str:
    """Return a title: how long a GPU is idle with a launch for each kernel, and with one launch for a whole graph."""
    one_by_one, graph = (percent(rank_lanes.idle_share) for rank_lanes in lanes)
    return (
        f"With a launch for each kernel, the GPU is idle for {one_by_one} of a step; with a single launch, for {graph}"
    )


def peak_place(held: "StepMemory") -> tuple[str, str]:
    """Return the phase with the most memory, and "early" or "late" in it; two empty texts before all phases."""
    begun = [(*when, name) for name, each in held.phases.items() for when in each if when[0] <= held.peak_time]
    if not begun:
        return "", ""
    begin, end, name = max(begun)
    return name, "early" if held.peak_time < (begin + end) / 2 else "late"


def peak_letter(held: "StepMemory") -> str:
    """Return when memory peaks: "a" early in the forward pass, "b" around its end, "c" later, "d" in the optimizer."""
    name, half = peak_place(held)
    if name in ("forward", "backward"):
        return {"forwardearly": "a", "backwardlate": "c"}.get(name + half, "b")
    return {"communication": "c", "step": "d"}.get(name, "a")


def memory_text(held: "StepMemory") -> str:
    """Return a title: when a step needs the most memory, how much, and which operator took much of it at once."""
    name, half = peak_place(held)
    phase = {"forward": "the forward pass", "backward": "the backward pass", "step": "the optimizer's step"}
    where = (
        f"{half} in {phase.get(name, name)}" if name else f"after {percent(held.peak_time / held.seconds)} of the step"
    )
    text = f"The most memory is needed {where}: {bytes_text(held.peak)}"
    if held.last_taken > LITTLE * held.peak:
        return f"{text}, of which {held.operator or 'one allocation'} has just taken {bytes_text(held.last_taken)}"
    if held.peak - held.allocated[0] < LITTLE * held.peak:
        return f"{text}, little more than when the step begins"
    return f"{text}, {number_text(held.peak / max(1, held.allocated[0]))} times as much as when the step begins"


def kept_text(held: "StepMemory") -> str:
    """Say whose memory it is, and how much the forward pass keeps, if the trace names the phases."""
    if not (forward := held.phases.get("forward")):
        return f"Memory of {held.device}"
    left = max(0, held.at(forward[-1][1]) - held.allocated[0])
    first = bytes_text(held.allocated[0])
    return f"Memory of {held.device}: the forward pass adds {bytes_text(left)} to the first {first}"


def zero_grad_text(held: "StepMemory") -> str:
    """Say what `zero_grad` releases at the beginning of the backward pass, and whether a picture of the step shows it.

    Nothing if the trace does not name the phases.
    """
    if not (backward := held.phases.get("backward")):
        return ""
    released = held.released_from(backward[0][0])
    if released > LITTLE * held.peak:
        drop = "The drop between the two passes is `zero_grad`"
        return f"{drop}, which releases the gradients of the step before, {bytes_text(released)}."
    text = "Between the two passes, `zero_grad` releases the gradients of the step before"
    return f"{text}. Next to the peak, their {bytes_text(released)} are too little to be seen."


_FED_BY = {"this_process": "made by this process", "four_workers": "made by 4 workers", "copy": "made before"}
"""The parts of a prediction, and who makes the batches in each."""


def fed_times(fed: "Fed") -> dict[str, float]:
    """Return how long a step takes if a step with its images on the GPU takes 1; from pinned memory if possible."""
    there, median = _never_copied(fed), statistics.median
    return {name: median(fed.seconds[maker]["pinned"]) / median(there) for name, maker in _FED_BY.items()}


def fed_longer(fed: "Fed") -> dict[str, bool]:
    """Whether each of these steps is measurably longer: its quickest run takes longer than any without a copy."""
    slowest = max(_never_copied(fed))
    return {name: min(fed.seconds[maker]["pinned"]) > slowest for name, maker in _FED_BY.items()}


def _never_copied(fed: "Fed") -> list[float]:
    (seconds,) = fed.seconds["on the GPU from the beginning"].values()
    return seconds


def fed_text(fed: "Fed") -> str:
    """Return a title: what it costs to make the batches, and to copy them."""
    times, longer = fed_times(fed), fed_longer(fed)
    long = {
        name: f"{number_text(times[name])} times as long" if longer[name] else "not measurably longer" for name in times
    }
    text = (
        f"A step takes {long['this_process']} if the training process makes the batches, "
        f"{long['four_workers']} with four workers, and {long['copy']} with the copy alone"
    )
    return unless_busy(is_busy_feed(fed), text)


def is_busy_feed(fed: "Fed") -> bool:
    """Whether the times of the steps differ too much to be compared (`is_busy`)."""
    return is_busy(seconds for ways in fed.seconds.values() for seconds in ways.values())


def fed_bars(fed: "Fed") -> dict[str, dict[str, Measured]]:
    """Return a step's seconds by who makes the batches and how they are copied, for `course.draw.measured_bars`."""
    return {
        maker: {f"{maker}, {transfer}": Measured(tuple(seconds)) for transfer, seconds in ways.items()}
        for maker, ways in fed.seconds.items()
    }


def critical_text(path: Sequence[Piece], ranks: Sequence[int]) -> str:
    """Return a title: who is on the critical path for most of the time."""
    own, transfers = share_of_ranks(path, ranks), sum(share_of_ranks(path, ranks, TRANSFER))
    share, most = max(zip(own, ranks, strict=True), key=lambda pair: pair[0])
    if transfers > share:
        return f"Transfers make up {percent(transfers)} of the critical path"
    return f"Rank {most}'s own work makes up {percent(share)} of the critical path, transfers {percent(transfers)}"


def path_shares_text(path: Sequence[Piece], ranks: Sequence[int]) -> str:
    """Return the share of each rank's own work on the path."""
    own = share_of_ranks(path, ranks)
    return ", ".join(f"{rank}: {percent(share)}" for rank, share in zip(ranks, own, strict=True))


def changes_text(changes: Sequence[Change]) -> str:
    """Return a title: by how much the run has become shorter or longer, and what changed most."""
    total = sum(change.seconds for change in changes)
    shorter = total < 0
    largest = min(changes, key=lambda change: change.seconds if shorter else -change.seconds)
    text = f"The run is {seconds_text(abs(total))} {'shorter' if shorter else 'longer'}, on average over the ranks"
    return f"{text}; what changed most: {largest.name}, {seconds_text(abs(largest.seconds))} {_direction(largest)}"


def changed_most(changes: Sequence[Change]) -> str:
    """Return "a" if operators' own time has changed most, "b" for exposed communication, "c" for idle time."""
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
    """Return the course's report of a hang, and below it what torchfrtrace found."""
    theirs = (
        f"culprit rank {mismatch.rank}, the others in {mismatch.operation}. {mismatch.error}"
        if mismatch
        else "no culprit"
    )
    same = (
        "Both name the same rank and operation."
        if agree(mismatch, report)
        else "They don't name the same rank and operation."
    )
    return wrapped(f"the course: {report}\n\ntorchfrtrace: {theirs}\n\n{same}")


def culprit_letter(mismatch: Mismatch | None, rank: int) -> str:
    """Return "a" if torchfrtrace calls this rank the culprit, "b" if a different one, "c" if none."""
    return "c" if mismatch is None else "a" if mismatch.rank == rank else "b"
