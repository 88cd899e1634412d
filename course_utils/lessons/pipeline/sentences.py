"""What a run of a pipeline shows, and what it would be on paper: sentences chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum

from course_utils.lessons.pipeline.actions import Action
from course_utils.lessons.pipeline.micro_batch_frames import micro_batch_frames, most_kept
from course_utils.lessons.pipeline.timing import Timing
from course_utils.lessons.pipeline.validate import in_flight
from course_utils.measuring import BUSY, Compared, is_busy, unless_busy
from course_utils.words import count, join, percent, seconds_text

_NEAR = 2.5  # percentage points between paper and run that messages may cost
_FAR = 6.0  # more than this has a different cause: something else keeps this machine busy
_EQUAL = 0.05  # shares of a loss that count as no difference
_BROKEN = 3  # times the first loss: nothing was learned, and all forgotten


def disturbed(plan: Timing, run: Timing) -> bool:
    """Whether something else kept this machine so busy that the run cannot answer a prediction.

    By the rule of all lessons (`measuring.is_busy`) for what waits by a clock, as stages do: one run is enough, and a
    machine that is busy all the time is found, too. Messages take time as well, and hide in the idle share: it may be
    `_FAR` points off. A page's prediction must allow for that by its factor `within`.
    """
    far = abs(100 * (run.idle_share - plan.idle_share)) > _FAR
    return far or is_busy([[_worked(run)]], planned=[_worked(plan)])


def _worked(timing: Timing) -> float:
    """Seconds that a rank computed, in the mean."""
    return timing.seconds * (1 - timing.idle_share)


def plan_text(name: str, plan: Timing, run: Timing) -> tuple[str, str]:
    """How idle the ranks were and how long the schedule took, and how much it is on paper: a title, and a line."""
    if disturbed(plan, run):
        return BUSY, ""
    title = f"{name}: {percent(run.idle_share)} idle on {run.ranks} ranks, {percent(plan.idle_share)} on paper"
    reason = reason_for(100 * (run.idle_share - plan.idle_share))
    return (
        title,
        f"The run took {seconds_text(run.seconds)}. On paper it takes {seconds_text(plan.seconds)}{reason}",
    )


class Reason(StrEnum):
    """Why a run is not as idle as on paper, with the words behind a sentence."""

    NONE_NEEDED = ""
    MESSAGES = ", which ignores messages and delays"
    BUSY = BUSY


def reason_for(points: float) -> Reason:
    """Why a run is idle for so many percentage points more than on paper."""
    if abs(points) <= _NEAR:
        return Reason.NONE_NEEDED
    return Reason.MESSAGES if 0 < points <= _FAR else Reason.BUSY


def faster_text(before: Timing, after: Timing, pieces: int) -> str:
    """What cutting the batch brought, as a title."""
    times = before.seconds / after.seconds
    if times < 1.1:
        return "Cutting the batch made nothing faster in this run"
    return f"Cut into {pieces} micro-batches, the same work is done {times:.1f} times faster"


def steps_text(name: str, schedule: Sequence[Sequence[Action]]) -> str:
    """How many steps a schedule takes, and how many micro-batches each rank keeps at most; a title."""
    frames = micro_batch_frames(schedule)
    kept = most_kept(frames)
    if len(set(kept)) == 1:
        return f"{name}: {count(len(frames), 'step')}, and each rank keeps up to {count(kept[0], 'micro-batch')}"
    others = [f"rank {rank} up to {most}" for rank, most in enumerate(kept[1:], start=1)]
    each = join([f"rank 0 keeps up to {count(kept[0], 'micro-batch')}", *others])
    return f"{name}: {count(len(frames), 'step')}; {each}"


def formula_text(micro_batches: Sequence[int], runs: Sequence[Sequence[float]], formula: Sequence[float]) -> str:
    """How far the measured idle shares are from the formula.

    Args:
        runs: for each number of micro-batches the idle share of each run. formula: its idle share.
    """
    worst, _ = farthest(micro_batches, runs, formula)
    ends = f"Idle {percent(statistics.median(runs[0]))} of the time with m = {micro_batches[0]}, "
    ends += f"{percent(statistics.median(runs[-1]))} with m = {micro_batches[-1]}; "
    if (reason := reason_for(worst)) == Reason.NONE_NEEDED:
        return f"{ends}at most {abs(worst):.1f} percentage points from the formula"
    if reason == Reason.BUSY:
        return BUSY
    return f"{ends}at most {abs(worst):.1f} percentage points from the formula{reason}"


def farthest(
    micro_batches: Sequence[int], runs: Sequence[Sequence[float]], formula: Sequence[float]
) -> tuple[float, int]:
    """How many percentage points runs are from the formula at worst, and with how many micro-batches."""
    points = [100 * (statistics.median(each) - share) for each, share in zip(runs, formula, strict=True)]
    return max(zip(points, micro_batches, strict=True), key=lambda each: abs(each[0]))


def kept_by_rank(timing: Timing) -> list[int]:
    """The most micro-batches that each rank kept at any time, counted in what it did."""
    by_rank: list[list[Action]] = [[] for _ in range(timing.ranks)]
    for entry in sorted(timing.entries, key=lambda entry: entry.start):
        by_rank[entry.rank].append(entry.action)
    return [round(max(in_flight(actions), default=0)) for actions in by_rank]


def kept_text(plain: Timing, other: Timing) -> str:
    """What 1F1B saves in memory compared with GPipe, as a title."""
    most, least = max(kept_by_rank(plain)), max(kept_by_rank(other))
    return f"With 1F1B, rank 0 keeps {least} micro-batches instead of {most}"


def idle_seconds(timing: Timing) -> float:
    """How long a rank does nothing, in the mean."""
    return timing.idle_share * timing.seconds


def bubble_text(plain: Timing, other: Timing, planned: float, name: str) -> str:
    """How much of 1F1B's bubble is left, in the run and on paper, as a title.

    Args:
        planned: the share that is left on paper.
    """
    left = idle_seconds(other) / idle_seconds(plain)
    if left > 0.9:
        return f"{name} saved nothing in this run; on paper it leaves {percent(planned)} of 1F1B's bubble"
    return f"{name} leaves {percent(left)} of 1F1B's bubble, and {percent(planned)} on paper"


def window_text(run: Timing, kept: Sequence[int]) -> str:
    """How idle a rank is between its own first and last action, and how much rank 0 keeps."""
    inside = f"Between its first action and its last, a rank is idle {percent(run.bubble_share)} of the time"
    reason = "" if 100 * run.bubble_share <= _NEAR else ", and never on paper"
    return f"{inside}{reason}. Rank 0 keeps {kept[0]} micro-batches"


def flush_text(run: Timing, flushed: float) -> str:
    """How idle ranks are without a flush, unless they are as idle as with one; a title.

    Args:
        flushed: the idle share, by the formula, with a flush after each batch.
    """
    title = f"Without a flush, ranks are idle {percent(run.idle_share)} of the time"
    return unless_busy(run.idle_share >= flushed, title)


def stashing_text(losses: Mapping[str, Sequence[float]], last: int = 20) -> str:
    """What the delay does to the loss, and what wrong gradients do in addition; a title.

    Args:
        losses: of every micro-batch, by name: first without delay, then with stashing, then without stashing.
        last: micro-batches at the end whose mean counts.
    """
    no_delay, stashed, plain = (statistics.mean(line[-last:]) for line in losses.values())
    without = not_to_stash(next(iter(losses.values()))[0], stashed, plain)
    costs = without == Stashless.BROKEN or stashed > (1 + _EQUAL) * no_delay
    return f"In this run, the loss ends {'higher' if costs else 'no higher'} with the delay; {without}"


class Stashless(StrEnum):
    """What becomes of a training run without stashing, in words."""

    BROKEN = "without stashing, training diverges"
    SAME = "stashing makes no difference"
    WORSE = "without stashing, it ends higher still"
    BETTER = "without stashing, it ends lower than with it"


def not_to_stash(first: float, stashed: float, plain: float) -> Stashless:
    """Decide how training without stashing went, from its first loss and the last ones with and without stashing."""
    if not plain <= _BROKEN * first:  # not a number, too
        return Stashless.BROKEN
    change = (plain - stashed) / stashed
    return Stashless.SAME if abs(change) <= _EQUAL else Stashless.WORSE if change > 0 else Stashless.BETTER


def hidden_text(isend: Sequence[Timing], waiting: Sequence[Timing]) -> str:
    """Compare runs whose sends do not wait with runs whose sends do, made by turns; a title."""
    pair = Compared([run.seconds for run in isend], [run.seconds for run in waiting], ("isend", "sends that wait"))
    if pair.is_busy:
        return BUSY
    idle = [percent(statistics.median(run.idle_share for run in runs)) for runs in (isend, waiting)]
    if pair.is_tie:
        return f"No clear difference: {idle[0]} idle with isend, {idle[1]} if sends wait"
    return f"Ranks are idle {idle[0]} of the time with isend, and {idle[1]} if sends wait"


def idle_text(runs: Mapping[str, Timing]) -> str:
    """How idle the ranks were with each schedule."""
    shares = [f"{percent(run.idle_share)} of the time with {name}" for name, run in runs.items()]
    return f"Ranks are idle {join(shares)}"


def proved_text(known: float, bound: float, steps: int = 0, took: float = 0.0) -> str:
    """Whether the best known schedule is proved to be the best; if not, how far it is from what each one needs.

    Args:
        known: seconds of the best known schedule.
        bound: seconds that each schedule needs without a search.
        steps: of the proof that none is faster than the best known, already checked; 0 if none was found.
        took: seconds in which it was found.
    """
    if not steps:
        gap = percent(1 - bound / known)
        return f"the best known takes {known:g} s, and none takes less than {bound:g} s: a gap of {gap} is open"
    found = f"a proof of {count(steps, 'step')}, found in {seconds_text(took)}"
    return f"the best known takes {known:g} s, and {found}, shows that none is faster"


def stretches_text(stretches: Sequence[Sequence[float]], known: float) -> str:
    """The lower bound and the rank that it comes from, compared with the best known schedule; a title.

    Args:
        stretches: of each rank, seconds of the three. known: seconds of the best known schedule.
    """
    sums = [sum(each) for each in stretches]
    longest = max(sums)
    text = f"Because of rank {sums.index(longest)}, every schedule takes at least {longest:g} s"
    if round(known - longest, 6) <= 0:
        return f"{text}, and the best known takes no more"
    return f"{text}; the best known takes {known:g} s"


def proofs_text(seconds: Mapping[str, float], bounds: Mapping[str, float]) -> str:
    """In how many puzzles the best known schedule is proved to be the best, and the gaps of the others; a title.

    Args:
        seconds: of the best known schedule of each puzzle. bounds: what is proved that each schedule takes.
    """
    open_ = open_gaps(seconds, bounds)
    if not open_:
        return f"In all {count(len(seconds), 'puzzle')}, it is proved that no schedule beats the best known"
    gaps = join([f"{percent(gap, 1)} in {name}" for name, gap in open_.items()])
    proved = f"{len(seconds) - len(open_)} of {len(seconds)} puzzles"
    return f"In {proved}, the best known is proved to be the best; the gap is still {gaps}"


def open_gaps(seconds: Mapping[str, float], bounds: Mapping[str, float]) -> dict[str, float]:
    """How far the best known is from the bound, as a share, of each puzzle where it is not proved to be the best."""
    return {name: 1 - bounds[name] / known for name, known in seconds.items() if round(known - bounds[name], 6) > 0}
