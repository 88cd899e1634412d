"""Algorithms against each other: measured points, predicted lines, and where one overtakes another."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course_utils.draw import style
from course_utils.draw.lines import (
    PREDICTED,
    in_words,
    label,
    measured_points,
    name_ends,
    room_for_names,
    round_numbers,
)
from course_utils.errors import CourseError
from course_utils.measuring import Compared
from course_utils.words import bytes_text, join, percent, seconds_text

_FINE = 400  # sizes at which a predicted line is drawn
_FIXED = ("tree", "recursive doubling", "ring", "halving-doubling", "hierarchical", "asynchronous ring", "double tree")


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each algorithm, the same in all pictures; other names get those that are left."""
    colours = dict(zip(_FIXED, style.CURVES, strict=False))
    left = [colour for name, colour in colours.items() if name not in names]
    rest = iter([*style.CURVES[len(_FIXED) :], *left, *style.OTHERS])
    return {name: colours.get(name) or next(rest) for name in names}


@dataclass(frozen=True)
class Crossing:
    """Where one algorithm overtakes another: `before` is faster below the size, `after` above it."""

    before: str
    after: str
    size: float


def crossing_sizes(sizes: Sequence[float], seconds: Mapping[str, Sequence[float]]) -> list[Crossing]:
    """Where the fastest algorithm changes, with straight lines between the points on logarithmic axes."""
    fine = np.geomspace(sizes[0], sizes[-1], _FINE)
    names = list(seconds)
    curves = np.array([np.interp(np.log(fine), np.log(sizes), np.log(seconds[name])) for name in names])
    best = curves.argmin(axis=0)
    return [Crossing(names[best[i - 1]], names[best[i]], fine[i]) for i in range(1, _FINE) if best[i] != best[i - 1]]


