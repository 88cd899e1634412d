"""Sentences and titles about the runs of lesson 16, chosen by the numbers."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from course_utils.measuring import larger
from course_utils.trace.events import Event, phase_seconds
from course_utils.words import bytes_text, capital, count, join, number_text, percent

SAME = 1e-10
"""In double precision, numbers that are nearer than this are equal but for the order of additions."""
NEAR = 0.02
"""Losses that differ by a smaller share are a tie: a training run of a few seconds shows nothing smaller."""


def busy_seconds(events: Iterable[Event], ranks: int, name: str = "experts") -> list[float]:
    """Seconds that each rank spent in the phase of this name."""
    seconds = phase_seconds(events)
    return [seconds.get((rank, name), 0.0) for rank in range(ranks)]


def waiting_share(busy: Sequence[float]) -> float:
    """The share of the busiest rank's time for which the others wait for it, on average."""
    longest = max(busy)
    others = sorted(busy)[:-1]
    return 1 - float(np.mean(others)) / longest if longest and others else 0.0


def skew_text(rows: Sequence[int], busy: Sequence[float]) -> str:
    """Which rank has the most tokens, and for how long the others wait for it."""
    crowded = int(np.argmax(rows))
    share = f"Rank {crowded} has {percent(max(rows) / max(sum(rows), 1))} of all tokens"
    if int(np.argmax(busy)) != crowded or waiting_share(busy) < 0.1:
        return f"{share}; in this run the others hardly wait for it"
    return f"{share}; the others are idle for {percent(waiting_share(busy))} of the time it computes"


def sent_text(counted: Sequence[float], formula: float | None = None) -> str:
    """What ranks sent in one direction and, if it is given, what the formula for equally busy experts predicts."""
    least, most, mean = min(counted), max(counted), float(np.mean(counted))
    ends = bytes_text(least), bytes_text(most)
    sent = f"a rank sends {ends[0] if ends[0] == ends[1] else ' to '.join(ends)} in each direction"
    if formula is None:
        return sent
    due = bytes_text(formula)
    if abs(mean / formula - 1) <= 0.02 or bytes_text(mean) == due:
        return f"{sent}, {bytes_text(mean)} on average, as the formula predicts"
    return f"{sent}, {bytes_text(mean)} on average; with equally busy experts it would be {due}"


def capacity_text(factors: Sequence[float], dropped: Sequence[float], most: Sequence[float]) -> str:
    """What the smallest and the largest capacity do.

    Args:
        dropped: percent of tokens, for each factor.
        most: tokens of the busiest rank, in percent of its fair share.
    """
    ends = [
        f"factor {factors[i]:g} drops {percent(dropped[i] / 100)} of the tokens, and the busiest rank has "
        f"{number_text(most[i] / 100)} times its fair share"
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
    texts = [f"{number_text(end)} with a {name}" for name, end in others]
    found = f"In the end the busiest expert has {number_text(without)} times its fair share with {nothing}"
    if all(larger(without, end) for _, end in others):
        return f"{found}, and only {join(texts)}"
    return f"{found}, {join(texts)}"


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


def gradients_text(far: Mapping[str, float]) -> str:
    """Which versions of summing gradients give the same training run as one process."""
    same = [name for name, gap in far.items() if gap <= SAME]
    if not same:
        return "No version gives the same weights as one process"
    others = [gap for name, gap in far.items() if name not in same]
    agreeing = f"“{join(same)}” gives the same weights as one process"
    return f"{agreeing}; all others end at least {min(others):.0e} away" if others else agreeing


def levels_text(counted: Mapping[str, tuple[int, int]]) -> str:
    """Messages and bytes that a rank sends to the other node, for each method."""
    return "; ".join(
        f"{name}: {count(messages, 'message')} of {bytes_text(nbytes / max(messages, 1))} to the other node"
        for name, (messages, nbytes) in counted.items()
    )
