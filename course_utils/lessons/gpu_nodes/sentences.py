"""What the measurements of lesson 13 say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence

from course_utils.measuring import NEAR, Compared, Measured, relative_errors
from course_utils.words import bytes_text, count, percent, seconds_text

SAME = 1e-4
"""Losses nearer than this, relative, differ by rounding only."""


def same_loss(losses: Mapping[str, Sequence[float]]) -> bool:
    """Whether all ways of training have ended with the same loss, but for rounding."""
    ends = [line[-1] for line in losses.values()]
    return max(ends) - min(ends) <= SAME * abs(ends[0])


def ways_text(losses: Mapping[str, Sequence[float]]) -> str:
    """A title: what several ways of starting one training have in common."""
    ends = [line[-1] for line in losses.values()]
    many = f"{count(len(ends), 'way')} to start"
    if same_loss(losses):
        return f"{many}, one curve: the loss ends at {ends[0]:.4f}{' every time' if len(ends) > 1 else ''}"
    return f"{many} end between {min(ends):.4f} and {max(ends):.4f}: something differs"


def bandwidth_text(
    world_sizes: Sequence[int], algorithm: Sequence[Sequence[float]], bus: Sequence[Sequence[float]]
) -> str:
    """A title: what becomes of both bandwidths with more ranks; the bus bandwidth is predicted to stay.

    Args:
        algorithm, bus: for each number of ranks, the bytes/s of all runs.
    """
    first, last = (statistics.median(runs) for runs in (algorithm[0], algorithm[-1]))
    from_bus, to_bus = (statistics.median(runs) for runs in (bus[0], bus[-1]))
    span = f"From {world_sizes[0]} to {world_sizes[-1]} ranks"
    if relative_errors([from_bus], [to_bus])[0] <= NEAR and last < first:
        fall = percent(1 - last / first)
        return f"{span} the algorithm bandwidth falls by {fall}, the bus bandwidth stays near {bytes_text(to_bus)}/s"
    if to_bus < from_bus:
        fall = percent(1 - to_bus / from_bus)
        return f"{span} the bus bandwidth falls too, by {fall}: the machine is busy, or the network suits many less"
    return f"{span} the bus bandwidth rises from {bytes_text(from_bus)}/s to {bytes_text(to_bus)}/s"


def link_text(backend: str, nbytes: int, world_size: int, bus: Sequence[float], link: float | None) -> str:
    """How much of an emulated link's bytes/s the bus bandwidth of all runs uses; None where there is no such link."""
    told = f"{bytes_text(nbytes)} over {backend}"
    if link is None:
        return f"{told}; the lines start from the quickest run, as nobody knows what this network can do"
    return f"{told}; with {world_size} ranks the bus bandwidth is {percent(statistics.median(bus) / link)} of the link"


def gain(seconds: Mapping[str, Sequence[float]], plain: str, way: str) -> float:
    """How many times as fast one way is as the plain one, measured by turns; below 1 it is slower."""
    return Compared(seconds[way], seconds[plain]).times


def widths_text(taken: Mapping[int, Mapping[str, Sequence[float]]], plain: str) -> str:
    """A title: how many times as fast each switch makes a step, by the width of the layers."""
    told, narrow = [], min(taken)
    for way in taken[narrow]:
        if way != plain:
            as_fast = "" if told else f" times as fast as {plain}"
            first = f"{gain(taken[narrow], plain, way):.1f}{as_fast} with {narrow} hidden units"
            others = [f"{gain(seconds, plain, way):.1f} with {width}" for width, seconds in taken.items()]
            told.append(f"{way} is {', '.join([first, *others[1:]])}")
    return "; ".join(told)


def by_width(taken: Mapping[int, Mapping[str, Sequence[float]]]) -> dict[str, dict[str, Measured]]:
    """The seconds of steps by width and way, as `course.draw.measured_bars` takes them."""
    return {
        f"{width} hidden units": {f"{way}, {width}": Measured(tuple(seconds)) for way, seconds in ways.items()}
        for width, ways in taken.items()
    }


def compiling_text(first: float, seconds: Mapping[str, Sequence[float]], plain: str, compiled: str) -> str:
    """After how many steps the time that compiling took is won back: seconds of the first step, and of the others."""
    saved = statistics.median(seconds[plain]) - statistics.median(seconds[compiled])
    if saved <= 0:
        return f"Compiling took {seconds_text(first)} and is never won back: compiled steps are not shorter here."
    steps = round(first / saved)
    return f"Compiling took {seconds_text(first)}, which is won back after {steps:,} steps."
