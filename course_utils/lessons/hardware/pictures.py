"""Drawings of lesson 3: rooflines with programs under them, and the time that more and more workers take."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from course_utils.draw import style
from course_utils.draw.lines import BROKEN, in_words, label, measured_points, name_ends, room_for_names, round_numbers
from course_utils.lessons.hardware.data_sheets import with_prefix
from course_utils.measuring import Measured
from course_utils.words import bytes_text, count, number_text, seconds_text, time_unit

if TYPE_CHECKING:
    from course_utils.lessons.hardware.data_sheets import Machine
    from course_utils.lessons.hardware.layer_costs import Layer

KINDS = {"conv": "#0072B2", "norm": "#E69F00", "relu": "#009E73", "pool": "#D55E00", "linear": "#CC79A7"}
_PREDICTED = "#D5D5D5"


def layer_roofline(
    layers: "Sequence[Layer]",
    peak: float,
    bandwidth: float,
    title: str,
    subtitle: str = "",
    times: bool = True,
) -> Figure:
    """Draw FLOP/s over FLOP per byte under the roof min(peak, bandwidth · intensity), and below it each layer's time.

    Args:
        layers: in the order in which they run.
        peak, bandwidth: FLOP and bytes per second.
        times: whether to draw the lower half.
    """
    kinds = [kind for kind in KINDS if any(layer.kind == kind for layer in layers)]
    above = style.legend_height(kinds)
    heights, below = ([2.9, 1.7], 0.75) if times else ([2.9], 0.5)
    layout = {"above": above, "between": 0.85, "below": below, "left": 0.95}
    picture, (roof, *under) = style.new_picture(title, subtitle, heights=heights, **layout)
    draw_roof(roof, layers, peak, bandwidth)
    for ax in under:
        draw_times(ax, layers)
    handles = {kind: Line2D([], [], marker="o", linestyle="none", color=KINDS[kind]) for kind in kinds}
    style.draw_legend(roof, handles)
    picture.alt_text = f"Roofline. {title}. {subtitle} {layers_text(layers)}"
    return picture


def roofline(
    points: Mapping[str, tuple[float, Measured]], peak: float, bandwidth: float, title: str, subtitle: str = ""
) -> Figure:
    """Draw FLOP/s over FLOP per byte under the roof, with a dot for each program and its name beside it.

    Args:
        points: for each name the intensity, in FLOP per byte, and the FLOP per second that were measured.
        peak, bandwidth: FLOP and bytes per second.
    """
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.0], below=0.5, left=0.95)
    x = np.array([intensity for intensity, _ in points.values()])
    y = np.array([rate.median for _, rate in points.values()])
    ends = np.array([[rate.low, rate.high] for _, rate in points.values()])
    roof_line(ax, x, peak, bandwidth)
    ax.vlines(x, ends[:, 0], ends[:, 1], color=style.CURVES[0], linewidth=1.1, zorder=4)
    ax.scatter(x, y, s=34, c=style.CURVES[0], zorder=5, edgecolors="white", linewidths=0.5)
    ax.set_ylim(min(ends.min(), bandwidth * x.min()) / 2, max(peak, ends.max()) * 3)
    for name, at, height in zip(points, x, y, strict=True):
        words = {"fontsize": style.SMALL, "color": style.INK, "parse_math": False, "ha": "left", "va": "top"}
        ax.annotate(name, (at, height), xytext=(6, -3), textcoords="offset points", **words)
    dots = ", ".join(f"{name}: {y / 1e9:.3g} GFLOP/s at {x:.3g} FLOP per byte" for name, x, y in zip(points, x, y))
    picture.alt_text = f"Roofline. {title}. {subtitle} {dots}. Roof: {peak / 1e9:.3g} GFLOP/s."
    return picture


def rooflines(machines: "Sequence[Machine]", programs: Mapping[str, float], title: str, subtitle: str = "") -> Figure:
    """Draw the rooflines of several machines together, and where programs lie.

    The numbers of the machines have 2 or 4 bytes, so the axis counts operations per *number* that is moved: where a
    program lies on it does not depend on the machine.

    Args:
        machines: each becomes a line, with its name at the right end.
        programs: operations per number moved, by name.
    """
    names = [machine.name for machine in machines]
    above, right = 0.3, room_for_names(names)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.9], left=1.15, right=right, below=0.55, above=above)
    x = np.geomspace(0.1, 10_000, 200)
    ax.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(names)}
    for machine in machines:
        moved = machine.bandwidth / machine.number_bytes
        ax.plot(x, np.minimum(machine.flops, moved * x), color=colours[machine.name], linewidth=1.8)
        ax.plot(machine.balance, machine.flops, "o", color=colours[machine.name], markersize=4.5)
    for name, at in programs.items():
        ax.axvline(at, color=style.FAINT, linewidth=0.9, linestyle=BROKEN, zorder=1)
        words = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points", "fontsize": style.SMALL}
        ax.annotate(name, (at, 1), xytext=(0, 3), ha="center", va="bottom", color="#555555", **words)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: with_prefix(value, "FLOP/s")))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    label(ax, "operations for each number that is moved", "operations per second")
    name_ends(ax, {machine.name: machine.flops for machine in machines}, colours)
    corners = "; ".join(
        f"{machine.name}: {with_prefix(machine.flops, 'FLOP/s')} from {machine.balance:.0f} operations per number on"
        for machine in machines
    )
    picture.alt_text = f"Rooflines. {title}. {subtitle} {corners}."
    return picture


def chain_and_tree(numbers: int = 8) -> Figure:
    """Draw the additions of eight numbers twice: as a chain, and as a tree."""
    picture, axes = style.new_picture(
        f"Adding {numbers} numbers: {numbers - 1} additions either way",
        heights=[2.6, 2.6],
        left=0.2,
        below=0.1,
        side_by_side=True,
    )
    chain = [(1.1 + 0.75 * step, 6.2 - 0.9 * step) for step in range(7)]
    tree = [(1.4 * column + 1.0, 5.0) for column in range(4)] + [(1.7, 3.2), (4.5, 3.2), (3.1, 1.4)]
    arrows = [(step, step + 1) for step in range(6)], [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
    for ax, tasks, pairs, words in zip(axes, (chain, tree), arrows, ("chain: depth 7", "tree: depth 3"), strict=True):
        draw_tasks(ax, tasks, pairs, words)
    picture.alt_text = "Seven additions in a chain, each after the one before; and as a tree: four, then two, then one."
    return picture


def draw_tasks(ax: Axes, tasks: Sequence[tuple[float, float]], arrows: Sequence[tuple[int, int]], words: str) -> None:
    """Draw a circle for each task, and an arrow from each to the one that needs its result."""
    ax.set(xlim=(0, 6.6), ylim=(0.4, 7))
    ax.axis("off")
    for begin, end in arrows:
        style_of_arrow = {"arrowstyle": "-|>", "color": style.FAINT, "shrinkA": 9, "shrinkB": 9}
        ax.annotate("", tasks[end], tasks[begin], arrowprops=style_of_arrow)
    for x, y in tasks:
        ax.plot(x, y, marker="o", markersize=17, color=style.paler(style.CURVES[0]), markeredgecolor=style.CURVES[0])
        ax.text(x, y, "+", ha="center", va="center", fontsize=style.TITLE)
    ax.text(6.5, 6.4, words, ha="right", fontsize=style.TITLE, fontweight="bold")


def packed_file(samples: Sequence[bytes]) -> Figure:
    """Draw the bytes of a packed file with a few short samples: how many, where each begins, and the samples.

    Source: `packed_samples` describes the format.
    """
    offsets = [8 + 8 * (len(samples) + 1)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    title = f"{offsets[-1]} bytes: how many samples, where each of them begins, and the samples"
    picture, (ax,) = style.new_picture(title, heights=[1.5], left=0.2, below=0.1)
    ax.set(xlim=(0, offsets[-1] + 4), ylim=(0, 4.4))
    ax.axis("off")
    pale = style.paler(style.CURVES[0])
    parts = [(0, 8, str(len(samples)), "#E9E9E9")]
    parts += [(8 + 8 * index, 8, str(offset), pale) for index, offset in enumerate(offsets)]
    parts += [(begin, len(sample), sample.decode(), "#FBE3B5") for begin, sample in zip(offsets, samples, strict=False)]
    for begin, width, words, colour in parts:
        ax.broken_barh([(begin, width)], (1.4, 1.3), facecolors=colour, edgecolor=style.INK, linewidth=0.8)
        size = style.SMALL if begin >= offsets[0] else style.TITLE
        ax.text(begin + width / 2, 2.05, words, ha="center", va="center", fontsize=size)
    heads = (0, 8, "how many"), (8, offsets[0], "where each begins, and where the last ends")
    for begin, end, words in (*heads, (offsets[0], offsets[-1], "samples")):
        ax.text((begin + end) / 2, 0.6, words, ha="center", va="center", fontsize=style.SMALL, color="#555555")
    for index, offset in enumerate(offsets):
        bend = {"arrowstyle": "-|>", "color": style.CURVES[0], "connectionstyle": "arc3,rad=-0.25", "linewidth": 0.9}
        ax.annotate("", (offset, 2.75), (12 + 8 * index, 2.75), arrowprops=bend)
    picture.alt_text = (
        f"A packed file: the number {len(samples)}; the offsets {', '.join(map(str, offsets))}, with arrows to where "
        f"each sample begins and the last ends; then {', '.join(sample.decode() for sample in samples)}."
    )
    return picture


def layer_times(layers: "Sequence[Layer]", title: str, subtitle: str = "") -> Figure:
    """Draw the predicted and the measured time of each layer, the lower half of `layer_roofline`."""
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.4], above=0.25, below=0.75, left=0.95)
    draw_times(ax, layers)
    picture.alt_text = f"Time of each layer. {title}. {subtitle} {layers_text(layers)}"
    return picture


def layers_text(layers: "Sequence[Layer]") -> str:
    """Describe the layers, kind by kind: where they are on the roofline, and how far from it."""
    by_kind: dict[str, list[Layer]] = {}
    for layer in layers:
        by_kind.setdefault(layer.kind, []).append(layer)
    return " ".join(kind_text(kind, own) for kind, own in by_kind.items())


def kind_text(kind: str, layers: "Sequence[Layer]") -> str:
    """Describe the layers of one kind."""
    intensities = [layer.intensity for layer in layers]
    factors = [layer.measured.median / layer.predicted for layer in layers]
    predicted = sum(layer.predicted for layer in layers)
    measured = sum(layer.measured.median for layer in layers)
    return (
        f"{count(len(layers), f'{kind} layer')}, {range_text(intensities)} FLOP per byte: predicted "
        f"{seconds_text(predicted)} together, measured {seconds_text(measured)} ({range_text(factors)} times the "
        "prediction)."
    )


def range_text(values: Sequence[float]) -> str:
    """Return the smallest and the largest value, "7.9 to 133", or one number if they are equal."""
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def draw_roof(ax: Axes, layers: "Sequence[Layer]", peak: float, bandwidth: float) -> None:
    """Draw the roof, each layer's measured rate, and a line from it to the roof."""
    x = np.array([layer.flops / layer.nbytes for layer in layers])
    y = np.array([layer.flops / layer.measured.median for layer in layers])
    allowed = np.minimum(peak, bandwidth * x)
    _, right = roof_line(ax, x, peak, bandwidth)
    words = {"fontsize": style.SMALL, "color": style.INK, "parse_math": False}
    ax.vlines(x, y, allowed, color="#B8B8B8", linewidth=1, zorder=2)
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.scatter(x, y, s=26, c=colours, zorder=4, edgecolors="white", linewidths=0.5)
    ax.set_ylim(min(y.min(), allowed.min()) / 2, max(peak, y.max()) * 3)
    longest = {
        layer.kind: index for index, layer in sorted(enumerate(layers), key=lambda pair: pair[1].measured.median)
    }
    for index in longest.values():
        at, height = {"xytext": (7, 0), "ha": "left", "va": "center"}, y[index]
        if x[index] > 0.2 * right:  # near the edge there is no room beside the dot: over or under it and its neighbours
            high, near = y[index] >= allowed[index], y[abs(np.log(x / x[index])) < 0.5]
            height = near.max() if high else near.min()
            at = {"xytext": (0, 6 if high else -6), "ha": "center", "va": "bottom" if high else "top"}
        ax.annotate(layers[index].name, (x[index], height), textcoords="offset points", **at, **words)


