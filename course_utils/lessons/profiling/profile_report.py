"""The report of a profile: a table of where the ranks' time went, and what the numbers show, in sentences."""

import statistics
from collections.abc import Sequence

from course_utils.lessons.profiling.critical_path import TRANSFER, share_of_ranks
from course_utils.lessons.profiling.gpu_record import GpuRecord
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.one_clock import ClockCheck, ClockState
from course_utils.lessons.profiling.profile_findings import (
    CLEAR,
    Findings,
    NoPath,
    RankShares,
    SlowestRank,
    SlowReason,
)
from course_utils.lessons.profiling.profiled_hardware import ProfiledHardware
from course_utils.lessons.profiling.shown_ranks import shown_of
from course_utils.words import capital, count, join, percent, printable, rank_ranges, seconds_text, wrapped
from course_utils.words import ranks as so_many_ranks

WIDTH = 76
"""Characters of a line: more would be broken in the middle of a word on a page of 700 pixels."""
MOST_MACHINES = 4
"""Machines that are named; of more only the number is."""
LITTLE = 0.05
"""Shares of the time below this are not worth mentioning."""

NEXT = {
    SlowReason.INPUT: (
        "Most of the idle time is in long gaps, of more than a millisecond. It looks like reason a of lesson 14, the "
        "input pipeline: the program does or waits for something that isn't recorded, such as reading its data. Put "
        "`with torch.profiler.record_function(...)` around the part that you suspect, and profile again."
    ),
    SlowReason.SMALL_OPERATIONS: (
        "While nothing computes, the program is busy calling one operation after the other. It looks like reason b of "
        "lesson 14, many small operations: to launch each takes longer than its work. Do the same work with fewer, "
        "larger operations, with a larger batch, or with `torch.compile`."
    ),
    SlowReason.NO_OVERLAP: (
        "The ranks begin their messages at about the same time, so they wait for the transfer rather than for each "
        "other. It looks like "
        "reason c of lesson 14, no overlap: begin to send earlier, while the ranks still compute. If everything that "
        "can overlap already does, send less or get a faster network."
    ),
    SlowReason.UNBALANCED: (
        "Most of the exposed communication is waiting for the same rank. It looks like reason d of lesson 14, "
        "unbalanced work: find out whether this rank has more work, is slower, or was disturbed. A faster network "
        "wouldn't help."
    ),
    SlowReason.WAITS_FOR_NUMBERS: (
        "Most of the communication time is in messages of a few numbers. It looks like reason e of lesson 14, waiting "
        "for a number: find the call that asks for it in every step, such as a mean that is only printed, and ask "
        "less often."
    ),
    SlowReason.LAST_RANK_CHANGES: (
        "Most of the exposed communication is waiting for the last rank, but the last rank changes. The work may vary "
        "from step to step, or something disturbs the ranks, such as too few cores."
    ),
    SlowReason.CALLS: (
        "While the GPU is idle, the program is in a call to its driver for most of the time, and most often in "
        "`{call}`. Find out in the timeline which line of the program makes this call, and whether it has to."
    ),
    SlowReason.ONE_CALL: (
        "{share} of the idle time is a single gap, of {seconds}, and for most of it the program is in one call, "
        "`{gap_call}`. A program's first steps have such calls, because they load kernels or reserve memory. If the "
        "profiler was on from the beginning, let a few steps go by before it starts. Otherwise, find out in the "
        "timeline which line makes this call."
    ),
    SlowReason.COPIES: (
        "The GPU spends more time on copies than on waiting for messages. Look at what is copied in every step, and "
        "whether pinned memory and `non_blocking=True` could hide it."
    ),
}
"""What to do about each reason."""

PROBLEMS = {
    NoPath.NO_COLLECTIVES: "The ranks have no collective in common, so there is no critical path to follow.",
    NoPath.MANY_UNMATCHED: (
        "The critical path can't be followed, because the file doesn't tell which messages of different ranks belong "
        "together."
    ),
    NoPath.CLOCKS: "The critical path can't be followed as long as the clocks don't agree.",
}