def crossings(
    sizes: Sequence[float],
    measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
    predicted: Mapping[str, Mapping[str, Callable[[float], float]]],
    title: str | None = None,
) -> Figure:
    """Draw time over message size, an axes for each number of ranks: points measured, lines predicted.

    Bars on the points reach from the fastest run to the slowest. A ring marks where the predicted lines say that
    another algorithm becomes the fastest.

    Args:
        sizes: bytes of the vector, rising.
        measured: for each axes ("4 ranks") and algorithm, the seconds of all runs at each size.
        predicted: for each axes and algorithm, the seconds for a size.
        title: said first; the finding (the crossings, predicted and measured) then stands under it.
    """
    n = np.asarray(sizes, float)
    if len(n) < 2 or any(len(runs) != len(n) for by_name in measured.values() for runs in by_name.values()):
        raise CourseError("crossings: two sizes at least, and the runs at each of them for every algorithm.")
    names = list(dict.fromkeys(name for by_name in measured.values() for name in by_name))
    colours = colours_of(names)
    fine = np.geomspace(n[0] / 1.3, n[-1] * 1.3, _FINE)
    lines = {
        panel: {name: np.array([predicted[panel][name](size) for size in fine]) for name in by_name}
        for panel, by_name in measured.items()
    }
    rings = {
        panel: [at for at in crossing_sizes(fine, own) if n[0] <= at.size <= n[-1]] for panel, own in lines.items()
    }
    found = crossings_finding(rings, measured, n)
    heading = (title, found) if title else (found, "")
    marks = {name: Line2D([], [], color=colours[name], marker="o", markersize=4) for name in names}
    marks[PREDICTED] = Line2D([], [], color=style.INK, marker="o", markersize=4)
    ring = {"linestyle": "", "marker": "o", "color": style.INK, "markersize": 9, "markerfacecolor": "none"}
    if any(rings.values()):
        marks["another is fastest from here on (predicted)"] = Line2D([], [], **ring)
    above = style.legend_height(list(marks), 0.66, 0.04) + 0.3
    layout = {"left": 0.66, "right": 0.04, "below": 0.55, "above": above, "side_by_side": True}
    picture, axes = style.new_picture(*heading, heights=[2.5] * len(measured), **layout)
    low, high = math.inf, 0.0
    for ax, (panel, by_name) in zip(axes, measured.items(), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(panel, fontsize=style.TEXT, fontweight="bold", pad=4)
        for name, runs in by_name.items():
            ax.plot(fine, lines[panel][name], color=colours[name], linewidth=1.6, zorder=2)
            measured_points(ax, n, runs, colours[name])
            shown = [*lines[panel][name], *(time for times in runs for time in times)]
            low, high = min(low, *shown), max(high, *shown)
        for at in rings[panel]:
            when = np.interp(np.log(at.size), np.log(fine), np.log(lines[panel][at.after]))
            ax.plot(at.size, np.exp(when), "o", color=style.INK, markersize=11, markerfacecolor="none", zorder=4)
    for ax in axes:
        ax.set_ylim(low / 1.5, high * 1.5)
        ax.set_xlim(fine[0], fine[-1])
        in_words(ax.xaxis, [10.0**p for p in range(1, 12) if fine[0] <= 10.0**p <= fine[-1]], bytes_text)
        in_words(ax.yaxis, round_numbers(*ax.get_ylim()), seconds_text if ax is axes[0] else lambda _: "")
        label(ax, "size of the vector", "")
    style.draw_legend(axes[0], marks, offset=0.3)
    picture.alt_text = f"Time of an all-reduce over the size of the vector, {join(list(measured))}. {found}."
    return picture


def crossings_finding(
    predicted: Mapping[str, Sequence[Crossing]],
    measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
    sizes: Sequence[float],
) -> str:
    """Where another algorithm becomes the fastest: predicted, and measured."""
    findings = []
    for panel, by_name in measured.items():
        says, was = _crossings_text(predicted[panel]), _crossings_text(measured_crossings(sizes, by_name))
        if says == was == "":
            last = {name: runs[-1] for name, runs in by_name.items()}
            first = fastest_of(last)
            findings.append(f"{panel}: {first} is fastest throughout" if first else f"{panel}: no clear difference")
        else:
            findings.append(f"{panel}: {says or 'no change'} (predicted), {was or 'no change'} (measured)")
    return "; ".join(findings)


def fastest_of(runs: Mapping[str, Sequence[float]]) -> str | None:
    """The algorithm that is faster than every other, by the rule for ties; None where there is none."""
    best = min(runs, key=lambda name: float(np.median(runs[name])))
    others = [Compared(runs[best], other) for name, other in runs.items() if name != best]
    return best if all(pair.first_is_faster for pair in others) else None


def measured_crossings(sizes: Sequence[float], runs: Mapping[str, Sequence[Sequence[float]]]) -> list[Crossing]:
    """Where the fastest algorithm changed: between the last size at which one was, and the first at which another was.

    Sizes at which none is clearly the fastest do not count.
    """
    found, before = [], None
    for index, size in enumerate(sizes):
        name = fastest_of({name: by_size[index] for name, by_size in runs.items()})
        if name and before and name != before[0]:
            found.append(Crossing(before[0], name, float(np.sqrt(before[1] * size))))
        before = (name, size) if name else before
    return found


def _crossings_text(changes: Sequence[Crossing]) -> str:
    return join([f"{at.after} fastest from {bytes_text(at.size)}" for at in changes])


def over_ranks(
    world_sizes: Sequence[int],
    values: Mapping[str, Sequence[float]],
    title: str,
    *,
    y: str,
    unit: Callable[[float], str] = seconds_text,
    subtitle: str = "",
    by_formula: Mapping[str, int] | None = None,
) -> Figure:
    """Draw one line for each algorithm over the number of ranks, on logarithmic axes, named at its right end.

    Args:
        values: computed, or of virtual runs, for each algorithm at each number of ranks.
        title: what is shown; say "virtual" where it is.
        y: what the values are.
        unit: turns a value into words for the axis.
        by_formula: algorithm → how many of its last values a formula gave; the line to them is dotted.
    """
    by_formula = by_formula or {}
    data = {name: np.asarray(line, float) for name, line in values.items()}
    if len(world_sizes) < 2 or any(len(line) != len(world_sizes) for line in data.values()):
        raise CourseError("over_ranks: two numbers of ranks at least, and as many values for each algorithm.")
    right = room_for_names(list(data))
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.0], left=0.85, right=right, below=0.55)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    colours = colours_of(list(data))
    for name, line in data.items():
        run = len(line) - by_formula.get(name, 0)
        ax.plot(world_sizes[:run], line[:run], color=colours[name], linewidth=1.8)
        if run < len(line):
            begin = max(0, run - 1)
            ax.plot(world_sizes[begin:], line[begin:], color=colours[name], linewidth=1.8, linestyle=":")
    low, high = min(line.min() for line in data.values()), max(line.max() for line in data.values())
    ax.set_ylim(low / 1.4, high * 1.4)
    ax.set_xlim(world_sizes[0] / 1.1, world_sizes[-1] * 1.05)
    in_words(ax.xaxis, world_sizes, "{:,.0f}".format)
    in_words(ax.yaxis, round_numbers(*ax.get_ylim()), unit)
    label(ax, "ranks", y)
    name_ends(ax, {name: line[-1] for name, line in data.items()}, colours)
    ends = "; ".join(
        f"{name}: "
        + " to ".join(unit(float(f"{value:.3g}")) for value in (line[0], line[-1]))
        + (", by formula" if by_formula.get(name) else "")
        for name, line in data.items()
    )
    picture.alt_text = f"{title}. {y} from {world_sizes[0]} to {world_sizes[-1]:,} ranks: {ends}."
    return picture