def roof_line(ax: Axes, x: np.ndarray, peak: float, bandwidth: float) -> tuple[float, float]:
    """Draw the roof min(peak, bandwidth · x) and its axes, wide enough for these intensities; return where they end."""
    ridge = peak / bandwidth
    left, right = min(x.min(), ridge) / 2, max(x.max(), ridge) * 2.5
    edge = np.array([left, ridge, right])
    ax.set(xscale="log", yscale="log", xlim=(left, right))
    ax.plot(edge, np.minimum(peak, bandwidth * edge), color=style.INK, linewidth=2, zorder=3)
    ax.axvline(ridge, color=style.FAINT, linewidth=0.8, linestyle=BROKEN, zorder=1)
    words = {"fontsize": style.SMALL, "color": style.INK, "parse_math": False, "textcoords": "offset points"}
    above = {"xytext": (-6, 3), "ha": "right", "va": "bottom"}  # where no dot or line of a layer is
    ax.annotate(f"{number_text(peak / 1e9)} GFLOP/s", (right, peak), **above, **words)
    slope = left * (ridge / left) ** 0.8
    ax.annotate(f"{bytes_text(bandwidth)}/s", (slope, bandwidth * slope), **above, **words)
    beside = {"xycoords": ax.get_xaxis_transform(), "xytext": (4, 3), "va": "bottom"}
    ax.annotate(f"ridge: {number_text(ridge)} FLOP per byte", (ridge, 0), **beside, **words)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e9:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("arithmetic intensity, in FLOP per byte", fontsize=style.TEXT)
    ax.set_ylabel("GFLOP per second", fontsize=style.TEXT)
    ax.grid(color="#EEEEEE", linewidth=0.7)
    return left, right


