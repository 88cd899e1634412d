"""Sentences and titles about the runs of lesson 16, chosen by the numbers."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from course_utils.measuring import larger, tied
from course_utils.trace.events import Event, phase_seconds
from course_utils.words import bytes_text, capital, count, join, number_text, percent, seconds_text

SAME = 1e-10
"""In double precision, numbers that are nearer than this are equal but for the order of additions."""
NEAR = 0.02
"""Losses that differ by a smaller share are a tie: a training run of a few seconds shows nothing smaller."""


def busy_seconds(events: Iterable[Event], ranks: int, name: str = "experts") -> list[float]:
    """Seconds that each rank spent in the phase of this name."""
    seconds = phase_seconds(events)
    return [seconds.get((rank, name), 0.0) for rank in range(ranks)]


def computing_gap(busy: Sequence[float]) -> float:
    """By which share of the busiest rank's computing time the mean of the others is shorter.

    It is no waiting time. The others wait in dispatch as well as in combine, and how long depends on when each starts.
    """
    longest = max(busy)
    others = sorted(busy)[:-1]
    return 1 - float(np.mean(others)) / longest if longest and others else 0.0


def skew_text(rows: Sequence[int], busy: Sequence[float]) -> str:
    """Which rank has the most tokens, and by how much the others' computing time is shorter than its own."""
    crowded = int(np.argmax(rows))
    share = f"Rank {crowded} has {percent(max(rows) / max(sum(rows), 1))} of all tokens"
    if int(np.argmax(busy)) != crowded or computing_gap(busy) < 0.1:
        return f"{share}, but in this run it doesn't compute for much longer than the others"
    return f"{share}, and the others spend {percent(computing_gap(busy))} less time computing"


def sent_text(counted: Sequence[float], formula: float | None = None) -> str:
    """What ranks sent in one direction and, if it is given, what the formula for evenly spread tokens predicts."""
    least, most = min(counted), max(counted)
    if formula is None:
        ends = bytes_text(least), bytes_text(most)
        return f"a rank sends {ends[0] if ends[0] == ends[1] else ' to '.join(ends)} in each direction"
    ends = f"{least:,.0f}", f"{most:,.0f}"
    sent = f"a rank sends {ends[0] if ends[0] == ends[1] else ' to '.join(ends)} bytes in each direction"
    return f"{sent}, {np.mean(counted):,.0f} on average; with evenly spread tokens it would be {formula:,.0f}"


def capacity_text(factors: Sequence[float], dropped: Sequence[float], most: Sequence[float]) -> str:
    """What the smallest and the largest capacity do.

    Args:
        dropped: percent of tokens, for each factor.
        most: tokens of the busiest rank, in percent of its fair share.
    """
    ends = [
        f"factor {factors[i]:g} drops {percent(dropped[i] / 100)} of the tokens, and the busiest rank has "
        f"{percent(most[i] / 100)} of its fair share"
        for i in (0, -1)
    ]
    return capital("; ".join(ends))


def balance_text(crowding: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """How crowded the busiest expert is at the end, for each method of balancing, and which of them differ.

    Args:
        crowding: for each method, groups of steps: tokens of the busiest expert, in multiples of its fair share. The
            first method does nothing.
    """
    ends = {name: float(np.median(groups[-1])) for name, groups in crowding.items()}
    (nothing, without), *others = ends.items()
    texts = [f"{number_text(end)} times with a {name}" for name, end in others]
    found = f"By the end, the busiest expert has {number_text(without)} times its fair share with {nothing}"
    if all(larger(without, end) for _, end in others):
        return f"{found}, but only {join(texts)}"
    return f"{found}, {join(texts)}"


def load_text(loads: Mapping[str, Sequence[int]], ranks: int) -> tuple[str, str]:
    """How crowded the busiest rank is in each model, and how crowded the busiest expert, in multiples of a fair share.

    Args:
        loads: for each model, the rows of each expert, which the ranks hold in this order, as many each.
    """
    of_ranks = {name: np.reshape(load, (ranks, -1)).sum(axis=1) for name, load in loads.items()}
    return _crowded_text("rank", of_ranks), _crowded_text("expert", loads)


def _crowded_text(what: str, loads: Mapping[str, Sequence[int]]) -> str:
    multiples = {name: max(rows) * len(rows) / max(sum(rows), 1) for name, rows in loads.items()}
    (first, crowded), *others = multiples.items()
    texts = [f"{crowded:.2f} fair shares with {first}", *[f"{other:.2f} with {name}" for name, other in others]]
    return f"The busiest {what} has {join(texts)}"


def better_text(losses: Mapping[str, float]) -> str:
    """How the first model compares with the best of the others, on text that was not used for training.

    Losses that differ by less than `NEAR` are called a tie.
    """
    (first, own), *others = losses.items()
    best, lowest = min(others, key=lambda other: other[1])
    share = 1 - lowest / own
    if abs(share) <= NEAR:
        return f"On new text, “{first}” and “{best}” end within {percent(NEAR)} of each other, which is a tie here"
    word = "lower" if share > 0 else "higher"
    return f"On new text, the loss of “{best}” ends {percent(abs(share), 1)} {word} than that of “{first}”"


def gradients_text(far: Mapping[str, float], losses: Mapping[str, Sequence[float]]) -> str:
    """How close the loss curves are, and which versions of summing gradients match the training run of one process.

    Args:
        far: for each version, the largest difference from one process, in losses and weights.
        losses: of each step, for each version and for one process.
    """
    spread = max((max(step) - min(step)) / min(step) for step in zip(*losses.values(), strict=True))
    curves = f"The loss curves differ by at most {percent(spread, 1)}"
    same = [name for name, gap in far.items() if gap <= SAME]
    if not same:
        return f"{curves}; no version matches one process"
    if len(same) == len(far):
        return f"{curves}; every version matches one process"
    return f"{curves}, but only “{join(same)}” matches one process"


def levels_text(counted: Mapping[str, tuple[int, int]]) -> str:
    """Messages and bytes that a rank sends to the other node, for each method."""
    return "; ".join(
        f"{name}: {count(messages, 'message')} of {bytes_text(nbytes / max(messages, 1))} to the other node"
        for name, (messages, nbytes) in counted.items()
    )


def faster_text(runs: Mapping[str, Sequence[Event]]) -> str:
    """Say which of two runs took less time, from the first event to the last; it is one run of each, so no verdict."""
    seconds = {
        name: max(event.end for event in events) - min(event.start for event in events) for name, events in runs.items()
    }
    first, second = sorted(seconds, key=lambda name: seconds[name])
    times = f"{seconds_text(seconds[first])} and {seconds_text(seconds[second])}"
    if tied(seconds[first], seconds[second]):
        return f"In this run, both take about as long: {times}"
    return f"In this run, “{first}” is faster than “{second}”: {times}"