def lanes_report(
    lanes: Sequence[Lanes],
    found: Findings,
    hardware: ProfiledHardware,
    missing: int = 0,
    first: Sequence[str] = (),
    is_cut: bool = False,
) -> str:
    """Return where the time of each rank went, what that shows, and what to do next.

    Args:
        lanes: of the ranks.
        found: what `findings` finds in their trace.
        hardware: what they were recorded on.
        missing: how many ranks of the run there is no trace of.
        first: sentences that come before everything else, because they restrict it.
        is_cut: whether a file ends in the middle, so that its numbers don't show where the time went.
    """
    unseen = "" if is_cut else _unseen_text(found.record.unseen, len(lanes))
    warnings = [*first, unseen, _sparse_text(found.record, lanes)]
    sentences = []
    if found.can_judge and not is_cut:
        sentences = [
            _time_text(found.shares, found.program.drives_gpu),
            _waiting_text(found.shares),
            slowest_text(found.slowest, len(lanes), missing),
            path_text(found, [own.rank for own in lanes], missing),
            clocks_text(found.clocks, len(lanes)),
            _silent_text(found, len(lanes) + missing),
            next_text(found, len(lanes)),
        ]
    seen = [own for own in found.shares if own.rank not in found.record.unseen]
    head = f"{_heading(lanes, missing, found.record)}\n{wrapped(_hardware_of(hardware, found.record), WIDTH)}".rstrip()
    before, after = (
        "\n".join(wrapped(sentence, WIDTH) for sentence in texts if sentence) for texts in (warnings, sentences)
    )
    return "\n\n".join(part for part in (head, before, shares_table(seen) if seen else "", after) if part)


def _hardware_of(hardware: ProfiledHardware, record: GpuRecord) -> str:
    """What it was recorded on; of a GPU that isn't seen there is nothing to count instead."""
    return "" if hardware.maker is None and record.unseen else hardware_text(hardware)


def _heading(lanes: Sequence[Lanes], missing: int, record: GpuRecord) -> str:
    """How many ranks and steps, and how long these took."""
    whose = so_many_ranks(len(lanes)) if not missing else f"{len(lanes)} of {so_many_ranks(len(lanes) + missing)}"
    marked = [own for own in lanes if own.each_step]
    if not marked and record.sparsest is not None:
        return f"{whose}; the whole trace"
    if not marked:
        return f"{whose}; the whole trace, {_seconds_text(lanes)}"
    steps = max(len(own.each_step) for own in marked)
    if record.sparsest is not None:
        return f"{whose}; {count(steps, 'step')}"
    return f"{whose}; {count(steps, 'step')} in {_seconds_text(marked)}"


def _seconds_text(lanes: Sequence[Lanes]) -> str:
    texts = list(dict.fromkeys(seconds_text(own.seconds) for own in sorted(lanes, key=lambda own: own.seconds)))
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def hardware_text(hardware: ProfiledHardware) -> str:
    """Return what a profile was recorded on."""
    machines = f"Machine: {hardware.machines[0]}. " if len(hardware.machines) == 1 else ""
    if len(hardware.machines) > 1:
        few = len(hardware.machines) <= MOST_MACHINES
        machines = f"Machines: {join(hardware.machines) if few else len(hardware.machines)}. "
    if hardware.maker is None:
        return f"{machines}No work of a GPU is recorded, so operators on the processor count as computing."
    if hardware.gpus:
        return f"{machines}{'GPU' if hardware.maker.value else 'Device'}: {join(hardware.gpus)}."
    whose = f"of {hardware.maker.value}, whose model" if hardware.maker.value else "or another device, whose name"
    return f"{machines}A GPU {whose} the file doesn't tell."


def shares_table(shares: Sequence[RankShares]) -> str:
    """Return a table with a line for each rank, or of many ranks for those at both ends and the median.

    All shares but that of the communication that is hidden add up to 100%. Without any communication it isn't named.
    """
    rows = shown_of(shares, lambda own: own.exposed if communicates(shares) else own.computing)
    columns = {
        "rank": [str(own.rank) for own in rows],
        "computing": [percent(own.computing) for own in rows],
        "exposed communication": [percent(own.exposed) for own in rows],
        "copying": [percent(own.copying) for own in rows],
        "idle": [percent(own.idle) for own in rows],
        "communication hidden": ["-" if own.hidden is None else percent(own.hidden) for own in rows],
    }
    if not communicates(shares):
        del columns["exposed communication"], columns["communication hidden"]
    if not any(own.copying for own in shares):
        del columns["copying"]
    widths = {name: max(len(name), *map(len, texts)) for name, texts in columns.items()}
    lines = ["  ".join(f"{name:>{widths[name]}}" for name in columns)]
    lines += ["  ".join(f"{columns[name][row]:>{widths[name]}}" for name in columns) for row in range(len(rows))]
    if len(rows) < len(shares):
        what = "communication is exposed for" if communicates(shares) else "computing takes"
        lines.append(f"These are the ranks where {what} the shortest and the longest time, and the median.")
        lines.append(f"{so_many_ranks(len(shares) - len(rows))} are not shown.")
    return "\n".join(lines)