def draw_times(ax: Axes, layers: "Sequence[Layer]") -> None:
    """Draw for each layer a wide grey bar, the roofline's prediction, and a narrow one in it, the measurement."""
    positions = np.arange(len(layers))
    measured = np.array([layer.measured.median for layer in layers])
    predicted = np.array([layer.predicted for layer in layers])
    scale, unit = time_unit(max(measured.max(), predicted.max()))
    around = [[layer.measured.median - layer.measured.low for layer in layers]]
    around.append([layer.measured.high - layer.measured.median for layer in layers])
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.bar(positions, scale * predicted, width=0.86, color=_PREDICTED, zorder=2)
    whiskers = {"elinewidth": 0.8, "ecolor": style.INK, "capsize": 1.2}
    ax.bar(
        positions,
        scale * measured,
        width=0.44,
        color=colours,
        zorder=3,
        yerr=scale * np.array(around),
        error_kw=whiskers,
    )
    ax.set_xticks(positions, [layer.name for layer in layers], rotation=90, fontsize=style.SMALL - 0.5)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.7, len(layers) - 0.3)
    longest = max(measured.max(), predicted.max())
    ax.set_ylim(0, scale * min(1.05 * max(longest, max(layer.measured.high for layer in layers)), 1.6 * longest))
    ax.set_ylabel(f"time, in {unit}", fontsize=style.TEXT)
    ax.grid(axis="y", color="#EEEEEE", linewidth=0.7)
    handles = [Patch(facecolor=_PREDICTED), Patch(facecolor=KINDS["conv"])]
    words = ["least time by the roofline", "measured (narrow; whisker: all runs)"]
    where = {"loc": "lower right", "bbox_to_anchor": (1, 1.0), "ncols": 2, "frameon": False, "borderaxespad": 0}
    ax.legend(handles, words, fontsize=style.SMALL, handlelength=1.2, columnspacing=1.2, **where)


