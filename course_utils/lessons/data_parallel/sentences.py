"""The sentences about runs of data-parallel training, chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from course_utils.measuring import BUSY, Compared, is_busy, larger
from course_utils.trace.events import Event, phase_seconds
from course_utils.words import bytes_text, join, number_text, seconds_text

if TYPE_CHECKING:
    from course_utils.draw.message_timeline.timelines import HasEvents
    from course_utils.lessons.data_parallel.training_run import TrainingRun

Traced = TypeVar("Traced", bound="HasEvents")


def phase_durations(events: Sequence[Event], name: str, rank: int = 0) -> list[float]:
    """The seconds of every phase of this name on one rank, step by step."""
    return [
        event.end - event.start for event in events if (event.kind, event.name, event.rank) == ("phase", name, rank)
    ]


def phase_bars(events: Sequence[Event]) -> dict[str, dict[str, float]]:
    """The seconds of each phase on each rank, as `draw.stacked_bars` takes them: "rank 0" → phase → seconds."""
    bars: dict[str, dict[str, float]] = {}
    for (rank, name), seconds in sorted(phase_seconds(events).items(), key=lambda entry: entry[0][0]):
        bars.setdefault(f"rank {rank}", {})[name] = seconds
    return bars


def quickest(runs: Sequence[Traced]) -> Traced:
    """Of several runs of the same program, the one whose events span the least time: it was disturbed the least."""
    return min(runs, key=lambda run: max(event.end for event in run.events) - min(event.start for event in run.events))


def exchange_text(seconds: Mapping[str, Sequence[float]]) -> str:
    """How long the exchange of a step takes in two ways, and whether the second is faster.

    Args:
        seconds: way → the seconds of every step.
    """
    if is_busy(seconds.values()):
        return BUSY
    long, short = (statistics.median(each) for each in seconds.values())
    durations = "; ".join(
        f"{name}: {seconds_text(statistics.median(each))} (from {seconds_text(min(each))} to {seconds_text(max(each))})"
        for name, each in seconds.items()
    )
    if larger(long, short):
        return f"Communication in a step: {durations}. The first takes {number_text(long / short)} times as long"
    return f"Communication in a step: {durations}. No clear difference"


def vectors_sent(run: "TrainingRun") -> list[float]:
    """How many times the bytes of all gradients each node sent in a step, as its kernel counts; [] without links."""
    return [nbytes / run.gradient_bytes / run.steps for nbytes in run.sent]


def sent_text(run: "TrainingRun") -> str:
    """What each node sent, and all together."""
    vectors = vectors_sent(run)
    if not vectors:
        return f"{run.way}: there is nothing to count, because the ranks share one memory"
    amounts = ", ".join(f"{value:.2f}" for value in vectors)
    return f"{run.way}: ranks 0 to {len(vectors) - 1} send {amounts} gradients in a step, {sum(vectors):.1f} in total"


def best_rates_text(name: str, rates: Sequence[float], losses: np.ndarray) -> str:
    """Which learning rate gives the lowest loss for each of two batches, and how many times larger the second is.

    Args:
        name: of the optimizer.
        rates: that were tried, rising.
        losses: trainings × two sizes of batch (32 and 128 images) × rates.
    """
    small, large = (rates[index] for index in np.median(losses, axis=0).argmin(axis=1))
    if large == small:
        comparison = "the same for 128"
    else:
        comparison = f"{large:g} for 128, {number_text(large / small)} times as large"
    return f"{name}'s best rate is {small:g} for 32 images and {comparison}"


def waiting_text(communication: Sequence[float], late: int) -> str:
    """Who waits for whom, from each rank's seconds in the exchange.

    Args:
        late: the rank that is slowed down.
    """
    others = [seconds for rank, seconds in enumerate(communication) if rank != late]
    if not larger(min(others), communication[late]):
        return f"Rank {late} is late, but all ranks wait"
    times = statistics.fmean(others) / communication[late]
    return f"Rank {late} is late: the others' communication takes {number_text(times)} times as long as its own"


def fastest_text(sizes: Sequence[int], seconds: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Which program is the fastest at each size, if it is faster than every other by the rule for ties.

    Args:
        sizes: bytes.
        seconds: program → at each size, the seconds of the rounds.
    """
    if is_busy(runs for by_size in seconds.values() for runs in by_size):
        return BUSY
    findings = []
    for index, size in enumerate(sizes):
        runs = {name: by_size[index] for name, by_size in seconds.items()}
        best = min(runs, key=lambda name: statistics.median(runs[name]))
        level = [name for name in runs if name != best and not Compared(runs[best], runs[name]).first_is_faster]
        first = f"{best} is the fastest" if not level else f"no clear difference between {join([best, *level])}"
        findings.append(f"{bytes_text(size)}: {first}")
    return "; ".join(findings)


def critical_text(sizes: Sequence[int], steps: Sequence[int], noise_scale: float) -> str:
    """The noise scale, and what a larger batch saves at both ends of the sizes.

    Args:
        sizes: of the batch, rising.
        steps: the fewest to a loss with each.
        noise_scale: in images.
    """
    first, last = (number_text(steps[index] / steps[index + 1]) for index in (0, len(steps) - 2))
    return (
        f"Noise scale: {noise_scale:.0f} images. From {sizes[0]} to {sizes[1]} images: {first} times fewer steps; "
        f"from {sizes[-2]} to {sizes[-1]}: {last} times"
    )