def communicates(shares: Sequence[RankShares]) -> bool:
    """Whether any rank has communication at all."""
    return any(own.hidden is not None for own in shares)


def _mean(shares: Sequence[RankShares], part: str) -> float:
    return statistics.fmean(getattr(own, part) for own in shares)


def _sparse_text(record: GpuRecord, lanes: Sequence[Lanes]) -> str:
    """That the GPU's work spans little of the program's time; nothing if it spans enough."""
    rank = record.sparsest
    if rank is None:
        return ""
    [own] = [each for each in lanes if each.rank == rank]
    whose = f"On rank {rank}, all" if len(lanes) > 1 else "All"
    whole = "that its steps took in the program" if own.each_step else "for which the program was recorded"
    return (
        f"{whose} that is recorded of the GPU's work lies within {seconds_text(record.spans[rank])} of the "
        f"{seconds_text(record.program[rank])} {whole}. The shares are of this time alone. In the rest, the GPU "
        "was idle, or its work wasn't recorded."
    )


def _time_text(shares: Sequence[RankShares], drives_gpu: bool) -> str:
    exposed, idle = _mean(shares, "exposed"), _mean(shares, "idle")
    whose = "the ranks communicate and don't" if len(shares) > 1 else "the rank communicates and doesn't"
    if max(exposed, idle) < LITTLE:
        return f"Little is lost to {'exposed communication and ' if communicates(shares) else ''}idle time."
    is_idle = f"{'the ranks are' if len(shares) > 1 else 'the rank is'} idle"
    if not drives_gpu:
        is_idle = "none of torch's operators runs: the program runs other code, or it waits"
    is_exposed = f"communication is exposed: {whose} compute"
    shares_of_time = sorted([(exposed, is_exposed), (idle, is_idle)], reverse=True)
    enough = min(CLEAR, max(exposed, idle))
    return " ".join(f"For {percent(share)} of the time, {what}." for share, what in shares_of_time if share >= enough)


def _waiting_text(shares: Sequence[RankShares]) -> str:
    """How much of the exposed communication is waiting, if that is known."""
    waiting = [own.waiting for own in shares if own.waiting is not None]
    exposed = _mean(shares, "exposed")
    if len(waiting) < max(2, len(shares)) or exposed < LITTLE:
        return ""
    share = statistics.fmean(waiting)
    return (
        f"Of this, {percent(share)} of the time is waiting for the last rank, which a faster network wouldn't shorten, "
        f"and {percent(max(0.0, exposed - share))} is the transfer itself."
    )


def slowest_text(slowest: SlowestRank | None, ranks: int, missing: int = 0) -> str:
    """Return for which rank the others have waited longest; nothing if there is no collective of several ranks."""
    if slowest is None:
        return ""
    others = "the other rank" if ranks == 2 else "the others"
    often = f"It came last to {slowest.last_to} of {slowest.collectives} collectives."
    if slowest.steps > 1:
        often = f"It was the slowest in {slowest.slow_in} of {slowest.steps} steps."
    if slowest.is_clear:
        waited = f"{others} waited for it {percent(slowest.waited)} of the time"
        line = f"Rank {slowest.rank} is the slowest, and {waited}. {often}"
    elif slowest.waited < LITTLE:
        line = "The ranks hardly wait for each other."
    else:
        line = (
            "Which rank comes last changes from one collective to the next. "
            f"In total, {others} waited longest for rank {slowest.rank}. {often}"
        )
    return f"{line} A rank without a trace may be slower still." if missing else line