_OTHER = "#D55E00"


def time_by_threads(times: Mapping[int, Measured], cores: int, title: str, subtitle: str = "") -> Figure:
    """Draw the median time over the number of threads with all runs' range, the ideal t₁/p, and the number of cores.

    Args:
        times: seconds, by the number of threads.
        cores: that the process may use.
    """
    counts = sorted(times)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.7], left=0.75, below=0.55)
    middle, high = (np.array([getattr(times[count], name) for count in counts]) for name in ("median", "high"))
    scale, unit = time_unit(middle.max())
    ax.axvline(cores, color=style.FAINT, linewidth=1, linestyle=BROKEN)
    fine = np.linspace(counts[0], counts[-1], 200)
    ax.plot(fine, scale * middle[0] * counts[0] / fine, color=style.FAINT, linewidth=1.2, zorder=1)
    runs = [times[count].values for count in counts]
    measured_points(ax, counts, runs, style.CURVES[0], scale, fmt="o-", markersize=6, linewidth=1.8, elinewidth=1.2)
    ax.set_ylim(0, scale * min(1.18 * high.max(), 1.8 * middle.max()))  # one disturbed run must not flatten the rest
    spaced = counts[-1] > 12
    if spaced:
        ax.set_xscale("log")
    in_words(ax.xaxis, counts)
    words = {"fontsize": style.SMALL, "color": "#555555", "textcoords": "offset points"}
    text = f"{count(cores, 'core')} allowed"
    at_the_right = cores > 0.75 * counts[-1]
    anchor = {"xytext": (-5 if at_the_right else 5, -2), "ha": "right" if at_the_right else "left", "va": "top"}
    ax.annotate(text, (cores, 1), xycoords=ax.get_xaxis_transform(), **anchor, **words)
    end = (counts[-1], scale * middle[0] * counts[0] / counts[-1])
    ax.annotate("if p threads were p times as fast", end, xytext=(0, -5), ha="right", va="top", **words)
    label(ax, "threads", f"time, in {unit}", grid="y")
    times_by_count = ", ".join(f"{count}: {seconds_text(times[count].median)}" for count in counts)
    picture.alt_text = f"Time over the number of threads. {title}. {subtitle} {times_by_count}. {text}."
    return picture