def right_and_wrong(
    vectors: Sequence[np.ndarray], expected: np.ndarray, bounds: Sequence[int], title: str | None = None
) -> Figure:
    """Draw each rank's vector as a strip: which numbers are what they should be, and where the blocks begin.

    Args:
        vectors: one for each rank.
        expected: what each should be; equal within 1e-5 counts as right.
        bounds: where blocks begin and end, as `block_bounds` gives them.
    """
    wrong = np.array([~np.isclose(vector, expected, rtol=1e-5, atol=1e-6) for vector in vectors])
    share = wrong.mean()
    found = f"{percent(share)} of the numbers are wrong" if share else "Every number is right, on every rank"
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[0.36 * len(vectors)], left=0.7, right=0.2, above=0.3)
    ax.set_xlim(0, len(expected))
    ax.set_ylim(len(vectors) - 0.5, -0.5)
    for rank, row in enumerate(wrong):
        ax.broken_barh([(0, len(expected))], (rank - 0.36, 0.72), facecolors="#CFE3F1")
        ax.broken_barh(_runs(row), (rank - 0.36, 0.72), facecolors=style.STUCK)
    for block, (begin, end) in enumerate(zip(bounds, bounds[1:], strict=False)):
        ax.axvline(end, color=style.INK, linewidth=0.8)
        if end > begin:
            ax.text((begin + end) / 2, -0.6, f"block {block}", ha="center", va="bottom", fontsize=style.SMALL)
    ax.set_yticks(range(len(vectors)), [f"rank {rank}" for rank in range(len(vectors))])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("place in the vector (orange: wrong)", fontsize=style.TEXT)
    counts = "; ".join(
        f"rank {rank}: {int(row.sum())} of {len(expected)}, in {len(_runs(row))} places"
        for rank, row in enumerate(wrong)
    )
    picture.alt_text = f"The vectors of {len(vectors)} ranks as strips. {found}. Wrong numbers, {counts}."
    return picture


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """(begin, length) of each stretch of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(begin), int(end - begin)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