def path_text(found: Findings, ranks: Sequence[int], missing: int = 0) -> str:
    """Return what the critical path consists of, or why it can't be followed."""
    if found.path_problem:
        return PROBLEMS.get(found.path_problem, "")
    own = sorted(zip(share_of_ranks(found.path, ranks), ranks, strict=True), reverse=True)
    transfers = sum(share_of_ranks(found.path, ranks, TRANSFER))
    parts = [f"rank {rank}'s own work {percent(share)}" for share, rank in own[:4] if share >= 0.01]
    if (rest := sum(share for share, _ in own[:4] if share < 0.01) + sum(share for share, _ in own[4:])) >= 0.01:
        parts.append(f"other ranks' own work {percent(rest)}")
    line = f"The critical path: {join([*parts, f'transfers {percent(transfers)}'])}."
    left_out = found.matching.unmatched + found.matching.between_two
    if left_out:
        line += f" {capital(count(left_out, 'message'))} couldn't be matched; waiting for these counts as own work."
    if missing:
        line += " Ranks without a file may be on it, too, but can't be seen."
    return line


def clocks_text(clocks: ClockCheck, ranks: int) -> str:
    """Return what is known of the clocks, if they haven't been compared."""
    apart, error = seconds_text(clocks.apart), seconds_text(clocks.error or 0.0)
    texts = {
        ClockState.POSSIBLE: (
            f"The clocks of the ranks have not been compared. Their collectives don't contradict them, but would not "
            f"show an error of up to {error}."
        ),
        ClockState.CORRECTED: (
            f"The clocks in the files differ by at least {apart}, because a collective ended on one rank before a "
            f"different rank began it. They have been corrected by the collectives, to within {error}."
        ),
        ClockState.CONTRADICTORY: (
            f"The clocks in the files differ by at least {apart}, and no correction agrees with all collectives. So "
            f"compare durations on different ranks, but no moments."
        ),
        ClockState.UNKNOWN: (
            "The clocks of the ranks have not been compared, and the collectives don't tell how far they differ. So "
            "compare durations on different ranks, but no moments."
        ),
    }
    return texts.get(clocks.state, "") if ranks > 1 else ""


def _unseen_text(ranks: Sequence[int], of_ranks: int) -> str:
    """That a GPU's work wasn't recorded, though there was some; nothing if it was."""
    if not ranks:
        return ""
    whose = "The program" if of_ranks == 1 else f"The program of {rank_ranges(ranks)}"
    return (
        f"{whose} asked a GPU for work, but no kernels of a GPU are in the file, so it doesn't show what the GPU did, "
        "nor when. Profile with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`, "
        "and with no other profiler at work, as only one can record the GPU."
    )


def _silent_text(found: Findings, world_size: int) -> str:
    """That no communication of several ranks was found; nothing if it was."""
    if world_size < 2 or communicates(found.shares):
        return ""
    return (
        f"No message between ranks was found, though there were {so_many_ranks(world_size)}. If a library sends them "
        "whose kernels aren't known here, they count as computing. Otherwise, the ranks didn't exchange anything while "
        "the profiler was on."
    )


def next_text(found: Findings, ranks: int) -> str:
    """Return which reason the profile looks like, and what to do next."""
    if found.reason:
        program = found.program
        return NEXT[found.reason].format(
            call=program.longest_call,
            gap_call=printable(program.gap_call),
            share=percent(program.longest_gap),
            seconds=seconds_text(program.gap_seconds),
        )
    exposed, idle = _mean(found.shares, "exposed"), _mean(found.shares, "idle")
    if max(exposed, idle) < LITTLE:
        return ""
    if exposed >= idle and ranks < 2:
        return (
            "A single rank's trace can't tell waiting for a slower rank from the transfer itself. Read the traces of "
            "the other ranks as well."
        )
    if max(exposed, idle, _mean(found.shares, "copying")) < CLEAR:
        return "Most of the time goes into computing, so only faster computing would save much."
    known = ""
    if idle > exposed and found.program.drives_gpu and found.program.is_recorded:
        known = (
            f"While the GPU is idle, the program is in torch's operators or the GPU's driver for "
            f"{percent(found.program.in_operators)} of the time. In the rest it does something that isn't recorded. "
        )
    return (
        f"{known}The numbers don't point to a single reason. Look at the timeline, which `course profile FILES --out "
        "merged.json.gz` writes, and ask the questions of lesson 14 in order."
    )