def between_bounds(
    measured: Mapping[int, Measured],
    bounds: Mapping[int, tuple[float, float]],
    others: Mapping[str, Sequence[float]],
    title: str,
    subtitle: str = "",
) -> Figure:
    """Draw measured times over the number of workers, and the band between the lower and the upper bound.

    Args:
        measured: in units of a task, by the number of workers.
        bounds: (lower, upper) in the same units.
        others: more lines over the same numbers of workers, by name.
    """
    counts = sorted(measured)
    right = room_for_names(["max(W/p, D)", *others])
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.0], left=0.75, right=right, below=0.55)
    low, high = (np.array([bounds[count][side] for count in counts]) for side in (0, 1))
    ax.set(xscale="log", yscale="log")
    ax.fill_between(counts, low, high, color="#CFE3F1", linewidth=0, zorder=1)
    ax.plot(counts, low, color=style.CURVES[0], linewidth=1.3)
    ax.plot(counts, high, color=style.CURVES[0], linewidth=1.3)
    for values in others.values():
        ax.plot(counts, values, color=_OTHER, linewidth=1.5, linestyle=(0, (4, 2)))
    measured_points(ax, counts, [measured[count].values for count in counts], style.INK, zorder=4)
    ax.set_xlim(counts[0] / 1.08, counts[-1] * 1.08)
    in_words(ax.xaxis, counts)
    in_words(ax.yaxis, round_numbers(*ax.get_ylim()))
    label(ax, "workers", "time, in tasks")
    ends = {"W/p + D": high[-1], "max(W/p, D)": low[-1]} | {name: values[-1] for name, values in others.items()}
    name_ends(ax, ends, {name: _OTHER if name in others else style.CURVES[0] for name in ends})
    times_by_count = ", ".join(
        f"{count}: {measured[count].median:.1f} between {bounds[count][0]:.1f} and {bounds[count][1]:.1f}"
        for count in counts
    )
    lines = "".join(f" Dashed, {name}: {', '.join(map(number_text, values))}." for name, values in others.items())
    picture.alt_text = f"Time over the number of workers, with bounds. {title}. {subtitle} {times_by_count}.{lines}"
    return picture
