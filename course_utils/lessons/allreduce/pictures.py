"""Algorithms against each other: measured points, calculated lines, trees, busy links, and which numbers are wrong."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from course_utils.draw import style
from course_utils.draw.lines import (
    in_words,
    label,
    measured_points,
    name_ends,
    room_for_names,
    round_numbers,
)
from course_utils.errors import CourseError
from course_utils.lessons.allreduce.sentences import circles_text, fastest_text, idle_text, inner_text
from course_utils.measuring import Compared, is_busy, unless_busy
from course_utils.trace.events import Event, pair_messages
from course_utils.words import as_sentences, bytes_text, count, join, percent, seconds_text, time_unit

_FINE = 400  # sizes at which a predicted line is drawn
_ASIDE = 1.09  # how far points of one size are drawn apart, as a factor
_FIXED = ("tree", "recursive doubling", "ring", "halving-doubling", "two levels", "asynchronous ring", "double tree")


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
) -> Figure:
    """Draw time over the size of the vector, an axes for each number of ranks: points measured, lines calculated.

    Bars on the points reach from the fastest run to the slowest. A circle marks the size from which the calculated
    lines make another algorithm the fastest.

    Args:
        sizes: bytes of the vector, rising.
        measured: for each axes ("4 ranks") and algorithm, the seconds of all runs at each size.
        predicted: for each axes and algorithm, the seconds for a size.
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
    ends = {
        panel: tuple(fastest_of({name: runs[end] for name, runs in by_name.items()}) for end in (0, -1))
        for panel, by_name in measured.items()
    }
    busy = is_busy(runs for by_name in measured.values() for by_size in by_name.values() for runs in by_size)
    title = unless_busy(busy, fastest_text(ends, sizes[0], sizes[-1]))
    subtitle = circles_text({panel: [at.size for at in own] for panel, own in rings.items()})
    marks = {name: Line2D([], [], color=colours[name], marker="o", markersize=4) for name in names}
    marks["dot: measured, line: calculated"] = Line2D([], [], color=style.INK, marker="o", markersize=4)
    ring = {"linestyle": "", "marker": "o", "color": style.INK, "markersize": 9, "markerfacecolor": "none"}
    if any(rings.values()):
        marks["the lowest line changes"] = Line2D([], [], **ring)
    above = style.legend_height(list(marks), 0.66, 0.04) + 0.3
    layout = {"left": 0.66, "right": 0.04, "below": 0.55, "above": above, "side_by_side": True}
    picture, axes = style.new_picture(title, subtitle, heights=[2.5] * len(measured), **layout)
    low, high = math.inf, 0.0
    for ax, (panel, by_name) in zip(axes, measured.items(), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_title(panel, fontsize=style.TEXT, fontweight="bold", pad=4)
        for position, (name, runs) in enumerate(by_name.items()):
            ax.plot(fine, lines[panel][name], color=colours[name], linewidth=1.6, zorder=2)
            aside = _ASIDE ** (position - (len(by_name) - 1) / 2)  # so that no point hides another
            measured_points(ax, n * aside, runs, colours[name])
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
    shown = f"Time of an all-reduce over the size of the vector, on {join(list(measured))}"
    picture.alt_text = as_sentences(title, subtitle, shown)
    return picture


def fastest_of(runs: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The algorithm that is faster than every other, and those that tie with it."""
    best = min(runs, key=lambda name: float(np.median(runs[name])))
    return tuple(name for name in runs if name == best or not Compared(runs[best], runs[name]).first_is_faster)


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
        title: the finding of these values.
        y: what the values are.
        unit: turns a value into words for the axis.
        by_formula: algorithm → how many of its last values were calculated with a formula; the line to them is dotted.
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
    vectors: Sequence[np.ndarray], expected: np.ndarray, bounds: Sequence[int], name: str = "The all-reduce"
) -> Figure:
    """Draw each rank's vector as a strip: which numbers are what they should be, and where the blocks begin.

    Args:
        vectors: one for each rank.
        expected: what each should be; equal within 1e-5 counts as right.
        bounds: where blocks begin and end, as `block_bounds` gives them.
        name: of the function that made the vectors.
    """
    wrong = np.array([~np.isclose(vector, expected, rtol=1e-5, atol=1e-6) for vector in vectors])
    share = wrong.mean()
    found = f"{name} gets {percent(share) if share else 'none'} of the numbers wrong"
    picture, (ax,) = style.new_picture(found, heights=[0.36 * len(vectors)], left=0.7, right=0.2, above=0.3)
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
    ax.set_xlabel("position in the vector (wrong numbers are orange)", fontsize=style.TEXT)
    counts = "; ".join(
        f"rank {rank}: {int(row.sum())} of {len(expected)}, in {count(len(_runs(row)), 'stretch')}"
        for rank, row in enumerate(wrong)
    )
    picture.alt_text = f"{found}. The vectors of {len(vectors)} ranks are drawn as strips. Wrong numbers, {counts}."
    return picture


@dataclass(frozen=True)
class LinkUse:
    """One message on the link that leads out of a rank: when its first byte went out, and its last; in seconds."""

    rank: int
    begin: float
    end: float


def link_uses(events: Sequence[Event], beta: float) -> list[LinkUse]:
    """When each message occupied its sender's link, which carries one message after the other.

    Args:
        events: of a run; only messages that arrived count.
        beta: seconds per byte of a link.
    """
    free: dict[int, float] = {}
    uses = []
    for sent, _ in pair_messages(events):
        begin = max(sent.start, free.get(sent.rank, 0.0))
        free[sent.rank] = begin + beta * sent.bytes
        uses.append(LinkUse(sent.rank, begin, free[sent.rank]))
    return uses


def idle_share(uses: Sequence[LinkUse]) -> float:
    """The share of the time, from the first byte on any link to the last, in which the links carry nothing."""
    span = max(use.end for use in uses) - min(use.begin for use in uses)
    busy = sum(use.end - use.begin for use in uses) / span / len({use.rank for use in uses})
    return max(0.0, 1 - busy)  # rounding makes it -1e-16


def busy_links(runs: Mapping[str, Sequence[LinkUse]]) -> Figure:
    """Draw, for several runs, when the link that leads out of each rank carries a message: a box for each message.

    Args:
        runs: for each name, the uses of the links; time starts with the first.
    """
    idle = {name: idle_share(uses) for name, uses in runs.items()}
    title = idle_text(idle)
    rows = {name: sorted({use.rank for use in uses}) for name, uses in runs.items()}
    layout = {"left": 0.7, "right": 0.25, "below": 0.5, "above": 0.3, "between": 0.5}
    picture, axes = style.new_picture(title, heights=[0.3 * len(each) for each in rows.values()], **layout)
    starts = {name: min(use.begin for use in uses) for name, uses in runs.items()}
    longest = max(use.end - starts[name] for name, uses in runs.items() for use in uses)
    factor, unit = time_unit(longest)
    for ax, (name, uses) in zip(axes, runs.items(), strict=True):
        row = {rank: index for index, rank in enumerate(rows[name])}
        begin = starts[name]
        ends = factor * (max(use.end for use in uses) - begin)
        style.boxes(
            ax, [(0, ends, at - 0.32, at + 0.32) for at in row.values()], facecolors="#EEEEEE", edgecolors="none"
        )
        corners = [
            (factor * (use.begin - begin), factor * (use.end - begin), row[use.rank] - 0.32, row[use.rank] + 0.32)
            for use in uses
        ]
        style.boxes(ax, corners, facecolors=style.COLOURS["communication"], edgecolors=style.SEND, linewidths=0.9)
        ax.set_xlim(0, 1.02 * factor * longest)
        ax.set_ylim(len(row) - 0.5, -0.5)
        ax.set_yticks(list(row.values()), [f"rank {rank}" for rank in row])
        ax.tick_params(axis="y", length=0)
        lasts = seconds_text(max(use.end for use in uses) - begin)
        heading = f"{name}: the last byte leaves after {lasts}"
        ax.set_title(heading, fontsize=style.TEXT, fontweight="bold", loc="left", pad=5)
    axes[-1].set_xlabel(f"time in {unit}; each box is a message on the rank's outgoing link", fontsize=style.TEXT)
    lasting = [
        f"{name}: {count(len(uses), 'message')}, idle for {percent(idle[name])} of the time"
        for name, uses in runs.items()
    ]
    picture.alt_text = as_sentences(title, *lasting)
    return picture


def trees_side_by_side(trees: Sequence[Sequence[int | None]]) -> Figure:
    """Draw trees of the same ranks next to each other; ranks that have children are blue, leaves are white.

    Args:
        trees: for each tree, the parent of every rank, None for the root.
    """
    inner = [{parent for parent in parents if parent is not None} for parents in trees]
    busy = set.intersection(*inner)
    title = inner_text(sorted(busy), len(trees))
    depth = max(_depth(parents, rank) for parents in trees for rank in range(len(parents)))
    layout = {"left": 0.25, "right": 0.25, "below": 0.1, "above": 0.25, "side_by_side": True}
    picture, axes = style.new_picture(title, heights=[0.62 * (depth + 1)] * len(trees), **layout)
    for number, (ax, parents) in enumerate(zip(axes, trees, strict=True), 1):
        spots = {rank: (x, _depth(parents, rank)) for rank, x in _columns(parents).items()}
        for rank, parent in enumerate(parents):
            if parent is not None:
                (x0, y0), (x1, y1) = spots[rank], spots[parent]
                ax.plot([x0, x1], [y0, y1], color=style.FAINT, linewidth=1.2, zorder=1)
        for rank, (x, y) in spots.items():
            sums = rank in inner[number - 1]
            face, ink = (style.CURVES[0], "white") if sums else ("white", style.INK)
            ax.plot(x, y, "o", markersize=19, color=style.CURVES[0], markerfacecolor=face, zorder=2)
            ax.text(x, y, str(rank), ha="center", va="center_baseline", fontsize=style.TEXT, color=ink, zorder=3)
        ax.set_xlim(-0.7, max(x for x, _ in spots.values()) + 0.7)
        ax.set_ylim(depth + 0.4, -0.4)
        ax.set_axis_off()
        ax.set_title(f"tree {number}", fontsize=style.TEXT, fontweight="bold", pad=6)
    described = [
        f"Tree {number}: "
        + ", ".join(f"{rank} under {parent}" for rank, parent in enumerate(parents) if parent is not None)
        for number, parents in enumerate(trees, 1)
    ]
    picture.alt_text = as_sentences(title, *described)
    return picture


def _depth(parents: Sequence[int | None], rank: int) -> int:
    """How many steps lead from a rank up to the root."""
    parent = parents[rank]
    return 0 if parent is None else 1 + _depth(parents, parent)


def _columns(parents: Sequence[int | None]) -> dict[int, float]:
    """For each rank, how far right it is drawn: leaves side by side, and a parent over the middle of its children."""
    columns: dict[int, float] = {}
    leaves = 0

    def settle(rank: int) -> float:
        nonlocal leaves
        children = [child for child, parent in enumerate(parents) if parent == rank]
        own = [settle(child) for child in children]
        columns[rank] = sum(own) / len(own) if own else float(leaves)
        leaves += not own
        return columns[rank]

    settle(parents.index(None))
    return columns


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """(begin, length) of each stretch of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(begin), int(end - begin)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
