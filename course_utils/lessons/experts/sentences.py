"""What the runs of lesson 16 say: sentences chosen by the numbers."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from course_utils.trace.events import Event, phase_seconds
from course_utils.words import bytes_text, count, number_text, percent

SAME = 1e-10
"""In double precision, what is nearer is the same, added up in another order."""
_NEAR = 0.02  # losses that differ by a smaller share are called equal: trainings of seconds show no less


def busy_seconds(events: Iterable[Event], ranks: int, name: str = "experts") -> list[float]:
    """Seconds that each rank spent in the phase of this name."""
    seconds = phase_seconds(events)
    return [seconds.get((rank, name), 0.0) for rank in range(ranks)]


def waiting_share(busy: Sequence[float]) -> float:
    """The share of its time for which a rank that is not the busiest waits for it, on average."""
    longest = max(busy)
    others = sorted(busy)[:-1]
    return 1 - float(np.mean(others)) / longest if longest and others else 0.0


def skew_text(rows: Sequence[int], busy: Sequence[float]) -> str:
    """Who has most rows, and what that costs the others."""
    crowded = int(np.argmax(rows))
    rows_text = f"Rank {crowded} has {percent(max(rows) / max(sum(rows), 1))} of all rows"
    if int(np.argmax(busy)) != crowded or waiting_share(busy) < 0.1:
        return f"{rows_text}; on this machine the others hardly wait for it"
    return f"{rows_text}; the others wait for {percent(waiting_share(busy))} of its computing time"


def sent_text(counted: Sequence[float], formula: float) -> str:
    """What ranks sent, beside the formula for experts that are equally busy."""
    mean = float(np.mean(counted))
    least, most, usual, due = map(bytes_text, (min(counted), max(counted), mean, formula))
    bytes_sent = f"a rank sends others {least} to {most}, {usual} on average"
    if abs(mean / formula - 1) <= 0.02 or usual == due:
        return f"{bytes_sent}; the formula says so, too"
    return f"{bytes_sent}; with all experts equally busy it would be {due}"


def capacity_text(factors: Sequence[float], dropped: Sequence[float], most: Sequence[float]) -> str:
    """What the smallest and the largest capacity do.

    Args:
        dropped: percent of choices, for each factor.
        most: rows of the busiest rank, in percent of its fair part.
    """
    ends = [
        f"factor {factors[i]:g} drops {percent(dropped[i] / 100)}, and the busiest rank has "
        f"{number_text(most[i] / 100)} times its fair part"
        for i in (0, -1)
    ]
    return "; ".join(ends).capitalize()


def balance_text(imbalances: Mapping[str, Sequence[float]], last: int = 10) -> str:
    """How crowded the busiest expert is in the last steps, by the way of balancing."""
    ends = {name: float(np.mean(line[-last:])) for name, line in imbalances.items()}
    end_imbalances = ", ".join(f"{name} {end:.2f}" for name, end in ends.items())
    return f"Busiest expert in the last {count(last, 'step')}, times its fair part: {end_imbalances}"


def most_balanced(imbalances: Mapping[str, Sequence[float]], last: int = 10) -> str:
    """The way whose busiest expert is least crowded in the last steps."""
    return min(imbalances, key=lambda name: float(np.mean(imbalances[name][-last:])))


def better_text(dense: float, losses: Mapping[str, float]) -> str:
    """The best model with experts beside the dense one, on text that was not trained on."""
    best = min(losses, key=losses.__getitem__)
    share = 1 - losses[best] / dense
    if abs(share) <= _NEAR:
        return f"With equal work for each token, “{best}” and “dense” end within {percent(_NEAR)} of each other"
    word = "lower" if share > 0 else "higher"
    return f"With equal work for each token, the loss of “{best}” ends {percent(abs(share), 1)} {word} than “dense”"


def gradients_text(far: Mapping[str, float]) -> str:
    """Which ways of summing gradients are the training of one process."""
    same = [name for name, gap in far.items() if gap <= SAME]
    if not same:
        return "None of these is the training of one process"
    others = [gap for name, gap in far.items() if name not in same]
    agreeing = f"The training of one process: {', '.join(same)}"
    return f"{agreeing}; the others end at least {min(others):.0e} away from it" if others else agreeing


def levels_text(counted: Mapping[str, tuple[int, int]]) -> str:
    """Messages and bytes between nodes, in each way."""
    return "; ".join(
        f"{name}: {count(messages, 'message')} of {bytes_text(nbytes / max(messages, 1))} to the other node"
        for name, (messages, nbytes) in counted.items()
    )
